"""Look for scenarios in which a policy fails, keep every one of them, and draw where they lie.

What was tried is written lap by lap, and a search that was stopped is told again what it was told before, so it goes
on with the same bytes. Every failure is a scenario in a file of its own.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np

from simops.core import scenario as scenarios
from simops.core.errors import DataError
from simops.core.margin import margins
from simops.core.perform import perform, staged
from simops.core.protocols import Policy, Sim
from simops.core.rollout import Recipe
from simops.core.scenario import Scenario
from simops.core.signal import Array
from simops.core.trajectory import OUTCOMES
from simops.data.files import Lock, digest, make_folder, publish, seal, unseal
from simops.gate.search import Map, Search
from simops.gate.space import Space
from simops.gate.suite import Suite
from simops.ops import suite_text
from simops.ops.build import OUT, expert_of
from simops.spec.lock import lock
from simops.spec.run import EXPERT
from simops.spec.search import Falsify, load_falsify

FORMAT = 1
HEAD = "falsify.json"
TRIED = "tried.jsonl"
FAILURES = "failures"
MAP = "map.json"
SUITE = "suite.json"
"""The worst scenario of each cell that fails, for a gate to hold."""
LOOK = 2
"""Laps that are drawn evenly, before anything is learned."""


@final
@dataclass(frozen=True)
class Order:
    """One search."""

    recipe: Recipe
    space: Space
    episodes: int
    together: int
    map: tuple[int, ...]
    """Places of the map's axes."""
    cells: int
    out: Path
    lock: str = ""
    evenly: bool = False
    """Whether nothing is learned: what a search is compared with."""
    identity: str = ""
    """Digest of all that an episode depends on: the budget is no part of it."""


@final
@dataclass(frozen=True)
class Tried:
    """One episode of a search."""

    number: int
    phase: str
    """`look`, `descend` or `spread`."""
    point: tuple[float, ...]
    margin: float
    outcome: str
    hash: str
    """Of its scenario."""


@final
@dataclass
class Progress:
    """What has happened so far, for whoever watches."""

    task: str
    total: int
    axes: tuple[str, ...]
    tried: list[Tried] = field(default_factory=list[Tried])
    kept: int = 0
    """Episodes that were there before."""
    phase: str = "look"
    began: float = field(default_factory=time.perf_counter)
    ended: float | None = None

    @property
    def elapsed_s(self) -> float:
        """Wall-clock seconds so far."""
        return (self.ended or time.perf_counter()) - self.began

    @property
    def failures(self) -> int:
        """Episodes that failed: timed out, fell or broke down."""
        return sum(one.margin < 0 for one in self.tried)


Watch = Callable[[Progress], None]


@final
@dataclass(frozen=True)
class Found:
    """What a search came to."""

    progress: Progress
    map: Map
    order: Order

    def scenario(self, number: int) -> Scenario:
        """The scenario of an episode."""
        return self.order.space.scenario(self.progress.tried[number].point, number)


def load_order(
    path: Path, *, overrides: Sequence[str] = (), out: Path | None = None, policy: Policy | None = None
) -> Order:
    """Read a spec and say what would be searched; touches nothing.

    Args:
        path: The spec.
        overrides: `a.b=value`.
        out: Where to; chosen here when left out.
        policy: What is to fail, instead of what the spec says.
    """
    loaded = load_falsify(path, overrides=overrides)
    spec = loaded.value
    plain = json.loads(json.dumps(loaded.plain))
    plain["search"].pop("episodes")
    acting = policy or actor(spec)
    identity = digest(json.dumps([plain, acting.digest if policy else ""], sort_keys=True).encode())
    folder = out or spec.out or OUT / f"falsify-{spec.scene.task.name}-{identity[:8]}"
    space = space_of(spec)
    named = tuple(space.axis(name) for name in spec.search.map[:2]) or tuple(range(min(2, len(space.axes))))
    recipe = Recipe(
        policy=acting,
        task=spec.scene.task,
        engine=spec.engine,
        sensors=spec.sensors,
        belief=spec.belief,
        seed=spec.seed,
    )
    search = spec.search
    return Order(
        recipe,
        space,
        search.episodes,
        search.side_by_side,
        named,
        search.cells,
        folder,
        evenly=search.evenly,
        lock=lock(loaded),
        identity=identity,
    )


def known(folder: Path) -> tuple[Space, tuple[Tried, ...]]:
    """What a search may try, and all that it tried so far."""
    return load_order(folder / "spec.lock", out=folder).space, tuple(_read(folder / TRIED))


def held(folder: Path, prefix: str) -> tuple[Order, Tried] | None:
    """The search in a folder, and its episode whose scenario's hash begins so; `None` where there is none."""
    if not (folder / HEAD).exists():
        return None
    hits = [one for one in _read(folder / TRIED) if one.hash.startswith(prefix)]
    if len(hits) > 1:
        raise DataError(f"{len(hits)} scenarios begin with {prefix}", where=str(folder), attempt="more of the hash")
    if not hits:
        return None
    order = load_order(folder / "spec.lock", out=folder)
    if unseal(folder / HEAD)["identity"] != order.identity:
        what = "this search was of a bundle, or its spec has changed"
        raise DataError(what, where=str(folder), attempt="its suite.json in a gate of that bundle", fault="CFG-008")
    return order, hits[0]


def space_of(spec: Falsify) -> Space:
    """The episodes there could be."""
    return Space(spec.scene.task, spec.belief, spec.around, spec.seed, spec.search.same_seed)


