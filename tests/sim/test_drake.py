"""Drake is built from the same compiled scene as MuJoCo, and agrees with it where both must."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from simops.core.errors import EngineError, ExtraError
from simops.core.params import Params
from simops.core.plugin import Registry
from simops.core.protocols import Engine
from simops.core.rollout import rollout
from simops.core.signal import Array, Signal
from simops.core.task import Body, Joint, Task
from simops.sim.binding import mj
from simops.sim.drake import Drake
from simops.sim.drake_contact import AT_M_S, LIVELY, Feel, dissipation
from simops.sim.drake_world import DrakeWorld, Settings
from simops.sim.mujoco import Mujoco, Physics
from simops.sim.scene import compile_task, load
from simops.sim.walk import walk
from simops.tasks.pick_and_place.expert import Expert
from simops.tasks.pick_and_place.task import HOME_RAD, pick_and_place
from simops.testing.engine import check_engine
from tests.sim.rig import run, task, written

TASKS = Registry[Task]("task")
ENGINE = Drake(workers=1)
NOTHING = Signal("nothing", (0,))
FEEL = Settings(1e-3, None, 5e-6, Feel(5e6, 1e-4, fields=True))


def test_the_kit_at_tosses() -> None:
    check_engine(ENGINE, TASKS.load("cube_toss")())


def test_the_kit_with_error_control() -> None:
    check_engine(Drake(scheme="cenic", workers=1), TASKS.load("pendulum")())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pick_and_place", "velocity"])
@pytest.mark.parametrize("scheme", ["similar", "cenic"])
def test_the_kit_at_robots(name: str, scheme: str) -> None:
    check_engine(replace(ENGINE, scheme=scheme), TASKS.load(name)())


@pytest.mark.parametrize("name", ["pick_and_place", "velocity"])
def test_mass_matrix_and_gravity_are_mujocos(name: str) -> None:
    model = compile_task(TASKS.load(name)(), Physics())
    data = mj.MjData(model)
    mj.mj_resetDataKeyframe(model, data, 0)
    model.opt.gravity[:] = (1.0, -2.0, -9.0)
    mj.mj_forward(model, data)
    mass: Array = np.zeros((int(model.nv), int(model.nv)))
    mj.mj_fullM(model, data, mass)
    world = DrakeWorld(walk(model), FEEL)
    qpos: Array = np.array(data.qpos, np.float64)
    still: Array = np.zeros(len(mass))
    world.begin(qpos, still)
    plant, context = world.plant, world.context
    order = np.zeros((model.nv, model.nv))
    for dof in range(model.nv):  # how Drake writes each of MuJoCo's velocities; at a level pose they are the same axes
        order[dof] = world.layout.theirs(qpos, np.eye(model.nv)[dof])[-model.nv :]
    np.testing.assert_allclose(order @ plant.CalcMassMatrix(context) @ order.T, mass, rtol=1e-6, atol=1e-9)
    weight = order @ plant.CalcGravityGeneralizedForces(context)
    np.testing.assert_allclose(weight, -data.qfrc_bias + data.qfrc_gravcomp, rtol=1e-6, atol=1e-9)


def pressed(engine: Engine) -> Array:
    """How far the Panda's joints give way, 2 s after 20 N began to press on its hand."""
    made = pick_and_place()
    begun = {"joint_position": np.array([HOME_RAD]), "cube_position": np.array([[0.2, 0.5, 0.02]])}
    with engine.open(made, 1) as sim:
        sim.reset(np.arange(1), Params.nominal(made.belief.params, 1), begun)
        sim.push(np.arange(1), "hand", np.array([[5.0, 5.0, -20.0, 0.0, 0.0, 0.0]]))
        for _ in range(50):
            sim.step(np.array([[*HOME_RAD, 0.06]], np.float32))
        return sim.read()["joint_position"][0] - np.array(HOME_RAD)


def test_the_panda_gives_way_as_in_mujoco() -> None:
    theirs, ours = pressed(ENGINE), pressed(Mujoco(threads=1))
    assert np.abs(ours).max() > 2e-3
    assert np.abs(theirs - ours).max() <= 1e-3 * np.abs(ours).max()


def held(engine: Engine, folder: Path, mass_kg: float) -> tuple[float, float]:
    """Slip in m/s of a cube between the Panda's pads that press with 10 N, and how far it has slipped in 1.2 s."""
    made = pick_and_place()
    spec = load(made.scene)
    spec.actuator("gripper").forcerange = [-10.0, 10.0]
    spec.compile()
    made = replace(made, scene=replace(made.scene, path=str(written(folder, spec.to_xml()))))
    points = Params.of([{"object_mass": mass_kg, "friction_coefficient": 0.5}])
    begun = {"joint_position": np.array([HOME_RAD]), "finger_position": np.full((1, 2), 0.02)}
    heights: list[float] = []
    with engine.open(made, 1) as sim:
        sim.reset(np.arange(1), points, begun)
        begun["cube_position"] = sim.read()["tool_position"].copy()
        begun["cube_quaternion"] = np.array([[1.0, 0.0, 0.0, 0.0]])
        sim.reset(np.arange(1), points, begun)
        for _ in range(30):
            sim.step(np.array([[*HOME_RAD, 0.0]], np.float32))
            heights.append(float(sim.read()["cube_position"][0, 2] - sim.read()["tool_position"][0, 2]))
    return (heights[15] - heights[-1]) / (14 * made.control_dt_s), -heights[-1]


