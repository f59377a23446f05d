"""The contract doctor: finds what lies between a policy and what it drives, says which, and how to mend it.

First what both sides say of themselves, names, order, units, limits, rate; then what they do: the recorded
answers of training asked again, deployment code fed with known states, and joints nudged one by one in
simulation. Nothing on a robot moves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from simops.core.contract import Contract
from simops.core.errors import DataError, SimOpsError
from simops.core.protocols import Engine
from simops.core.task import Task
from simops.deploy import golden, manifest
from simops.deploy.bundle import assemble
from simops.deploy.graph import Network
from simops.ops import probe, replay
from simops.ops.adapter import Adapter, examine
from simops.ops.border import compare
from simops.ops.mismatch import Mismatch


@final
@dataclass(frozen=True)
class Report:
    """What was looked at, and what was found."""

    looked: tuple[str, ...]
    """Each thing that was compared, in words."""
    mismatches: tuple[Mismatch, ...]

    @property
    def clean(self) -> bool:
        """Whether nothing was found."""
        return not self.mismatches

    def __add__(self, other: Report) -> Report:
        return Report(self.looked + other.looked, self.mismatches + other.mismatches)


def doctor(
    folder: Path, task: Task, *, engine: Engine | None = None, tested: Engine | None = None, seed: int = 0
) -> Report:
    """Examine a bundle against a task.

    Args:
        folder: The bundle.
        task: What it is to do.
        engine: One that runs the task as it is described; without it, nothing is nudged.
        tested: One that may be wired differently, as the driver of a robot in simulation; `engine` when left out.
        seed: Of the states to look at.
    """
    found = examine_bundle(folder, task)
    if engine is not None:
        found += examine_wires(task, tested or engine, engine if tested is not None else None, seed=seed)
    return found


def examine_bundle(folder: Path, task: Task) -> Report:
    """Whether a bundle is whole, was trained for this task, and answers as the network that was trained."""
    try:
        files = manifest.read(folder).files
        contract = Contract.parse(json.loads(files["contract.json"]))
        network, vectors = Network(files), golden.read(files)
        checks: Mapping[str, Any] = json.loads(files["checks.json"])
    except (SimOpsError, KeyError, ValueError) as error:
        what = error.what if isinstance(error, SimOpsError) else f"this is no bundle: {error}"
        return Report(("bundle",), (Mismatch("damage", "bundle", (str(folder),), what),))
    looked = ["bundle: every byte", f"contract: {len(contract.observation.signals)} observation signals, the action"]
    looked[-1] += ", rate and limits"
    found = compare(contract, Contract.of(task))
    if contract.action.shape == task.action.shape and vectors:
        looked.append(
            f"golden vectors: {vectors['observation'].shape[0]} steps, {vectors['observation'].shape[1]} rows"
        )
        try:
            found += replay.diagnose(network, contract, vectors, task, tolerance=2 * float(checks["tolerance"]))
            found += [] if found else _last_word(files)
        except SimOpsError as error:
            found.append(Mismatch("damage", "golden", ("golden vectors",), error.what))
        except (KeyError, ValueError, RuntimeError) as error:  # onnxruntime, or arrays of foreign shapes
            found.append(Mismatch("shape", "golden", ("golden vectors",), f"they do not fit the graph: {error}"))
    return Report(tuple(looked), tuple(found))


def examine_wires(task: Task, tested: Engine, reference: Engine | None, *, seed: int = 0) -> Report:
    """Whether readings and commands are what their names say: by a second engine, and where there is none, by names."""
    seen = probe.respond(tested, task)
    if reference is None:
        looked = f"names: {task.action.size} commands nudged, each must move the joint it is named after"
        return Report((looked,), tuple(probe.labelled(task, tested, seen)))
    wrong, found = probe.readings(task, tested, reference, seed=seed)
    looked = [f"readings: {len(found)} numbers of {probe.ROWS} states, some of them a quarter turn over"]
    right = probe.respond(reference, task)
    seen = probe.undone(seen, found)
    late = probe.pace(task, seen, right)
    looked += ["pace: how much time passes in a step", f"commands: {task.action.size} nudged one by one"]
    moved = [] if late else probe.commands(task, tested, seen, right, found)
    return Report(tuple(looked), (*wrong, *late, *moved))


def examine_adapter(task: Task, adapter: Adapter, engine: Engine, *, seed: int = 0) -> Report:
    """Whether deployment code shows the policy what it is used to, and sends on what it says."""
    looked = f"adapter: {task.observation.size} observations, {task.action.size} commands"
    return Report((looked,), tuple(examine(adapter, task, engine, seed=seed)))


def _last_word(files: Mapping[str, bytes]) -> list[Mismatch]:
    """The bundle's own checks, which refuse what nobody here has found."""
    try:
        assemble(files)
    except DataError as error:
        return [Mismatch("answers" if error.fault != "EXP-007" else "memory", "golden", ("bundle",), error.what)]
    return []
