"""What every engine with one world for each copy gets: params, delay, motors, sensors, workers, by MuJoCo's rules."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from simops.core.errors import EngineError
from simops.core.params import Change, Param, Params
from simops.core.signal import Array, Signal
from simops.core.task import Body, Joint, Scan, Sensor
from simops.sim import crossing
from simops.sim.binding import mj
from simops.sim.drake import Drake
from simops.sim.motor import Dc, Pd
from simops.sim.mujoco import Mujoco, Physics
from simops.sim.pairs import pairs_of
from simops.sim.parallel import FEWEST, Workers
from simops.sim.walk import walk
from tests.sim.rig import arm, param, run, task, watched, written
from tests.sim.test_change import ACTIONS, CASES, PUSH

ENGINE = Drake(workers=1)
NOTHING = Signal("nothing", (0,))


@pytest.mark.parametrize(("change", "value", "words"), CASES, ids=lambda value: str(value)[:60])
def test_a_param_is_the_same_as_writing_it_into_the_scene(
    change: Change, value: float, words: dict[str, str], tmp_path: Path
) -> None:
    changed = task(arm(tmp_path), params=(param("number", value, change),))
    edited = task(arm(tmp_path, "edited.xml", **words))
    as_param, as_scene, without = (
        run(made, ACTIONS, initial=PUSH, engine=ENGINE) for made in (changed, edited, task(arm(tmp_path)))
    )
    for name, rows in as_scene.items():
        np.testing.assert_allclose(as_param[name], rows, rtol=1e-7, atol=1e-7, err_msg=name)
    if change.field not in {"mass", "com_y", "contact_stiffness", "contact_damping"}:
        assert max(float(np.abs(as_param[name] - without[name]).max()) for name in without) > 1e-4


def test_each_copy_has_its_own_and_a_reset_forgets_the_last(tmp_path: Path) -> None:
    made = task(arm(tmp_path), params=(param("grip", 0.8, Change("friction", ("floor", "block"))),))
    points = Params(("grip",), np.array([[0.8], [0.2], [1.2]]))
    pushed = {"block_velocity": np.repeat(PUSH["block_velocity"], 3, axis=0)}
    with ENGINE.open(made, 3) as sim:
        sim.reset(np.arange(3), points, pushed)
        first = watched(sim, ACTIONS.repeat(3, axis=1))
        sim.reset(np.arange(3), points.rows(np.array([2, 0, 1])), pushed)
        turned = watched(sim, ACTIONS.repeat(3, axis=1))
    for name, rows in first.items():
        np.testing.assert_array_equal(turned[name][:, [1, 2, 0]], rows)


@pytest.mark.parametrize("steps", [1, 3, 7])
def test_a_delay_shifts_the_response_by_exactly_itself(steps: int, tmp_path: Path) -> None:
    def response(delay_s: float) -> Array:
        late = Param("late_s", delay_s, "s", 0.0, 0.05, (Change("delay"),))
        made = task(arm(tmp_path, gravity="0"), params=(late,), control_dt_s=0.004)
        actions = np.full((40, 1, 1), 0.5, np.float32)
        begun = {"angle": np.array([0.25]), "target": np.array([[0.25]])}
        return run(made, actions, initial=begun, engine=Drake(step_s=0.002, workers=1))["angle"]

    prompt, late = response(0.0), response(steps * 0.004)
    np.testing.assert_allclose(late[: steps + 1], 0.25, atol=1e-9)
    np.testing.assert_allclose(late[steps:], prompt[: len(prompt) - steps], atol=1e-9)
    assert prompt[-1] > 0.3


@pytest.mark.parametrize("motor", [Pd(50.0, 2.0, limit_nm=3.0), Dc(50.0, 2.0, coulomb_nm=0.2, delay_steps=3)], ids=repr)
def test_motors_turn_the_joint_as_they_do_in_mujoco(motor: Pd | Dc, tmp_path: Path) -> None:
    made = task(arm(tmp_path))
    theirs = run(made, ACTIONS, engine=Drake(step_s=0.0005, motor=motor, workers=1))
    ours = run(made, ACTIONS, engine=Mujoco(threads=1, physics=Physics(step_s=0.0005), motor=motor))
    assert np.ptp(ours["angle"]) > 0.05
    np.testing.assert_allclose(theirs["angle"], ours["angle"], atol=2e-3)


def test_sensors_of_force_weigh_what_lies_on_them(tmp_path: Path) -> None:
    scene = written(
        tmp_path,
        """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
        <body name="ball" pos="0 0 0.0499"><freejoint/><geom type="sphere" size="0.05" mass="0.7"/>
        <site name="skin" type="sphere" size="0.06"/></body></worldbody>
        <sensor><touch name="weight" site="skin"/><accelerometer name="felt" site="skin"/></sensor></mujoco>""",
    )
    state = {"weight": (1, Sensor(("weight",))), "felt": (3, Sensor(("felt",))), "at": (3, Body("ball"))}
    seen = run(task(scene, state, action=NOTHING), np.zeros((80, 1, 0), np.float32), engine=ENGINE)
    np.testing.assert_allclose(seen["weight"][-10:, 0], 0.7 * 9.81, rtol=1e-2)
    np.testing.assert_allclose(seen["felt"][-10:], np.tile([0.0, 0.0, 9.81], (10, 1)), atol=0.1)


HEAP = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1" friction="0.3"/>
    <geom name="shelf" type="box" size="1 1 0.1" contype="2" conaffinity="0" solref="-900 -10"/>
    <body name="one"><freejoint/><geom name="one" type="box" size=".2 .2 .2" friction="0.7" condim="4"/>
      <body name="arm"><joint axis="0 1 0"/><geom name="arm" type="sphere" size=".25" friction="0.9" priority="1"/>
        <body name="hand"><joint axis="1 0 0"/><geom name="hand" type="sphere" size=".25" conaffinity="3"/></body>
      </body>
    </body>
    <body name="two"><freejoint/><geom name="two" type="capsule" size=".2 .2" condim="1" solref="0.01 0.3"/></body>
    <body name="three"><freejoint/><geom name="three" type="box" size=".2 .2 .2" contype="2" solmix="3"/></body>
  </worldbody>
  <contact><exclude body1="one" body2="two"/></contact>
</mujoco>
"""