def actor(spec: Falsify) -> Policy:
    """What a spec lets act."""
    return expert_of(spec.scene.task.expert) if spec.policy == EXPERT else spec.policy


def run(order: Order, watch: Watch) -> Found:
    """Search until the budget is spent; what is in the folder already is taken as told."""
    space = order.space
    search = Search(
        size=len(space.axes),
        map=order.map,
        cells=order.cells,
        together=order.together,
        look=LOOK * order.together,
        evenly=order.evenly,
        seed=order.recipe.seed,
    )
    progress = Progress(space.task.name, order.episodes, tuple(axis.name for axis in space.axes))
    recipe = staged(order.recipe, space.prototypes)
    with recipe.engine.open(recipe.task, order.together) as sim:
        _try(recipe, sim, space)
        make_folder(order.out)
        holder = Lock(order.out)
        try:
            _begin(order)
            _laps(order, recipe, sim, search, progress, watch)
        finally:
            holder.release()
    progress.ended = time.perf_counter()
    found = Found(progress, mapped(order, progress), order)
    _keep(found)
    watch(progress)
    return found


def mapped(order: Order, progress: Progress) -> Map:
    """The map of what was tried so far."""
    points = np.array([one.point for one in progress.tried], float).reshape(-1, len(order.space.axes))
    return Map(points, np.array([one.margin for one in progress.tried], float), order.map, order.cells)


def _try(recipe: Recipe, sim: Sim, space: Space) -> None:
    """Raise, before anything is on disk, if task, policy, engine and what may be do not fit each other."""
    for one in space.prototypes:
        scenarios.check(one, space.task)
    _ = perform(recipe, sim, space.prototypes)


def _begin(order: Order) -> None:
    """Say whose folder this is, or raise if it is another search's."""
    path = order.out / HEAD
    if path.exists():
        if unseal(path)["identity"] != order.identity:
            raise DataError(
                "another search is in this folder", where=str(order.out), attempt="another --out", fault="CFG-008"
            )
    else:
        publish(path, seal({"format": FORMAT, "identity": order.identity, "task": order.space.task.name}))
    publish(order.out / "spec.lock", order.lock.encode())


def _laps(order: Order, recipe: Recipe, sim: Sim, search: Search, progress: Progress, watch: Watch) -> None:
    """Go through the budget, first through what is known already."""
    known = list(_read(order.out / TRIED))
    with (order.out / TRIED).open("ab") as file:
        while search.told < order.episodes:
            phase = search.ask(order.episodes - search.told)
            progress.phase = phase.name
            first, n = search.told, len(phase.points)
            lap = known[first : first + n]
            if len(lap) == n and [one.point for one in lap] == [tuple(p) for p in phase.points.tolist()]:
                progress.kept += n
            else:
                known = known[:first]
                _cut(file.fileno(), order.out / TRIED, first)
                lap = _lap(recipe, sim, order.space, first, phase.name, phase.points)
                file.write("".join(f"{json.dumps(vars(one))}\n" for one in lap).encode())
                file.flush()
                os.fsync(file.fileno())
            progress.tried += lap
            search.tell(np.array([one.margin for one in lap]))
            watch(progress)


def _lap(recipe: Recipe, sim: Sim, space: Space, first: int, phase: str, points: Array) -> list[Tried]:
    """Try some points side by side."""
    made = [space.scenario(point, first + i) for i, point in enumerate(points)]
    block = perform(recipe, sim, made, numbers=np.arange(first, first + len(made)))
    found = margins(recipe.task, block)
    return [
        Tried(first + i, phase, tuple(points[i].tolist()), float(found[i]), OUTCOMES[int(block.outcomes[i])], one.hash)
        for i, one in enumerate(made)
    ]


def _read(path: Path) -> Iterator[Tried]:
    """Every whole line of what was tried; a torn last one is as if it were not there."""
    if not path.exists():
        return
    for number, line in enumerate(path.read_bytes().splitlines()):
        try:
            body: dict[str, Any] = json.loads(line)
            one = Tried(point=tuple(body.pop("point")), **body)
        except (ValueError, TypeError, KeyError):
            return
        if one.number != number:
            return
        yield one


def _cut(descriptor: int, path: Path, lines: int) -> None:
    """Keep the first lines of a file only."""
    kept = b"".join(path.read_bytes().splitlines(keepends=True)[:lines])
    os.ftruncate(descriptor, len(kept))


def _keep(found: Found) -> None:
    """Write every failure as a scenario, and the map with the worst of each cell."""
    folder = found.order.out / FAILURES
    make_folder(folder)
    for one in found.progress.tried:
        path = folder / f"{one.hash[:16]}.json"
        if one.margin < 0 and not path.exists():
            publish(path, scenarios.text(found.scenario(one.number)).encode())
    axes, tried = found.order.space.axes, found.progress.tried
    worst = {one.hash: one for one in (found.scenario(cell.worst) for cell in found.map.failing)}
    publish(
        found.order.out / SUITE, suite_text.text(Suite(found.order.space.task.name, tuple(worst.values()))).encode()
    )
    body = {
        "format": FORMAT,
        "axes": [vars(axes[place]) for place in found.order.map],
        "cells": found.order.cells,
        "found": [
            {
                "place": list(cell.place),
                "tried": cell.tried,
                "failed": cell.failed,
                "margin": cell.margin,
                "worst": tried[cell.worst].hash,
            }
            for cell in found.map.found
        ],
    }
    publish(found.order.out / MAP, seal(body))
