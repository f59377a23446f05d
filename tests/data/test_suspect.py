"""Every fault that is planted in a recording is named where it is, and nothing is said of sound ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from simops.core.errors import DataError
from simops.core.recording import Recording, Stream
from simops.core.signal import Array, Schema, Signal
from simops.data import align
from simops.data.suspect import examine, require

JOINTS = ("hip", "knee", "ankle")
Cells = dict[str, Array]


def arm(seed: int = 0, *, rows: int = 2000, dt_s: float = 0.01, late_s: float = 0.03) -> Recording:
    """Three joints with a lag, each on its own path of a few sines, measured with noise."""
    rng = np.random.default_rng(seed)
    time_s = np.arange(rows) * dt_s + rng.uniform(-0.1, 0.1, rows) * dt_s
    rate, phase = rng.uniform(0.3, 2.0, (3, 4)), rng.uniform(0, 6, (3, 4))

    def path(at_s: Array) -> Array:
        return 0.3 * np.sin(2 * np.pi * rate * at_s[:, None, None] + phase).sum(axis=2)

    position = path(time_s - late_s) * 0.97 + rng.normal(0, 1e-3, (rows, 3))
    velocity = (path(time_s - late_s + 1e-4) - path(time_s - late_s - 1e-4)) / 2e-4
    return made(time_s, {"command": path(time_s), "position": position, "velocity": velocity})


def made(time_s: Array, columns: Cells) -> Recording:
    units = {"command": "rad", "position": "rad", "velocity": "rad/s"}
    schema = Schema(tuple(Signal(n, (3,), units[n], "", "float64", JOINTS) for n in columns))
    return Recording("made", (Stream("rows", time_s, schema, columns),), session="one")


def broken(name: str, change: Callable[[Array], Array], seed: int = 0) -> Recording:
    sound = arm(seed)
    columns = {key: np.array(cells) for key, cells in sound["rows"].columns.items()}
    columns[name] = change(columns[name])
    return made(sound["rows"].time_s, columns)


def scaled(column: int, factor: float) -> Callable[[Array], Array]:
    return lambda rows: rows * np.where(np.arange(3) == column, factor, 1.0)


def limited(rows: Array) -> Array:
    rows[:, 1] = np.clip(rows[:, 1], -10, 0.4)
    return rows


def holed(rows: Array) -> Array:
    rows[100:110, 2] = np.nan
    return rows


def standing(rows: Array) -> Array:
    rows[:, 0] = rows[0, 0] + 1e-5 * np.sin(np.arange(len(rows)))
    return rows


PLANTED: dict[str, tuple[Recording, str, str]] = {
    "swapped positions": (broken("position", lambda r: r[:, [1, 0, 2]]), "swapped", "position hip"),
    "swapped velocities": (broken("velocity", lambda r: r[:, [0, 2, 1]]), "swapped", "velocity knee"),
    "sign": (broken("position", scaled(1, -1)), "sign", "position knee"),
    "sign of velocity": (broken("velocity", scaled(2, -1)), "sign", "velocity ankle"),
    "degrees": (broken("position", scaled(0, 57.29578)), "unit", "position hip"),
    "turns a minute": (broken("velocity", scaled(0, 9.549297)), "unit", "velocity hip"),
    "wrapped": (broken("position", lambda r: (r * 4 + np.pi) % (2 * np.pi) - np.pi), "wrapped", "position"),
    "saturated": (broken("position", limited), "saturated", "position knee"),
    "holes": (broken("position", holed), "not numbers", "position ankle"),
    "stuck": (broken("position", standing), "stuck", "position hip"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_named_where_it_is(name: str) -> None:
    recording, kind, where = PLANTED[name]
    found = examine([recording])
    assert any(one.kind == kind and one.where.startswith(where) for one in found), found


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_said_of_a_sound_recording(seed: int) -> None:
    assert examine([arm(seed, late_s=0.005 * seed)]) == ()


def test_rows_that_are_missing_and_times_that_go_back_are_counted() -> None:
    sound = arm()["rows"]
    keep = np.delete(np.arange(len(sound)), np.r_[100:120, 300:340, 500:560, 800:805, 900:910])
    columns = {name: cells[keep] for name, cells in sound.columns.items()}
    [found] = examine([made(sound.time_s[keep], columns)])
    assert found.kind == "dropped"
    assert "about 135 rows" in found.what
    back = sound.time_s.copy()
    back[200] = back[198]
    assert examine([made(back, dict(sound.columns))])[0].kind == "time"


def test_one_odd_recording_among_many_is_no_wiring() -> None:
    many = [arm(seed) for seed in range(4)] + [broken("position", scaled(1, -1), seed=9)]
    assert not [one for one in examine(many) if one.kind == "sign"]


def test_what_is_grave_stops_a_fit_and_the_rest_does_not() -> None:
    with pytest.raises(DataError, match="knee") as caught:
        require([broken("position", scaled(1, -1))])
    assert caught.value.fault == "LRN-007"
    assert [one.kind for one in require([broken("position", limited)])] == ["saturated"]


@pytest.mark.parametrize("late_s", [0.0, 0.013, 0.0475, 0.12])
def test_a_delay_is_found_to_a_fraction_of_a_row(late_s: float) -> None:
    one = arm(3, late_s=late_s)
    found = align.delay(one.command, one.position)
    assert found.seconds == pytest.approx(late_s, abs=1.5e-3)
    assert found.likeness > 0.9
    again = align.delay(one.command, align.shifted(one, "rows", 0.0).position)
    assert again == found


def test_a_clock_that_gains_is_told_from_a_way_that_is_slow_now_and_then() -> None:
    rng = np.random.default_rng(1)
    measured = np.arange(3000) * 0.01
    received = measured * (1 - 3e-4) + 0.25 + rng.exponential(0.01, len(measured))
    found = align.clock(measured, received)
    assert found.drift == pytest.approx(3e-4, rel=0.1)
    assert found.offset_s == pytest.approx(0.25, abs=1e-3)
    assert found.late_s == pytest.approx(0.03, rel=0.3)
    with pytest.raises(DataError, match="nothing of a clock"):
        align.clock(measured[:5], received[:5])
