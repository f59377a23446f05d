"""Suites as text: one scenario a line, read strictly; whatever is wrong is said with its line and the nearest name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from simops.core.errors import DataError, Problem, SimOpsError, SpecError
from simops.core.scenario import Scenario, called, check
from simops.core.scenario import parse as parse_one
from simops.core.task import Task
from simops.core.trajectory import Outcome
from simops.data.files import make_folder, publish
from simops.gate.suite import Suite
from simops.spec.load import text_of
from simops.spec.node import Items, Leaf, Node, Table
from simops.spec.text import parse

FORMAT = 1
MOST_NAMED = 20


def text(suite: Suite) -> str:
    """Write a suite as JSON that `read` takes."""
    head = json.dumps({"format": FORMAT, "task": suite.task})[:-1]
    lines = ",\n".join(f"  {json.dumps(each.body(), allow_nan=False)}" for each in suite.scenarios)
    return f'{head}, "scenarios": [\n{lines}\n]}}\n'


def read(source: Path | str, task: Task) -> Suite:
    """Read a suite of this task from a file, JSON or YAML, or raise every problem with its line."""
    name = str(source) if isinstance(source, Path) else "suite"
    root, problems = parse(text_of(source))
    if problems or root is None:
        raise SpecError(name, problems)
    entries: Mapping[str, Node] = root.entries if isinstance(root, Table) else {}
    version = _plain(entries["format"]) if "format" in entries else None
    if version != FORMAT:
        newer = isinstance(version, int) and version > FORMAT
        what = f"a suite of format {version} is not known here, only {FORMAT}" if version else "this is no suite"
        attempt = "a newer simops" if newer else f'"format": {FORMAT}, "task": ..., "scenarios": [...]'
        raise DataError(what, where=name, attempt=attempt, fault="DAT-012")
    listed = entries.get("scenarios")
    found: list[Scenario] = []
    if _plain(entries.get("task", Leaf(None, None))) != task.name:
        said = _plain(entries.get("task", Leaf(None, None)))
        problems = [Problem("task", f"{said!r}, and the task is {task.name!r}", line=1, fault="CFG-012")]
        raise SpecError(name, problems)
    if not isinstance(listed, Items):
        raise SpecError(name, [Problem("scenarios", "want a list of scenarios", line=1)])
    wrong: list[Problem] = []
    for i, node in enumerate(listed.items):
        try:
            each = Scenario.of(cast("Mapping[str, Any]", _plain(node)), f"{name} line {node.line}")
            check(each, task)
            found.append(each)
        except SimOpsError as error:
            wrong.append(Problem(f"scenarios[{i}]", error.what, line=node.line, attempt=error.attempt,
                                 fault=error.fault))  # fmt: skip
        except (AttributeError, TypeError) as error:
            wrong.append(Problem(f"scenarios[{i}]", f"this is no scenario: {error}", line=node.line))
    if wrong:
        raise SpecError(name, wrong[:MOST_NAMED])
    return Suite(task.name, tuple(found))


def gather(source: Path, task: Task) -> tuple[Scenario, ...]:
    """Scenarios out of a suite, of a file with one of them, or of a folder of such files, as a search leaves behind."""
    if source.is_dir():
        found = [one for path in sorted(source.glob("*.json")) for one in gather(path, task)]
        if not found:
            raise DataError("there is no scenario in this folder", where=str(source), attempt="a folder of .json files")
        return tuple(found)
    text = text_of(source)
    try:
        body: object = json.loads(text)
    except json.JSONDecodeError:
        return read(source, task).scenarios  # YAML, or broken in a place that the strict reader names
    if isinstance(body, dict) and "scenarios" not in body:
        one = parse_one(text, str(source))
        check(one, task)
        return (one,)
    return read(source, task).scenarios


def keep(suite: Suite, path: Path) -> None:
    """Put a suite down, or find that very suite there."""
    said = text(suite).encode()
    if path.exists() and path.read_bytes() != said:
        raise DataError(
            "this folder holds a gate with other scenarios",
            where=str(path.parent),
            attempt="another --out; a suite is not changed once it was looked at",
            fault="CFG-008",
        )
    if not path.exists():
        publish(path, said)


def remember(path: Path, task: Task, suite: Suite, outcomes: Mapping[str, Outcome]) -> None:
    """Add the scenarios that failed to the suite in a file, for later gates to ask again."""
    failed = [each for each in suite.scenarios if outcomes.get(each.hash, "success") != "success"]
    known = read(path, task).scenarios if path.exists() else ()
    there = {each.hash for each in known}
    fresh = [called(each, category="regression") for each in failed if each.hash not in there]
    if fresh:
        make_folder(path.absolute().parent)
        publish(path, text(Suite(task.name, (*known, *fresh))).encode())


def _plain(node: Node) -> object:
    if isinstance(node, Table):
        return {key: _plain(member) for key, member in node.entries.items()}
    if isinstance(node, Items):
        return [_plain(item) for item in node.items]
    return node.value
