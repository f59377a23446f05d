"""The loop over time: same bytes in any company, replays that repeat, outcomes that mean what they say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simops.core.chance import uniform
from simops.core.errors import SignalError
from simops.core.policy import Random, Tape, Zero
from simops.core.protocols import Act, Engine, Memory, Policy, Sensor
from simops.core.rollout import Recipe, replay, rollout, score, wave
from simops.core.signal import Array, Columns, Schema, Signal
from simops.core.task import Draw, Task, Term
from simops.core.trajectory import Block, Trajectory, scored, shown
from simops.sim.mujoco import Mujoco
from simops.sim.pendulum import Pendulum
from simops.sim.sensor import Encoder, Noise
from simops.tasks.pendulum.expert import Expert
from simops.tasks.pendulum.task import pendulum
from simops.tasks.pick_and_place.expert import Expert as Placer
from simops.tasks.pick_and_place.task import pick_and_place

SHORT = replace(pendulum(), horizon_s=1.0)
QUICK = Pendulum(step_s=0.01)
SENSORS = (Noise(std={"angle": 0.01}, bias={"rate": 0.1}), Encoder(signal="angle", step=0.01, delay_steps=2))


def block(
    episodes: Sequence[int],
    *,
    policy: Policy | None = None,
    task: Task = SHORT,
    engine: Engine = QUICK,
    sensors: tuple[Sensor, ...] = (),
    copies: int = 0,
    seed: int = 3,
) -> Block:
    recipe = Recipe(policy=policy or Random(), task=task, engine=engine, sensors=sensors, seed=seed)
    with engine.open(task, copies or len(episodes)) as sim:
        return wave(recipe, sim, np.array(episodes))


def assert_same(one: Trajectory, other: Trajectory) -> None:
    assert (one.episode, one.seed, one.outcome, one.params) == (other.episode, other.seed, other.outcome, other.params)
    assert one.schema == other.schema
    for name in one.schema.names:
        assert np.ascontiguousarray(one[name]).tobytes() == np.ascontiguousarray(other[name]).tobytes(), name


@pytest.mark.parametrize("sensors", [(), SENSORS], ids=["bare", "sensed"])
@pytest.mark.parametrize("engine", [QUICK, Mujoco(threads=1)], ids=["equation", "mujoco"])
def test_the_same_bytes_in_any_batch(engine: Engine, sensors: tuple[Sensor, ...]) -> None:
    whole = rollout(Random(), SHORT, engine, n=64, seed=3, sensors=sensors, batch=64)
    for batch, n in ((1, 4), (3, 10), (7, 64)):
        found = rollout(Random(), SHORT, engine, n=n, seed=3, sensors=sensors, batch=batch)
        for one, other in zip(found, whole, strict=False):
            assert_same(one, other)


def test_the_same_bytes_at_any_number_of_threads_when_episodes_end_at_different_times() -> None:
    task = pick_and_place()
    one, two = (rollout(Placer(), task, Mujoco(threads=k), n=6, seed=3) for k in (1, 2))
    alone = rollout(Placer(), task, Mujoco(threads=1), n=3, seed=3, batch=1)
    assert len({len(t) for t in one}) > 1
    for a, b in zip(one, two, strict=True):
        assert_same(a, b)
    for a, b in zip(alone, one, strict=False):
        assert_same(a, b)


@given(st.permutations(range(7)))
def test_the_same_bytes_in_any_order(order: list[int]) -> None:
    policy = Expert(catch_rad=0.5)
    straight = block(range(7), policy=policy, sensors=SENSORS)
    turned = block(order, policy=policy, sensors=SENSORS, copies=9)
    for place, episode in enumerate(order):
        assert_same(turned.trajectory(place), straight.trajectory(episode))
        for name, sums in straight.scores.items():
            assert turned.scores[name][place] == sums[episode]


def test_another_seed_or_realm_is_another_episode() -> None:
    first = block([0]).trajectory(0)
    assert block([0], seed=4).trajectory(0).seed != first.seed
    recipe = Recipe(policy=Random(), task=SHORT, engine=QUICK, seed=3, realm="gate")
    assert recipe.draw(np.arange(1)).seeds[0] != first.seed


@pytest.mark.parametrize(
    ("policy", "task", "engine"),
    [(Expert(), pendulum(), QUICK), (Expert(), pendulum(), Mujoco(threads=1)), (Placer(), pick_and_place(), Mujoco())],
    ids=["equation", "mujoco", "panda"],
)
def test_a_replay_repeats_every_bit(policy: Policy, task: Task, engine: Engine) -> None:
    for trajectory in rollout(policy, task, engine, n=2, seed=5):
        again = replay(trajectory, task, engine)
        assert_same(again, trajectory)


@pytest.mark.parametrize("task", [pendulum(), pick_and_place()], ids=lambda task: task.name)
def test_scoring_the_log_gives_the_reward_that_was_given(task: Task) -> None:
    policy = Expert() if task.name == "pendulum" else Placer()
    found = block(range(5), policy=policy, task=task, engine=Mujoco())
    for i, trajectory in enumerate(found):
        terms = score(task, trajectory)
        assert terms["reward"].tobytes() == np.ascontiguousarray(trajectory["reward"][:-1]).tobytes()
        for name, sums in found.scores.items():
            assert float(np.cumsum(terms[name].astype(np.float64))[-1]) == sums[i]


def test_rows_before_and_after_an_action_are_where_the_log_says() -> None:
    trajectory = block([0]).trajectory(0)
    assert len(trajectory) == SHORT.steps
    assert len(trajectory["angle"]) == SHORT.steps + 1
    for name in ("action", "executed", "reward"):
        assert np.isnan(trajectory[name][-1]).all()
        assert np.isfinite(trajectory[name][:-1]).all()
    log = scored(SHORT, trajectory)
    np.testing.assert_array_equal(log["angle"], trajectory["angle"][1:])
    np.testing.assert_array_equal(log["previous_action"][1:], trajectory["action"][:-2])
    np.testing.assert_array_equal(log["previous_action"][0], trajectory["action"][0])
    np.testing.assert_allclose(log["time_s"], np.arange(1, SHORT.steps + 1) * 0.02, rtol=1e-6)


@final
@dataclass(frozen=True)
class Broken:
    """Says something that is no number in every third row, from its fifth step on."""

    value: float = float("nan")
    digest: str = field(default="broken", init=False)

    def start(self, task: Task, seeds: Array) -> Memory:
        del task
        return {"step": np.zeros(len(seeds), np.int64), "row": np.arange(len(seeds))}

    def act(self, observation: Array, memory: Memory) -> Act:
        action = np.zeros((len(observation), 1))
        action[(memory["row"] % 3 == 0) & (memory["step"] >= 4)] = self.value
        return Act(action, {**memory, "step": memory["step"] + 1})


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("engine", [QUICK, Mujoco(threads=1)], ids=["equation", "mujoco"])
def test_a_policy_that_says_no_number_diverges_alone(engine: Engine, value: float) -> None:
    found = block(range(7), policy=Broken(value), engine=engine)
    sound = block(range(7), policy=Zero(), engine=engine)
    for i, trajectory in enumerate(found):
        if i % 3:
            assert_same(trajectory, replace(sound.trajectory(i), provenance=found.provenance))
            continue
        assert (trajectory.outcome, len(trajectory)) == ("diverged", 5)
        np.testing.assert_array_equal(trajectory["action"][4], [value])
        assert np.isnan(trajectory["reward"][4])
        assert np.isnan(trajectory["angle"][5])
        assert np.isfinite(trajectory["executed"][:5]).all()
        assert found.scores["reward"][i] == float(np.cumsum(trajectory["reward"][:4].astype(np.float64))[-1])


def test_physics_that_breaks_down_is_diverged_and_never_a_success() -> None:
    def initial(draw: Draw) -> Columns:
        rate = np.where(np.arange(len(draw.seeds)) == 1, np.nan, 0.0)
        return {"rate": rate, "angle": np.full(len(draw.seeds), np.pi)}

    def anyhow(columns: Columns) -> Array:
        return ~(np.abs(columns["rate"]) > 1e9)  # not-a-number included

    task = replace(SHORT, initial=initial, success=anyhow, failure=never)
    for engine in (QUICK, Mujoco(threads=1)):
        found = block(range(3), policy=Zero(), task=task, engine=engine)
        assert [t.outcome for t in found] == ["success", "diverged", "success"]
        assert len(found.trajectory(1)) == 1


def never(columns: Columns) -> Array:
    return np.zeros(len(columns["time_s"]), bool)


Flag = Callable[[Columns], Array]


def at(*times_s: float) -> Flag:
    """Whether a row's time is one of these."""

    def flag(columns: Columns) -> Array:
        return np.isin(np.round(columns["time_s"] / 0.02), np.round(np.array(times_s) / 0.02))

    return flag


