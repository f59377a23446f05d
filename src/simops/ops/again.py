"""One scenario of a gate once more, by its hash: the same bytes, or it is said that they are not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

from simops.core.errors import DataError
from simops.core.margin import margin
from simops.core.perform import run, staged
from simops.core.protocols import Engine
from simops.core.rollout import Recipe
from simops.core.scenario import Scenario
from simops.core.task import Task
from simops.core.trajectory import Trajectory
from simops.data.store import Dataset
from simops.gate.suite import REALM
from simops.ops import failures, falsify, kept
from simops.ops.failures import Failed
from simops.ops.gate_spec import load_order
from simops.ops.validate import CANDIDATE, SPEC, SUITE, Order
from simops.sim.film import Cut, Made, film
from simops.sim.render import Camera, Look

SHORTEST = 6
"""Characters of a hash that are enough where they are of one scenario."""


@final
@dataclass(frozen=True, kw_only=True)
class Again:
    """A scenario that ran again."""

    scenario: Scenario
    trajectory: Trajectory
    same: bool | None
    """Whether every byte is that of the gate; `None` where the gate did not run it, or in another engine."""
    folder: Path
    task: Task


def again(prefix: str, folder: Path | None = None, *, engine: Engine | None = None) -> Again:
    """Find a scenario by its hash in the folder of a gate, search or crank, or in any under `out`, and run it so."""
    searched = _searched(prefix, folder, engine) or _cranked(prefix, folder, engine)
    if searched is not None:
        return searched
    at, order, scenario = _found(prefix, folder)
    recipe = Recipe(
        policy=order.policy, task=order.task, engine=engine or order.engine, sensors=order.sensors, realm=REALM
    )
    whole = staged(recipe, order.suite.scenarios)  # as the gate did: what others need is there too
    [block] = run(whole, [scenario])
    [fresh] = block
    return Again(
        scenario=scenario,
        trajectory=fresh,
        same=None if engine is not None else _same(at, order, scenario, fresh),
        folder=at,
        task=whole.task,
    )


def show(found: Again, path: Path) -> Made:
    """Film it."""
    return film(found.trajectory, found.task, None, path, camera=Camera("", 640, 480), look=Look(), cut=Cut())


def _searched(prefix: str, folder: Path | None, engine: Engine | None) -> Again | None:
    """The same of what a search for failures tried, which keeps no bytes: only another outcome or margin is told."""
    folders = [folder] if folder is not None else sorted(path.parent for path in Path("out").glob(f"*/{falsify.HEAD}"))
    for at in folders:
        hit = falsify.held(at, prefix) if len(prefix) >= SHORTEST else None
        if hit is None:
            continue
        order, tried = hit
        recipe = staged(replace(order.recipe, engine=engine or order.recipe.engine), order.space.prototypes)
        scenario = order.space.scenario(tried.point, tried.number)
        [block] = run(recipe, [scenario])
        [fresh] = block
        alike = (fresh.outcome, margin(recipe.task, fresh)) == (tried.outcome, tried.margin)
        same = None if engine is not None or alike else False
        return Again(scenario=scenario, trajectory=fresh, same=same, folder=at, task=recipe.task)
    return None


def _cranked(prefix: str, folder: Path | None, engine: Engine | None) -> Again | None:
    """The same of what failed in a gate of a crank, which keeps no bytes: only another outcome is told."""
    found = [path for path, _ in kept.runs(Path("out"))] if folder is None else [folder]
    for at in found if len(prefix) >= SHORTEST else ():
        hit = failures.held(at, prefix) if kept.there(at) else None
        if hit is None:
            continue
        recipe = staged(_recipe(hit, root=Path(), engine=engine), [hit.scenario])
        [block] = run(recipe, [hit.scenario])
        [fresh] = block
        same = None if engine is not None or fresh.outcome != "success" else False
        return Again(scenario=hit.scenario, trajectory=fresh, same=same, folder=at, task=recipe.task)
    return None


def _recipe(found: Failed, *, root: Path, engine: Engine | None = None) -> Recipe:
    """What ran it; code that the spec names is beside `root`."""
    from simops.deploy.bundle import load as load_bundle
    from simops.ops import stages
    from simops.spec.crank import load_crank

    spec = load_crank(found.turn.spec, root=root).value
    exported = found.turn.step("export")
    if exported is None:
        raise DataError("the turn's bundle is gone", where=found.scenario.name, fault="CRK-003")
    return Recipe(
        policy=load_bundle(exported.folder / stages.BUNDLE),
        task=replace(spec.task, belief=stages.asked_of(spec, stages.untouched(spec))),
        engine=engine or spec.validation.engine,
        sensors=spec.sensors,
        realm=stages.REALM,
    )


def _found(prefix: str, folder: Path | None) -> tuple[Path, Order, Scenario]:
    if len(prefix) < SHORTEST:
        raise DataError(f"{prefix!r} is too short for a hash", attempt=f"{SHORTEST} characters of it at least")
    folders = [folder] if folder is not None else list(_gates(Path("out")))
    if folder is not None and not (folder / SUITE).is_file():
        raise DataError(f"there is no gate in {folder}", where=str(folder), attempt="a folder of simops validate")
    for at in folders:
        if not (at / SPEC).is_file():
            continue  # made in Python: nobody wrote down what acted
        order = load_order(at / SPEC, out=at, suite=at / SUITE)
        hits = [each for each in order.suite.scenarios if each.hash.startswith(prefix)]
        if len(hits) > 1:
            raise DataError(f"{len(hits)} scenarios begin with {prefix}", where=str(at), attempt="more of the hash")
        if hits:
            return at, order, hits[0]
    where = ", ".join(map(str, folders)) or "out"
    raise DataError(
        f"no gate holds a scenario {prefix}", where=where, attempt="--in FOLDER, and its hash in the report"
    )


def _gates(root: Path) -> Iterator[Path]:
    if root.is_dir():
        yield from sorted(path.parent for path in root.glob(f"*/{SUITE}"))


def _same(at: Path, order: Order, scenario: Scenario, fresh: Trajectory) -> bool | None:
    number = [each.hash for each in order.suite.scenarios].index(scenario.hash)
    data = Dataset.open(at / CANDIDATE)
    if number in data.missing(range(len(order.suite))):
        return None
    stored = data.trajectory(number)
    alike = (stored.outcome, stored.seed, len(stored)) == (fresh.outcome, fresh.seed, len(fresh))
    return alike and all(stored[name].tobytes() == fresh[name].tobytes() for name in stored.schema.names)