def test_pairs_are_those_that_mujoco_lets_touch_and_as_it_lets_them() -> None:
    model = mj.MjModel.from_xml_string(HEAP)
    data = mj.MjData(model)
    mj.mj_forward(model, data)  # everything lies in everything
    met = {(min(c.geom), max(c.geom)): c for c in list(data.contact)}
    pairs = {(min(pair.geoms), max(pair.geoms)): pair for pair in pairs_of(model)}
    assert set(met) == set(pairs)
    assert len(met) >= 8
    for geoms, contact in met.items():
        pair = pairs[geoms]
        assert pair.friction == (float(contact.friction[0]) if contact.dim > 1 else 0.0)
        assert (pair.torsion_m > 0) == (contact.dim > 3)
        told = contact.solref[0] <= 0
        assert pair.given == told
        if told:
            assert (pair.stiffness, pair.damping) == (-contact.solref[0], -contact.solref[1])
        else:
            assert pair.damping == pytest.approx(2.0 / contact.solref[0])


def test_welded_bodies_are_one_link_with_all_their_mass() -> None:
    model = mj.MjModel.from_xml_string(
        """<mujoco><worldbody><body pos="1 2 3"><joint axis="0 0 1"/><geom size=".1" mass="2"/>
        <body pos="0.4 0 0" euler="0 0 90"><geom type="box" size=".1 .2 .3" mass="6"/></body></body>
        <body mocap="true"><geom size=".1" contype="0" conaffinity="0"/></body></worldbody></mujoco>"""
    )
    data = mj.MjData(model)
    mj.mj_forward(model, data)
    mass = np.zeros((1, 1))
    mj.mj_fullM(model, data, mass)
    [link] = walk(model).links
    assert link.mass_kg == pytest.approx(8.0)
    np.testing.assert_allclose(link.centre, [0.3, 0.0, 0.0], atol=1e-12)
    assert link.inertia[2, 2] + 8.0 * 0.3**2 == pytest.approx(mass[0, 0])


