from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simops.core.belief import Belief, Box, Gaussian, Joint, Particles
from simops.core.params import Change, Param
from simops.spec.believe import Normal, without
from simops.spec.randomize import Spread, randomize
from simops.spec.ranges import Range

MASS = Param("object_mass", 0.2, "kg", 0.001, 5.0, (Change("mass", ("cube",)),))
FRICTION = Param("friction_coefficient", 0.6, "", 0.0, 3.0, (Change("friction", ("cube",)),))
X = Param("position_noise_x", 0.0, "m", -0.1, 0.1)
Y = Param("position_noise_y", 0.0, "m", -0.1, 0.1)
PAN = Param("camera_jitter_pan", 0.0, "rad", -1.0, 1.0, (Change("camera_pan", how="add"),))
TILT = Param("camera_jitter_tilt", 0.0, "rad", -1.0, 1.0, (Change("camera_tilt", how="add"),))
TEXTURE = Param("texture", 0, "", 0, 4096, (Change("texture"),), integer=True)
DELAY = Param("delay_s", 0.0, "s", 0.0)
PARAMS = (MASS, FRICTION, X, Y, PAN, TILT, TEXTURE, DELAY)
PRIOR = Box(PARAMS, tuple(p.nominal for p in PARAMS), tuple(p.nominal for p in PARAMS))


def ranges(belief: Belief) -> dict[str, tuple[float, float]]:
    assert isinstance(belief, Box)
    return {p.name: ends for p, *ends in zip(belief.params, belief.low, belief.high, strict=True)}  # pyright: ignore


def complaint(group: str, key: str, spread: Spread) -> str:
    [problem] = randomize(PRIOR, {group: {key: spread}}).problems
    return str(problem)


def test_keys_reach_params_in_si() -> None:
    found = randomize(
        PRIOR,
        {
            "physics": {"object_mass_g": Range(50, 400), "position_noise_cm": Range(-2, 2), "delay_ms": 5},
            "visual": {"texture_pool": 200, "camera_jitter_deg": Range(-5, 5)},
        },
    )
    assert found.problems == ()
    assert isinstance(found.belief, Box)
    low, high = (dict(zip((p.name for p in PARAMS), row, strict=True)) for row in (found.belief.low, found.belief.high))
    deg = math.pi / 180
    assert low == pytest.approx(
        {
            "object_mass": 0.05,
            "friction_coefficient": 0.6,
            "position_noise_x": -0.02,
            "position_noise_y": -0.02,
            "camera_jitter_pan": -5 * deg,
            "camera_jitter_tilt": -5 * deg,
            "texture": 0,
            "delay_s": 0.005,
        }
    )
    assert (high["object_mass"], high["texture"], high["delay_s"]) == pytest.approx((0.4, 200, 0.005))


@pytest.mark.parametrize(
    ("group", "key", "spread", "words"),
    [
        ("physics", "object_mas_kg", 1, "the task has no param 'object_mas'; try 'object_mass_kg' [CFG-001]"),
        ("physics", "friction", 1, "the task has no param 'friction'; try 'friction_coefficient' [CFG-001]"),
        ("physics", "object_mass_cm", 1, "object_mass is measured in kg, not in cm; try 'object_mass_kg' or"),
        ("physics", "object_mass", 1, "object_mass is measured in kg, and the key names no unit; try 'object_mass_kg'"),
        ("physics", "friction_coefficient_kg", 1, "friction_coefficient has no unit, not in kg"),
        (
            "physics",
            "object_mass_kg",
            -1,
            "-1 is impossible for object_mass, want at least 0.001 and at most 5 [CFG-005]",
        ),
        ("physics", "object_mass_g", 0.5, "0.5 is impossible for object_mass, want at least 1 and at most 5000; try"),
        (
            "physics",
            "friction_coefficient",
            Range(-0.1, 1),
            "[-0.1, 1] is impossible for friction_coefficient, want at",
        ),
        ("visual", "camera_jitter_rad", Range(-5, 5), "[-5, 5] is impossible for camera_jitter_pan, want at least -1"),
        ("physics", "delay_ms", -1, "-1 is impossible for delay_s, want at least 0 [CFG-005]"),
        ("visual", "texture_pool", 0, "0 is out of range, want 1 to 4096 [CFG-005]"),
        ("visual", "texture_pool", 2.5, "2.5 is no count, want how many to choose among"),
        ("visual", "textur_pool", 3, "the task has no pool of 'textur'; try 'texture_pool' [CFG-001]"),
        ("visual", "texture", 2.5, "texture is a choice among whole numbers, want one or [low, high] [CFG-002]"),
        ("visual", "object_mass_kg", 1, "object_mass is no visual param; try physics.object_mass_kg [CFG-001]"),
        (
            "physics",
            "camera_jitter_deg",
            1,
            "camera_jitter is no physics param; try visual.camera_jitter_deg [CFG-001]",
        ),
    ],
)
def test_impossible_wishes_say_what_would_do(group: str, key: str, spread: Spread, words: str) -> None:
    assert complaint(group, key, spread).startswith(f"{group}.{key}: {words}")


def test_a_param_is_set_once() -> None:
    [problem] = randomize(PRIOR, {"physics": {"object_mass_kg": 1, "object_mass_g": 900}}).problems
    assert str(problem) == "physics.object_mass_g: object_mass is already set by physics.object_mass_kg [CFG-003]"


def test_a_bell_stands_beside_the_rest() -> None:
    found = randomize(PRIOR, {"physics": {"object_mass_g": Normal(200, 20), "friction_coefficient": Range(0.2, 1.1)}})
    assert isinstance(found.belief, Joint)
    draws = found.belief.sample(np.arange(4000, dtype=np.uint64))
    assert set(draws.names) == {p.name for p in PARAMS}
    assert draws["object_mass"].mean() == pytest.approx(0.2, abs=0.002)
    assert draws["object_mass"].std() == pytest.approx(0.02, rel=0.1)
    assert draws["friction_coefficient"].min() >= 0.2


PRIORS = (
    PRIOR,
    Gaussian((MASS, FRICTION), (0.2, 0.6), ((0.01, 0.001), (0.001, 0.04))),
    Particles((MASS, FRICTION), ((0.1, 0.2), (0.2, 0.9)), spread=(0.01, 0.02)),
    Joint((Gaussian((MASS,), (0.2,), ((0.01,),)), Box((FRICTION,), (0.1,), (0.9,)))),
)


@given(st.sampled_from(PRIORS), st.floats(0.001, 5.0))
def test_fixing_one_param_leaves_the_others_as_they_were(prior: Belief, mass: float) -> None:
    belief = randomize(prior, {"physics": {"object_mass_kg": mass}}).belief
    seeds = np.arange(50, dtype=np.uint64)
    before, after = prior.sample(seeds), belief.sample(seeds)
    assert sorted(before.names) == sorted(after.names)
    assert (after["object_mass"] == mass).all()
    rest = without(prior, {"object_mass"})
    assert rest is not None
    np.testing.assert_array_equal(rest.sample(seeds)["friction_coefficient"], after["friction_coefficient"])


def test_a_range_that_says_what_was_believed_changes_nothing() -> None:
    box = Box((MASS, X), (0.05, -0.02), (0.4, 0.02))
    assert randomize(box, {"physics": {"object_mass_kg": Range(0.05, 0.4)}}).belief == box
    assert randomize(box, {}).belief == box
