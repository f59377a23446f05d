from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simops.spec.units import UNITS, same_unit, split_unit, suffix_of


@pytest.mark.parametrize(
    ("key", "name", "factor", "si"),
    [
        ("object_mass_kg", "object_mass", 1.0, "kg"),
        ("object_mass_g", "object_mass", 1e-3, "kg"),
        ("object_position_noise_cm", "object_position_noise", 1e-2, "m"),
        ("camera_jitter_deg", "camera_jitter", math.pi / 180, "rad"),
        ("delay_ms", "delay", 1e-3, "s"),
        ("speed_m_s", "speed", 1.0, "m/s"),
        ("joint_damping_nms_rad", "joint_damping", 1.0, "N m s/rad"),
        ("friction_coefficient", "friction_coefficient", 1.0, ""),
        ("m", "m", 1.0, ""),
        ("lighting_intensity", "lighting_intensity", 1.0, ""),
    ],
)
def test_a_suffix_is_a_unit(key: str, name: str, factor: float, si: str) -> None:
    assert split_unit(key) == (name, factor, si)


@given(st.sampled_from(sorted(UNITS)))
def test_every_unit_comes_off_what_it_was_put_on(suffix: str) -> None:
    assert split_unit(f"some_thing_{suffix}") == ("some_thing", *UNITS[suffix])


@given(st.sampled_from(sorted(unit.si for unit in UNITS.values() if unit.si)))
def test_every_si_unit_has_a_suffix(si: str) -> None:
    assert split_unit(f"x{suffix_of(si)}") == ("x", 1.0, si)


def test_a_unit_can_be_written_in_several_ways() -> None:
    assert same_unit("N m", "N*m")
    assert same_unit("m/s²", "m/s^2")
    assert same_unit("1", "")
    assert not same_unit("m", "M")
