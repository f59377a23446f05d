"""Every command, and every command below it, explains itself at once and without loading anything heavy."""

from __future__ import annotations

import json
import subprocess
import sys

from simops.cli.main import COMMANDS, parser_of
from tests.house.reference import _parsers  # pyright: ignore[reportPrivateUsage] one way down the tree of commands

HEAVY = ("numpy", "rich", "ruamel", "mujoco", "pyarrow", "duckdb", "av", "PIL", "matplotlib")
CODE = """\
import contextlib, io, json, sys
from simops.cli.main import main
codes, texts = {}, {}
for line in json.loads(sys.argv[1]):
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        try:
            code = main([*line.split(), "--help"])
        except SystemExit as left:
            code = left.code
    codes[line], texts[line] = code, said.getvalue()
print(json.dumps([codes, texts, sorted(set(sys.modules) & set(json.loads(sys.argv[2])))]))
"""


def test_the_help_of_every_command_is_light_and_says_what_it_takes() -> None:
    lines = [p.prog.removeprefix("simops ") for command in COMMANDS for p in _parsers(parser_of(command))]
    assert len(set(lines)) == len(lines) >= len(COMMANDS)
    words = [sys.executable, "-c", CODE, json.dumps(lines), json.dumps(HEAVY)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    codes, texts, loaded = json.loads(done.stdout)
    assert codes == dict.fromkeys(lines, 0)
    assert loaded == []
    for line, text in texts.items():
        assert text.startswith(f"usage: simops {line}"), line
        assert "--help" in text
