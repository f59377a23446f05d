"""Ask engines what has a known answer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import final

from simops.core.plugin import Registry
from simops.core.protocols import Engine
from simops.testing.truths import Truth, truths


@final
@dataclass(frozen=True)
class Answers:
    """What one engine, as it comes, gives for every known answer."""

    engine: str
    recipe: str
    truths: tuple[Truth, ...]

    @property
    def asked(self) -> int:
        """How many scenes' answers the engine could give."""
        return sum(truth.value is not None for truth in self.truths)

    @property
    def broken(self) -> tuple[Truth, ...]:
        """Answers further from the truth than they may be."""
        return tuple(truth for truth in self.truths if not truth.holds)


def names() -> tuple[str, ...]:
    """Every installed engine; imports none."""
    return Registry[Engine]("engine").names()


def ask(name: str, *, root: Path | None = None) -> Answers:
    """Ask the engine called `name`, or that of a file `./mine.py:Thing` under `root`, everything."""
    engine = Registry[Engine]("engine").load(name, allow_files=root is not None, root=root)()
    return Answers(name, repr(engine), truths(engine))
