"""Left and right swapped: what that makes of the signals of a task.

A task says it signal by signal: element i of the mirrored signal is element |m[i]|, counted from one, with
the sign of m[i]. What it does not name looks the same in the mirror.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from simops.core.errors import SignalError, nearest
from simops.core.signal import Array, Signal

Mirror: TypeAlias = Mapping[str, tuple[int, ...]]


class Swap(NamedTuple):
    """A row in the mirror: `sign * row[source]`."""

    source: Array
    sign: Array

    def rows(self, rows: Array) -> Array:
        """The same rows in the mirror."""
        return rows[..., self.source] * self.sign


def swap(signals: Sequence[Signal], mirror: Mirror, *, plain: int = 0) -> Swap:
    """What the mirror makes of `signals` side by side, followed by `plain` elements that it leaves alone."""
    source, sign = list[int](), list[float]()
    for signal in signals:
        said = mirror.get(signal.name, tuple(range(1, signal.size + 1)))
        first = len(source)
        source += [first + abs(element) - 1 for element in said]
        sign += [1.0 if element > 0 else -1.0 for element in said]
    source += range(len(source), len(source) + plain)
    return Swap(np.array(source, np.int64), np.array([*sign, *[1.0] * plain], np.float32))


def require_mirror(mirror: Mirror, signals: Sequence[Signal], *, where: str) -> None:
    """Raise unless every entry fits a signal and a second look in the mirror gives what was there."""
    sizes = {signal.name: signal.size for signal in signals}
    for name, said in mirror.items():
        if name not in sizes:
            raise SignalError(f"{where}: mirror names {name!r}, no signal of it", attempt=nearest(name, sizes))
        if sorted(abs(element) for element in said) != list(range(1, sizes[name] + 1)):
            raise SignalError(f"{where}: mirror of {name} is no order of 1 to {sizes[name]}, with signs")
        twice = [said[abs(element) - 1] * (1 if element > 0 else -1) for element in said]
        if twice != list(range(1, len(said) + 1)):
            raise SignalError(f"{where}: {name}, mirrored twice, is not what it was")
