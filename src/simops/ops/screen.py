"""How long work is watched: a live picture in a terminal, a line now and then in a log.

with live(console, picture, line) as watch:
    watch(progress)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Generic, TypeVar, final

from rich.live import Live

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

S = TypeVar("S")


@contextmanager
def live(
    console: Console,
    picture: Callable[[S], RenderableType],
    line: Callable[[S], str],
    *,
    pause_s: float = 0.0,
    every_s: float = 10.0,
) -> Generator[Callable[[S], None]]:
    """Give a watcher that draws what it is shown on `console`.

    Args:
        console: A terminal gets pictures, anything else lines.
        picture: What is drawn.
        line: What is said instead, at once and then every `every_s`; nothing while it is empty.
        pause_s: No other picture for so long, for work that shows itself more often than anyone can look.
        every_s: Between two lines.
    """
    if console.is_terminal:
        with Live(console=console, refresh_per_second=8, transient=True) as panel:
            yield _Seldom[S](lambda seen: panel.update(picture(seen)), pause_s)
    else:
        yield _Lines[S](console, line, every_s)


def span(seconds: float | None) -> str:
    """A length of time, as a person says it."""
    if seconds is None:
        return "not known yet"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


@final
class _Seldom(Generic[S]):
    def __init__(self, show: Callable[[S], None], pause_s: float) -> None:
        self._show, self._pause_s, self._shown = show, pause_s, float("-inf")

    def __call__(self, seen: S) -> None:
        now = time.perf_counter()
        if now - self._shown >= self._pause_s:
            self._shown = now
            self._show(seen)


@final
class _Lines(Generic[S]):
    def __init__(self, console: Console, line: Callable[[S], str], every_s: float) -> None:
        self._console, self._line, self._every_s, self._said = console, line, every_s, float("-inf")

    def __call__(self, seen: S) -> None:
        now = time.perf_counter()
        if now - self._said > self._every_s and (said := self._line(seen)):
            self._said = now
            self._console.print(said, highlight=False, markup=False)
