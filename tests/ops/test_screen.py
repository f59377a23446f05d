"""What long work shows: lines in a log at once and then seldom, pictures in a terminal no more often than asked."""

from __future__ import annotations

import io

from rich.console import Console
from rich.text import Text

from simops.ops.screen import live, span


def said(shown: list[int], *, every_s: float) -> list[str]:
    def picture(n: int) -> Text:
        return Text(str(n))

    log = io.StringIO()
    with live(Console(file=log), picture, lambda n: f"{n} of 9" if n else "", every_s=every_s) as watch:
        for n in shown:
            watch(n)
    return log.getvalue().splitlines()


def test_a_log_gets_a_line_at_once_and_then_seldom() -> None:
    assert said([1, 2, 3], every_s=60.0) == ["1 of 9"]
    assert said([1, 2, 3], every_s=-1.0) == ["1 of 9", "2 of 9", "3 of 9"]


def test_what_has_nothing_to_say_takes_nobodys_turn() -> None:
    assert said([0, 0, 4], every_s=60.0) == ["4 of 9"]


def test_a_terminal_gets_no_more_pictures_than_asked() -> None:
    drawn = list[int]()

    def picture(n: int) -> Text:
        drawn.append(n)
        return Text(str(n))

    console = Console(file=io.StringIO(), force_terminal=True)
    with live(console, picture, lambda _: "", pause_s=60.0) as watch:
        for n in range(9):
            watch(n)
    with live(console, picture, lambda _: "") as watch:
        for n in (10, 11):
            watch(n)
    assert drawn == [0, 10, 11]


def test_a_length_of_time_is_said_as_a_person_says_it() -> None:
    assert [span(s) for s in (None, 4.21, 61.0, 7260.0)] == ["not known yet", "4.2 s", "1 min 01 s", "2 h 01 min"]