def everything(engine: Drake, folder: Path, n: int) -> dict[str, Array]:
    """Copies at different params, one of them pushed, one begun anew halfway, one broken."""
    made = task(arm(folder), params=(param("grip", 0.8, Change("friction", ("floor", "block"))),))
    points = Params(("grip",), np.linspace(0.2, 1.2, n)[:, None])
    actions = np.repeat(ACTIONS[:10], n, axis=1)
    actions[4, 2] = np.nan
    with engine.open(made, n) as sim:
        sim.reset(np.arange(n), points, {"block_velocity": np.repeat(PUSH["block_velocity"], n, axis=0)})
        sim.push(np.array([1]), "block", np.array([[3.0, 0.0, 1.0, 0.0, 0.0, 0.1]]))
        first = watched(sim, actions[:7])
        sim.reset(np.array([0, 2]), points.rows(np.array([1, 2])), {})
        last = watched(sim, ACTIONS[:5].repeat(n, axis=1))
        assert not sim.diverged.any()
    return {name: np.concatenate([first[name], last[name]]) for name in first}


def test_any_number_of_workers_gives_the_same_bytes(tmp_path: Path) -> None:
    n = 2 * FEWEST + 1
    alone, shared = (everything(Drake(workers=workers), tmp_path, n) for workers in (1, 2))
    for name, rows in alone.items():
        assert rows.tobytes() == shared[name].tobytes(), name


def test_a_worker_that_ends_is_an_error_that_says_so(tmp_path: Path) -> None:
    made = task(arm(tmp_path))
    with Drake(workers=2).open(made, 2 * FEWEST) as sim:
        crew = sim._crew  # pyright: ignore[reportPrivateUsage]
        assert isinstance(crew, Workers)
        crew._links[0].shutdown(2)  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(EngineError, match="worker process"):
            sim.reset(np.arange(2 * FEWEST), Params.nominal(made.belief.params, 2 * FEWEST), {})


def test_what_a_joint_reads_is_what_it_is_told_to_begin_with(tmp_path: Path) -> None:
    made = task(arm(tmp_path), {"angle": (0, Joint(("hinge",))), "block_position": (3, Body("block"))})
    begun = {"angle": np.array([0.3]), "block_position": np.array([[0.2, -0.4, 1.0]])}
    seen = run(made, ACTIONS[:0], initial=begun, engine=ENGINE)
    assert seen["angle"][0] == pytest.approx(0.3)
    np.testing.assert_allclose(seen["block_position"][0], [0.2, -0.4, 1.0])


def test_recipes_cross_to_another_process_and_other_things_do_not() -> None:
    recipe = Drake(motor=Dc(delay_steps=2), without=("mesh",))
    again = crossing.made(crossing.written(recipe))
    assert again == recipe
    numbers = np.arange(6.0).reshape(2, 3)
    back = crossing.made(crossing.written({"a": (1, None, numbers), 2: frozenset({"b"})}))
    np.testing.assert_array_equal(back["a"][2], numbers)
    assert back[2] == {"b"}

    @dataclass(frozen=True)
    class Here:
        number: float = 1.0

    for thing in (Here(), print):
        with pytest.raises(EngineError, match=r"process|recipe"):
            crossing.written(thing)


def test_scans_are_mujocos(tmp_path: Path) -> None:
    made = task(arm(tmp_path), params=(param("mass", 1.0, Change("mass", ("block",))),))
    rays = ((1.0, 0.0, 0.0), (1.0, 0.0, -1.0), (0.0, 0.0, 1.0), (0.3, 0.1, -1.0))
    scene = Path(made.scene.path)
    scene.write_text(scene.read_text().replace("<joint name=", '<site name="eye"/><joint name=', 1))
    state = {
        "angle": (0, Joint(("hinge",))),
        "block_position": (3, Body("block")),
        "ranges": (4, Scan("eye", rays)),
        "slants": (4, Scan("eye", rays, "incidence")),
    }
    looking = task(scene, state)
    begun = {"angle": np.array([0.2]), "block_position": np.array([[0.5, 0.05, 0.9]])}
    theirs, ours = (run(looking, ACTIONS[:0], initial=begun, engine=engine) for engine in (ENGINE, Mujoco(threads=1)))
    assert (ours["ranges"] > 0).sum() >= 2
    np.testing.assert_allclose(theirs["ranges"], ours["ranges"], atol=1e-9)
    np.testing.assert_allclose(theirs["slants"], ours["slants"], atol=1e-9)
