"""Which spec a file is: of which command it has the keys.

kind = tell(Path("train.yaml"))[0]           # "train"
load_file(Path("train.yaml"), KINDS[kind])
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from simops.core.errors import Problem, SpecError, nearest
from simops.spec.crank import Crank
from simops.spec.gap import Gap
from simops.spec.learn import Learn
from simops.spec.load import text_of
from simops.spec.lock import SUFFIX
from simops.spec.node import Table
from simops.spec.reality import World
from simops.spec.run import Run
from simops.spec.search import Falsify
from simops.spec.shape import fields_of
from simops.spec.text import parse
from simops.spec.train import Train
from simops.spec.validate import Validate

PLAIN = "rollout"
"""What a spec is taken for that would do for several."""
KINDS: Mapping[str, type[object]] = {
    PLAIN: Run,
    "train": Train,
    "learn": Learn,
    "validate": Validate,
    "falsify": Falsify,
    "doctor": Gap,
    "crank": Crank,
    "reality": World,
}
"""What a spec loads as, by the name of the command that reads it; `reality` is a sealed one of a crank."""


def keys_of(path: Path, overrides: Sequence[str] = ()) -> frozenset[str]:
    """The keys at the top of a spec or of what a lock holds, and of `--set`; none if it cannot be read that far."""
    root = parse(text_of(path)).root
    if path.suffix == SUFFIX and isinstance(root, Table):
        root = root.entries.get("spec")
    given = [override.partition("=")[0].partition(".")[0].strip() for override in overrides]
    return frozenset((*(root.entries if isinstance(root, Table) else ()), *filter(None, given)))


def tell(path: Path, overrides: Sequence[str] = ()) -> tuple[str, ...]:
    """The kinds whose keys the file has, the one to take first; raises where that is anybody's guess."""
    keys = keys_of(path, overrides)
    if not keys:
        return (PLAIN,)
    if all(keys.isdisjoint(field.name for field in fields_of(kind)) for kind in KINDS.values()):
        what = f"no spec has keys such as {', '.join(sorted(keys)[:3])}"
        raise SpecError(str(path), [Problem("", what, attempt=f"--as {', '.join(KINDS)}", fault="CFG-001")])
    misfits = {name: _misfit(keys, kind) for name, kind in KINDS.items()}
    least = min(misfits.values())
    best = tuple(name for name, misfit in misfits.items() if misfit == least)
    if len(best) > 1 and PLAIN not in best:
        what = f"may be a spec of {' or '.join(best)}"
        raise SpecError(str(path), [Problem("", what, attempt=f"--as {best[0]}", fault="CFG-001")])
    return best


def _misfit(keys: Collection[str], kind: type[object]) -> float:
    """Keys that this kind does not know, those with a near name by half, and keys that it misses."""
    fields = fields_of(kind)
    names = [field.name for field in fields]
    missing = sum(field.required and field.name not in keys for field in fields)
    return missing + sum(0.5 if nearest(key, names) else 1.0 for key in keys if key not in names)
