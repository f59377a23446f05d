"""Scenarios run: as ordinary episodes where nothing disturbs them, and disturbed exactly as they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from simops.core.errors import SimOpsError
from simops.core.perform import perform, run, staged
from simops.core.policy import Random, Tape, Zero
from simops.core.protocols import Engine, Policy, Sensor
from simops.core.rollout import Recipe, replay, wave
from simops.core.scenario import Disturbance, Dropout, Latency, Payload, Push, Scenario
from simops.core.task import Task
from simops.core.trajectory import Trajectory
from simops.sim.mujoco import Mujoco
from simops.sim.pendulum import Pendulum
from simops.sim.sensor import Encoder
from simops.tasks.pendulum.task import pendulum
from simops.tasks.pick_and_place.expert import Expert
from simops.tasks.pick_and_place.task import pick_and_place
from simops.tasks.velocity.task import velocity
from simops.tasks.velocity.trot import Trot

SHORT = replace(pendulum(), horizon_s=1.0)
QUICK = Pendulum(step_s=0.005)


def scenario(
    *disturbances: Disturbance,
    task: str = "pendulum",
    seed: int = 5,
    params: dict[str, float] | None = None,
    initial: dict[str, tuple[float, ...]] | None = None,
) -> Scenario:
    return Scenario(
        name=f"{task} {seed}",
        category="disturbance",
        task=task,
        params=params or {},
        initial=initial or {},
        disturbances=disturbances,
        seed=seed,
    )


def recipe(
    policy: Policy | None = None, task: Task = SHORT, engine: Engine = QUICK, sensors: tuple[Sensor, ...] = ()
) -> Recipe:
    return Recipe(policy=policy or Random(), task=task, engine=engine, sensors=sensors)


def ran(made: Recipe, *scenarios: Scenario, batch: int = 256) -> list[Trajectory]:
    return [trajectory for block in run(made, scenarios, batch=batch) for trajectory in block]


def same(one: Trajectory, other: Trajectory, names: Sequence[str] = ()) -> None:
    assert (one.seed, one.outcome, one.scenario, len(one)) == (other.seed, other.outcome, other.scenario, len(other))
    for name in names or one.schema.names:
        assert np.ascontiguousarray(one[name]).tobytes() == np.ascontiguousarray(other[name]).tobytes(), name


@pytest.mark.parametrize("task", [SHORT, replace(velocity(), horizon_s=0.4)], ids=["pendulum", "velocity"])
def test_an_episode_written_as_a_scenario_is_that_episode(task: Task) -> None:
    made = recipe(task=task, engine=Mujoco(threads=1))
    draw = made.draw(np.arange(3))
    with made.engine.open(task, 3) as sim:
        block = wave(made, sim, np.arange(3))
    written = [
        scenario(task=task.name, seed=int(draw.seeds[i]), params=draw.params.at(i)) for i in range(len(draw.seeds))
    ]
    [again] = run(made, written)
    assert again.rows.tobytes() == block.rows.tobytes()
    assert again.scenarios == tuple(each.hash for each in written)
    assert again.trajectory(1).scenario == written[1].hash


MANY = (
    scenario(seed=1),
    scenario(Push("bob", (9.0, 0.0, 1.0), (0.0, 1.0, 0.0), 0.1, 0.3), Push("bob", (5.0, 0.0, 0.0), at_s=0.3), seed=2),
    scenario(Latency(3, 0.2, 0.4), Latency(1, 0.5, 0.4), seed=3, params={"bob_mass": 1.2}),
    scenario(Dropout("rate", 0.2, 0.3), Dropout("angle", 0.4, 0.1, "zero"), seed=4),
    scenario(Payload("bob", 0.5), seed=5, initial={"rate": (3.0,)}),
    scenario(Latency(6, 0.0, 0.2), Push("bob", (0.0, 0.0, 30.0)), seed=6, initial={"angle": (3.0,)}),
    scenario(Dropout("rate", 0.0, 2.0), Payload("bob", 0.2), seed=7),
)


@pytest.mark.parametrize("engine", [QUICK, Mujoco(threads=1)], ids=["equation", "mujoco"])
def test_the_same_bytes_alone_and_in_any_company(engine: Engine) -> None:
    if isinstance(engine, Pendulum):
        many = tuple(replace(m, disturbances=tuple(d for d in m.disturbances if type(d) is not Payload)) for m in MANY)
    else:
        many = MANY
    sensors = (Encoder(signal="angle", step=0.01, delay_steps=2),)
    made = recipe(engine=engine, sensors=sensors)
    together = ran(made, *many)
    names = SHORT.state_schema.names
    for batch in (1, 3):
        for one, other in zip(ran(made, *many, batch=batch), together, strict=True):
            same(one, other)
    for one, other in zip(reversed(ran(made, *reversed(many), batch=4)), together, strict=True):
        same(one, other)
    for i, each in enumerate(many):
        [alone] = ran(made, each)
        same(alone, together[i], (*names, "action", "executed", "reward"))
    assert len({one["angle"].tobytes() for one in together}) == len(many)


def test_more_copies_than_scenarios_change_nothing() -> None:
    made = staged(recipe(engine=Mujoco(threads=1)), MANY)
    found: list[bytes] = []
    for copies in (len(MANY), len(MANY) + 3):
        with made.engine.open(made.task, copies) as sim:
            found.append(perform(made, sim, MANY).rows.tobytes())
            found.append(perform(made, sim, MANY).rows.tobytes())
    assert len(set(found)) == 1


@pytest.mark.parametrize("engine", [Pendulum(), Mujoco(threads=1)], ids=["equation", "mujoco"])
def test_a_push_changes_what_its_wrench_times_its_time_says(engine: Engine) -> None:
    still = {"hinge_damping": 0.0}
    begun = {"angle": (0.0,), "rate": (0.0,)}
    twist = Push("bob", torque_nm=(3.0, 2.0, 7.0), at_s=0.1, for_s=0.02)
    pull = Push("bob", force_n=(2.0, 9.0, 5.0), at_s=0.1, for_s=0.02)
    made = recipe(Zero(), engine=engine)
    twisted, pulled = ran(made, *(scenario(one, params=still, initial=begun) for one in (twist, pull)))
    before, after = 5, 6
    for seen, wanted in ((twisted, 2.0 * 0.02), (pulled, -2.0 * 0.02)):  # about +y; a pull along +x turns it down
        assert float(np.abs(seen["rate"][:before]).max()) == 0.0
        assert float(seen["rate"][after]) == pytest.approx(wanted, rel=2e-3)
        energy = 0.5 * seen["rate"] ** 2 + 9.81 * (1 - np.cos(seen["angle"]))
        assert float(np.ptp(energy[after:])) < 2e-2 * energy[after]  # nothing pushes any more


def test_a_push_is_felt_alike_in_two_engines_and_where_it_overlaps_it_adds_up() -> None:
    pushes = (Push("bob", (6.0, 0.0, -4.0), at_s=0.0, for_s=0.5), Push("bob", (-2.0, 0.0, 0.0), at_s=0.2, for_s=0.2))
    parts = (
        Push("bob", (6.0, 0.0, -4.0), at_s=0.0, for_s=0.2),
        Push("bob", (4.0, 0.0, -4.0), at_s=0.2, for_s=0.2),
        Push("bob", (6.0, 0.0, -4.0), at_s=0.4, for_s=0.1),
    )
    begun = {"angle": (0.3,), "rate": (0.0,)}
    fine = recipe(Zero(), engine=Pendulum())
    equation, pieces = ran(fine, *(scenario(*some, initial=begun) for some in (pushes, parts)))
    [solver] = ran(recipe(Zero(), engine=Mujoco(threads=1)), scenario(*pushes, initial=begun))
    assert equation["angle"].tobytes() == pieces["angle"].tobytes()
    assert float(np.ptp(equation["angle"])) > 0.3
    np.testing.assert_allclose(solver["angle"], equation["angle"], atol=1e-2)


def test_what_arrives_late_was_asked_before() -> None:
    asked = np.linspace(-1.0, 1.0, 50, dtype=np.float32)[:, None]
    late = scenario(Latency(3, at_s=0.2, for_s=0.4), Latency(1, at_s=0.5, for_s=0.2))
    first = scenario(Latency(4, at_s=0.0, for_s=0.1))
    one, other = ran(recipe(Tape(asked)), late, first)
    lag = np.zeros(50, int)
    lag[10:30], lag[30:35] = 3, 1
    np.testing.assert_array_equal(one["action"][:50], asked)
    np.testing.assert_array_equal(one["executed"][:50, 0], asked[np.arange(50) - lag, 0])
    np.testing.assert_array_equal(other["executed"][:6, 0], asked[[0, 0, 0, 0, 0, 5], 0])


def test_a_signal_that_drops_out_shows_its_last_reading_or_nothing() -> None:
    last, blank = Dropout("rate", 0.2, 0.2), Dropout("rate", 0.6, 0.1, "zero")
    one, other = ran(recipe(), scenario(last, blank), scenario(seed=6))
    wanted = one["rate"].copy()
    wanted[10:20], wanted[30:35] = wanted[9], 0.0
    np.testing.assert_array_equal(one["shown_rate"][:50], wanted[:50])
    np.testing.assert_array_equal(other["shown_rate"][:50], other["rate"][:50])
    [within] = ran(recipe(), scenario(Dropout("rate", 0.0, 0.1), seed=6))
    assert np.all(within["shown_rate"][:5] == 0.0)  # nothing came before


def test_a_payload_weighs_what_the_same_mass_of_the_belief_weighs() -> None:
    task = replace(velocity(), horizon_s=0.6)
    made = recipe(Trot(), task, Mujoco(threads=1))
    [carried] = ran(made, scenario(Payload("base", 3.0), Payload("base", 1.5), task=task.name))
    [believed] = ran(made, scenario(task=task.name, params={"payload_mass_kg": 4.5}))
    [neither] = ran(made, scenario(task=task.name))
    for name in task.sources:
        np.testing.assert_allclose(carried[name], believed[name], rtol=1e-4, atol=1e-4)
    assert not np.allclose(carried["joint_position"], neither["joint_position"], atol=1e-3)


def test_it_begins_where_it_is_told_and_keeps_the_goal_it_is_given() -> None:
    task = replace(velocity(), goal_every_s=0.1, horizon_s=0.4)
    made = recipe(Zero(), task, Mujoco(threads=1))
    held = scenario(task=task.name, initial={"command": (0.5, 0.0, -0.25), "base_velocity": (0.0, 0.0, 1.0)})
    free = scenario(task=task.name)
    one, other = ran(made, held, free)
    assert {tuple(row) for row in one["command"][:-1].tolist()} == {(0.5, 0.0, -0.25)}
    np.testing.assert_allclose(one["base_velocity"][0], [0.0, 0.0, 1.0], atol=1e-6)
    [alone] = ran(made, free)
    same(other, alone)
    assert not np.allclose(other["base_velocity"][0], [0.0, 0.0, 1.0], atol=1e-6)


def test_what_the_task_leaves_to_the_scene_may_be_said_by_some_alone() -> None:
    task = replace(pick_and_place(), horizon_s=0.4)
    made = recipe(Expert(), task, Mujoco(threads=1))
    thrown = scenario(task=task.name, initial={"cube_velocity": (0.0, 0.0, 1.0)})
    still = scenario(task=task.name, seed=9)
    one, other = ran(made, thrown, still)
    np.testing.assert_allclose(one["cube_velocity"][0], [0.0, 0.0, 1.0])
    [alone] = ran(made, still)
    same(other, alone)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (scenario(Push("bobb")), "the scene has no body 'bobb'\n  try: 'bob'"),
        (scenario(Payload("bobb", 1.0)), "the scene has no body 'bobb'"),
        (scenario(Dropout("rat")), "pendulum has no state or goal 'rat'"),
        (scenario(params={"bob_mas": 1.0}), "pendulum has no param 'bob_mas'"),
        (scenario(task="velocity"), "is of velocity, not of pendulum"),
    ],
)
def test_what_cannot_be_done_is_said_before_the_first_step(bad: Scenario, words: str) -> None:
    late = replace(
        bad, disturbances=tuple(replace(d, at_s=0.9) if isinstance(d, Push) else d for d in bad.disturbances)
    )
    with pytest.raises(SimOpsError) as caught:
        _ = run(recipe(engine=Mujoco(threads=1)), [late])
    assert words in str(caught.value)


def test_a_trajectory_of_a_scenario_is_not_replayed_by_its_number() -> None:
    [found] = ran(recipe(), scenario(Latency(2)))
    with pytest.raises(SimOpsError, match="ran a scenario, which its root seed does not say"):
        _ = replay(found, SHORT, QUICK)
