from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from simops.core.errors import DataError, SpecError
from simops.core.policy import Zero
from simops.core.rollout import Recipe, rollout, wave
from simops.core.task import Task
from simops.core.training import Course
from simops.learn.checkpoint import actor_of, unpack
from simops.learn.imitation import Clone
from simops.learn.lessons import Lessons, Source, lessons, require_finite, split
from simops.learn.policy import Learned
from simops.learn.pupil import Pupil, fitted
from simops.learn.student import Student
from simops.sim.sensor import Noise
from simops.tasks.pendulum.expert import Expert
from simops.tasks.pick_and_place.task import ACTION, OBSERVATION
from tests.learn.lesson import CLONE, COURSE, ENGINE, SHORT, SMALL, TASK, block_of, bytes_after, chance_data, recorded
from tests.learn.small import PPO
from tests.learn.small import bytes_after as ppo_bytes


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("imitation") / "data")


def named_problems(trainer: Clone, course: Course = COURSE) -> str:
    with pytest.raises(SpecError) as caught, trainer.open(course):
        pass
    return str(caught.value)


def test_a_clone_learns_to_swing_up(tmp_path: Path) -> None:
    path = recorded(tmp_path / "data", n=60, task=TASK)
    clone = Clone(data=path, student=Student(hidden=(64, 64)), laps=6, updates=300, batch=128, huber=0.1, threads=1)
    with clone.open(Course(task=TASK, engine=ENGINE, seed=0)) as training:
        losses = [training.advance().figures["held_out/data"] for _ in range(training.laps)]
        policy = training.policy
    succeeded = sum(t.outcome == "success" for t in rollout(policy, TASK, ENGINE, n=50, seed=9))
    assert losses[-1] < 0.5 * losses[0]
    assert succeeded >= 12  # nobody does by chance, and one that only imitates loses its way at times


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(data: Path) -> None:
    clone = replace(CLONE, data=data)
    assert bytes_after(clone, 3) == bytes_after(clone, 3)
    assert bytes_after(clone, 3) != bytes_after(clone, 3, course=replace(COURSE, seed=4))


@pytest.mark.parametrize("stop", [1, 2, 5])
def test_a_training_that_goes_on_comes_to_the_same_bytes(data: Path, stop: int) -> None:
    clone = replace(CLONE, data=data, recorded=data, student=replace(SMALL, window=2, chunk=3, carry=2))
    held = bytes_after(clone, stop)
    assert bytes_after(clone, 6 - stop, checkpoint=held) == bytes_after(clone, 6)


def test_how_often_checkpoints_are_kept_changes_no_byte(data: Path) -> None:
    clone = replace(CLONE, data=data)
    assert bytes_after(clone, 4) == bytes_after(replace(clone, checkpoint_every=3), 4)


@pytest.mark.parametrize(
    "student",
    [
        SMALL,
        replace(SMALL, window=4),
        replace(SMALL, chunk=3),
        replace(SMALL, window=3, chunk=2, ignore=("rate",), activation="tanh"),
    ],
)
def test_what_acts_is_what_was_taught(student: Student, data: Path) -> None:
    """Row by row through the acting network comes to what a bench lays out for learning."""
    found = Source(data).read(SHORT)
    actor = student.actor(SHORT.observation, SHORT.action)
    fitted(actor, found)
    bench = Pupil(actor, CLONE.study(), 0).bench(found)
    memory = [torch.zeros(len(found), *slot.shape) for slot in actor.slots]
    starts = np.cumsum(found.lengths) - found.lengths
    for step in range(int(found.lengths.min())):
        rows = torch.tensor(starts + step)
        with torch.inference_mode():
            action, *memory = actor(torch.tensor(found.observation)[rows], *memory)
            raw = actor.body(bench.features[bench.window[rows]].flatten(1)).unflatten(1, (student.chunk, -1))
            want = actor.unscale(raw)[:, 0]
        torch.testing.assert_close(action, want, rtol=1e-4, atol=1e-4)


def test_actions_are_counted_from_the_joints_of_the_same_names() -> None:
    student = Student(hidden=(8,), relative="joint_position", ignore=("joint_velocity", "cube_velocity"))
    actor = student.actor(OBSERVATION, ACTION)
    with torch.no_grad():
        for weight in actor.parameters():
            weight.zero_()
    seen = torch.randn(5, OBSERVATION.size) * 0.1
    with torch.inference_mode():
        action = actor(seen, *(torch.zeros(5, *slot.shape) for slot in actor.slots))[0]
    low, high = np.array(ACTION.low, np.float32), np.array(ACTION.high, np.float32)
    wanted = np.clip(np.concatenate([seen[:, :7].numpy(), np.zeros((5, 1), np.float32)], axis=1), low, high)
    np.testing.assert_array_equal(action.numpy(), wanted)


