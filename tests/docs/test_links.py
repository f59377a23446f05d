"""Every page is in the index, in one order, says what it is for, and points only at what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
INDEX = ROOT / "docs" / "README.md"
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.M | re.S)


def links(page: Path) -> list[str]:
    """What a page points at inside the project, without the place on the page."""
    found = LINK.findall(FENCED.sub("", page.read_text()))
    return [link.partition("#")[0] for link in found if "://" not in link and not link.startswith(("#", "mailto:"))]


def headings(page: Path) -> set[str]:
    """The places on a page that a link may name."""
    lines = re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text()), re.M)
    return {re.sub(r"[^\w -]", "", line.lower()).strip().replace(" ", "-") for line in lines}


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    missing = [link for link in links(page) if not (page.parent / link).exists()]
    assert not missing, f"{page.name} points at {missing}"


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda page: page.name)
def test_every_place_on_a_page_that_is_named_is_there(page: Path) -> None:
    for link in LINK.findall(FENCED.sub("", page.read_text())):
        file, _, place = link.partition("#")
        if place and "://" not in link:
            assert place in headings(page.parent / file if file else page), link


def test_the_index_leads_to_every_page_once() -> None:
    assert sorted(links(INDEX)) == [page.name for page in PAGES if page != INDEX]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_opens_with_what_it_is_for(page: Path) -> None:
    title, blank, sentence = page.read_text().split("\n")[:3]
    assert title.startswith("# ")
    assert not blank
    assert sentence[:1].isupper(), f"{page.name} begins with {sentence!r}"
