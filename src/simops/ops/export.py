"""From a trained network to a bundle: written, answered, compared on thousands of observations, published whole."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from simops.core.contract import Contract
from simops.core.errors import DataError
from simops.core.plugin import Registry
from simops.core.protocols import Engine
from simops.core.signal import Array
from simops.core.task import Task
from simops.deploy import golden
from simops.deploy.bundle import Bundle, assemble
from simops.deploy.graph import Network
from simops.learn import export as trained
from simops.learn.actor import Actor
from simops.learn.checkpoint import Taught, actor_of, unpack
from simops.learn.policy import Learned
from simops.ops.asked import invented, observed, sequences, stressed
from simops.ops.publish import as_text, packages, write
from simops.ops.train import CHECKPOINT, SPEC

TOLERANCE = 1e-5
"""How far an exported action may lie from the trained network's, where actions are about 1 or less."""
ROUNDINGS = 4.0
"""Or so many times as far as the network's own rounding: a steep network turns the last digit into many."""
PARITY_ROWS = 10_000
GOLDEN_EPISODES = 8


class Parity(NamedTuple):
    """The exported graphs beside the trained network."""

    rows: int
    action: float
    """Largest difference of an action, in its own unit."""
    rounding: float
    """How far the trained network's own actions lie from those it would give with twice the digits."""
    memory: float
    together: bool
    """Whether rows side by side gave the bytes of rows one by one."""


class Exported(NamedTuple):
    """What came of an export."""

    folder: Path
    bundle: Bundle
    parity: Parity


def packed(
    taught: Taught, *, provenance: Mapping[str, Any], observations: Array | None = None
) -> tuple[dict[str, bytes], Parity]:
    """All files of a bundle but the manifest, and how well they agree with the network; raises if they do not."""
    actor, contract = taught.actor, taught.contract
    sequence = invented(contract) if observations is None else observations
    vectors = trained.golden(actor, sequence.astype(np.float32))
    rows = stressed(contract, sequence.reshape(-1, contract.observation.size), PARITY_ROWS)
    rounding = trained.rounding(actor, rows, [slot.zeros(len(rows)) for slot in contract.memory])
    tolerance = max(TOLERANCE * max(1.0, float(np.abs(vectors["action"]).max())), ROUNDINGS * rounding)
    graphs = trained.graphs(actor, contract)
    files = {
        "policy.onnx": graphs.batched,
        "policy_1.onnx": graphs.single,
        "contract.json": as_text(contract.body()),
        "checks.json": as_text({"tolerance": tolerance}),
        "provenance.json": as_text({**provenance, "packages": packages()}),
        **golden.write(vectors),
    }
    bundle = assemble(files)
    found = parity(actor, bundle, sequence)
    if not found.action <= tolerance:
        raise DataError(
            f"exported actions differ by {found.action:.2g} from the trained network's, {tolerance:.1g} is allowed",
            attempt="report the network: what was written is not what was trained",
            fault="EXP-005",
        )
    if not found.together:  # nobody may use it
        del files["policy.onnx"]
    return files, found


def parity(actor: Actor, bundle: Bundle, observations: Array, *, rows: int = PARITY_ROWS) -> Parity:
    """Network and bundle on `rows` observations: near the given ones, far off, denormal, plus and minus 0."""
    contract = bundle.contract
    given = stressed(contract, observations.reshape(-1, contract.observation.size), rows)
    memory = [slot.zeros(rows) for slot in contract.memory]
    rounding = trained.rounding(actor, given, memory)
    worst_action = worst_memory = 0.0
    side_by_side = True
    for _ in range(2 if memory else 1):  # from an empty memory, and from one that is in use
        want = trained.answers(actor, given, memory)
        arrays = [given, *memory]
        one = [np.concatenate(c) for c in zip(*(_row(bundle, arrays, i) for i in range(rows)), strict=True)]
        side_by_side = side_by_side and together(bundle.network, arrays, one)
        gaps = [gap(a, b) for a, b in zip(one, want, strict=True)]
        worst_action = max(worst_action, gaps[0])
        worst_memory = max(worst_memory, *gaps[1:], 0.0)
        memory = want[1:]
    return Parity(rows, worst_action, rounding, worst_memory, side_by_side)


def export_checkpoint(path: Path, out: Path, *, engine: Engine, task: Task | None = None) -> Exported:
    """Write the network of a checkpoint, or of the last one in a run's folder, as a bundle at `out`.

    The golden observations are those that it meets in episodes of its task; made up where the task is not installed.
    """
    file = checkpoint_in(path)
    data = file.read_bytes()
    saved = unpack(data, where=str(file))
    taught = actor_of(saved)
    task = task or _task_of(taught.contract)
    told = {"checkpoint": hashlib.sha256(data).hexdigest(), "task": taught.contract.task, **_told(saved.body)}
    if (file.parent / SPEC).is_file():
        told["spec"] = hashlib.sha256((file.parent / SPEC).read_bytes()).hexdigest()
    observations = None
    if task is not None:
        observations = sequences(observed(Learned(taught), task, engine, n=GOLDEN_EPISODES))
        told |= {"golden_engine": repr(engine), "simulator": engine.version(task)}
    return export(taught, out, provenance=told, observations=observations)


def checkpoint_in(path: Path) -> Path:
    """The file itself, or the last checkpoint of a training's folder."""
    file = path / CHECKPOINT if path.is_dir() else path
    if not file.is_file():
        raise DataError(
            "there is no checkpoint", where=str(file), attempt="a .safetensors file, or a training's folder"
        )
    return file


def _told(body: Mapping[str, Any]) -> dict[str, Any]:
    """What a checkpoint tells of where it comes from."""
    names = ("trainer", "seed", "engine", "spec", "data", "recipe", "lap", "parent")
    return {name: body[name] for name in names if body.get(name) not in (None, "")}


def _task_of(contract: Contract) -> Task | None:
    registry = Registry[Task]("task")
    return registry.load(contract.task)() if contract.task in registry.names() else None


def export(taught: Taught, out: Path, *, provenance: Mapping[str, Any], observations: Array | None = None) -> Exported:
    """Write a trained network as a bundle at `out`, or raise and leave nothing there.

    `observations` are sequences (steps, rows, size) the way the policy meets them; made up when left out.
    """
    files, found = packed(taught, provenance=provenance, observations=observations)
    return Exported(out, write(files, out), found)


def gap(got: Array, want: Array) -> float:
    """The largest difference; infinite where one side has a number and the other has none.

    Far enough off, a network itself comes to no number: then the graph must come to none either.
    """
    sound = np.isfinite(want)
    if (np.isfinite(got) != sound).any():
        return float("inf")
    return float(np.abs(got[sound].astype(np.float64) - want[sound]).max(initial=0.0))


def together(network: Network, arrays: Sequence[Array], one: Sequence[Array]) -> bool:
    """Whether rows in any company give the bytes that they gave one by one."""
    batched, rows = network.batched, len(arrays[0])
    if batched is None:
        return False
    for size in (2, 3, 7, 64, 255, 256, rows):
        for at in range(0, min(rows, 2 * size), size):
            out = batched.run([a[at : at + size] for a in arrays])
            if any(a.tobytes() != b[at : at + size].tobytes() for a, b in zip(out, one, strict=True)):
                return False
    return True


def _row(bundle: Bundle, arrays: Sequence[Array], i: int) -> list[Array]:
    return bundle.network.single.run_row([a[i : i + 1] for a in arrays])
