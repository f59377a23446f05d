"""`simops ui`, as a user starts and ends it."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from simops.cli.main import main

if TYPE_CHECKING:
    import pytest


def test_it_says_where_it_is_answers_and_ends_quietly(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "simops.cli", "ui", str(tmp_path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        assert said.startswith("http://127.0.0.1:")
        port = int(said.split("/")[2].rpartition(":")[2])
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        line.request("GET", "/")
        assert "Nothing here" in line.getresponse().read().decode()
        line.close()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert "Traceback" not in errors
    assert process.returncode in {0, 130}


def test_what_cannot_be_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for words, said in (
            ([str(tmp_path / "nowhere")], "there is no such folder"),
            ([str(tmp_path), "--port", port], "cannot listen"),
            ([str(tmp_path), "--port", "99999"], "cannot listen"),
            ([str(tmp_path), "--host", "0.0.0.0"], "without a password; try --expose"),  # noqa: S104  what is refused
        ):
            assert main(["ui", *words]) == 2
            assert said in capsys.readouterr().err
