from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from simops.core.errors import SpecError
from simops.core.policy import Zero
from simops.core.rollout import rollout
from simops.core.training import Course
from simops.learn.dagger import Dagger, Handover, distil, relabelled
from simops.learn.student import Student
from simops.sim.mujoco import Mujoco
from simops.tasks.pendulum.expert import Expert
from simops.tasks.pick_and_place.expert import Expert as Hand
from simops.tasks.pick_and_place.task import pick_and_place
from tests.learn.lesson import CLONE, COURSE, ENGINE, SHORT, SMALL, TASK, block_of, bytes_after, recorded

DAGGER = Dagger(clone=CLONE, rounds=2, episodes=5, after=2)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("teacher") / "data")


def mixed(**fields: object) -> Handover:
    return replace(Handover(student=Zero(), teacher=Expert(), within=12, beta=0.0), **fields)  # type: ignore[reportArgumentType]


def test_an_expert_that_is_asked_about_its_own_episodes_says_what_it_did() -> None:
    task, engine = pick_and_place(), Mujoco(threads=1)
    block = block_of(Hand(), n=3, task=task, engine=engine)
    done = block.schema.unpack(block.rows)["action"].reshape(len(block.rows), -1)
    np.testing.assert_allclose(relabelled(Hand(), task, block), done, atol=1e-6)


def test_the_student_drives_until_the_teacher_takes_over() -> None:
    policy = mixed()
    block = block_of(policy, n=16)
    done = block.schema.unpack(block.rows)["action"][:, 0]
    said = relabelled(Expert(), SHORT, block)[:, 0]
    acted = np.isfinite(done)
    driven = policy.driven(block)
    np.testing.assert_array_equal(done[acted & driven], said[acted & driven])
    assert not done[acted & ~driven].any()
    share = driven[acted].mean()
    assert 0.2 < share < 0.95


def test_with_beta_one_the_teacher_drives_from_the_beginning() -> None:
    policy = mixed(beta=1.0)
    assert policy.driven(block_of(policy, n=4)).all()


def test_a_teacher_that_never_takes_over_is_still_asked() -> None:
    policy = mixed(hands_over=False)
    block = block_of(policy, n=4)
    done = block.schema.unpack(block.rows)["action"][:, 0]
    assert not done[np.isfinite(done)].any()
    assert np.nanmax(np.abs(relabelled(Expert(), SHORT, block))) > 0.1


def test_the_teacher_is_told_what_was_carried_out() -> None:
    """A hand that plans on its own command goes on from where the student brought it."""
    task, engine = pick_and_place(), Mujoco(threads=1)
    policy = Handover(student=Zero(), teacher=Hand(), within=task.steps, beta=0.0, hands_over=False)
    block = block_of(policy, n=2, task=replace(task, horizon_s=0.8), engine=engine)
    done = block.schema.unpack(block.rows)["action"]
    said = relabelled(Hand(), task, block)
    steps = np.abs(said[1:20, :7] - done[:19, :7])
    assert steps.max() < 0.11  # no joint is asked to go farther than in one control step


def test_every_episode_of_a_teacher_is_counted(data: Path) -> None:
    with replace(DAGGER, clone=replace(CLONE, data=data)).open(COURSE) as training:
        counts = [training.advance().figures["teacher_episodes"] for _ in range(6)]
    assert counts == [24, 24, 29, 29, 34, 34]


@pytest.mark.parametrize("stop", [1, 2, 3, 5])
def test_a_training_that_goes_on_across_rounds_comes_to_the_same_bytes(data: Path, stop: int) -> None:
    dagger = replace(DAGGER, clone=replace(CLONE, data=data))
    assert bytes_after(dagger, 6 - stop, checkpoint=bytes_after(dagger, stop)) == bytes_after(dagger, 6)


def test_a_student_is_distilled_from_a_teacher_without_any_dataset() -> None:
    clone = replace(CLONE, student=Student(hidden=(32, 32)), laps=8, updates=250, batch=128, huber=0.1)
    dagger = Dagger(teacher=Expert(), clone=clone, rounds=3, episodes=20, after=2, labels="all")
    with dagger.open(Course(task=TASK, engine=ENGINE, seed=1)) as training:
        for _ in range(training.laps):
            training.advance()
        policy = training.policy
    assert sum(t.outcome == "success" for t in rollout(policy, TASK, ENGINE, n=40, seed=9)) >= 24


def test_distilling_goes_on_from_a_checkpoint() -> None:
    dagger = replace(distil(teacher=Expert(), student=SMALL, rounds=2, episodes=4), after=2, clone=CLONE)
    assert bytes_after(dagger, 3, checkpoint=bytes_after(dagger, 3)) == bytes_after(dagger, 6)


def test_rounds_that_do_not_fit_are_refused() -> None:
    with pytest.raises(SpecError, match="1 problem") as caught:
        bytes_after(replace(DAGGER, rounds=5), 1)
    assert "5 rounds" in str(caught.value)


def test_a_task_without_an_expert_needs_a_named_teacher() -> None:
    with pytest.raises(SpecError) as caught:
        bytes_after(DAGGER, 1, course=replace(COURSE, task=replace(SHORT, expert="")))
    assert "has no expert" in str(caught.value)
