from __future__ import annotations

import json
from pathlib import Path

import pytest

from simops.cli.main import main
from simops.gate.suite import draw
from simops.ops import suite_text
from simops.spec.kinds import KINDS, tell
from simops.spec.suite import Edge, Nominal, SuiteSpec
from simops.tasks.pendulum.task import pendulum

EXAMPLES = Path(__file__).parents[2] / "examples"
GAP = EXAMPLES / "doctor_gap" / "worlds.yaml"
SPEC = "scene: {task: pick_and_place}\n"


def test_a_spec_that_holds_gives_its_digest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, lock = tmp_path / "run.yaml", tmp_path / "run.lock"
    path.write_text(SPEC)
    assert main(["check", str(path), "--set", "rollout.episodes_per_env=2", "--lock", str(lock)]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{path}: OK as rollout, 512 episodes, sha256:")
    assert main(["check", str(lock)]) == 0
    assert capsys.readouterr().out.split()[-1] == said.splitlines()[0].split()[-1]


def test_a_spec_that_does_not_hold_leaves_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(SPEC + "sed: 1\n")
    assert main(["check", str(path), "--set", "rollout.episodes_per_env=two"]) == 2
    caught = capsys.readouterr()
    assert caught.out == ""
    assert caught.err == (
        f"simops: {path} has 2 problems\n"
        "  line 2: sed: unknown key; try 'seed' [CFG-001]\n"
        "  --set rollout.episodes_per_env: 'two' is a str, want int [CFG-002]\n"
    )
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_spec_has_a_schema(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", kind]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == KINDS[kind].__name__


def test_a_schema_nobody_has_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "Run"
    assert main(["schema", "trian"]) == 2
    assert "try 'train'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("pick_and_place/spec.yaml", "rollout"),
        ("pendulum/train.yaml", "train"),
        ("velocity/train.yaml", "train"),
        ("identify_double_pendulum/learn.yaml", "learn"),
        ("learn_contact/learn.yaml", "learn"),
        ("validate_pendulum/gate.yaml", "validate"),
        ("falsify_pendulum/falsify.yaml", "falsify"),
        ("doctor_gap/worlds.yaml", "doctor"),
        ("crank_pendulum/crank.yaml", "crank"),
        ("crank_pendulum/reality.yaml", "reality"),
    ],
)
def test_its_keys_tell_which_spec_a_file_is(path: str, kind: str) -> None:
    assert tell(EXAMPLES / path) == (kind,)


@pytest.mark.parametrize("kind", ["train", "falsify", "doctor", "crank", "reality"])
def test_what_is_locked_is_still_told_and_has_the_same_digest(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = next(file for file in [*sorted(EXAMPLES.glob("*pendulum*/*.yaml")), GAP] if tell(file) == (kind,))
    lock = tmp_path / "spec.lock"
    assert main(["check", str(path), "--lock", str(lock)]) == 0
    said = capsys.readouterr().out.split()
    assert main(["check", str(lock)]) == 0
    assert capsys.readouterr().out.split()[1:] == said[1:]


def test_every_problem_of_a_training_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "train.yaml"
    path.write_text("scene: {task: pendulum}\ntrainr: {use: ppo}\nreward: {uprigt: 1.0}\nevaluation: {episodes: -1}\n")
    assert main(["check", str(path)]) == 2
    said = capsys.readouterr().err
    assert "has 3 problems" in said
    assert "trainr: unknown key; try 'trainer'" in said


def test_keys_that_would_do_for_several_are_taken_for_a_rollout_and_it_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "spec.yaml"
    path.write_text("scene: {task: pick_and_place}\nseed: 3\n")
    assert main(["check", str(path)]) == 0
    said = capsys.readouterr().out
    assert "OK as rollout" in said
    assert "train" in said.splitlines()[1]
    assert main(["check", str(path), "--as", "falsify"]) == 0
    assert "OK as falsify" in capsys.readouterr().out
    assert main(["check", str(path), "--as", "falsfy"]) == 2
    assert "try 'falsify'" in capsys.readouterr().err


def test_keys_of_no_spec_are_not_guessed_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rig.yaml"
    path.write_text("chains: [[1, 2]]\nasked: command\n")
    assert main(["check", str(path)]) == 2
    said = capsys.readouterr().err
    assert "no spec has keys such as asked, chains" in said
    assert "--as rollout" in said


def test_a_suite_is_checked_against_its_task(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, task = tmp_path / "suite.json", pendulum()
    suite = draw(task, SuiteSpec(nominal=Nominal(scenarios=3), edge=Edge(scenarios=0)), seed=1)
    path.write_text(suite_text.text(suite))
    assert main(["check", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: OK as suite, 3 scenarios, sha256:{suite.digest}\n"
    path.write_text(path.read_text().replace('"seed"', '"sed"'))
    assert main(["check", str(path)]) == 2
    assert "has 3 problems" in capsys.readouterr().err
    path.write_text('{"format": 1, "scenarios": []}')
    assert main(["check", str(path)]) == 2
    assert "a suite names its task" in capsys.readouterr().err


def test_a_lock_that_cannot_be_written_is_no_fault_of_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(SPEC)
    assert main(["check", str(path), "--lock", str(tmp_path / "no" / "run.lock")]) == 2
    assert "--lock: cannot be written: No such file or directory" in capsys.readouterr().err
