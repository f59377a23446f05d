"""No file above 400 lines, no function above 50, nothing half done."""

from __future__ import annotations

import io
import tokenize
from typing import TYPE_CHECKING

import pytest

from tests.house.tree import ROOT, functions, python_files

if TYPE_CHECKING:
    from pathlib import Path

FILE_LINES = 400
FUNCTION_LINES = 50
FOLDERS = ("src", "tests", "benchmarks", "examples")
UNFINISHED = {"TODO", "FIXME", "XXX", "NotImplementedError", "pickle"}


def over_budget(paths: list[Path]) -> list[str]:
    long_files = [f"{path}: {n} lines" for path in paths if (n := len(path.read_text().splitlines())) > FILE_LINES]
    long_functions = [
        f"{path}: {name} has {n} lines" for path in paths for name, n in functions(path) if n > FUNCTION_LINES
    ]
    return long_files + long_functions


def words(path: Path) -> set[str]:
    """Names and comment words of a file; what it merely quotes does not count."""
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    kept = [token.string for token in tokens if token.type in {tokenize.NAME, tokenize.COMMENT}]
    return {word.strip("#:,.()") for text in kept for word in text.split()}


def test_files_and_functions_keep_their_budget() -> None:
    assert over_budget(python_files(*FOLDERS)) == []


def test_a_long_file_and_a_long_function_are_seen(tmp_path: Path) -> None:
    (tmp_path / "long.py").write_text("x = 1\n" * 401)
    (tmp_path / "deep.py").write_text("def deep() -> None:\n" + "    x = 1\n" * 50)
    (tmp_path / "fits.py").write_text("def fits() -> None:\n" + "    x = 1\n" * 49 + "x = 1\n" * 350)
    found = over_budget(sorted(tmp_path.glob("*.py")))
    assert [line.rsplit("/", 1)[1] for line in found] == ["long.py: 401 lines", "deep.py: deep has 51 lines"]


@pytest.mark.parametrize("path", python_files("src"), ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_half_done_and_nothing_is_pickled(path: Path) -> None:
    assert words(path) & UNFINISHED == set()