@pytest.mark.parametrize("engine", [ENGINE, Mujoco(threads=1, physics=Physics(impratio=20.0))], ids=["drake", "mujoco"])
def test_the_panda_holds_what_its_grip_holds_and_drops_what_it_does_not(engine: Engine, tmp_path: Path) -> None:
    slip, _ = held(engine, tmp_path, 0.8)
    assert abs(slip) <= 2e-4
    _, fallen = held(engine, tmp_path, 1.2)
    assert fallen > 0.1


def test_what_sticks_creeps_less_than_a_fiftieth_of_a_millimetre_in_a_second(tmp_path: Path) -> None:
    down = np.array([np.sin(np.deg2rad(20.0)), 0.0, -np.cos(np.deg2rad(20.0))]) * 9.81
    scene = f"""<mujoco><option gravity="{down[0]} 0 {down[2]}"/><worldbody>
      <geom type="plane" size="5 5 1" friction="0.5"/><body name="block" pos="0 0 0.02"><freejoint/>
        <geom type="box" size=".05 .05 .02" mass="1" friction="0.5"/></body></worldbody></mujoco>"""
    made = task(written(tmp_path, scene), {"at": (3, Body("block"))}, action=NOTHING)
    seen = run(made, np.zeros((60, 1, 0), np.float32), engine=ENGINE)["at"]
    assert np.linalg.norm(seen[-1] - seen[10]) / 0.5 <= 2e-5


def test_the_expert_places_cubes_as_in_mujoco() -> None:
    theirs, ours = (rollout(Expert(), pick_and_place(), engine, n=2, seed=3) for engine in (ENGINE, Mujoco(threads=1)))
    assert [run.outcome for run in theirs] == [run.outcome for run in ours] == ["success"] * 2


ODD = """
<mujoco>
  <compiler angle="radian" autolimits="true"/>
  <option timestep="0.0005" integrator="implicitfast"/>
  <worldbody>
    <body name="a" pos="0 0 1" quat="0.9 0.1 0.3 -0.2" gravcomp="0.5">
      <joint name="roll" axis="1 0.2 0" pos="0.1 0 0.05" damping="0.1" stiffness="4" springref="0.4"/>
      <joint name="slide" type="slide" axis="0 1 0.3" ref="0.05" stiffness="60" springref="0.1" damping="2"
             armature="0.2"/>
      <joint name="turn" axis="0 0 1" pos="-0.05 0.02 0" ref="0.3" damping="0.05"/>
      <inertial pos="0.05 0.02 0" mass="1.2" fullinertia="0.02 0.03 0.025 0.002 0.001 -0.003"/>
      <body name="b" pos="0.2 0 0">
        <joint name="elbow" axis="0 1 0" damping="0.05" armature="0.02" frictionloss="0.05"/>
        <inertial pos="0.1 0 0" mass="0.5" diaginertia="0.002 0.003 0.003"/>
        <body name="c" pos="0.1 0 0.1" euler="0.3 0 0.4">
          <inertial pos="0 0.05 0" mass="0.3" diaginertia="0.001 0.0015 0.001"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator>
    <position name="elbow" joint="elbow" kp="20" kv="0.5" forcerange="-0.5 2"/>
    <general name="turn" joint="turn" gear="2" gainprm="3" biastype="affine" biasprm="0.2 -4 -0.1"/>
  </actuator>
</mujoco>
"""


def test_joints_springs_lifts_and_drives_of_all_kinds_move_as_in_mujoco(tmp_path: Path) -> None:
    names = ("roll", "slide", "turn", "elbow")
    action = Signal("target", (2,), labels=("elbow", "turn"))
    made = task(written(tmp_path, ODD), {"joints": (4, Joint(names)), "tip": (3, Body("c"))}, action=action)
    wanted = np.tile(np.array([[[0.4, 0.3]]], np.float32), (80, 1, 1))
    theirs = run(made, wanted, engine=Drake(step_s=0.0005, workers=1))
    ours = run(made, wanted)
    assert (np.ptp(ours["joints"], axis=0) > 0.02).all()
    np.testing.assert_allclose(theirs["joints"], ours["joints"], atol=0.01)
    np.testing.assert_allclose(theirs["tip"], ours["tip"], atol=3e-3)


