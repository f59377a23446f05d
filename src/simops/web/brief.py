"""What became of a run, in a line: read from the smallest file that tells, and kept as long as that does not change."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast, final

from simops.core.errors import SimOpsError
from simops.core.verdict import Verdict
from simops.data.files import unseal
from simops.ops import kept
from simops.ops.beat import heard
from simops.web.frame import STALE_S
from simops.web.places import Kind, Place

TAIL = 16384
"""Bytes from the end of a log in which its last line is looked for."""
MOST = 4096
"""Runs that are remembered."""


class Brief(NamedTuple):
    """A line of the list."""

    status: str
    """A word: `pass`, `fail`, `marginal`, `running`, or any other."""
    text: str


@final
class Briefs:
    """What was read of each run; again only when its folder has changed."""

    def __init__(self) -> None:
        """Begin knowing nothing."""
        self._known: dict[str, tuple[float, Brief]] = {}
        self._turn = threading.Lock()

    def of(self, place: Place) -> Brief:
        """What became of it; what cannot be read says so."""
        held = self._known.get(place.id)
        if held is not None and held[0] == place.at and held[1].status != "running":
            return held[1]
        try:
            found = READERS[place.kind](place.path)
        except SimOpsError as error:
            found = Brief("fail", f"cannot be read: {error.what}")
        except (OSError, ValueError, KeyError, TypeError, IndexError, OverflowError, AttributeError) as error:
            found = Brief("fail", f"cannot be read: {type(error).__name__}")
        with self._turn:
            if len(self._known) >= MOST:
                self._known.clear()
            self._known[place.id] = (place.at, found)
        return found


def last(path: Path) -> Mapping[str, Any] | None:
    """The last whole line of a log of JSON."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL))
            lines = [line for line in file.read(TAIL).splitlines(keepends=True) if line.endswith(b"\n")]
        body = json.loads(lines[-1])
    except (OSError, ValueError, IndexError, RecursionError):
        return None
    return cast("Mapping[str, Any]", body) if isinstance(body, dict) else None


def _crank(run: Path) -> Brief:
    over = kept.summary(run)
    turns: list[Mapping[str, Any]] = over["turns"] if over is not None else kept.turns(run)
    shares = [float(one["live_success"]) for one in turns if one["live_success"] is not None]
    live = f"; live {shares[-1]:.0%}" if shares else ""
    done = f"{len(turns)} turn{'' if len(turns) == 1 else 's'}{live}"
    if over is not None:
        kind = "promoted" if over["champion"] else "no champion"
        return Brief(kind, f"{done}; {over['ended']}")
    now = heard(run)
    if now is not None and not now.get("over") and time.time() - float(now["at"]) < STALE_S:
        return Brief("running", f"turn {now['turn']} of {now['turns']}: {now['stage']}; {done}")
    return Brief("not over", f"{done}; the same command goes on with it")


def _gate(run: Path) -> Brief:
    path = run / "verdict.json"
    if not path.is_file():
        return Brief("not over", "no verdict yet")
    verdict = Verdict.parse(path.read_text(encoding="utf-8"))
    against = verdict.against()
    return Brief(verdict.status, str(against[0]) if against else f"{len(verdict.findings)} findings, all passed")


def _search(run: Path) -> Brief:
    tried = last(run / "tried.jsonl")
    if not (run / "map.json").is_file():
        return Brief("not over", "" if tried is None else f"{tried['number'] + 1} episodes tried")
    cells: list[Mapping[str, Any]] = unseal(run / "map.json")["found"]
    bad = sum(1 for cell in cells if cell["failed"])
    count = sum(int(cell["tried"]) for cell in cells)
    return Brief("searched", f"{bad} of {len(cells)} cells fail, {count} episodes")


def _training(run: Path) -> Brief:
    lap = last(run / "metrics.jsonl")
    if lap is None:
        return Brief("not over", "no lap yet")
    said = [f"{name} {float(lap[name]):.3g}" for name in ("reward", "success", "loss") if name in lap]
    return Brief("trained", f"lap {lap.get('lap', '?')}: {', '.join(said)}")


def _dataset(run: Path) -> Brief:
    shards = len(list((run / "manifest").glob("shard-*.json")))
    about: Mapping[str, Any] = unseal(run / "dataset.json")["provenance"]
    return Brief(str(about.get("origin", "")), f"{about.get('task', '')}, {shards} shard{'' if shards == 1 else 's'}")


def _of(word: str, text: str) -> Callable[[Path], Brief]:
    return lambda _: Brief(word, text)


READERS: Mapping[Kind, Callable[[Path], Brief]] = {
    "crank": _crank,
    "gate": _gate,
    "search": _search,
    "training": _training,
    "dataset": _dataset,
    "recordings": _of("recorded", "recordings of a robot"),
    "learning": _of("learned", "a simulator from recordings"),
    "identification": _of("identified", "numbers of joints"),
    "registry": _of("registry", "versions, tags and where they come from"),
    "bundle": _of("bundle", "a policy to go out"),
}