def until(start_s: float, stop_s: float) -> Flag:
    """Whether a row's time is between these."""

    def flag(columns: Columns) -> Array:
        return (columns["time_s"] > start_s - 0.01) & (columns["time_s"] < stop_s + 0.01)

    return flag


@pytest.mark.parametrize(
    ("changes", "outcome", "steps"),
    [
        ({}, "timeout", 50),
        ({"failure": at(0.2)}, "failure", 10),
        ({"success": at(0.2)}, "success", 10),
        ({"success": at(0.2), "failure": at(0.2)}, "failure", 10),
        ({"success": until(0.2, 0.24), "success_hold_s": 0.06}, "success", 12),
        ({"success": until(0.2, 0.22), "success_hold_s": 0.06}, "timeout", 50),
        ({"success": at(0.2, 0.22, 0.26), "success_hold_s": 0.06}, "timeout", 50),
        ({"success": at(0.2), "ends_on_success": False}, "timeout", 50),
        ({"success": at(1.0), "ends_on_success": False}, "success", 50),
        ({"success": until(0.2, 1.0), "success_hold_s": 0.1, "ends_on_success": False}, "success", 50),
        ({"success": until(0.96, 1.0), "success_hold_s": 0.1, "ends_on_success": False}, "timeout", 50),
        ({"failure": at(1.0), "success": at(1.0)}, "failure", 50),
    ],
)
def test_an_episode_ends_as_its_rows_say(changes: dict[str, object], outcome: str, steps: int) -> None:
    fields: dict[str, object] = {"success": never, "failure": never, "success_hold_s": 0.0, **changes}
    trajectory = block([0], task=replace(SHORT, **fields)).trajectory(0)  # pyright: ignore[reportArgumentType]
    assert (trajectory.outcome, len(trajectory)) == (outcome, steps)


