"""The project as files, for the tests that read it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "simops"
FAULT = re.compile(r"\b(?!SHA)[A-Z]{3}-\d{3}\b")


def python_files(*folders: str) -> list[Path]:
    """Every Python file under the named folders of the project."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def functions(path: Path) -> list[tuple[str, int]]:
    """Each function of a file, with its length in lines."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)]
    return [(node.name, (node.end_lineno or node.lineno) - node.lineno + 1) for node in found]


def faults_raised() -> set[str]:
    """Every catalogue code that the source can put in front of a user."""
    literals = (
        node.value
        for path in python_files("src")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    return {found[0] for text in literals if (found := FAULT.match(text))}


def carriers() -> set[tuple[str, str]]:
    """Each (fault code, error class) that the source writes side by side, as `DataError(..., fault="DAT-003")`."""
    nodes = (node for path in python_files("src") for node in ast.walk(ast.parse(path.read_text())))
    return {
        (word.value.value, node.func.id)
        for node in nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id.endswith(("Error", "Problem", "Refused"))
        for word in node.keywords
        if word.arg == "fault" and isinstance(word.value, ast.Constant) and isinstance(word.value.value, str)
    }
