"""`simops init` writes a project that runs as its README says, and never over anything."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from simops.cli.main import COMMANDS, main
from simops.data.store import Dataset
from tests.gl import needs_gl
from tests.ops.made import contents

FILES = ["README.md", "scene.xml", "spec.yaml", "task.py"]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new project, as the working folder."""
    folder = tmp_path / "deep" / "mine"
    assert main(["init", str(folder)]) == 0
    monkeypatch.chdir(folder)
    return folder


def commands(readme: Path) -> list[list[str]]:
    """The words of every command in a README."""
    [block] = re.findall(r"```sh\n(.*?)```", readme.read_text(), re.DOTALL)
    return [shlex.split(line, comments=True) for line in block.splitlines()]


def test_the_files_are_there_and_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mine"
    assert main(["init", str(folder)]) == 0
    assert sorted(path.name for path in folder.iterdir()) == FILES
    said = capsys.readouterr().out.splitlines()
    assert said == [*(str(folder / name) for name in FILES), f"now: cd {folder} && simops rollout spec.yaml"]
    assert all(name in (folder / "README.md").read_text() for name in FILES[1:])


@pytest.mark.parametrize("name", FILES)
def test_nothing_is_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (tmp_path / name).write_text("mine")
    (tmp_path / "notes").write_text("mine too")
    before = contents(tmp_path)
    assert main(["init", str(tmp_path)]) == 2
    assert f"has a {name} already" in capsys.readouterr().err
    assert contents(tmp_path) == before


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["init", str(tmp_path / "file" / "mine")]) == 2
    assert capsys.readouterr().err == f"simops: cannot write file: File exists\n  at: {tmp_path}\n"


def test_it_runs_and_most_of_it_succeeds(made: Path) -> None:
    [first, *_] = commands(made / "README.md")
    assert first == ["simops", "rollout", "spec.yaml"]
    assert main(first[1:]) == 0
    data = Dataset.open(made / "data")
    assert len(data) == 256
    assert data.outcomes["success"] >= 0.9 * 256
    assert main(first[1:]) == 0  # all there, nothing to do
    assert len(Dataset.open(made / "data")) == 256


def test_a_changed_task_is_not_mixed_with_what_is_there(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = ["rollout", "spec.yaml", "--set", "rollout.parallel_envs=4", "--set", "rollout.episodes_per_env=1"]
    assert main(few) == 0
    task = made / "task.py"
    task.write_text(task.read_text().replace("stiffness_n_m: float = 12.0", "stiffness_n_m: float = 13.0"))
    assert main(few) == 2
    said = capsys.readouterr().err
    assert "provenance.policy was Push(stiffness_n_m=12.0" in said.replace("'", "").replace('"', "")
    assert main([*few, "--out", "other"]) == 0


def test_every_other_command_of_its_readme_works(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = ["--set", "rollout.parallel_envs=16", "--set", "rollout.episodes_per_env=1"]
    assert main(["rollout", "spec.yaml", *few]) == 0
    known = {command.name for command in COMMANDS}
    for words in commands(made / "README.md")[1:]:
        assert words[0] == "simops"
        assert words[1] in known
        if words[1] != "render":
            capsys.readouterr()
            assert main(words[1:]) == 0
            assert "success" in capsys.readouterr().out


@needs_gl
def test_its_film_is_made(made: Path) -> None:
    few = ["--set", "rollout.parallel_envs=16", "--set", "rollout.episodes_per_env=1"]
    assert main(["rollout", "spec.yaml", *few]) == 0
    [words] = [words for words in commands(made / "README.md") if words[1] == "render"]
    assert main([*words[1:], "--fast", "--size", "64x48"]) == 0
    film = made / words[words.index("--out") + 1]
    assert film.read_bytes().startswith(b"GIF8")
