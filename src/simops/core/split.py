"""Splits recordings into those to fit and those to judge by: by session or name, never by row, alike for everybody."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from simops.core.errors import DataError


class Named(Protocol):
    """What can be split: a recording, or the record of one."""

    @property
    def name(self) -> str:
        """What tells one episode from the others."""
        ...

    @property
    def session(self) -> str:
        """What was logged in one go."""
        ...


class Split(NamedTuple):
    """Numbers of recordings in the order they were given."""

    train: tuple[int, ...]
    held: tuple[int, ...]


def split(
    recordings: Sequence[Named], *, held: float = 0.25, by: Literal["session", "name", ""] = "", salt: str = ""
) -> Split:
    """Hold back about a share of the sessions, chosen by their hash.

    What was logged in one go stays together; where all is one session, episodes are split by name. A recording keeps
    its side when others are added, unless a side would be empty. `salt` gives another split of the same recordings.
    """
    if not 0 < held < 1:
        raise DataError(f"the share held back is {held:g}", attempt="a number between 0 and 1")
    how = by or ("session" if len({one.session for one in recordings}) > 1 else "name")
    groups: dict[str, list[int]] = {}
    for i, one in enumerate(recordings):
        groups.setdefault(one.session if how == "session" else one.name, []).append(i)
    if len(groups) < 2:
        what = f"{len(recordings)} recordings of one {how} cannot be split"
        raise DataError(what, attempt="recordings of another session")
    ranked = sorted(groups, key=lambda name: _share(name, salt))
    chosen = {name for name in ranked[:-1] if _share(name, salt) < held} or {ranked[0]}
    kept = sorted(i for name in groups if name not in chosen for i in groups[name])
    return Split(tuple(kept), tuple(sorted(i for name in chosen for i in groups[name])))


def _share(name: str, salt: str) -> float:
    """A number in [0, 1) that only the name and the salt decide."""
    return int.from_bytes(hashlib.sha256(f"{salt}\0{name}".encode()).digest()[:8]) / 2**64
