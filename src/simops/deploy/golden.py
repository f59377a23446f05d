"""The golden self-test: what the training process answered, asked of the graph again on the machine at hand.

Sequences from an empty memory, several side by side: observations, and for each step the action and what was
remembered after it, as computed by the network that was trained and not by what was exported. A difference is
named after the fault that explains it best.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from simops.core.contract import Contract
from simops.core.errors import DataError
from simops.core.signal import Array
from simops.deploy.graph import Graph, Network

ENDING = ".npy"


def write(golden: Mapping[str, Array]) -> dict[str, bytes]:
    """Golden arrays as files, one each: `observation`, `action` and `after_<slot>`, (steps, rows, ...)."""
    files: dict[str, bytes] = {}
    for name, array in golden.items():
        buffer = io.BytesIO()
        np.save(buffer, np.ascontiguousarray(array), allow_pickle=False)
        files[f"golden.{name}{ENDING}"] = buffer.getvalue()
    return files


def read(files: Mapping[str, bytes]) -> dict[str, Array]:
    """Read what `write` wrote."""
    found: dict[str, Array] = {}
    for file, data in files.items():
        if file.startswith("golden.") and file.endswith(ENDING):
            array: Array = np.load(io.BytesIO(data), allow_pickle=False)
            found[file.removeprefix("golden.").removesuffix(ENDING)] = array
    return found


@final
@dataclass(frozen=True)
class Tested:
    """What the self-test found."""

    action: float
    """Largest difference of an action, in its own unit."""
    memory: float
    """Largest difference of what is remembered."""
    together: bool
    """Whether rows side by side gave the bytes of rows one by one."""


def check(network: Network, contract: Contract, golden: Mapping[str, Array], tolerance: float) -> Tested:
    """Compare with the golden vectors; raise with the likeliest fault where they differ beyond `tolerance`."""
    _shaped(contract, golden)
    one = answered(network, contract, golden["observation"])
    gaps = {name: _gap(one[name], golden[name]) for name in one}
    if not gaps["action"] <= tolerance:
        raise _explained(contract, one["action"], golden["action"], gaps["action"], tolerance)
    for name, gap in gaps.items():
        scale = max(1.0, float(np.abs(golden[name]).max(initial=0.0)))
        if not gap <= tolerance * scale:
            raise _refused(f"{name} differs by {gap:.2g}, {tolerance:.1g} is allowed", "EXP-007")
    memory = max((gap for name, gap in gaps.items() if name != "action"), default=0.0)
    return Tested(
        gaps["action"],
        memory,
        network.batched is not None and _together(network.batched, contract, one, golden, tolerance),
    )


def _together(
    batched: Graph, contract: Contract, one: Mapping[str, Array], golden: Mapping[str, Array], tolerance: float
) -> bool:
    """Whether all rows of all steps side by side give the bytes of rows one by one."""
    before = [
        np.concatenate([slot.zeros(golden["observation"].shape[1])[None], one[f"after_{slot.name}"][:-1]])
        for slot in contract.memory
    ]
    out = batched.run([a.reshape(-1, *a.shape[2:]) for a in (golden["observation"], *before)])
    same = True
    for got, (name, alone) in zip(out, one.items(), strict=True):
        apart = _gap(got, alone.reshape(got.shape))
        if not apart <= 2 * tolerance * max(1.0, float(np.abs(alone).max(initial=0.0))):
            raise _refused(f"{name} of rows side by side differs by {apart:.2g} from rows one by one", "EXP-006")
        same = same and got.tobytes() == alone.tobytes()
    return same


def answered(network: Network, contract: Contract, observation: Array) -> dict[str, Array]:
    """Actions and what is remembered after each step, (steps, rows, ...), from an empty memory."""
    steps, rows = observation.shape[:2]
    names = ("action", *(f"after_{slot.name}" for slot in contract.memory))
    found: dict[str, list[Array]] = {name: [] for name in names}
    memory = [slot.zeros(rows) for slot in contract.memory]
    for step in range(steps):
        arrays = [observation[step], *memory]
        out = _one_by_one(network, arrays)
        memory = out[1:]
        for name, array in zip(names, out, strict=True):
            found[name].append(array)
    return {name: np.stack(arrays) for name, arrays in found.items()}


def _one_by_one(network: Network, arrays: Sequence[Array]) -> list[Array]:
    rows = [network.single.run_row([a[i : i + 1] for a in arrays]) for i in range(len(arrays[0]))]
    return [np.concatenate(column) for column in zip(*rows, strict=True)]


def _shaped(contract: Contract, golden: Mapping[str, Array]) -> None:
    want: dict[str, tuple[int, ...]] = {
        "observation": (contract.observation.size,),
        "action": (contract.action.size,),
        **{f"after_{slot.name}": slot.shape for slot in contract.memory},
    }
    lead = golden["observation"].shape[:2] if "observation" in golden else ()
    for name in want.keys() | golden.keys():
        if name not in want or name not in golden or golden[name].shape != (*lead, *want[name]):
            raise _refused(f"the golden vectors do not fit the contract: {name}", "EXP-003")
        if golden[name].dtype != np.float32 or not np.isfinite(golden[name]).all():
            raise _refused(f"the golden vectors of {name} are no finite float32 numbers", "EXP-005")


def _gap(a: Array, b: Array) -> float:
    return float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max(initial=0.0))


def _explained(contract: Contract, got: Array, want: Array, gap: float, tolerance: float) -> DataError:
    """The fault that turns `want` into `got`."""
    labels = contract.action.labels or tuple(map(str, range(contract.action.size)))
    got, want = got.astype(np.float64), want.astype(np.float64)
    size = f"the largest difference is {gap:.3g}, {tolerance:.1g} is allowed"
    if contract.memory and _gap(got[0], want[0]) <= tolerance:
        return _refused(f"actions are right at the first step and wrong later: memory is lost; {size}", "EXP-007")
    got, want = got.reshape(-1, got.shape[-1]), want.reshape(-1, want.shape[-1])
    if swapped := _swapped(got, want, tolerance):
        names = ", ".join(f"{labels[a]} gets what is meant for {labels[b]}" for a, b in swapped)
        return _refused(f"{names}; {size}", "EXP-003")
    scaled = [fit for i in range(want.shape[1]) if (fit := _scaled(got[:, i], want[:, i], labels[i], contract, i))]
    if scaled:
        return _refused(f"{'; '.join(scaled)}; {size}", "EXP-002")
    spread = float(np.ptp(want)) or 1.0
    if gap < 0.05 * spread:
        return _refused(f"the numbers drifted: {size}", "EXP-005")
    return _refused(
        f"actions are another policy's, or the observations were not normalised as trained; {size}", "EXP-001"
    )


def _swapped(got: Array, want: Array, tolerance: float) -> list[tuple[int, int]]:
    """Pairs (place, meant for) of columns that are somewhere else."""
    off = [i for i in range(want.shape[1]) if _gap(got[:, i], want[:, i]) > tolerance]
    pairs = [(i, j) for i, j in itertools.permutations(off, 2) if _gap(got[:, i], want[:, j]) <= tolerance]
    return pairs if {i for i, _ in pairs} == set(off) else []


def _scaled(got: Array, want: Array, label: str, contract: Contract, i: int) -> str:
    """Say by how much an action is scaled or shifted, if that and its limits explain all of it."""
    low = contract.action.low[i] if contract.action.low else -np.inf
    high = contract.action.high[i] if contract.action.high else np.inf
    free = (got > low + 1e-6) & (got < high - 1e-6) & (want > low + 1e-6) & (want < high - 1e-6)
    if free.sum() < 3 or np.ptp(want[free]) < 1e-6:
        return ""
    matrix: Array = np.stack([want[free], np.ones(int(free.sum()))], axis=1)
    fit: Any = np.linalg.lstsq(matrix, got[free], rcond=None)[0]
    gain, offset = float(fit[0]), float(fit[1])
    rest = _gap(matrix @ fit, got[free])
    unchanged, stuck = abs(gain - 1) < 1e-3 and abs(offset) < 1e-3, abs(gain) < 1e-2
    if unchanged or stuck or rest > 1e-4 * max(1.0, float(np.ptp(want[free]))):
        return ""
    return f"{label} is {gain:.4g} times what it should be, plus {offset:.4g} {contract.action.unit}"


def _refused(what: str, fault: str) -> DataError:
    return DataError(what, where="golden vectors", attempt="export it again from its checkpoint", fault=fault)
