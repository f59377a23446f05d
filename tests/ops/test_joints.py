"""Joints of recordings: who pulls at whom, what is refused, and the command from end to end."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from simops.cli.main import main
from simops.core.errors import DataError
from simops.core.recording import Recording, Stream
from simops.core.signal import Array, Schema, Signal
from simops.learn.fit import Fit
from simops.learn.joint import Asked
from simops.ops import identify
from simops.ops.joints import Rig, benches, count_rad, identified, predicted

LABELS = ("base", "shoulder", "elbow")
QUICK = Asked(window_s=2.0, members=2, substeps=2, every=2, fit=Fit(starts=1, iterations=3))


def moved(seed: int, count: int = 150) -> Array:
    drawn = np.random.default_rng(seed)
    rates, phases = drawn.uniform(0.2, 1.0, (2, 3))
    return 0.4 * np.sin(2 * np.pi * rates * 0.02 * np.arange(count)[:, None] + 6 * phases)


def recording(name: str, commands: Array, labels: tuple[str, ...] = LABELS, **facts: float) -> Recording:
    """Joints that follow their commands late."""
    late = np.concatenate([commands[:1].repeat(3, axis=0), commands[:-3]])
    signals = tuple(Signal(n, (len(labels),), "rad", dtype="float64", labels=labels) for n in ("command", "position"))
    times = 0.02 * np.arange(len(commands))
    return Recording(
        name, (Stream("rows", times, Schema(signals), {"command": commands, "position": late}),), facts=facts
    )


def test_a_load_is_under_the_sum_of_the_angles_up_to_it() -> None:
    made = recording("one", moved(0))
    found = benches([made], Rig(chains=(("shoulder", "-elbow"),)))
    q = made.position.values
    assert found["base"].loads == 1
    assert not found["base"].around_rad.any()
    np.testing.assert_allclose(found["shoulder"].around_rad[0], np.stack([0 * q[:, 1], -q[:, 2]], axis=1))
    np.testing.assert_allclose(found["elbow"].around_rad[0], -q[:, 1:2])  # as the elbow itself turns


def test_recordings_of_several_lengths_stand_side_by_side() -> None:
    rig = Rig(gain="kp", usual=200.0)
    found = benches([recording("a", moved(1), kp=100.0), recording("b", moved(2, 100), kp=400.0)], rig)["base"]
    assert found.within.sum(axis=1).tolist() == [150, 100]
    assert found.gain.tolist() == [0.5, 2.0]
    assert np.ptp(found.position_rad[1, 99:]) == 0.0


@pytest.mark.parametrize("wrong", ["labels", "chain", "fact", "none", "still"])
def test_what_does_not_fit_is_refused(wrong: str) -> None:
    good, rig = recording("a", moved(1)), Rig(asked=QUICK)
    other = recording("b", moved(2), labels=("base", "shoulder", "wrist"))
    still = recording("still", np.zeros((150, 3)))
    tries = {
        "labels": lambda: benches([good, other], rig),
        "chain": lambda: benches([good], Rig(chains=(("shoulder", "elbw"),))),
        "fact": lambda: benches([good], Rig(gain="kp")),
        "none": lambda: benches([], rig),
        "still": lambda: identified(benches([still], rig), rig),
    }
    words = {"labels": "wrist", "chain": "elbow", "fact": "kp", "none": "no recording", "still": "moves"}[wrong]
    with pytest.raises(DataError, match=words):
        tries[wrong]()


def test_a_ramp_in_counts_is_as_long_as_the_steps_that_positions_come_in() -> None:
    commands = moved(3)
    count = np.array([0.01, 0.02, 0.005])
    found = benches([recording("a", np.round(commands / count) * count)], Rig())
    for (label, one), step in zip(found.items(), count, strict=True):
        assert count_rad(one, label) == pytest.approx(step)
    smooth = benches([recording("a", commands)], Rig())["base"]
    with pytest.raises(DataError, match="come in no steps"):
        count_rad(smooth, "base")


def test_a_joint_that_never_moves_is_predicted_to_stay() -> None:
    commands = moved(3)
    commands[:, 2] = 0.3
    rig = Rig(asked=QUICK)
    found = benches([recording("a", commands)], rig)
    joints = identified(found, rig)
    assert set(joints) == {"base", "shoulder"}
    said = predicted(joints, found, rig)
    assert np.ptp(said["elbow"].mean_rad) == 0.0
    assert said["base"].doubt_rad.shape == found["base"].time_s.shape


def test_the_command_says_how_well_held_out_recordings_are_predicted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ["motion,t,command,position"]
    for name, seed in (("a", 1), ("b", 2)):
        made = recording(name, moved(seed)[:, :1], labels=("x",))
        for t, c, p in zip(made.position.time_s, made.command.values[:, 0], made.position.values[:, 0], strict=True):
            rows.append(f"{name},{t},{c},{p}")
    (tmp_path / "log.csv").write_text("\n".join(rows))
    (tmp_path / "map.yaml").write_text("time: t\ngroup: [motion]\n")
    (tmp_path / "rig.yaml").write_text("asked: {window_s: 2, members: 1, every: 2, fit: {starts: 1, iterations: 4}}\n")
    words = ["identify", str(tmp_path / "log.csv"), "--map", str(tmp_path / "map.yaml")]
    words += ["--rig", str(tmp_path / "rig.yaml"), "--out", str(tmp_path / "out"), "--hold"]
    assert main([*words, "b"]) == 0
    shown = capsys.readouterr().out
    assert "identified" in shown
    assert "command itself" in shown
    told = json.loads((tmp_path / "out" / "numbers.json").read_text())
    assert told["0"]["stiffness"]["std"] > 0
    assert "<svg" in (tmp_path / "out" / "report.html").read_text()
    assert main([*words, "c"]) == 2
    assert "no recording is called" in capsys.readouterr().err


def test_what_is_no_table_of_gains_is_refused(tmp_path: Path) -> None:
    (tmp_path / "gains.json").write_text('{"kp": [1]}')
    with pytest.raises(DataError, match="kd"):
        identify.gains_of(tmp_path / "gains.json")
