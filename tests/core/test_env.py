"""Endless episodes: the same steps as a rollout's, and nothing lost where one episode follows another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simops.core.env import Env
from simops.core.policy import Random
from simops.core.protocols import Engine, Sensor
from simops.core.rollout import Recipe, wave
from simops.core.signal import Array, Columns
from simops.core.task import Term
from simops.core.trajectory import OUTCOMES, shown
from simops.sim.mujoco import Mujoco
from simops.sim.pendulum import Pendulum
from simops.sim.sensor import Encoder, Noise
from simops.tasks.pendulum.task import pendulum


def fast(columns: Columns) -> Array:
    return np.abs(columns["rate"]) > 1.2


def never(columns: Columns) -> Array:
    return np.zeros(len(columns["time_s"]), bool)


TASK = replace(pendulum(), horizon_s=0.6, failure=fast)
QUICK = Pendulum(step_s=0.01)
SENSORS = (Noise(std={"angle": 0.01}, bias={"rate": 0.1}), Encoder(signal="angle", step=0.01, delay_steps=2))


@pytest.mark.parametrize("sensors", [(), SENSORS], ids=["bare", "sensed"])
@pytest.mark.parametrize("engine", [QUICK, Mujoco(threads=1)], ids=["equation", "mujoco"])
def test_first_episodes_are_those_of_a_rollout(engine: Engine, sensors: tuple[Sensor, ...]) -> None:
    n = 8
    recipe = Recipe(policy=Random(hold_steps=8), task=TASK, engine=engine, sensors=sensors, seed=2)
    with engine.open(TASK, n) as sim:
        block = wave(recipe, sim, np.arange(n))
    assert len(set(block.lengths.tolist())) > 1
    with engine.open(TASK, n) as sim:
        env = Env(TASK, sim, sensors=sensors, seed=2)
        for step in range(int(block.lengths.min())):
            actions = np.stack([t["action"][step] for t in block])
            if sensors:
                seen = np.stack([t[shown("rate")][step] for t in block])
                np.testing.assert_array_equal(env.observation[:, TASK.observation.slices["rate"].start], seen)
            done = env.step(actions)
            np.testing.assert_array_equal(done.reward, [t["reward"][step] for t in block])
            ended = np.flatnonzero(block.lengths == step + 1)
            np.testing.assert_array_equal(done.ended, ended)
            np.testing.assert_array_equal(done.outcome, block.outcomes[ended])


def test_a_copy_that_ends_begins_a_fresh_episode_and_leaves_the_others() -> None:
    with QUICK.open(TASK, 4) as sim, QUICK.open(TASK, 5) as other:
        env, beside = Env(TASK, sim, seed=2), Env(TASK, other, seed=2)
        assert beside.state[4].tolist() != env.state[3].tolist()
        policy = Random(hold_steps=8)
        memory = policy.start(TASK, np.arange(4, dtype=np.uint64))
        begun = beside.state[4].copy()  # episode 4, which the first copy to end goes on with
        lengths: list[int] = []
        for _ in range(80):
            action, memory = policy.act(env.observation, memory)
            state = env.state.copy()
            done = env.step(action)
            lengths.extend(done.length.tolist())
            assert not np.any(done.terminated & done.truncated)
            np.testing.assert_array_equal(np.flatnonzero(done.terminated | done.truncated), done.ended)
            assert len(done.last) == len(done.ended)
            if done.ended.size and begun.size:
                np.testing.assert_array_equal(env.state[done.ended[0]], begun)
                assert not np.array_equal(done.last[0], env.observation[done.ended[0]])
                begun = begun[:0]
            assert not np.array_equal(state, env.state)
        assert len(lengths) > 8
        assert max(lengths) <= TASK.steps


def test_what_is_no_number_ends_as_diverged_and_earns_nothing() -> None:
    with QUICK.open(TASK, 3) as sim:
        env = Env(TASK, sim)
        done = env.step(np.array([[0.0], [np.nan], [0.0]], np.float32))
        assert done.ended.tolist() == [1]
        assert [OUTCOMES[int(o)] for o in done.outcome] == ["diverged"]
        assert done.terminated.tolist() == [False, True, False]
        assert done.reward[1] == 0.0
        assert np.isfinite(env.state).all()
        assert np.isfinite(env.observation).all()


def test_running_out_of_time_is_not_a_failure() -> None:
    task = replace(TASK, failure=never, success=never)
    with QUICK.open(task, 2) as sim:
        env = Env(task, sim)
        for step in range(task.steps):
            done = env.step(np.zeros((2, 1), np.float32))
            assert done.truncated.tolist() == [step == task.steps - 1] * 2
            assert not done.terminated.any()


def test_a_learner_may_write_its_next_actions_over_the_last() -> None:
    smooth = replace(
        TASK, reward=(Term("jerk", 1.0, lambda c: np.abs(c["action"] - c["previous_action"]).sum(axis=1)),)
    )
    with QUICK.open(smooth, 2) as sim:
        env, action = Env(smooth, sim), np.zeros((2, 1), np.float32)
        env.step(action)
        action[:] = 0.25
        np.testing.assert_array_equal(env.step(action).terms["jerk"], [0.25, 0.25])
