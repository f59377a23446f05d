"""The command line: finds commands, speaks in words, exits by the rules, and stays light."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from simops.cli import main as cli
from simops.core.errors import DataError

if TYPE_CHECKING:
    import argparse

HEAVY = ("numpy", "rich", "ruamel", "mujoco", "pyarrow", "duckdb", "av", "PIL", "matplotlib", "simops.cli.plugins")


def simops(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "simops.cli", *words], capture_output=True, text=True, check=False)


def pretend(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Make the only command one that raises `error`."""

    def configure(parser: argparse.ArgumentParser) -> None:
        del parser

    def run(args: argparse.Namespace) -> int:
        del args
        raise error

    command = cli.Command("fall", "fall over", "tests.fall")
    monkeypatch.setattr(cli, "COMMANDS", (command,))
    monkeypatch.setitem(sys.modules, command.module, SimpleNamespace(configure=configure, run=run))


@pytest.mark.parametrize("words", [["--help"], ["--version"], []])
def test_help_imports_nothing_heavy(words: list[str]) -> None:
    code = (
        "import sys; from simops.cli.main import main; "
        f"done = main({words!r}); print('LOADED', *[name for name in {HEAVY!r} if name in sys.modules]); sys.exit(done)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].split() == ["LOADED"]


def test_the_help_of_a_command_imports_nothing_heavy() -> None:
    code = (
        "import sys; from simops.cli.main import COMMANDS, parser_of; "
        "[parser_of(command).format_help() for command in COMMANDS]; "
        f"print('LOADED', *[name for name in {HEAVY[:-1]!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["LOADED"]


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"  {command.name} " in text and command.summary in text for command in cli.COMMANDS)


def test_an_unknown_command_gets_the_nearest_name() -> None:
    done = simops("plugin")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "simops: command line has 1 problem\n  no command is called 'plugin'; try 'plugins'\n"


def test_a_wrong_flag_exits_2() -> None:
    done = simops("plugins", "--colour")
    assert done.returncode == 2
    assert "unrecognized arguments: --colour" in done.stderr


def test_our_error_is_words_and_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(monkeypatch, DataError("shard 3 is damaged", where="runs/a", attempt="simops data check", fault="DAT-003"))
    assert cli.main(["fall"]) == 2
    words = "simops: DAT-003 shard 3 is damaged\n  at: runs/a\n  try: simops data check\n"
    assert capsys.readouterr().err == words
    assert cli.main(["fall", "--debug"]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("Traceback")
    assert shown.endswith(words)


def test_an_interrupt_is_one_clean_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pretend(monkeypatch, KeyboardInterrupt())
    assert cli.main(["fall"]) == 130
    assert capsys.readouterr().err == "\nsimops: interrupted\n"


def test_our_bug_shows_its_trace_and_exits_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend(monkeypatch, ZeroDivisionError("bug"))
    assert cli.main(["fall"]) == 1
    shown = capsys.readouterr().err
    assert "ZeroDivisionError: bug" in shown
    assert "fault in simops" in shown


@pytest.mark.parametrize(("words", "code"), [(["plugins"], 1), (["--help"], 141)])  # rich itself leaves with 1
def test_a_reader_that_leaves_sees_no_trace(words: list[str], code: int) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "simops.cli", *words]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (code, "")


def test_plugins_are_a_table_that_pipes(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plugins", "engine"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[0].split() == ["kind", "name", "object", "package"]
    assert ["engine", "mujoco", "simops.sim.mujoco:Mujoco", "simops"] in [row.split()[:4] for row in rows]
    assert all(row.startswith("engine ") for row in rows[1:])


def test_an_exception_in_a_file_of_the_users_is_laid_at_its_line(tmp_path: Path) -> None:
    template = resources.files("simops.ops.template")
    for name in ("scene.xml", "spec.yaml", "task.py"):
        (tmp_path / name).write_bytes((template / name).read_bytes())
    task = (tmp_path / "task.py").read_text().replace("error = observation[:, 2]", "error = 1 / 0 + observation[:, 2]")
    (tmp_path / "task.py").write_text(task)
    line = [sys.executable, "-m", "simops.cli", "rollout", "spec.yaml"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    at = next(i for i, row in enumerate(task.splitlines(), 1) if "1 / 0" in row)
    assert f"task.py:{at} raised ZeroDivisionError; that is your code" in done.stderr
    assert "fault in simops" not in done.stderr
