"""Bullet, DART and PhysX run the same scenes: friction of each pair, the same bytes twice, nothing lost in silence."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simops.core.errors import EngineError, ExtraError
from simops.core.params import Params
from simops.core.protocols import Engine
from simops.core.rollout import rollout
from simops.core.signal import Array
from simops.core.task import Scene, Task
from simops.sim.binding import mj
from simops.sim.bullet import Bullet
from simops.sim.dart import DETECTORS, Dart
from simops.sim.mujoco_fine import MujocoFine
from simops.sim.physx import Physx
from simops.sim.surfaces import frictions
from simops.sim.walk import Parts, walk
from simops.tasks.pick_and_place.expert import Expert
from simops.tasks.pick_and_place.task import pick_and_place
from simops.tasks.velocity.task import velocity
from simops.testing.law import Case, copied, same_columns
from simops.testing.truths import truths

LOSES = ("armature",)
ENGINES: dict[str, Engine] = {
    "bullet": Bullet(workers=1, without=LOSES),
    "dart": Dart(workers=1, without=LOSES),
    "physx": Physx(workers=1),
}
TOUCHING = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1" friction="{}"/>
    <body name="one" pos="0 0 1"><freejoint/><geom name="one" size="0.1" mass="1" friction="{}"/></body>
    <body name="other" pos="0 1 1"><freejoint/><geom name="other" size="0.1" mass="1" friction="{}"/></body>
    {}
  </worldbody>
</mujoco>
"""


def parts_of(text: str) -> Parts:
    return walk(mj.MjModel.from_xml_string(text))


@pytest.mark.parametrize("name", sorted(ENGINES))
def test_a_panda_picks_and_places_and_the_second_time_is_the_first(name: str) -> None:
    task, engine = pick_and_place(), ENGINES[name]
    [run] = rollout(Expert(), task, engine, n=1, seed=4)
    assert run.outcome == "success"
    case = Case.of(task, 1, 4)
    seen: list[dict[str, Array]] = []
    with engine.open(task, 1) as sim:
        for _ in range(2):  # it begins with the cube on the table, where it is at the end as well
            sim.reset(np.arange(1), case.draw.params, case.initial)
            for action in case.actions:
                sim.step(action)
            seen.append(copied(sim.read()))
    same_columns(seen[0], seen[1], "the same episode again")


@pytest.mark.parametrize("engine", [Bullet(), Dart()], ids=["bullet", "dart"])
def test_armature_is_lost_by_nobody_who_does_not_say_so(engine: Engine) -> None:
    with pytest.raises(EngineError, match="has no armature") as caught, engine.open(velocity(), 1):
        pass
    assert "FL_calf_joint" in str(caught.value)
    assert "without: [armature]" in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bullet", "dart"])
def test_links_that_carry_their_rotors_give_way_and_hold_as_they_should(name: str) -> None:
    known = {truth.name: truth for truth in truths(ENGINES[name])}
    for asked in (
        "how far a servo gives way under a weight",
        "way in 0.4 s against a motor at its limit",
        "slip of a cube of 0.8 kg in a hand that holds 1.02 kg",
    ):
        assert known[asked].value is not None
        assert known[asked].holds


@given(st.lists(st.floats(0.05, 1.5), min_size=3, max_size=3))
@settings(max_examples=15, deadline=None)
def test_coefficients_of_surfaces_multiply_to_the_friction_of_every_pair(coefficients: list[float]) -> None:
    parts = parts_of(TOUCHING.format(*coefficients, ""))
    owner = {geom: geom for pair in parts.pairs for geom in pair.geoms}
    found = frictions(parts, owner, "it", ())
    for pair in parts.pairs:
        one, other = (found[geom] for geom in pair.geoms)
        assert one * other == pytest.approx(pair.friction, rel=2e-3)


def test_frictions_that_no_coefficients_give_are_refused_by_name_or_come_near() -> None:
    third = '<body pos="1 0 1"><freejoint/><geom name="third" size="0.1" mass="1" friction="0.1"/></body>'
    parts = parts_of(TOUCHING.format(1.0, 0.5, 0.2, third))
    owner = {geom: geom for pair in parts.pairs for geom in pair.geoms}
    with pytest.raises(EngineError, match="multiplies frictions: no coefficients give"):
        frictions(parts, owner, "Bullet", ())
    near = frictions(parts, owner, "Bullet", ("friction of each pair",))
    assert all(0.0 < value < 2.0 for value in near.values())


@pytest.mark.slow
@pytest.mark.parametrize("collision", sorted(DETECTORS))
def test_every_collision_code_of_dart_meets_every_truth(collision: str) -> None:
    found = truths(Dart(workers=1, collision=collision, step_s=0.0005))
    assert [truth.name for truth in found if not truth.holds] == []


def test_shapes_that_a_collision_code_would_replace_are_refused() -> None:
    with (
        pytest.raises(EngineError, match="DART's fcl collision has no capsule"),
        Dart(collision="fcl", without=LOSES).open(pick_and_place(), 1),
    ):
        pass


@pytest.mark.parametrize(
    "make",
    [lambda: Dart(collision="odd"), lambda: Physx(solver="odd"), lambda: MujocoFine(step_s=0.0)],
    ids=["dart", "physx", "mujoco_fine"],
)
def test_a_setting_that_is_none_is_refused(make: Callable[[], Engine]) -> None:
    with pytest.raises(EngineError):
        make()


@pytest.mark.parametrize(("name", "module"), [("bullet", "pybullet"), ("dart", "dartpy"), ("physx", "sapien")])
def test_an_engine_that_is_not_installed_names_its_extra(
    name: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ExtraError, match=f"needs {module}") as caught:
        ENGINES[name].version(pick_and_place())
    assert f"simops[{name}]" in str(caught.value)


def test_bullet_throws_hulls_of_meshes(tmp_path: Path) -> None:
    mesh = " ".join(f"{x} {y} {z}" for x in (-0.05, 0.05) for y in (-0.05, 0.05) for z in (-0.05, 0.05))
    scene = f"""
    <mujoco>
      <asset><mesh name="block" vertex="{mesh}"/></asset>
      <worldbody>
        <geom type="plane" size="1 1 1"/>
        <body name="block" pos="0 0 0.2"><freejoint/><geom type="mesh" mesh="block" mass="1"/></body>
      </worldbody>
    </mujoco>"""
    path = tmp_path / "block.xml"
    path.write_text(scene)
    lying = replace(_dropped(), scene=Scene(str(path)))
    for engine in (Bullet(workers=1), Physx(workers=1)):
        with engine.open(lying, 1) as sim:
            sim.reset(np.arange(1), Params.nominal((), 1), {})
            for _ in range(60):
                sim.step(np.zeros((1, 0), np.float32))
            assert sim.read()["block_position"][0, 2] == pytest.approx(0.05, abs=2e-3)


def _dropped() -> Task:
    from simops.core.belief import Box
    from simops.core.signal import Schema, Signal
    from simops.core.task import Body, Reading

    state = (Reading(Signal("block_position", (3,), "m", "world"), Body("block")),)
    return Task(
        name="dropped",
        scene=Scene("block.xml"),
        state=state,
        action=Signal("nothing", (0,)),
        observation=Schema(tuple(reading.signal for reading in state)),
        control_dt_s=0.01,
        horizon_s=1.0,
        belief=Box((), (), ()),
        initial=lambda _: {},
        failure=lambda c: np.zeros(len(c["time_s"]), bool),
        success=lambda c: np.zeros(len(c["time_s"]), bool),
    )
