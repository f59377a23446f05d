"""What a crank left is read back as it was, without what made it; and what it failed in runs again."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from simops.cli.main import main
from simops.data.files import seal, unseal
from simops.data.store import Dataset
from simops.ops import beat, failures, kept
from tests.web.made import crank_in, dataset


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return crank_in(tmp_path_factory.getbasetemp())


def test_turns_come_back_with_their_trials_gate_and_patches(run: Path) -> None:
    turns = kept.told(run)
    said = unseal(run / kept.SUMMARY)["turns"]
    assert [one.said["ending"] for one in turns] == [each["ending"] for each in said]
    for one, each in zip(turns, said, strict=True):
        assert one.faults == ()
        assert (None if one.tried is None else one.tried.share) == each["success"]
        assert (None if one.live is None else one.live.share) == each["live_success"]
        assert {patch.name for patch in one.applied} == set(each["applied"])
        assert {finding.category for finding in one.findings} >= {"nominal", "edge"}
        for rate in (one.tried, one.beside):
            assert rate is None or 0.0 <= rate.low <= rate.share <= rate.high <= 1.0
    assert turns[0].said["ending"] == "promoted"


def test_whoever_only_looks_loads_neither_engine_nor_network(run: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from simops.ops import crank_story, kept;"
        "from simops.ops.page import Page;"
        f"crank_story.fill(Page('x'), kept.told(Path({str(run)!r})));"
        "print(*{'torch', 'mujoco', 'onnxruntime'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_dataset_is_no_crank(tmp_path: Path) -> None:
    dataset(tmp_path / "worlds", episodes=10)
    (tmp_path / "worlds" / "spec.lock").write_text("lock: 1\n")
    assert kept.runs(tmp_path) == []
    assert len(Dataset.open(tmp_path / "worlds")) == 10


def test_a_step_that_lies_elsewhere_is_not_read(run: Path, tmp_path: Path) -> None:
    body = unseal(run / "turn-0.json")
    body["steps"] = [["train", "../../elsewhere", "0"], ["train", f"train-{'0' * 12}", "0"]]
    (tmp_path / "steps").mkdir()
    (tmp_path / "turn-0.json").write_bytes(seal(body))
    [one] = kept.told(tmp_path)
    assert one.steps == ()
    assert "is no step" in one.faults[0]
    assert len(one.faults) >= 2


def test_a_failure_of_a_gate_runs_again_and_fails_again(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(run.parent / "project")  # where ./easy.py is
    turn = next(one for one in reversed(kept.told(run)) if failures.of_turn(one))
    one = failures.of_turn(turn)[0]
    assert main(["replay", one.hash[:12], "--in", str(run)]) == 0
    said = capsys.readouterr().out
    assert one.hash in said
    assert "success after" not in said


def test_episodes_of_a_gate_are_kept_with_their_ends(run: Path) -> None:
    turn = kept.told(run)[0]
    gate = turn.step("validate")
    assert gate is not None
    ended = failures.read(gate.folder)
    assert ended is not None
    assert len(ended.good) == gate.said["episodes"]
    assert ended.good.mean() == pytest.approx(gate.said["success"])
    assert (~ended.good).sum() == len(failures.of_turn(turn))


def test_a_beat_says_what_is_done_until_it_is_over(tmp_path: Path) -> None:
    seen, said = threading.Event(), {"lap": 0}

    def now() -> dict[str, int]:
        seen.set()
        return said

    def work() -> None:
        with beat.Beat(tmp_path, now):
            assert seen.wait(10)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    heard = beat.heard(tmp_path)
    assert heard is not None
    assert (heard["lap"], heard["over"], heard["how"]) == (0, True, "stopped")


def test_a_beat_that_cannot_be_written_or_read_stops_nobody(tmp_path: Path) -> None:
    with beat.Beat(tmp_path / "nowhere", lambda: {"lap": float("nan")}):
        pass
    assert beat.heard(tmp_path / "nowhere") is None
    for text in ("", "[]", "{", "[" * 100_000, json.dumps({"a": "b" * beat.LARGEST})):
        (tmp_path / beat.NOW).write_text(text)
        assert beat.heard(tmp_path) is None