def test_what_is_ignored_changes_nothing_and_positions_are_compared() -> None:
    student = Student(ignore=("joint_velocity",))
    view = student.view(OBSERVATION)
    seen = torch.randn(2, OBSERVATION.size)
    other = seen.clone()
    other[:, OBSERVATION.slices["joint_velocity"]] = torch.nan
    torch.testing.assert_close(view(seen), view(other), rtol=0, atol=0)
    spans = OBSERVATION.slices
    gap = seen[:, spans["tool_position"]] - seen[:, spans["cube_position"]]
    assert any(torch.equal(view(seen)[:, i : i + 3], gap) for i in range(view.size - 2))


def test_a_quaternion_and_its_negative_are_the_same_rotation() -> None:
    view = Student(ignore=tuple(n for n in OBSERVATION.names if n != "cube_quaternion")).view(OBSERVATION)
    seen = torch.randn(3, OBSERVATION.size)
    quaternion = OBSERVATION.slices["cube_quaternion"]
    seen[:, quaternion] /= (seen[:, quaternion] ** 2).sum(dim=1, keepdim=True).sqrt()
    torch.testing.assert_close(view(seen)[:, 4:], view(-seen)[:, 4:])


def test_the_target_of_a_plan_is_what_was_done_next() -> None:
    block = block_of(n=3)
    found = lessons(block, SHORT)
    actor = replace(SMALL, chunk=4).actor(SHORT.observation, SHORT.action)
    bench = Pupil(actor, CLONE.study(), 0).bench(found)
    last = int(found.lengths[0]) - 1
    np.testing.assert_allclose(bench.target[2, :, 0], found.label[2:6, 0], rtol=1e-5)
    np.testing.assert_allclose(bench.target[last, :, 0], np.repeat(found.label[last], 4), rtol=1e-5)


def test_what_the_policy_was_shown_is_learned_and_not_the_truth() -> None:
    recipe = Recipe(policy=Expert(), task=SHORT, engine=ENGINE, sensors=(Noise({"rate": 0.5}),))
    with ENGINE.open(SHORT, 4) as sim:
        block = wave(recipe, sim, np.arange(4))
    columns = block.schema.unpack(block.rows)
    kept = np.ones(len(block.rows), bool)
    kept[block.starts + block.lengths] = False
    seen = lessons(block, SHORT).observation[:, SHORT.observation.slices["rate"]]
    np.testing.assert_array_equal(seen[:, 0], columns["shown_rate"][kept])
    assert np.any(columns["shown_rate"][kept] != columns["rate"][kept])


def test_episodes_are_held_out_whole(data: Path) -> None:
    parts = split(Source(data).read(SHORT), held_out=0.25, seed=3)
    assert (len(parts.learned), len(parts.asked)) == (18, 6)
    whole = [np.split(part.observation, np.cumsum(part.lengths)[:-1]) for part in parts]
    assert len({rows.tobytes() for part in whole for rows in part}) == 24


def test_a_frozen_layer_stays_and_the_rest_moves(data: Path, tmp_path: Path) -> None:
    held = bytes_after(replace(CLONE, data=data), 2)
    (tmp_path / "checkpoint.safetensors").write_bytes(held)
    tuned = replace(CLONE, data=None, recorded=data, begin=tmp_path, frozen=1, average=1.0)
    before, after = (unpack(b).under("actor") for b in (held, bytes_after(tuned, 2)))
    same = {name for name in before if torch.equal(before[name], after[name])}
    assert {"body.0.weight", "body.0.bias", "scale.mean", "scale.std"} <= same
    assert not same & {"body.2.weight", "body.4.weight", "body.4.bias"}


