"""A report needs nothing but itself, runs nothing that was put into it, and draws numbers where they are."""

from __future__ import annotations

import math
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simops.core.verdict import Finding, Interval
from simops.ops.page import Page, link, tag
from simops.ops.plot import Axis, Cloud, Drawing, Line, Mark, bars, forest, heat, lines, scatter

VOID = {"meta", "img"}
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000a49444154789c63000100000500010d0a2db40000000049454e44ae426082"
)


class Seen(HTMLParser):
    """Which tags there are, whether they close, and what they point to."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.words = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            if name in {"src", "href", "action", "xlink:href"}:
                self.addresses.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words += data


def read(html: str) -> Seen:
    seen = Seen()
    seen.feed(html)
    assert seen.open == []
    return seen


def everything(words: str = "words") -> Page:
    page = Page(words, lead=words)
    page.section(words, words)
    page.status("pass", words)
    page.facts({words: words, "n": 3, "share": 0.25, "none": None, "sure": True})
    page.table((words, "n"), [(words, 1), (tag("fail"), 2.5)], sortable=True)
    page.findings([Finding(check=words, value=0.9, interval=Interval(0.8, 1.0), count=9, status="marginal")])
    page.draw(forest([Mark(label=words, low=0.1, high=0.9, value=0.5, bound=0.4, kind="pass", note=words)]), words)
    page.draw(lines([Line(name=words, x=[0, 1], y=[1, 2])], x=Axis(words), y=Axis(words)))
    page.draw(scatter([Cloud(name=words, x=[0, 1], y=[1, 2], notes=[words, words])]))
    page.draw(bars([words], {words: [0.5]}))
    page.draw(heat([[0.5]], across=[words], down=[words], x=words, y=words))
    page.image(PIXEL, words)
    page.gallery([(PIXEL, words)])
    page.code(words)
    return page


def test_a_page_needs_nothing_but_itself(tmp_path: Path) -> None:
    path = everything().write(tmp_path / "report.html")
    seen = read(path.read_text())
    assert all(a.startswith(("data:image/png;base64,", "#")) for a in seen.addresses)
    assert "link" not in seen.tags
    assert "url(" not in path.read_text()
    assert seen.tags.count("script") == 1  # what sorts


@given(st.text(max_size=40) | st.sampled_from(["<script>alert(1)</script>", "'\"><img src=x onerror=y>", "]]>&amp;"]))
def test_what_is_said_is_shown_and_never_run(words: str) -> None:
    seen, plain = read(everything(words).html()), read(everything("words").html())
    assert seen.tags.count("script") == plain.tags.count("script") == 1
    assert seen.tags.count("img") == plain.tags.count("img") == 2
    if words.isprintable() and words.strip():
        assert words in seen.words


def test_only_pictures_are_pictures_and_only_pages_are_linked() -> None:
    with pytest.raises(ValueError, match="PNG"):
        Page("x").image(b"<svg onload=alert(1)>")
    with pytest.raises(ValueError, match="address"):
        link("look", "javascript:alert(1)")
    assert read(link("look", "film/a.html#s1").markup).addresses == ["film/a.html#s1"]


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30).filter(lambda v: max(v) - min(v) > 1e-3))
def test_points_lie_where_their_numbers_are(values: list[float]) -> None:
    drawn = scatter([Cloud(x=range(len(values)), y=values)]).markup
    at = np.array([float(y) for y in re.findall(r'cy="([\d.-]+)"', drawn)])
    slope, offset = np.polyfit(values, at, 1)
    assert slope < 0  # up is up
    np.testing.assert_allclose(at, slope * np.array(values) + offset, atol=0.2)


def test_a_missing_number_is_a_gap_and_no_zero() -> None:
    y = [1.0, 2.0, math.nan, 4.0, 5.0]
    path = re.findall(r'class="line c0" d="([^"]*)"', lines([Line(x=range(5), y=y)]).markup)[0]
    assert [step[0] for step in re.findall(r"[ML][\d. -]+", path)] == ["M", "L", "M", "L"]
    field = heat([[0.0, math.nan]], across=["a", "b"], down=["c"]).markup
    assert field.count('class="open"') == 1
    assert "c, b: nothing tried" in field


@pytest.mark.parametrize("drawing", [lines([]), scatter([]), forest([]), bars([], {}), heat([], across=[], down=[])])
def test_nothing_can_be_drawn(drawing: Drawing) -> None:
    read(drawing.markup)


def test_ends_without_end_are_drawn_to_the_edge() -> None:
    drawn = forest([Mark(label="ratio", low=0.2, high=math.inf, value=0.5)], x=Axis(low=0.0, high=1.0)).markup
    assert "inf" in drawn  # said
    assert "nan" not in re.sub(r"<title>.*?</title>", "", drawn)