def test_a_coupled_joint_follows(tmp_path: Path) -> None:
    scene = """<mujoco><compiler angle="radian"/><worldbody>
      <body name="hand"><joint name="wrist" axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia=".01 .01 .01"/>
      <body><joint name="one" type="slide" axis="1 0 0"/><inertial pos="0 0 0" mass="1" diaginertia=".1 .1 .1"/></body>
      <body><joint name="two" type="slide" axis="0 1 0" ref="0.5"/>
        <inertial pos="0 0 0" mass="1" diaginertia=".1 .1 .1"/></body>
      </body></worldbody>
      <equality><joint joint1="two" joint2="one" polycoef="0.02 -2 0 0 0"/></equality>
      <actuator><position name="one" joint="one" kp="500" kv="100"/></actuator></mujoco>"""
    state = {"one": (0, Joint(("one",))), "two": (0, Joint(("two",)))}
    made = task(written(tmp_path, scene), state, action=Signal("target", (1,), labels=("one",)))
    for scheme in ("similar", "cenic"):
        engine = replace(ENGINE, scheme=scheme)
        seen = run(made, np.full((100, 1, 1), 0.1, np.float32), initial={"two": np.array([0.52])}, engine=engine)
        assert seen["one"][-1] == pytest.approx(0.1, abs=2e-3)
        assert seen["two"][-1] == pytest.approx(0.52 - 2.0 * seen["one"][-1], abs=1e-3)


def test_each_pair_has_its_own_friction(tmp_path: Path) -> None:
    blocks = "".join(
        f'<body name="b{i}" pos="0 {i} 0.02"><freejoint/><geom type="box" size=".05 .05 .02" mass="1" {words}/></body>'
        for i, words in enumerate(('friction="0.3"', 'friction="0.8"', 'friction="0.2" priority="1"'))
    )
    scene = f'<mujoco><worldbody><geom type="plane" size="5 5 1" friction="0.5"/>{blocks}</worldbody></mujoco>'
    state = {f"p{i}": (3, Body(f"b{i}")) for i in range(3)} | {
        f"v{i}": (3, Body(f"b{i}", "velocity")) for i in range(3)
    }
    begun = {f"v{i}": np.array([[1.0, 0.0, 0.0]]) for i in range(3)}
    made = task(written(tmp_path, scene), state, action=NOTHING)
    seen = run(made, np.zeros((40, 1, 0), np.float32), initial=begun, engine=ENGINE)
    for i, friction in enumerate((0.5, 0.8, 0.2)):
        time_s = min(0.4, 1.0 / (friction * 9.81))
        way_m = time_s - friction * 9.81 * time_s**2 / 2.0
        assert seen[f"p{i}"][-1, 0] == pytest.approx(way_m, rel=2e-2)


def test_a_contact_gives_back_the_share_it_is_told() -> None:
    for share in (0.1, 0.5, 0.9):
        d, depth, speed = dissipation(share), 0.0, -AT_M_S
        while depth >= 0.0:  # a mass of 1 on a spring of 1e4
            speed += 1e-6 * 1e4 * depth * max(0.0, 1.0 - d * speed)
            depth -= 1e-6 * speed
        assert speed == pytest.approx(share * AT_M_S, rel=0.03)
    assert dissipation(1.0) == 0.0
    assert dissipation(0.0) == LIVELY


TOP = """
<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
<body name="top" pos="0 0 .1"><freejoint/><geom name="top" type="sphere" size=".1" condim="4"/></body>
</worldbody></mujoco>
"""


def test_what_would_be_lost_is_named_and_may_be_lost_knowingly(tmp_path: Path) -> None:
    made = task(written(tmp_path, TOP), {"at": (3, Body("top"))}, action=NOTHING)
    with pytest.raises(EngineError, match="drake has no torsional friction") as caught, ENGINE.open(made, 1):
        pass
    assert "top" in str(caught.value)
    seen = run(made, np.zeros((5, 1, 0), np.float32), engine=replace(ENGINE, without=("torsional friction",)))
    assert seen["at"][-1, 2] == pytest.approx(0.1, abs=5e-3)


def test_without_drake_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("simops.sim.drake_")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pydrake.geometry", None)
    with pytest.raises(ExtraError, match="Drake") as caught, ENGINE.open(TASKS.load("cube_toss")(), 1):
        pass
    assert "simops[drake]" in str(caught.value)


def test_numbers_of_physics_are_above_nothing() -> None:
    for name, make in (
        ("step_s", lambda: Drake(step_s=0.0)),
        ("accuracy", lambda: Drake(accuracy=-1.0)),
        ("stiction_m_s", lambda: Drake(stiction_m_s=0.0)),
        ("modulus_pa", lambda: Drake(modulus_pa=0.0)),
        ("sink_m", lambda: Drake(sink_m=float("nan"))),
    ):
        with pytest.raises(EngineError, match=name):
            make()
