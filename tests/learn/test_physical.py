from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from simops.core.errors import DataError
from simops.core.learning import Learned, Material, Progress
from simops.core.recording import Recording, Stream
from simops.core.rig import EFFORT, POSITION, Rig
from simops.learn.direct import rows_of
from simops.learn.fit import Fit
from simops.learn.foresight import reached
from simops.learn.physical import Physical
from simops.learn.replay import Track
from simops.learn.smooth import smooth
from simops.sim.servo import Servo
from tests.learn.slider import ENGINE, TRUE, recorded, rig

LEARNER = Physical(ahead_s=0.3, judged_s=0.5, most=48, fit=Fit(starts=2, iterations=6))


def learned(one: Rig, recordings: list[Recording], learner: Physical = LEARNER) -> Learned:
    return learner.learn(Material(task=one.task(), rig=one, engine=ENGINE, recordings=tuple(recordings)), unwatched)


def unwatched(progress: Progress) -> None:
    del progress


def changed(recording: Recording, **columns: object) -> Recording:
    [stream] = recording.streams
    kept = {name: columns.get(name, stream.columns[name]) for name in stream.columns}
    return replace(recording, streams=(replace(stream, columns=kept),))


def test_what_was_planted_is_found_and_a_held_out_run_is_predicted_within_its_interval(tmp_path: Path) -> None:
    one = rig(tmp_path)
    runs = recorded(one)
    nominal, physical = learned(one, runs[:6]).candidates
    for told in physical.told:
        assert told.trusted
        assert told.mean == pytest.approx(TRUE[told.name], abs=max(4 * told.spread, 1e-3)), told.name
        assert told.spread < 0.05 * TRUE[told.name]
    errors: list[float] = []
    for candidate in (nominal, physical):
        with LEARNER.predicting(candidate, one.task(), one) as predict:
            found = [predict(run) for run in runs[6:]]
        errors.append(float(np.mean([each.error for each in found])))
    assert errors[1] < 0.1 * errors[0]
    assert np.mean([each.coverage or 0.0 for each in found]) == pytest.approx(0.9, abs=0.06)


def test_what_acts_the_same_cannot_be_told_apart(tmp_path: Path) -> None:
    from simops.core.params import Change, Param

    one = rig(tmp_path, Param("joint_damping", 0.0, low=0.0, high=8.0, changes=(Change("damping", ("slide",)),)))
    physical = learned(one, recorded(one)).candidates[1]
    said = " ".join(physical.notes)
    assert "joint_damping" in said
    assert "motor_viscous" in said
    assert {told.name for told in physical.told if told.trusted} == {"mass", "motor_coulomb"}


def test_bad_recordings_are_refused_with_what_is_missing(tmp_path: Path) -> None:
    one = rig(tmp_path)
    [run] = recorded(one, runs=1, seconds=3.0)
    [stream] = run.streams
    position = stream.columns["position"]
    holed = position.copy()
    holed[20] = np.nan
    short = replace(run, streams=(_first(stream, 51),))
    strange = replace(run, streams=(_relabelled(stream),))
    for bad, fault, said in (
        (changed(run, position=holed), "LRN-001", "no numbers"),
        (changed(run, position=np.zeros_like(position)), "LRN-002", "nothing moves"),
        (short, "LRN-004", "too little"),
        (strange, "LRN-005", "'wheel'"),
    ):
        with pytest.raises(DataError, match=said) as caught:
            learned(one, [bad])
        assert caught.value.fault == fault
    with pytest.raises(DataError, match="no recording"):
        learned(one, [])


def _first(stream: Stream, rows: int) -> Stream:
    return replace(stream, time_s=stream.time_s[:rows], columns={n: c[:rows] for n, c in stream.columns.items()})


def _relabelled(stream: Stream) -> Stream:
    signals = tuple(replace(signal, labels=("wheel",)) for signal in stream.schema.signals)
    return replace(stream, schema=replace(stream.schema, signals=signals))


