"""The documentation says what the code says."""

from __future__ import annotations

import re

import pytest

from simops.core import errors
from simops.core.errors import SimOpsError
from tests.house.reference import PAGE, block, rewritten, wanted
from tests.house.tree import FAULT, ROOT, carriers, faults_raised

ERRORS = (ROOT / "docs" / "errors.md").read_text()
SECTIONS = dict(re.findall(r"^## ([a-z-]+)\n([\s\S]*?)(?=^## |\Z)", ERRORS, re.M))
WANTED = wanted()


@pytest.mark.parametrize("heading", WANTED)
def test_the_reference_shows_the_real_help(heading: str) -> None:
    assert block(PAGE.read_text(), heading) == WANTED[heading], "run `make docs`"


def test_the_reference_has_no_section_of_its_own_invention() -> None:
    assert set(re.findall(r"^## `(.+)`$", PAGE.read_text(), re.M)) == set(WANTED)


def test_regenerating_mends_a_stale_block_and_keeps_the_prose() -> None:
    stale = (
        PAGE.read_text().replace("show the trace", "show the tarce").replace("# Reference", "# Reference, with care")
    )
    assert "tarce" in stale
    assert rewritten(stale) == PAGE.read_text().replace("# Reference", "# Reference, with care")


@pytest.mark.parametrize("kind", SimOpsError.__subclasses__(), ids=lambda kind: kind.code)
def test_every_error_has_a_page_with_an_example_and_a_way_out(kind: type[SimOpsError]) -> None:
    assert kind.code in SECTIONS, f"document {kind.__name__} as `## {kind.code}`"
    page = SECTIONS[kind.code]
    assert f"`{kind.__name__}`" in page
    assert f"Exit code {kind.exit_code}" in page
    assert "```text\n" in page
    assert "**What to do.**" in page


def test_every_page_is_an_error_and_the_drawn_tree_is_the_real_one() -> None:
    real = {(kind.__name__, kind.code, str(kind.exit_code)) for kind in SimOpsError.__subclasses__()}
    assert set(SECTIONS) - {"faults"} == {code for _, code, _ in real}
    drawn = re.findall(r"[├└]── (\w+) +([a-z-]+) +(\d) ", errors.__doc__ or "")
    assert {tuple(row) for row in drawn} == real


def test_every_fault_code_raised_is_explained_and_none_is_made_up() -> None:
    explained = {row.split("|")[1].strip(" `") for row in SECTIONS["faults"].splitlines() if FAULT.search(row)}
    assert explained == faults_raised()


def test_every_fault_is_listed_with_the_errors_that_carry_it() -> None:
    rows = [row.split("|") for row in SECTIONS["faults"].splitlines() if FAULT.search(row)]
    listed = {row[1].strip(" `"): set(re.findall(r"`([a-z-]+)`", row[3])) for row in rows}
    code_of = {kind.__name__: kind.code for kind in SimOpsError.__subclasses__()} | {"Problem": "bad-spec"}
    unlisted = {(fault, code_of[name]) for fault, name in carriers() if code_of[name] not in listed.get(fault, set())}
    assert unlisted == set()
