"""Whatever lies there and whatever is asked is answered: never by a fault of ours, never by somebody's script."""

from __future__ import annotations

import random
import re
import shutil
import socket
from collections.abc import Generator
from pathlib import Path

import pytest

from simops.core.verdict import Finding, Interval, Verdict
from simops.data.files import seal
from tests.web.made import crank_in, dataset
from tests.web.served import Served, served

EVIL = '"><script>alert(1)</script><img src=x onerror=alert(2)>'
NAMES = (
    "turn-0.json", "crank.json", "now.json", "turn-0.yaml", "steps/learn-*/step.json", "steps/train-*/step.json",
    "steps/export-*/step.json", "steps/validate-*/step.json", "steps/validate-*/failures.json",
    "steps/validate-*/outcomes.json", "steps/trials-*/step.json", "steps/diagnose-*/step.json",
    "steps/train-*/metrics.jsonl", "steps/trials-*/log/dataset.json", "steps/trials-*/log/manifest/*.json",
    "steps/trials-*/log/episodes/*.parquet", "patches/*.json", "registry/registry.sqlite",
)  # fmt: skip
BAD = (b"[" * 5000, seal({"turn": [], "steps": [[1, 2, 3]], "said": None}))


@pytest.fixture
def out(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one of everything that can be made quickly."""
    shutil.copytree(crank_in(tmp_path_factory.getbasetemp()), tmp_path / "out" / "turned")
    dataset(tmp_path / "out" / "worlds", episodes=30)
    gate, search = tmp_path / "out" / "gate", tmp_path / "out" / "search"
    gate.mkdir()
    search.mkdir()
    rate = Finding(
        check="success rate", category=EVIL, value=0.5, bound=0.9, interval=Interval(0.1, 0.9), count=2, status="fail",
        note=EVIL,
    )  # fmt: skip
    verdict = Verdict(policy=EVIL, suite="s", realm="r", alpha=0.05, findings=(rate,))
    (gate / "verdict.json").write_text(verdict.text())
    (gate / "suite.json").write_text("{}")
    (search / "falsify.json").write_bytes(seal({}))
    axes = [{"name": EVIL, "unit": EVIL, "low": 0.0, "high": 1.0}, {"name": "y", "unit": "", "low": 0.0, "high": 1.0}]
    cell = {"place": [0, 1], "tried": 2, "failed": 1, "margin": -0.5, "worst": "0123456789abcdef"}
    (search / "map.json").write_bytes(seal({"format": 1, "axes": axes, "cells": 2, "found": [cell]}))
    return tmp_path / "out"


@pytest.fixture
def ui(out: Path) -> Generator[Served]:
    with served(out) as made:
        yield made


def pages(ui: Served) -> list[str]:
    runs = re.findall(r'href="(/run/[0-9a-f]{16})"', ui.ask("/").body)
    inside = {way for run in runs for way in re.findall(r'href="(/run/[0-9a-f]{16})"', ui.ask(run).body)}
    return ["/", "/live", *sorted({*runs, *inside}), *(f"{run}/live" for run in runs)]


def test_what_was_written_by_somebody_else_is_only_words(ui: Served) -> None:
    seen = "".join(ui.ask(page).body for page in pages(ui))
    assert "&lt;script&gt;alert(1)" in seen
    assert "<script>alert" not in seen
    assert "<img src=x" not in seen


def test_files_that_are_anything_but_what_they_should_be_are_said_to_be(out: Path, ui: Served) -> None:
    asked = pages(ui)
    turned = re.findall(r'href="(/run/[0-9a-f]{16})">turned<', ui.ask("/").body)[0]
    for name in NAMES:
        path = next((out / "turned").glob(name))
        held = path.read_bytes()
        for bad in (*BAD, held[: len(held) // 2]):
            path.write_bytes(bad)
            whole = bad is BAD[1] and name.count("/") != 1  # parts have pages of their own
            for page in asked if whole else ("/", turned, f"{turned}/live"):
                got = ui.ask(page)
                assert got.status in {200, 404}, (name, bad[:40], page, got.body[-300:])
        path.write_bytes(held)
    assert {ui.ask(page).status for page in asked if not page.endswith("/live")} == {200}


def test_hundreds_of_odd_questions_find_no_fault(ui: Served) -> None:
    dice = random.Random(0)  # noqa: S311  no secret
    pieces = ["run", "static", "live", "film", "..", "%2e", "%00", "\\", "a" * 40, "0123456789abcdef", "?", "&", "=",
              "%", "by=", "page=-1", "q=%ff", "outcome='", "episode=9e9", "/", "//", ";", "{", "\x7f"]  # fmt: skip
    runs = [page for page in pages(ui) if page.startswith("/run")]
    seen: set[int] = set()
    for _ in range(600):
        start = dice.choice(["/", *runs])
        path = start + dice.choice(["", "/", "?"]) + "".join(dice.choices(pieces, k=dice.randrange(6)))
        with socket.create_connection(("127.0.0.1", ui.port), timeout=30) as line:
            line.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode("latin-1"))
            got = b"".join(iter(lambda: line.recv(65536), b""))
        status = int(got.split()[1])
        assert status < 500, (path, got[-300:])
        seen.add(status)
    assert seen >= {200, 404}