def test_what_a_sensor_touched_is_recorded_beside_the_truth() -> None:
    trajectory = block([0], sensors=SENSORS).trajectory(0)
    assert {shown("heading"), shown("rate")} <= set(trajectory.schema.names)
    off = trajectory[shown("rate")][:-1] - trajectory["rate"][:-1]
    assert np.ptp(off) < 1e-5  # a bias stays for the episode
    assert np.abs(off).min() > 1e-4
    bare = block([0]).trajectory(0)
    assert shown("rate") not in bare.schema.names
    np.testing.assert_array_equal(trajectory["angle"], bare["angle"])  # the policy looks away, the world is the same
    assert np.abs(trajectory[shown("heading")][:-1] - bare[shown("heading")][:-1]).max() > 1e-4


def chased() -> Task:
    """The pendulum with a goal that is drawn anew every quarter of a second, and a reward that reads it."""

    def goal(draw: Draw) -> Columns:
        period = draw.step // 13
        return {"aim": np.round(10 * uniform(draw.seeds, "aim", step=period)).astype(np.float32)}

    def aim(columns: Columns) -> Array:
        return columns["aim"]

    return replace(
        SHORT,
        name="chased",
        goal_signals=Schema((Signal("aim"),)),
        goal=goal,
        goal_every_s=0.26,
        observation=Schema((*SHORT.observation.signals, Signal("aim"))),
        reward=(Term("aim", 1.0, aim),),
        success=never,
        failure=never,
    )


def test_a_step_is_scored_by_the_goal_it_was_taken_for() -> None:
    task = chased()
    for trajectory in block(range(3), task=task):
        aim, reward = trajectory["aim"], trajectory["reward"]
        changes = np.flatnonzero(np.diff(aim)) + 1
        assert set(changes.tolist()) <= {13, 26, 39}
        assert len(changes) > 0
        np.testing.assert_array_equal(reward[:-1], aim[:-1])
        assert score(task, trajectory)["reward"].tobytes() == np.ascontiguousarray(reward[:-1]).tobytes()
        assert_same(replay(trajectory, task, QUICK), trajectory)


def test_more_episodes_than_copies_are_refused() -> None:
    with pytest.raises(SignalError, match="4 episodes and 3 copies\n  try: a smaller batch"):
        block(range(4), copies=3)


def test_a_recording_is_a_policy() -> None:
    first = block([0], engine=Mujoco(threads=1)).trajectory(0)
    actions = first["action"][:-1]
    [again] = rollout(Tape(actions), SHORT, Mujoco(threads=1), n=1, seed=3)
    np.testing.assert_array_equal(again["angle"], first["angle"])
    [elsewhere] = rollout(Tape(actions), SHORT, Pendulum(), n=1, seed=3)
    assert np.abs(elsewhere["angle"] - first["angle"]).max() < 0.02
    assert again.provenance.policy == Tape(actions).digest


def test_a_replay_shows_again_what_its_sensors_showed() -> None:
    task, engine, noise = pendulum(), Pendulum(), Noise(std={"rate": 0.05})
    [run] = rollout(Expert(), task, engine, seed=3, sensors=[noise])
    again = replay(run, task, engine, sensors=[noise])
    assert again.schema == run.schema
    np.testing.assert_array_equal(again["shown_rate"], run["shown_rate"])
