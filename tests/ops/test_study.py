from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from simops.cli.main import main
from simops.core.errors import DataError
from simops.core.recording import Recording
from simops.data.recordings import keep
from simops.ops.material import gather
from simops.ops.simulators import MANIFEST, read
from simops.sim.mujoco import Mujoco
from simops.sim.servo import Servo
from simops.spec.learn import Source
from tests.learn.slider import SPEC, TRUE, recorded, rig

MOTORS = """\
learner:
  use: motors
  bound: 0.6
  physical: {by: effort, judged_s: 0.5, cut_hz: 12, rows: 1000, draws: 2, fit: {starts: 1, iterations: 4}}
  teach: {hidden: [16], history: 1, shared: false, steps: 400, batch: 256, members: 2, rate: 0.01}
"""


@pytest.fixture(scope="module")
def lesson(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lesson from end to end: scene, recordings, spec, and what the command made of them."""
    folder = tmp_path_factory.mktemp("lesson")
    _ = keep(iter(recorded(rig(folder), runs=16, seconds=3.0)), folder / "logs", recipe="made", source="made")
    (folder / "learn.yaml").write_text(SPEC)
    assert (
        main(["learn", str(folder / "learn.yaml"), "--data", str(folder / "logs"), "--out", str(folder / "out")]) == 0
    )
    return folder


def test_a_lesson_leaves_a_candidate_that_reads_back_to_what_was_learned(lesson: Path) -> None:
    kept = read(lesson / "out" / "simulator")
    assert kept.candidate.name == "physical"
    found = {told.name: told.mean for told in kept.candidate.told}
    assert found == pytest.approx(TRUE, rel=0.05)
    assert kept.simulator.believed.belief.params
    verdicts = kept.facts["verdicts"]
    assert verdicts["physical over nominal"]["status"] == "pass"
    assert (lesson / "out" / "report.png").read_bytes().startswith(b"\x89PNG")
    page = (lesson / "out" / "report.html").read_text()
    for said in ("What was learned", "Error over horizon", "Predicted against recorded", "motor_coulomb"):
        assert said in page


def test_a_damaged_simulator_is_not_read(lesson: Path, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "copy"
    _ = shutil.copytree(lesson / "out" / "simulator", copy)
    assert read(copy).digest == read(lesson / "out" / "simulator").digest
    text = (copy / "belief.json").read_text()
    (copy / "belief.json").write_text(text.replace("1", "2", 1))
    with pytest.raises(DataError, match="not what was written"):
        _ = read(copy)
    listing = json.loads((copy / MANIFEST).read_text())
    (copy / MANIFEST).write_text(json.dumps({**listing, "../../logs/recordings.json": ""}))
    with pytest.raises(DataError, match=r"leads outside|not what was written"):
        _ = read(copy)


def test_promotion_wants_better_and_rollback_wants_a_champion_before(
    lesson: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    simulator = ["simulator", "--registry", str(tmp_path / "registry")]
    assert main([*simulator, "promote", str(lesson / "out"), "slider", "--why", "first"]) == 0
    assert "champion" in capsys.readouterr().out
    assert main([*simulator, "promote", str(lesson / "out"), "slider"]) == 3
    assert "not better than what it would replace" in capsys.readouterr().err
    assert main([*simulator, "promote", str(lesson / "out" / "beside" / "nominal"), "slider"]) == 3
    assert main([*simulator, "rollback", "slider", "--why", "no reason"]) == 2
    assert main([*simulator, "show", "slider"]) == 0
    assert main([*simulator, "list"]) == 0
    capsys.readouterr()
    assert main([*simulator, "diff", str(lesson / "out" / "beside" / "nominal"), "slider@champion"]) == 0
    said = capsys.readouterr().out
    assert "motor_viscous" in said
    assert "mass" in said


def test_a_second_lesson_does_not_overwrite_the_first(lesson: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["learn", str(lesson / "learn.yaml"), "--data", str(lesson / "logs"), "--out", str(lesson / "out")]
    assert main(words) == 2
    assert "holds a lesson" in capsys.readouterr().err


def test_what_is_miswired_is_not_learned_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def flipped(one: Recording) -> Recording:
        stream = one.streams[0]
        return replace(one, streams=(replace(stream, columns={**stream.columns, "velocity": -stream["velocity"]}),))

    sound = recorded(rig(tmp_path), runs=6, seconds=3.0)
    _ = keep(iter(sound), tmp_path / "sound", recipe="made", source="made")
    _ = keep(map(flipped, sound), tmp_path / "flipped", recipe="made", source="made")
    (tmp_path / "learn.yaml").write_text(SPEC)
    words = ["learn", str(tmp_path / "learn.yaml"), "--data", str(tmp_path / "flipped"), "--out", str(tmp_path / "out")]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "LRN-007 sign" in said
    assert "velocity" in said
    assert gather(Source(path=tmp_path / "flipped", trusted=True), folder=tmp_path)
    assert gather(Source(path=tmp_path / "sound"), folder=tmp_path)


def test_a_learned_motor_is_shipped_with_its_weights_and_trains_where_it_lies(tmp_path: Path) -> None:
    harsh = Mujoco(threads=1, motor=Servo(viscous=1.0, coulomb=0.4, quadratic=4.0))
    runs = recorded(rig(tmp_path), runs=14, seconds=4.0, engine=harsh)
    _ = keep(iter(runs), tmp_path / "logs", recipe="made", source="made")
    spec = SPEC[: SPEC.index("learner:")] + MOTORS
    (tmp_path / "learn.yaml").write_text(spec)
    words = [str(tmp_path / "learn.yaml"), "--data", str(tmp_path / "logs"), "--out", str(tmp_path / "out")]
    assert main(["learn", *words]) == 0
    kept = read(tmp_path / "out" / "simulator")
    assert kept.candidate.name == "learned"
    assert kept.facts["verdicts"]["learned over physical"]["status"] == "pass"
    believed = kept.simulator.believed
    with kept.candidate.engine.open(believed, 2) as sim:  # the weights are read from the folder
        sim.step(np.ones((2, 1)))
        assert np.isfinite(sim.read()["position"]).all()
    with kept.learner.predicting(kept.candidate, kept.task, kept.rig) as predict:
        assert predict(runs[0]).error < 0.3
