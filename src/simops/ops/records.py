"""What the registry's rows say about a name: its versions, their state and tags, all verified as they are read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias, cast, final

from simops.core.errors import DataError, nearest
from simops.ops.ledger import Action, Cell, Event, Ledger, seal_of
from simops.ops.lineage import Lineage
from simops.ops.shelf import File

KINDS = ("policy", "simulator")
NAME = re.compile(r"[a-z0-9._-]{1,64}")
State: TypeAlias = Literal["here", "removed", "quarantined"]
AFTER: Mapping[Action, State] = {
    "added": "here",
    "restored": "here",
    "removed": "removed",
    "quarantined": "quarantined",
}
"""Where the content of a version is after an action."""


@final
@dataclass(frozen=True)
class Version:
    """One version of an artefact."""

    kind: str
    name: str
    version: int
    digest: str
    """SHA-256 over its content."""
    at: str
    """When it was added: UTC, ISO 8601."""
    who: str
    lineage: Lineage
    state: State
    """Whether the content is on the shelf."""
    tags: tuple[str, ...]
    """The tags that are on it now."""
    pinned: bool

    @property
    def ref(self) -> str:
        """As `go2@3`."""
        return f"{self.name}@{self.version}"

    @property
    def key(self) -> str:
        """As `policy/go2@3`."""
        return f"{self.kind}/{self.ref}"


@final
@dataclass(frozen=True)
class Record:
    """One name at one moment."""

    kind: str
    name: str
    versions: tuple[Version, ...]
    """Number n is at place n - 1."""
    events: tuple[Event, ...]
    """What happened, oldest first."""

    @cached_property
    def tags(self) -> Mapping[str, int]:
        """Which version each tag is on now."""
        return {tag: held[-1] for tag, held in sorted(_held(self.events).items()) if held[-1]}

    def number(self, which: str) -> int:
        """The version meant by a number, a tag, or nothing for the latest."""
        if not which:
            return len(self.versions)
        if re.fullmatch(r"[0-9]{1,9}", which):
            if not 1 <= int(which) <= len(self.versions):
                raise DataError(f"{self.name} has no version {int(which)}", attempt=f"1 to {len(self.versions)}")
            return int(which)
        if which not in self.tags:
            known = ", ".join(self.tags) or f"a version, 1 to {len(self.versions)}"
            raise DataError(
                f"no version of {self.name} is tagged {which!r}", attempt=nearest(which, self.tags) or known
            )
        return self.tags[which]

    def find(self, which: str) -> Version:
        """The version meant by a number, a tag, or nothing for the latest."""
        return self.versions[self.number(which) - 1]

    def had(self, tag: str, version: int) -> bool:
        """Whether the tag has been on this version before."""
        return any(event.label == tag and event.version == version for event in self.events if event.action == "tagged")

    def spare(self, keep: int) -> tuple[Version, ...]:
        """Versions whose content is here and that nothing keeps."""
        here = [found for found in self.versions if found.state == "here"]
        kept = {found.version for found in here[-keep:]} | {found.version for found in here if found.pinned}
        for held in _held(self.events).values():  # what each tag is on, or was on last, and was on before
            kept.update(list(dict.fromkeys(number for number in reversed(held) if number))[:2])
        return tuple(found for found in here if found.version not in kept)

    def last(self, version: int) -> Event:
        """What last happened to the content of a version."""
        return [event for event in self.events if event.version == version and event.action in AFTER][-1]


def split(ref: str, kind: str) -> tuple[str, str]:
    """The name, and which version, of `NAME[@VERSION|@TAG]`."""
    name, _, which = ref.partition("@")
    check_name(name, kind)
    return name, which


def check_name(name: str, kind: str) -> None:
    """Raise unless `name` can be one."""
    if kind not in KINDS:
        raise DataError(f"a registry keeps no {kind!r}", attempt=nearest(kind, KINDS) or " or ".join(KINDS))
    if not NAME.fullmatch(name) or set(name) == {"."}:
        raise DataError(f"{name!r} is no name", attempt="1 to 64 of a-z, 0-9, '.', '_' and '-'", fault="SEC-020")


def check_tag(tag: str) -> None:
    """Raise unless `tag` can be one; a number could be taken for a version."""
    if not NAME.fullmatch(tag) or tag.isdigit() or set(tag) == {"."}:
        attempt = "1 to 64 of a-z, 0-9, '.', '_' and '-', not a number"
        raise DataError(f"{tag!r} is no tag", attempt=attempt, fault="SEC-020")


def names(ledger: Ledger, kind: str) -> tuple[str, ...]:
    """Every name of a kind, sorted."""
    rows = ledger.rows("SELECT DISTINCT name FROM artefacts WHERE kind = ? ORDER BY name", kind)
    return tuple(str(name) for (name,) in rows)


def read(ledger: Ledger, kind: str, name: str) -> Record:
    """All about one name; empty where there is none."""
    rows = ledger.rows("SELECT * FROM artefacts WHERE kind = ? AND name = ? ORDER BY version", kind, name)
    facts: dict[int, list[tuple[str, str]]] = {}
    asked = "SELECT version, what, value FROM lineage WHERE kind = ? AND name = ? ORDER BY version, what, value"
    for number, what, value in ledger.rows(asked, kind, name):
        facts.setdefault(cast("int", number), []).append((str(what), str(value)))
    events = tuple(ledger.log("WHERE kind = ? AND name = ?", kind, name))
    tags = {tag: held[-1] for tag, held in _held(events).items()}
    state: dict[int, State] = {event.version: AFTER[event.action] for event in events if event.action in AFTER}
    pinned = {event.version: event.action == "pinned" for event in events if event.action in {"pinned", "unpinned"}}
    versions: list[Version] = []
    for place, (*cells, seal) in enumerate(rows, 1):
        number, lineage = cast("int", cells[2]), facts.get(place, [])
        if number != place or number not in state or seal != seal_of(*row_cells(cells, lineage)):
            raise DataError(f"the row of {name}@{place} was changed", where=str(ledger.path), fault="REG-008")
        versions.append(
            Version(
                kind=kind,
                name=name,
                version=number,
                digest=str(cells[3]),
                at=str(cells[4]),
                who=str(cells[5]),
                lineage=Lineage.of(lineage),
                state=state[number],
                tags=tuple(sorted(tag for tag, held in tags.items() if held == number)),
                pinned=pinned.get(number, False),
            )
        )
    if len(versions) != len(state):
        raise DataError(f"a row of {name} is missing", where=str(ledger.path), fault="REG-008")
    return Record(kind, name, tuple(versions), events)


def known(ledger: Ledger, kind: str, name: str) -> Record:
    """All about one name, or raise because there is none."""
    check_name(name, kind)
    record = read(ledger, kind, name)
    if not record.versions:
        attempt = nearest(name, names(ledger, kind)) or f"simops {kind} list"
        raise DataError(f"no {kind} is called {name!r}", where=str(ledger.path.parent), attempt=attempt)
    return record


def row_cells(cells: Sequence[Cell], facts: Sequence[tuple[str, str]]) -> list[Cell]:
    """What the SHA-256 of an artefact's row is over: the row, and its lineage."""
    return [*cells, *(cell for fact in sorted(facts) for cell in fact)]


def holders(ledger: Ledger, digest: str) -> list[Version]:
    """Every version of any name with this content, or that goes by this digest; oldest first."""
    asked = (
        "SELECT kind, name, version FROM artefacts WHERE object = ? OR (kind, name, version) IN "
        "(SELECT kind, name, version FROM lineage WHERE what = 'identity' AND value = ?) ORDER BY at"
    )
    rows = ledger.rows(asked, digest, digest)
    return [read(ledger, str(kind), str(name)).versions[cast("int", number) - 1] for kind, name, number in rows]


def files(ledger: Ledger, digest: str) -> tuple[File, ...]:
    """The files a content is made of."""
    rows = ledger.rows("SELECT path, bytes, sha256 FROM files WHERE object = ?", digest)
    return tuple(File(str(path), cast("int", size), str(sha256)) for path, size, sha256 in rows)


def _held(events: tuple[Event, ...]) -> dict[str, list[int]]:
    """The versions each tag was on, oldest first; 0 where it was taken off."""
    held: dict[str, list[int]] = {}
    for event in events:
        if event.action in {"tagged", "untagged"}:
            held.setdefault(event.label, []).append(event.version if event.action == "tagged" else 0)
    return held
