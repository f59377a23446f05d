"""Learning by reinforcement: it learns, it gives the same bytes, and what breaks does not stop it."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import pytest
import torch

from simops.core.env import Env
from simops.core.errors import DataError, EngineError, SignalError, SpecError
from simops.core.params import Params
from simops.core.policy import centre_and_scale
from simops.core.protocols import Sim
from simops.core.rollout import rollout
from simops.core.signal import Array, Columns
from simops.core.task import Task, Term
from simops.core.training import Course, Dump, reweighted
from simops.core.trajectory import OUTCOMES
from simops.learn.checkpoint import actor_of, unpack
from simops.learn.curriculum import Curriculum
from simops.learn.ppo import Ppo
from simops.learn.quarantine import replay
from simops.learn.rsl import Inputs, Learner
from tests.learn.small import COURSE, ENGINE, PPO, REMEMBERS, TASK, bytes_after

STATE = TASK.state_schema.size + len(TASK.reward)


def one(columns: Columns) -> Array:
    return np.ones(len(columns["time_s"]), np.float32)


def no_number(columns: Columns) -> Array:
    return np.nan * one(columns)


def never(columns: Columns) -> Array:
    return np.zeros(len(columns["time_s"]), bool)


def at_once(columns: Columns) -> Array:
    return np.ones(len(columns["time_s"]), bool)


@pytest.mark.parametrize("ppo", [PPO, REMEMBERS], ids=["feedforward", "recurrent"])
def test_a_training_gives_the_same_bytes_each_time_and_others_from_another_seed(ppo: Ppo) -> None:
    assert bytes_after(ppo) == bytes_after(ppo)
    assert bytes_after(ppo) != bytes_after(ppo, replace(COURSE, seed=4))


@pytest.mark.parametrize("ppo", [PPO, REMEMBERS], ids=["feedforward", "recurrent"])
@pytest.mark.parametrize("lap", [0, 2, 4])
def test_a_training_that_goes_on_from_a_checkpoint_comes_to_the_same_bytes(ppo: Ppo, lap: int) -> None:
    with ppo.open(COURSE) as training:
        while training.done < lap:
            training.advance()
        assert training.due
        held = training.checkpoint()
        training.advance()  # what is done after the checkpoint is lost
    assert bytes_after(ppo, checkpoint=held) == bytes_after(ppo)


def test_a_training_goes_on_from_its_first_lap_which_only_looked() -> None:
    every = replace(PPO, checkpoint_every=1)
    assert bytes_after(every, checkpoint=_after(every, COURSE, 1)) == bytes_after(every)


def test_what_else_draws_random_numbers_changes_nothing() -> None:
    with PPO.open(COURSE) as training:
        while training.done < training.laps:
            torch.rand(3)
            training.advance()
            torch.manual_seed(training.done)  # type: ignore[reportUnknownMemberType]
        assert training.checkpoint() == bytes_after(PPO)


def test_taking_a_checkpoint_changes_nothing() -> None:
    with PPO.open(COURSE) as training:
        while training.done < training.laps:
            training.checkpoint()
            training.advance()
        assert training.checkpoint() == bytes_after(PPO)


@pytest.mark.parametrize("ppo", [PPO, REMEMBERS], ids=["feedforward", "recurrent"])
def test_what_leaves_acts_as_what_learned(ppo: Ppo) -> None:
    with ppo.open(COURSE) as training:
        for _ in range(3):
            training.advance()
        learner, policy = training.learner, training.policy
        learner.forget()
        seeds = np.arange(ppo.copies, dtype=np.uint64)
        memory = policy.start(TASK, seeds)
        centre, scale = centre_and_scale(TASK)
        for step in range(4):
            rows = np.random.default_rng(step).normal(size=(ppo.copies, 3)).astype(np.float32)
            learner.act(Inputs(rows, np.zeros((ppo.copies, STATE), np.float32)))
            action, memory = policy.act(rows, memory)
            wanted = TASK.action.clip((centre + scale * learner.mean).astype(np.float32))
            np.testing.assert_allclose(action, wanted, atol=1e-6)


def test_the_policy_sees_nothing_that_only_the_critic_may_see() -> None:
    taught = actor_of(unpack(bytes_after(PPO)))
    assert taught.contract.observation == TASK.observation
    assert taught.actor(torch.zeros(2, TASK.observation.size))[0].shape == (2, 1)
    with pytest.raises(RuntimeError):
        taught.actor(torch.zeros(2, TASK.observation.size + TASK.state_schema.size))


def test_the_critic_sees_the_state() -> None:
    learner = Learner(TASK, (4, 2), (PPO.actor, PPO.critic), PPO.options())
    shown = np.zeros((4, 3), np.float32)
    states = [np.full((4, STATE), number, np.float32) for number in (0.0, 1.0)]
    first, second = (learner.value(Inputs(shown, state), np.arange(4)) for state in states)
    assert not np.array_equal(first, second)


def test_a_policy_refuses_another_task() -> None:
    with PPO.open(COURSE) as training:
        policy = training.policy
    with pytest.raises(SignalError, match="control_dt_s"):
        policy.start(replace(TASK, control_dt_s=0.05), np.arange(2, dtype=np.uint64))
    assert rollout(policy, TASK, ENGINE, n=3)[0].outcome in OUTCOMES


def test_a_checkpoint_of_another_training_is_refused() -> None:
    held = bytes_after(PPO)
    for course in (replace(COURSE, seed=9), replace(COURSE, task=reweighted(TASK, {"effort": -1.0}))):
        with pytest.raises(DataError, match="another training") as caught, PPO.open(course, checkpoint=held):
            pass
        assert caught.value.fault == "TRN-012"
    with replace(PPO, laps=9).open(COURSE, checkpoint=held) as training:  # more laps are more of the same
        assert training.done == PPO.laps


def test_time_running_out_is_bootstrapped_from_the_last_observation() -> None:
    """With a reward of 1 for ever, a critic that was taught long enough says 1 / (1 - discount) at any age."""
    always = replace(
        TASK,
        reward=(Term("one", 1.0, one),),
        failure=never,
        success=never,
    )
    ppo = replace(PPO, laps=60, discount=0.8, normalise_rewards=False, learning_rate=0.01, target_kl=0.0, epochs=4)
    with ppo.open(replace(COURSE, task=always)) as training:
        while training.done < training.laps:
            training.advance()
        with ENGINE.open(always, ppo.copies) as sim:
            env = Env(always, sim)
            worth = training.learner.value(
                Inputs(env.observation, np.hstack([env.state, np.ones((ppo.copies, 1), np.float32)])),
                np.arange(ppo.copies),
            )
    np.testing.assert_allclose(worth, 5.0, atol=0.25)


@final
@dataclass(frozen=True)
class Brittle:
    """An engine whose copies break down when pushed hard."""

    limit_nm: float = 3.5

    @contextmanager
    def open(self, task: Task, n: int) -> Generator[Sim]:
        with ENGINE.open(task, n) as sim:
            yield _Brittle(sim, self.limit_nm)

    def version(self, task: Task) -> str:
        return ENGINE.version(task)


@final
class _Brittle:
    def __init__(self, sim: Sim, limit_nm: float) -> None:
        self._sim, self._limit_nm = sim, limit_nm
        self.n, self._broken = sim.n, np.zeros(sim.n, bool)

    @property
    def diverged(self) -> Array:
        return self._sim.diverged | self._broken

    @property
    def executed(self) -> Array:
        return self._sim.executed

    @property
    def busy_s(self) -> float:
        return self._sim.busy_s

    def reset(self, ids: Array, params: Params, initial: Columns) -> None:
        self._broken[ids] = False
        self._sim.reset(ids, params, initial)

    def push(self, ids: Array, body: str, wrench: Array) -> None:
        self._sim.push(ids, body, wrench)

    def step(self, action: Array, ids: Array | None = None) -> None:
        rows = np.arange(self.n) if ids is None else ids
        self._broken[rows] |= np.abs(action[:, 0]) > self._limit_nm
        self._sim.step(action, ids)

    def read(self) -> Columns:
        read = {name: rows.copy() for name, rows in self._sim.read().items()}
        for rows in read.values():
            rows[self._broken] = np.nan
        return read


def test_a_copy_that_breaks_down_is_kept_to_be_run_again_and_the_others_go_on() -> None:
    engine = Brittle(limit_nm=3.999)
    ppo = replace(PPO, copies=200, minibatches=1, actor=replace(PPO.actor, init_std=0.29), checkpoint_every=1)
    course = replace(COURSE, engine=engine)
    dumps: list[Dump] = []
    with ppo.open(course) as training:
        while training.done < training.laps:
            lap = training.advance()
            dumps.extend(lap.dumps)
            assert lap.figures["broken"] == len(lap.dumps)
        assert all(bool(torch.isfinite(tensor).all()) for tensor in unpack(training.checkpoint()).tensors.values())
    assert 0 < len(dumps) < 20
    for dump in dumps:
        again = replay(unpack(dump.data), TASK, engine)
        assert again.outcome == "diverged"
        assert len(again) == int(unpack(dump.data).said("length"))
        assert dump.name == f"episode-{again.episode:08d}"


def test_training_stops_when_too_many_copies_break_down() -> None:
    with PPO.open(replace(COURSE, engine=Brittle(limit_nm=0.5))) as training:
        assert training.advance().dumps
        with pytest.raises(EngineError, match="broke down") as caught:
            training.advance()
    assert caught.value.fault == "TRN-001"


def test_gradients_that_are_no_numbers_change_nothing_and_three_in_a_row_stop_the_training() -> None:
    wild = replace(TASK, reward=(Term("wild", 1.0, no_number),))
    with replace(PPO, normalise_rewards=False).open(replace(COURSE, task=wild)) as training:
        training.advance()
        before = unpack(training.checkpoint()).tensors
        rates: list[float] = []
        for strike in (1, 2):
            lap = training.advance()
            assert lap.figures["loss/strikes"] == strike
            rates.append(lap.figures["learning_rate"])
        after = unpack(training.checkpoint()).tensors
        for name, tensor in before.items():
            if name.startswith(("actor.", "critic.")):
                assert torch.equal(tensor, after[name]), name
        assert rates == [PPO.learning_rate / 2, PPO.learning_rate / 4]
        with pytest.raises(SpecError, match="TRN-003"):
            training.advance()


def test_a_curriculum_opens_as_the_policy_succeeds_and_is_part_of_the_checkpoint() -> None:
    easy = replace(TASK, success=at_once, success_hold_s=0.0)
    ppo = replace(PPO, curriculum=Curriculum(start=0.2, step=0.3, episodes=20))
    course = Course(task=easy, engine=ENGINE)
    with ppo.open(course) as training:
        levels = [training.advance().figures["level"] for _ in range(6)]
    assert levels[0] < levels[-1] == 1.0
    assert bytes_after(ppo, course) == bytes_after(ppo, course, checkpoint=_after(ppo, course, 2))


def _after(ppo: Ppo, course: Course, laps: int) -> bytes:
    with ppo.open(course) as training:
        for _ in range(laps):
            training.advance()
        return training.checkpoint()