def test_efforts_tell_the_same_as_replays(tmp_path: Path) -> None:
    one = rig(tmp_path)
    learner = replace(LEARNER, by="effort", cut_hz=12.0, rows=1200)
    physical = learned(one, recorded(one, runs=6), learner).candidates[1]
    for told in physical.told:
        assert told.mean == pytest.approx(TRUE[told.name], rel=0.15), told.name


def test_an_effort_read_beside_the_position_is_compared_in_that_instant(tmp_path: Path) -> None:
    time_s = np.arange(600) * 0.005
    turn = 2 * np.pi * 1.5
    position = np.sin(turn * time_s)[:, None]
    accelerated = -(turn**2) * position
    one = replace(rig(tmp_path), dt_s=0.005)
    track = Track("wave", time_s, position, {POSITION: position, EFFORT: accelerated}, position)
    read = rows_of(one, [track], 20.0)
    held = rows_of(one, [replace(track, columns={POSITION: position})], 20.0)
    middle = slice(40, -40)
    assert np.abs(read.change / 0.005 - read.effort)[middle].max() < 0.01 * np.abs(accelerated).max()
    late = (accelerated[10:589] + accelerated[11:590]) / 2
    assert np.abs(held.change / 0.005 - late)[middle].max() < 0.01 * np.abs(accelerated).max()


def test_nine_of_ten_more_stay_below_what_a_few_reached() -> None:
    rng = np.random.default_rng(0)
    for few in (9, 12, 40):
        below = [abs(rng.normal()) <= reached(np.abs(rng.normal(size=(few, 1, 1))))[0] for _ in range(3000)]
        assert np.mean(below) == pytest.approx(0.9, abs=0.02)


def test_slopes_of_a_wave_are_those_of_the_wave() -> None:
    time_s = np.arange(400) * 0.005
    wave = np.sin(2 * np.pi * 1.5 * time_s)[:, None]
    inner = slice(40, -40)
    for slope, want in ((0, wave), (1, 3 * np.pi * np.cos(3 * np.pi * time_s)[:, None])):
        found = smooth(wave, 0.005, 20.0, slope=slope)
        assert np.abs(found - want)[inner].max() < 0.01 * np.abs(want).max()


def test_a_controller_holds_its_effort_between_two_looks() -> None:
    motor = Servo(kp=10.0, period_s=0.004)
    memory = motor.start(1, 1)
    found: list[float] = []
    for step in range(8):
        effort, memory = motor.torque(
            np.ones((1, 1)), np.full((1, 1), 0.1 * step), np.zeros((1, 1)), memory, dt_s=0.001
        )
        found.append(float(effort[0, 0]))
    assert found == pytest.approx([10.0] * 4 + [6.0] * 4)


def test_a_delay_of_a_step_and_a_half_lies_between_two_commands() -> None:
    motor = Servo(kp=1.0, delay_s=0.0015)
    memory = motor.start(1, 1)
    zero = np.zeros((1, 1))
    found: list[float] = []
    for command in (0.0, 1.0, 2.0, 3.0, 4.0):
        effort, memory = motor.torque(np.full((1, 1), command), zero, zero, memory, dt_s=0.001)
        found.append(float(effort[0, 0]))
    assert found == pytest.approx([0.0, 0.0, 0.5, 1.5, 2.5])


def test_the_motion_proposed_is_safe_and_tells_of_what_is_not_known(tmp_path: Path) -> None:
    one = rig(tmp_path)
    runs = recorded(one, runs=3, seconds=2.0)
    material = Material(task=one.task(), rig=one, engine=ENGINE, recordings=tuple(runs))
    nominal = LEARNER.learn(material, unwatched).candidates[0]
    found = LEARNER.propose(nominal, material, seconds=2.0)
    force = np.concatenate([run.named("force").values for run in runs])
    assert force.min() <= found.command.min()
    assert found.command.max() <= force.max()
    assert np.ptp(found.command) > 0
    assert found.gain_nats > 0
    assert all(after <= before for before, after in found.spreads.values())
    again = LEARNER.propose(nominal, material, seconds=2.0)
    np.testing.assert_array_equal(again.command, found.command)
