"""Every error a user can meet, in one tree.

SimOpsError
├── SpecError        bad-spec       2   a spec, flag or setting is wrong; carries every problem at once
├── PluginError      bad-plugin     2   a plugin is missing, broken or of the wrong kind
├── SignalError      bad-signal     2   an array does not fit the signal or schema it is for
├── SceneError       bad-scene      2   a scene does not compile or lacks something a task names
├── EngineError      bad-engine     2   an engine cannot do what was asked of it
├── ExtraError       missing-extra  2   an optional dependency is not installed
├── DataError        bad-data       2   a stored artefact is damaged, foreign or inconsistent
├── BusyError        busy           2   somebody else is writing there
├── SpaceError       no-space       2   the disk is full, read-only or over quota
└── GateRefused      gate-refused   3   a policy shall go out that no passing verdict is about

Each says what is wrong, where, and what to try. Exit codes: 0 done, 2 your input, 3 the gate
refused, 1 our bug.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class SimOpsError(Exception):
    """Something went wrong that the user can mend: what, where, what to try."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 2

    def __init__(self, what: str, *, where: str = "", attempt: str = "", fault: str = "") -> None:
        """Say `what` is wrong, `where`, what to `attempt`, and the catalogue's `fault` code if it has one."""
        self.what = what
        self.where = where
        self.attempt = attempt
        self.fault = fault
        super().__init__(what)

    def __str__(self) -> str:
        head = f"{self.fault} {self.what}" if self.fault else self.what
        lines = [head]
        if self.where:
            lines.append(f"  at: {self.where}")
        if self.attempt:
            lines.append(f"  try: {self.attempt}")
        return "\n".join(lines)


@final
@dataclass(frozen=True)
class Problem:
    """One thing wrong with a spec: where it stands, what it is, and the nearest right name."""

    path: str
    """Key path, as `rollout.parallel_envs`."""
    what: str
    line: int | None = None
    attempt: str = ""
    fault: str = ""

    def __str__(self) -> str:
        at = f"line {self.line}: " if self.line is not None else ""
        key = f"{self.path}: " if self.path else ""
        hint = f"; try {self.attempt}" if self.attempt else ""
        fault = f" [{self.fault}]" if self.fault else ""
        return f"{at}{key}{self.what}{hint}{fault}"


@final
class SpecError(SimOpsError):
    """A spec, flag or setting is wrong; every problem found is in `problems`."""

    code = "bad-spec"

    def __init__(self, source: str, problems: Sequence[Problem]) -> None:
        """Report all `problems` found in `source` together."""
        self.problems = tuple(problems)
        count = len(self.problems)
        super().__init__(f"{source} has {count} problem{'' if count == 1 else 's'}", where=source)

    def __str__(self) -> str:
        return "\n".join([self.what, *(f"  {problem}" for problem in self.problems)])


@final
class PluginError(SimOpsError):
    """A plugin is missing, broken or of the wrong kind."""

    code = "bad-plugin"


@final
class SignalError(SimOpsError):
    """An array does not fit the signal or schema it is for."""

    code = "bad-signal"


@final
class SceneError(SimOpsError):
    """A scene does not compile or lacks something a task names."""

    code = "bad-scene"


@final
class EngineError(SimOpsError):
    """An engine cannot do what was asked of it."""

    code = "bad-engine"


@final
class ExtraError(SimOpsError):
    """An optional dependency is not installed; the message names the extra."""

    code = "missing-extra"


@final
class DataError(SimOpsError):
    """A stored artefact is damaged, foreign or inconsistent."""

    code = "bad-data"


@final
class BusyError(SimOpsError):
    """Somebody else is writing there."""

    code = "busy"


@final
class SpaceError(SimOpsError):
    """The disk is full, read-only or over quota; says how much is needed."""

    code = "no-space"


@final
class GateRefused(SimOpsError):  # noqa: N818 - a refusal is what a gate is for, no error
    """A policy shall go out that no passing verdict is about."""

    code = "gate-refused"
    exit_code = 3


def nearest(name: str, names: Iterable[str]) -> str:
    """Quote the known name closest to `name`, or give an empty string."""
    close = difflib.get_close_matches(name, list(names), n=1, cutoff=0.5)
    return repr(close[0]) if close else ""
