"""Joints from commands and positions: what made a recording is found again, and predicts another one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simops.core.errors import DataError
from simops.core.signal import Array
from simops.learn.bench import Bench, params, swing
from simops.learn.fit import Fit
from simops.learn.joint import Asked, errors, identify, lagged

TRUE = {"stiffness": 600.0, "viscous": 30.0, "emf": 0.0, "limit": 200.0, "coulomb": 12.0, "late": 0.03, "offset": 9.0}
QUICK = Asked(window_s=3.0, every=2, substeps=2, tolerance_rad=0.003, members=2, fit=Fit(starts=1, iterations=8))


def bench(commands: Array, *, step_s: float = 0.02, **more: float) -> Bench:
    """Recordings of a known joint, made from its commands; `more` are numbers that only some servos have."""
    true = {**TRUE, **more}
    rows, count = len(commands), int(commands.shape[1])
    empty = Bench(
        time_s=np.tile(step_s * np.arange(count), (rows, 1)),
        command_rad=commands,
        position_rad=np.tile(commands[:, :1], (1, count)),
        within=np.ones((rows, count), bool),
        around_rad=np.zeros((rows, count, 1)),
        speed_rad_s=np.zeros(rows),
        gain=np.ones(rows),
        powered=np.ones((rows, count), bool),
    )
    found, _ = params(empty, {name: (value, 1.0) for name, value in more.items()})
    names = [param.name for param in found]
    point = np.array([[true.get(name, 1.0 if name == "stribeck_rad_s" else 0.0) for name in names]])
    return replace(empty, position_rad=swing(empty, names, point, substeps=2)[0])


def moved(rows: int, count: int = 150, seed: int = 0) -> Array:
    drawn = np.random.default_rng(seed)
    time_s = 0.02 * np.arange(count)
    rates, phases = drawn.uniform(0.2, 2.0, (2, rows, 2, 1))
    return 0.3 * np.sin(2 * np.pi * rates * time_s + 6 * phases).sum(axis=1)


def test_what_made_a_recording_predicts_another() -> None:
    joint = identify(bench(moved(3)), QUICK)
    other = bench(moved(2, seed=7))
    left, _ = errors(other, joint.predicted(other, substeps=2).mean(axis=0))
    naive, _ = errors(other, other.command_rad)
    lag, _ = errors(other, lagged(other, (0.0, 0.03, 0.06), (0.0, 0.03, 0.06)))
    assert left.max() < 0.006
    assert left.max() < 0.2 * lag.min() < 0.2 * naive.min() + 1e-9
    assert joint.numbers["stiffness"] == pytest.approx(600.0, rel=0.25)
    assert joint.numbers["coulomb"] == pytest.approx(12.0, rel=0.35)


def test_a_ramp_that_is_known_predicts_a_motion_faster_than_any_learned_from() -> None:
    slow, ramp = bench(moved(3, seed=2), ramp=12.0, damping=20.0), {"ramp": (12.0, 0.1), "damping": (15.0, 15.0)}
    fast = np.cumsum(np.linspace(0.5, 4.0, 200))[None] * 2 * np.pi * 0.02
    other = bench(0.2 * np.sin(fast), ramp=12.0, damping=20.0)
    left = {}
    for name, known in (("told", ramp), ("untold", None)):
        joint = identify(slow, replace(QUICK, known=known))
        left[name], _ = errors(other, joint.predicted(other, substeps=2).mean(axis=0))
    assert left["told"] < 0.01
    assert left["told"] < 0.3 * left["untold"]


def test_a_joint_sticks_where_friction_holds_it() -> None:
    step = np.full((1, 100), 0.01)
    step[:, 0] = 0.0
    held = bench(step)
    assert np.ptp(held.position_rad) > 0  # the offset pulls
    assert np.ptp(held.position_rad[:, 50:]) == 0.0


def test_windows_begin_where_the_joint_was() -> None:
    whole = bench(moved(2, 90))
    cut = whole.windows(30)
    assert len(cut) == 6
    np.testing.assert_array_equal(cut.position_rad[:3, 0], whole.position_rad[0, ::30])


@pytest.mark.parametrize("wrong", ["short", "still", "nan"])
def test_what_cannot_tell_is_refused(wrong: str) -> None:
    whole = bench(moved(1))
    broken = whole.position_rad.copy()
    broken[0, 5] = np.nan
    bad = {
        "short": whole.windows(50).rows([0]),
        "still": replace(whole, position_rad=np.zeros_like(whole.position_rad)),
        "nan": replace(whole, position_rad=broken),
    }[wrong]
    fault = {"short": "LRN-004", "still": "LRN-002", "nan": "LRN-001"}[wrong]
    with pytest.raises(DataError) as caught:
        identify(bad, QUICK, where="elbow")
    assert caught.value.fault == fault
    assert "elbow" in str(caught.value)
