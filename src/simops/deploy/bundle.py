"""A trained policy as a folder that is provably what was trained: verified, compared and tested before it acts.

policy_1.onnx                the network for one row, everything inside
policy.onnx                  the same for any number of rows, if the bytes of a row do not depend on the others
contract.json                what it reads, remembers and writes, and how often
golden.*.npy                 what the trained network answered
checks.json                  how close the graphs must come to it
provenance.json              where it comes from
report.json                  what a variant cost and gained, if it is one
manifest.json                SHA-256 and size of all of it

"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from simops.core.contract import Contract, Difference
from simops.core.errors import DataError, SignalError, SimOpsError
from simops.core.protocols import Act, Memory
from simops.core.signal import Array
from simops.core.task import Task
from simops.deploy import golden, manifest
from simops.deploy.golden import Tested
from simops.deploy.graph import Graph, Network

REPLY = "next_"
"""An output that is to be remembered is named after its input."""


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Bundle:
    """A verified bundle, ready to act."""

    digest: str
    """SHA-256 over the manifest; figures measured on some machine are no part of it."""
    contract: Contract
    provenance: Mapping[str, Any]
    tolerance: float
    """How far from the golden vectors an action may lie."""
    tested: Tested
    """How far they lie on this machine."""
    golden: Mapping[str, Array] = field(repr=False)
    """What the trained network answered: `observation`, `action`, `after_<slot>`, (steps, rows, ...)."""
    sizes: Mapping[str, int]
    """Bytes of each file."""
    report: Mapping[str, Any] = field(default_factory=lambda: {})
    """What a variant cost and gained; empty for what was exported from training."""
    network: Network = field(repr=False)

    def start(self, task: Task, seeds: Array) -> Memory:
        """Empty memory; raises if the task's contract is another."""
        require(self.contract, Contract.of(task))
        return {slot.name: slot.zeros(len(seeds)) for slot in self.contract.memory}

    def act(self, observation: Array, memory: Memory) -> Act:
        """One action a row; the same bytes in any company."""
        contract = self.contract
        slots = contract.memory
        if not slots:
            [action] = self.network((observation,))
            return Act(action if contract.action.shape == action.shape[1:] else self._shaped(action), memory)
        action, *after = self.network((observation, *(memory[slot.name] for slot in slots)))
        return Act(self._shaped(action), {slot.name: rows for slot, rows in zip(slots, after, strict=True)})

    def _shaped(self, action: Array) -> Array:
        return action.reshape(len(action), *self.contract.action.shape)


def load(folder: Path | str, *, contract: Contract | None = None, control_dt_s: float | None = None) -> Bundle:
    """Verify, compare with the other side's `contract` and rate, test, and give the policy; or raise."""
    contents = manifest.read(folder)
    try:
        bundle = assemble(contents.files)
        if contract is not None:
            require(bundle.contract, contract)
        if control_dt_s is not None and control_dt_s != bundle.contract.control_dt_s:
            require_rate(bundle.contract, control_dt_s)
    except SimOpsError as error:
        error.where = f"{folder}: {error.where}" if error.where else str(folder)
        raise
    return bundle


def assemble(files: Mapping[str, bytes]) -> Bundle:
    """Make a policy of a bundle's files, tested against its golden vectors."""
    try:
        contract = Contract.parse(json.loads(files["contract.json"]))
        checks: dict[str, Any] = json.loads(files["checks.json"])
        provenance: dict[str, Any] = json.loads(files["provenance.json"])
        report: dict[str, Any] = json.loads(files.get(manifest.REPORT, b"{}"))
        tolerance = float(checks["tolerance"])
        network = Network(files)
        vectors = golden.read(files)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"this is no bundle: {type(error).__name__} {error}", fault="EXP-011") from error
    _require_border(network.single, contract, "policy_1.onnx", single=True)
    if network.batched is not None:
        _require_border(network.batched, contract, "policy.onnx", single=False)
    tested = golden.check(network, contract, vectors, tolerance)
    network.together = tested.together
    return Bundle(
        digest=manifest.digest(files),
        contract=contract,
        provenance=provenance,
        tolerance=tolerance,
        tested=tested,
        golden=vectors,
        sizes={name: len(data) for name, data in files.items()},
        report=report,
        network=network,
    )


def require(mine: Contract, theirs: Contract) -> None:
    """Raise with every difference by name if a policy under `mine` would misunderstand `theirs`."""
    found = mine.differences(theirs)
    if found:
        said = "; ".join(f"{d.what}: the policy has {d.mine or 'none'}, here it is {d.theirs or 'none'}" for d in found)
        raise SignalError(
            f"this policy was trained for another contract: {said}",
            attempt="the bundle that was trained for it, or simops bundle show",
            fault=_fault(found),
        )


def require_rate(contract: Contract, control_dt_s: float) -> None:
    """Raise if a policy would be asked at another rate than it was trained at."""
    if control_dt_s != contract.control_dt_s:
        raise SignalError(
            f"trained to act every {contract.control_dt_s:g} s, asked every {control_dt_s:g} s",
            attempt=f"control_dt_s = {contract.control_dt_s:g}",
            fault="EXP-009",
        )


def _fault(found: tuple[Difference, ...]) -> str:
    """The catalogue's code of the gravest difference: names before everything else."""
    kinds = {difference.what.rpartition(".")[2] for difference in found}
    if kinds & {"robot", "task", "observation", "labels", "name"}:
        return "EXP-003"
    by_kind = {"frame": "EXP-004", "shape": "EXP-008", "unit": "EXP-002", "control_dt_s": "EXP-009"}
    return next((code for kind, code in by_kind.items() if kind in kinds), "EXP-003")


def _require_border(graph: Graph, contract: Contract, name: str, *, single: bool) -> None:
    """Raise if a graph's inputs and outputs are not those of the contract, memory included."""
    inputs = {"observation": (contract.observation.size,), **{s.name: s.shape for s in contract.memory}}
    outputs = {"action": (contract.action.size,), **{f"{REPLY}{s.name}": s.shape for s in contract.memory}}
    for found, want in ((graph.inputs, inputs), (graph.outputs, outputs)):
        if list(found) != list(want):
            raise DataError(
                f"the graph has {', '.join(found)} where the contract has {', '.join(want)}",
                where=name,
                fault="EXP-007" if contract.memory else "EXP-003",
            )
        for key, shape in found.items():
            inner = shape[1:] == want[key] and (shape[0] == 1 if single else isinstance(shape[0], str))
            if not inner:
                raise DataError(f"{key} has shape {shape}, want (rows, *{want[key]})", where=name, fault="EXP-003")
    if not graph.floats:
        raise DataError("inputs and outputs must be float32", where=name, fault="EXP-005")