def test_what_reinforcement_learned_is_where_tuning_begins(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "ppo.safetensors"
    learner = ppo_bytes(PPO, replace(COURSE, task=SHORT))
    file.write_bytes(learner)
    with replace(CLONE, data=data, begin=file).open(COURSE) as training:
        mine, theirs = training.policy, Learned(actor_of(unpack(learner)))
        seen = np.random.default_rng(0).normal(0, 3, (64, 3)).astype(np.float32)
        seeds = np.arange(64, dtype=np.uint64)
        did, should = (p.act(seen, p.start(SHORT, seeds)).action for p in (mine, theirs))
        np.testing.assert_allclose(did, should, rtol=1e-5, atol=1e-6)
        training.advance()
        assert np.abs(training.policy.act(seen, mine.start(SHORT, seeds)).action - should).max() > 1e-4


def test_a_small_recorded_set_counts_as_much_as_it_is_said_to(data: Path, tmp_path: Path) -> None:
    few = recorded(tmp_path / "few", Zero(), n=4, seed=5)
    errors: list[float] = []
    for share in (0.0, 0.9):
        clone = replace(CLONE, data=data, recorded=few, recorded_share=share, held_out=0.3, laps=6, updates=100)
        with clone.open(COURSE) as training:
            figures = [training.advance().figures for _ in range(training.laps)]
        errors.append(figures[-1]["held_out/recorded"])
    assert errors[1] < 0.5 * errors[0]


def other_task(task: Task = SHORT) -> Task:
    return replace(task, control_dt_s=0.04, action=replace(task.action, labels=("hinge_motor",)))


def test_a_dataset_of_another_contract_is_named_difference_by_difference(data: Path) -> None:
    course = replace(COURSE, task=other_task())
    with pytest.raises(DataError, match=r"control_dt_s is 0\.02 there and 0\.04 here") as caught:
        bytes_after(replace(CLONE, data=data), 1, course=course)
    assert "torque.labels is motor there and hinge_motor here" in str(caught.value)
    assert caught.value.fault == "CFG-012"


def test_a_dataset_of_another_robot_says_what_it_lacks(data: Path) -> None:
    strange = replace(SHORT, name="strange", observation=OBSERVATION)
    with pytest.raises(DataError, match="has no joint_position"):
        Source(data).read(strange)


def test_too_few_episodes_say_how_many_are_needed(data: Path) -> None:
    with pytest.raises(DataError, match="24 episodes to learn from, at least 40 are needed") as caught:
        bytes_after(replace(CLONE, data=data, at_least=40), 1)
    assert "16 more" in caught.value.attempt


def test_no_success_says_what_there_is_instead(tmp_path: Path) -> None:
    path = chance_data(tmp_path / "data")
    with pytest.raises(DataError, match=r"no episode ended in success \(there are: 24 timeout"):
        bytes_after(replace(CLONE, data=path), 1)
    assert bytes_after(replace(CLONE, data=path, outcomes=("timeout",)), 1)


def test_what_is_not_finite_is_refused_with_its_episode() -> None:
    found = lessons(block_of(n=3), SHORT)
    found.observation[int(found.lengths[0])] = np.nan
    with pytest.raises(DataError, match="in episode 1 of the 3") as caught:
        require_finite(found, where="data")
    assert caught.value.fault == "DAT-007"


def test_a_checkpoint_of_another_training_is_refused(data: Path) -> None:
    held = bytes_after(replace(CLONE, data=data), 1)
    with pytest.raises(DataError, match="another training") as caught:
        bytes_after(replace(CLONE, data=data, batch=16), 1, checkpoint=held)
    assert caught.value.fault == "TRN-012"


def test_a_learning_rate_that_explodes_is_named(data: Path) -> None:
    problem = ""
    with pytest.raises(SpecError) as caught:
        bytes_after(replace(CLONE, data=data, learning_rate=1e20), 6)
    problem = str(caught.value)
    assert "learning_rate" in problem
    assert "TRN-003" in problem


@pytest.mark.parametrize(
    ("clone", "said"),
    [
        (CLONE, "nothing to learn from"),
        (replace(CLONE, data=Path("x"), student=replace(SMALL, ignore=("rat",))), "try 'rate'"),
        (replace(CLONE, data=Path("x"), student=replace(SMALL, ignore=("rate", "heading"))), "nothing is left"),
        (replace(CLONE, data=Path("x"), student=replace(SMALL, relative="rate")), "no label"),
        (replace(CLONE, data=Path("x"), student=replace(SMALL, carry=2)), "at most 1"),
    ],
)
def test_what_does_not_fit_the_task_is_said_before_anything_is_read(clone: Clone, said: str) -> None:
    assert said in named_problems(clone)


def test_too_many_frozen_layers_are_refused(data: Path) -> None:
    assert "at most 2" in named_problems(replace(CLONE, data=data, frozen=3))


def test_lessons_know_where_episodes_begin_and_end() -> None:
    found = Lessons(np.zeros((5, 1)), np.zeros((5, 1)), np.array([2, 3]))
    assert found.first.tolist() == [0, 0, 2, 2, 2]
    assert found.last.tolist() == [1, 1, 4, 4, 4]
    assert found.only(np.array([False, True])).lengths.tolist() == [3]
