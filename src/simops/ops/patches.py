"""Patches of a run: kept beside its steps, shown as a diff, applied to somebody's own spec, and taken back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import final

from simops.core.errors import DataError, SpecError, nearest
from simops.core.patch import Patch
from simops.data.files import make_folder, publish
from simops.spec import patched
from simops.spec.crank import load_crank
from simops.spec.load import text_of

FOLDER = "patches"


@final
class Patches:
    """The patches of one run."""

    def __init__(self, run: Path) -> None:
        """Look at those of the run in this folder."""
        self.folder = run / FOLDER

    def names(self) -> tuple[str, ...]:
        """All of them, by name."""
        return tuple(sorted(path.stem for path in self.folder.glob("*.json")))

    def keep(self, patch: Patch) -> Path:
        """Write one down; the same one again is the same file."""
        make_folder(self.folder)
        path = self.folder / f"{patch.name}.json"
        publish(path, json.dumps(patch.body(), indent=1).encode())
        return path

    def find(self, name: str) -> Patch:
        """One by name, or by the beginning of it; raises, naming the nearest, where there is none."""
        names = self.names()
        found = [one for one in names if one.startswith(name)]
        if len(found) != 1:
            what = f"no patch is called {name!r}" if not found else f"{name!r} may be {' or '.join(found)}"
            attempt = nearest(name, names) or ", ".join(names[:5])
            raise DataError(what, where=str(self.folder), attempt=attempt, fault="CRK-002")
        path = self.folder / f"{found[0]}.json"
        try:
            return Patch.of(json.loads(path.read_text(encoding="utf-8")), where=str(path))
        except ValueError as error:
            raise DataError(f"this is no patch: {error}", where=str(path), fault="CRK-002") from None


def applied(spec: Path, patches: Sequence[Patch]) -> str:
    """The spec's text with these patches, once it is known that it holds so."""
    text = patched.patched(text_of(spec), patches, source=str(spec))
    _ = load_crank(text, root=spec.parent)
    return text


def reverted(spec: Path, patches: Sequence[Patch]) -> str:
    """The spec's text without what these patches did."""
    return patched.reverted(text_of(spec), patches, source=str(spec))


def shown(spec: Path, patch: Patch) -> str:
    """A patch for a person: why, what says so, and what would change."""
    where = "within" if patch.within else "beyond"
    head = [
        f"{patch.name}  ({patch.level}; cause: {patch.cause}; {where} the bounds declared)",
        f"why: {patch.reason}",
        *(f"  {name} {value:.4g}" for name, value in sorted(patch.evidence.items())),
        f"about {len(patch.scenarios)} kinds of failure",
        "",
    ]
    text = text_of(spec)
    try:
        change = patched.diff(text, applied(spec, [patch]), name=spec.name)
    except SpecError:  # applied already, or made for another turn's
        change = "\n".join(f"{e.path}: {e.before or 'none'} becomes {e.after or 'none'}" for e in patch.edits)
    return "\n".join([*head, change])


def write(spec: Path, text: str) -> None:
    """Put the new text in the spec's place, whole."""
    publish(spec, text.encode())
