"""Policies and simulators by name and version: what was kept stays as it was, and what was when is known.

An artefact's content is a folder on a shelf, named by what is in it; its versions, tags and lineage are
rows of one SQLite file. A version is acknowledged when content and row are on the disk for good. Versions
of a name are 1, 2, 3 without a gap, and adding the same content again gives the version it has.
"""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self, final

from simops.core.errors import BusyError, DataError, GateRefused, nearest
from simops.core.verdict import Verdict
from simops.deploy import manifest
from simops.ops import records
from simops.ops.ledger import Action, Event, Ledger, now, seal_of
from simops.ops.lineage import Lineage, Node
from simops.ops.records import KINDS, Record, Version
from simops.ops.shelf import Shelf, Staged

GATED = frozenset({"champion", "production"})
"""Tags of a policy that mean it may go out."""
AGAIN = "add the same folder again: it will have the same version"


@final
class Registry:
    """A registry on disk, used by any number of processes at once; one object for each thread."""

    def __init__(self, root: Path, *, create: bool = False) -> None:
        """Open the registry under `root`; its log is verified."""
        self.root = root
        self._ledger = Ledger(root, create=create)
        self._shelf = Shelf(root)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of it."""
        self._ledger.close()

    def add(
        self,
        name: str,
        folder: Path,
        *,
        kind: str = "policy",
        lineage: Lineage | None = None,
        who: str = "",
        why: str = "",
    ) -> Version:
        """Keep a folder as the next version of `name`, or give the version that this content has already."""
        records.check_name(name, kind)
        with self._shelf.stage(folder) as staged, self._ledger.writing():
            number = self._write(kind, name, staged, lineage or Lineage(), who=who or user(), why=why)
            return self._record(kind, name).versions[number - 1]

    def names(self, *, kind: str = "policy") -> tuple[str, ...]:
        """Every name, sorted."""
        return records.names(self._ledger, kind)

    def versions(self, name: str, *, kind: str = "policy") -> tuple[Version, ...]:
        """Every version of a name, oldest first."""
        with self._ledger.reading():
            return self._record(kind, name).versions

    def find(self, ref: str, *, kind: str = "policy") -> Version:
        """The version meant by `NAME` (its latest), `NAME@3` or `NAME@tag`."""
        name, which = records.split(ref, kind)
        with self._ledger.reading():
            return self._record(kind, name).find(which)

    def fetch(self, ref: str, *, kind: str = "policy") -> Path:
        """The folder of a version, to read only, verified to the last bit; one that has changed is moved aside."""
        name, which = records.split(ref, kind)
        with self._ledger.reading():
            record = self._record(kind, name)
            found = record.find(which)
            listing = records.files(self._ledger, found.digest)
        if found.state != "here":
            last = record.last(found.version)
            said = f"the content of {found.ref} was {last.action} at {last.at}: {last.why}"
            raise DataError(said, where=str(self.root), attempt=AGAIN, fault="REG-005")
        faults = self._shelf.faults(found.digest, listing)
        if faults:
            self._put_aside(found.digest, "; ".join(faults[:3]))
            raise DataError(
                f"{found.ref} is not what was kept: {'; '.join(faults[:3])}",
                where=str(self._shelf.path(found.digest)),
                attempt=f"it is in quarantine now; {AGAIN}, or use another version",
                fault="REG-003",
            )
        return self._shelf.path(found.digest)

    def tag(
        self,
        ref: str,
        tag: str,
        *,
        why: str,
        who: str = "",
        kind: str = "policy",
        was: int | None = None,
        verdict: Verdict | None = None,
    ) -> Version:
        """Put `tag` on a version, taking it off whichever had it.

        Args:
            ref: The version.
            tag: As `champion`; a version may have many tags, a tag is on one version of a name.
            why: For whoever asks later.
            who: The user who runs this, by default.
            kind: Of the artefact.
            was: Only if the tag is on this version now (0: on none), so that nobody's change in between is undone.
            verdict: What lets a policy through: a tag of `GATED` goes on a version that a passing verdict is about,
                byte for byte, or back on one that it has been on before.
        """
        name, which = records.split(ref, kind)
        records.check_tag(tag)
        with self._ledger.writing():
            record = self._record(kind, name)
            found, held = record.find(which), record.tags.get(tag, 0)
            if was is not None and held != was:
                raise BusyError(
                    f"{tag} of {name} is version {held or 'none'} by now, not {was or 'none'}",
                    where=str(self.root),
                    attempt=f"simops {kind} show {name}, then decide again",
                    fault="REG-001",
                )
            if found.state != "here":
                raise DataError(f"the content of {found.ref} is not here", attempt=AGAIN, fault="REG-005")
            if held != found.version:
                if kind == "policy" and tag in GATED and not record.had(tag, found.version):
                    why = self._let_through(found, tag, verdict, why)
                self._ledger.note("tagged", kind, name, found.version, who=who or user(), why=why, label=tag)
            return self._record(kind, name).versions[found.version - 1]

    def untag(self, name: str, tag: str, *, why: str, who: str = "", kind: str = "policy") -> None:
        """Take `tag` off whichever version of `name` has it."""
        with self._ledger.writing():
            held = self._record(kind, name).tags
            if tag not in held:
                raise DataError(f"no version of {name} is tagged {tag!r}", attempt=nearest(tag, held))
            self._ledger.note("untagged", kind, name, held[tag], who=who or user(), why=why, label=tag)

    def pin(self, ref: str, *, why: str, who: str = "", kind: str = "policy", pinned: bool = True) -> Version:
        """Keep the content of a version whatever happens, or stop doing so."""
        name, which = records.split(ref, kind)
        with self._ledger.writing():
            found = self._record(kind, name).find(which)
            if found.pinned != pinned:
                action: Action = "pinned" if pinned else "unpinned"
                self._ledger.note(action, kind, name, found.version, who=who or user(), why=why)
            return self._record(kind, name).versions[found.version - 1]

    def history(self, name: str, *, tag: str = "", kind: str = "policy") -> tuple[Event, ...]:
        """What happened to a name, or to one tag of it, oldest first."""
        with self._ledger.reading():
            events = self._record(kind, name).events
        return tuple(event for event in events if not tag or event.label == tag)

    def graph(self, ref: str, *, kind: str = "policy") -> tuple[str, Mapping[str, Node]]:
        """A version's key, and a node for it and for everything it was made out of, as far as is known here."""
        name, which = records.split(ref, kind)
        nodes: dict[str, Node] = {}
        with self._ledger.reading():
            root = self._record(kind, name).find(which)
            ahead = [root]
            while ahead:
                found = ahead.pop()
                parents = [self._parent(value) for value in found.lineage["parent"]]
                keys = tuple(parent if isinstance(parent, str) else parent.key for parent in parents)
                nodes[found.key] = Node(found.ref, found.lineage, keys, _about(found))
                for parent in parents:
                    if isinstance(parent, str):
                        nodes.setdefault(parent, Node(parent, Lineage(), (), "not in this registry"))
                    elif parent.key not in nodes:
                        ahead.append(parent)
        return root.key, nodes

    def gc(self, *, keep: int = 3, who: str = "", dry_run: bool = False) -> tuple[Version, ...]:
        """Remove the content of versions that nothing keeps, and give them; rows stay, numbers are never reused.

        Kept are, of each name: what a tag is on, what each tag was on before, what is pinned, and the `keep` latest.
        """
        if keep < 1:
            raise DataError(f"gc cannot keep {keep} versions of a name", attempt="at least 1")
        with self._ledger.writing():
            doomed = tuple(found for record in self._everything() for found in record.spare(keep))
            for found in () if dry_run else doomed:
                why = "nothing kept it"
                self._ledger.note("removed", found.kind, found.name, found.version, who=who or user(), why=why)
        if not dry_run:
            with self._ledger.writing():  # a transaction of its own: what the log calls removed may go, and not before
                needed = {found.digest for record in self._everything() for found in record.versions if _here(found)}
                for digest in set(self._shelf) - needed:
                    self._shelf.discard(digest)
            self._shelf.sweep()
        return doomed

    def check(self) -> Mapping[str, tuple[str, ...]]:
        """Verify every version to the last bit; gives what is wrong, by `kind/name@version`, and moves nothing."""
        with self._ledger.reading():
            here = [found for record in self._everything() for found in record.versions if _here(found)]
            listings = {found.digest: records.files(self._ledger, found.digest) for found in here}
        faults = {digest: self._shelf.faults(digest, listing) for digest, listing in listings.items()}
        return {found.key: faults[found.digest] for found in here if faults[found.digest]}

    def _write(self, kind: str, name: str, staged: Staged, lineage: Lineage, *, who: str, why: str) -> int:
        """Make content and rows stay; inside a transaction, so that no two writers think of the same number."""
        self._shelf.place(staged)
        record = records.read(self._ledger, kind, name)
        for found in record.versions:
            if found.digest == staged.digest:
                if found.state != "here":
                    self._ledger.note("restored", kind, name, found.version, who=who, why=why)
                return found.version
        facts = Lineage.of((what, self._settled(what, value)) for what, value in lineage.facts).facts
        number = len(record.versions) + 1
        if not records.files(self._ledger, staged.digest):
            for file in staged.files:
                self._ledger.put("files", staged.digest, file.path, file.bytes, file.sha256)
        cells = [kind, name, number, staged.digest, now(), who]
        self._ledger.put("artefacts", *cells, seal_of(*records.row_cells(cells, facts)))
        for what, value in facts:
            self._ledger.put("lineage", kind, name, number, what, value)
        self._ledger.note("added", kind, name, number, who=who, why=why)
        return number

    def _record(self, kind: str, name: str) -> Record:
        return records.known(self._ledger, kind, name)

    def _everything(self) -> list[Record]:
        return [self._record(kind, name) for kind in KINDS for name in self.names(kind=kind)]

    def _parent(self, value: str) -> Version | str:
        """A parent that this registry holds, or the digest of one that it does not."""
        kind, slash, ref = value.partition("/")
        if slash:
            name, which = records.split(ref, kind)
            return self._record(kind, name).find(which)
        held = records.holders(self._ledger, value.removeprefix("sha256:"))
        return held[0] if held else value

    def _settled(self, what: str, value: str) -> str:
        """A fact that stays what it is, whatever tags do later."""
        if what != "parent":
            return value
        parent = self._parent(value)
        return parent if isinstance(parent, str) else parent.key

    def _let_through(self, found: Version, tag: str, verdict: Verdict | None, why: str) -> str:
        """Raise unless a passing verdict is about the very bytes on the shelf; gives the reason with its digest."""
        if verdict is None:
            raise GateRefused(
                f"{found.ref} cannot be {tag}: there is no verdict about it",
                where=str(self.root),
                attempt=f"simops validate, then simops policy tag {found.ref} {tag} --verdict verdict.json",
                fault="REG-002",
            )
        faults = self._shelf.faults(found.digest, records.files(self._ledger, found.digest))
        if faults:
            raise DataError(f"{found.ref} is not what was kept: {faults[0]}", attempt=AGAIN, fault="REG-003")
        verdict.require(manifest.read(self._shelf.path(found.digest)).digest)
        return f"{why}; verdict {verdict.digest[:16]}"

    def _put_aside(self, digest: str, why: str) -> None:
        with self._ledger.writing():
            if not self._shelf.faults(digest, records.files(self._ledger, digest)):
                return  # somebody mended it meanwhile
            if self._shelf.path(digest).exists():
                self._shelf.quarantine(digest)
            for found in records.holders(self._ledger, digest):
                if _here(found) and found.digest == digest:
                    self._ledger.note("quarantined", found.kind, found.name, found.version, who=user(), why=why)


def user() -> str:
    """Who runs this."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without a name for its user
        return "unknown"


def _here(found: Version) -> bool:
    return found.state == "here"


def _about(found: Version) -> str:
    words = [*found.tags, *(["pinned"] if found.pinned else []), *([] if _here(found) else [found.state])]
    return ", ".join(words)
