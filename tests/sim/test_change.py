"""A param is the same as writing its value into the scene, for every field a change may name."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from simops.core.errors import SceneError, SignalError
from simops.core.params import Change, Field, Param, Params
from simops.core.signal import Array
from simops.sim.change import VISUAL
from simops.sim.mujoco import Mujoco
from tests.sim.rig import arm, param, run, task, watched

STEPS = 40
ACTIONS = (0.4 * np.sin(np.arange(STEPS) * 0.3)).astype(np.float32).reshape(STEPS, 1, 1)
PUSH = {"block_velocity": np.array([[1.0, 0.3, 0.0]])}

CASES: tuple[tuple[Change, float, dict[str, str]], ...] = (
    (Change("mass", ("block",)), 2.5, {"block_mass": "2.5", "block_inertia": "0.005 0.005 0.005"}),
    (Change("mass", ("arm",), "scale"), 1.5, {"mass": "1.5", "inertia": "0.015 0.03 0.03"}),
    (Change("mass", ("arm",), "add"), 0.5, {"mass": "1.5", "inertia": "0.015 0.03 0.03"}),
    (Change("com_x", ("arm",), "add"), 0.05, {"com": "0.2 0 0"}),
    (Change("com_y", ("arm",)), 0.05, {"com": "0.15 0.05 0"}),
    (Change("com_z", ("arm",)), -0.05, {"com": "0.15 0 -0.05"}),
    (Change("friction", ("floor", "block")), 0.3, {"friction": "0.3"}),
    (Change("friction", (), "scale"), 0.5, {"friction": "0.4"}),
    (Change("damping", ("hinge",)), 0.7, {"damping": "0.7"}),
    (Change("armature", ("hinge",), "scale"), 3.0, {"armature": "0.03"}),
    (Change("frictionloss", ("hinge",)), 0.5, {"frictionloss": "0.5"}),
    (Change("kp", ("servo",)), 80.0, {"kp": "80"}),
    (Change("kp", (), "scale"), 0.5, {"kp": "25"}),
    (Change("kp", (), "add"), 10.0, {"kp": "60"}),
    (Change("kd", ("servo",)), 3.0, {"kv": "3"}),
    (Change("kd", (), "add"), 0.5, {"kv": "2.5"}),
    (Change("strength", ("servo",)), 2.0, {"limit": "2"}),
    (Change("strength", (), "scale"), 0.25, {"limit": "2"}),
    (Change("delay", ("servo",)), 0.006, {"delay": "0.006", "samples": "5"}),
    (Change("gravity"), 3.7, {"gravity": "3.7"}),
    (Change("gravity", (), "scale"), 0.5, {"gravity": "4.905"}),
    # 0.02 1 is a stiffness of 2500 and a damping of 100
    (Change("contact_stiffness", ("floor", "block")), 9000.0, {"solref": "-9000 -100"}),
    (Change("contact_damping", ("floor", "block")), 50.0, {"solref": "-2500 -50"}),
    (Change("contact_stiffness", ("floor", "block"), "scale"), 2.0, {"solref": "-5000 -100"}),
)


def test_every_field_is_tried() -> None:
    assert {change.field for change, _, _ in CASES} | VISUAL == set(get_args(Field))


@pytest.mark.parametrize(("change", "value", "words"), CASES, ids=lambda value: str(value)[:60])
def test_a_param_is_the_same_as_writing_it_into_the_scene(
    change: Change, value: float, words: dict[str, str], tmp_path: Path
) -> None:
    plain = task(arm(tmp_path))
    changed = task(arm(tmp_path), params=(param("number", value, change),))
    edited = task(arm(tmp_path, "edited.xml", **words))
    as_param, as_scene, without = (run(made, ACTIONS, initial=PUSH) for made in (changed, edited, plain))
    for name, rows in as_scene.items():
        np.testing.assert_allclose(as_param[name], rows, rtol=1e-9, atol=1e-9, err_msg=name)
    shown = max(float(np.abs(as_param[name] - without[name]).max()) for name in without)
    # along the axis of a hinge, and when sliding to a stop, no motion can tell
    assert (shown > 1e-4) == (change not in (CASES[0][0], Change("com_y", ("arm",))))


def test_each_copy_has_its_own_and_a_reset_forgets_the_last(tmp_path: Path) -> None:
    numbers = (
        param("mass", 1.0, Change("mass", ("block",), "scale")),
        param("grip", 0.8, Change("friction", ("floor", "block"))),
        param("gain", 1.0, Change("kp", (), "scale")),
    )
    made = task(arm(tmp_path), params=numbers)
    points = Params(("mass", "grip", "gain"), np.array([[1.0, 0.8, 1.0], [2.0, 0.2, 0.5], [0.5, 1.2, 2.0]]))
    actions = ACTIONS.repeat(3, axis=1)
    with Mujoco(threads=1).open(made, 3) as sim:
        pushed = {"block_velocity": np.repeat(PUSH["block_velocity"], 3, axis=0)}
        sim.reset(np.arange(3), points, pushed)
        first = watched(sim, actions)
        sim.reset(np.arange(3), points.rows(np.array([2, 0, 1])), pushed)
        turned = watched(sim, actions)
        masses = [float(sim.model_of(copy).body("block").mass[0]) for copy in range(3)]
    assert masses == [0.5, 1.0, 2.0]
    for name in first:
        np.testing.assert_array_equal(turned[name][:, 1], first[name][:, 0])
        np.testing.assert_array_equal(turned[name][:, 0], first[name][:, 2])
    assert np.abs(first["angle"][:, 0] - first["angle"][:, 1]).max() > 1e-3
    assert np.abs(first["block_position"][:, 0] - first["block_position"][:, 2]).max() > 1e-3


def test_derived_constants_follow(tmp_path: Path) -> None:
    made = task(arm(tmp_path), params=(param("mass", 4.0, Change("mass", ("block",))),))
    with Mujoco(threads=1).open(made, 1) as sim:
        sim.reset(np.arange(1), Params.nominal(made.belief.params, 1), {})
        model = sim.model_of(0)
    assert model.body_subtreemass[0] == pytest.approx(5.0)
    assert model.body_invweight0[model.body("block").id][0] == pytest.approx(0.25)


def step_response(folder: Path, delay_s: float) -> Array:
    """Angle at every physics step after the target jumps, from holding still at the first command."""
    made = task(
        arm(folder, gravity="0"),
        params=(Param("late_s", delay_s, "s", 0.0, 0.05, (Change("delay"),)),),
        control_dt_s=0.002,
    )
    actions = np.full((100, 1, 1), 0.5, np.float32)
    actions[:10] = 0.25
    begun = {"angle": np.array([0.25]), "target": np.array([[0.25]])}
    return run(made, actions, initial=begun)["angle"]


@pytest.mark.parametrize("steps", [1, 3, 10, 25])
def test_a_delay_shifts_the_response_by_exactly_itself(steps: int, tmp_path: Path) -> None:
    prompt, late = step_response(tmp_path, 0.0), step_response(tmp_path, steps * 0.002)
    assert np.abs(prompt[:11] - 0.25).max() < 1e-12  # what came before the episode is its first command
    assert prompt[-1] > 0.3
    np.testing.assert_allclose(late[:steps], 0.25, atol=1e-12)
    np.testing.assert_allclose(late[steps:], prompt[: len(prompt) - steps], atol=1e-12)


def test_what_reached_the_motors_is_as_late_as_the_motors(tmp_path: Path) -> None:
    late = Param("late_s", 0.02, "s", 0.0, 0.05, (Change("delay"),))
    made = task(arm(tmp_path), params=(late,))
    points = Params(("late_s",), np.array([[0.0], [0.02], [0.05]]))
    asked = np.arange(1, 11, dtype=np.float32) / 100
    with Mujoco(threads=1).open(made, 3) as sim:
        sim.reset(np.arange(3), points, {"target": np.zeros((3, 1))})
        reached: list[Array] = []
        for target in asked:
            sim.step(np.full((3, 1), target, np.float32))
            reached.append(np.array(sim.executed)[:, 0])
    found = np.array(reached)
    for copy, behind in enumerate((0, 2, 5)):
        np.testing.assert_allclose(found[behind:, copy], asked[: 10 - behind], rtol=1e-6)
        np.testing.assert_array_equal(found[:behind, copy], 0.0)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (Change("mass", ("blok",)), "the scene has no body 'blok'\n  try: 'block'"),
        (Change("friction", ("flor",)), "the scene has no geom 'flor'\n  try: 'floor'"),
        (Change("damping", ("hing",)), "the scene has no joint 'hing'\n  try: 'hinge'"),
        (Change("kp", ("serve",)), "the scene has no actuator 'serve'\n  try: 'servo'"),
    ],
)
def test_a_name_that_is_not_in_the_scene_is_refused(change: Change, words: str, tmp_path: Path) -> None:
    made = task(arm(tmp_path), params=(param("number", 1.0, change),))
    with pytest.raises(SceneError) as caught, Mujoco().open(made, 1):
        pass
    assert str(caught.value) == words


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (Change("kp"), "actuator 'plain' is no position servo, it has no kp"),
        (Change("kd"), "actuator 'plain' is no position servo, it has no kd"),
        (Change("strength"), "actuator 'plain' has no effort limit"),
    ],
)
def test_what_an_actuator_does_not_have_is_refused(change: Change, words: str, tmp_path: Path) -> None:
    path = arm(tmp_path)
    path.write_text(path.read_text().replace("</actuator>", '<motor name="plain" joint="hinge"/></actuator>'))
    made = task(path, params=(param("number", 1.0, change),))
    with pytest.raises(SceneError, match=words), Mujoco().open(made, 1):
        pass


def test_params_that_are_not_drawn_stay_as_the_scene_has_them(tmp_path: Path) -> None:
    made = task(arm(tmp_path), params=(param("mass", 4.0, Change("mass", ("block",))),))
    with Mujoco(threads=1).open(made, 1) as sim:
        sim.reset(np.arange(1), Params((), np.empty((1, 0))), {})
        assert sim.model_of(0).body("block").mass[0] == 1.0
    with pytest.raises(SignalError):
        Params(("mass",), np.empty((1, 0)))
