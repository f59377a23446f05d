"""Two bundles side by side: contract, tensors, golden answers, provenance."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from simops.core.contract import Difference
from simops.deploy.bundle import Bundle, load
from simops.deploy.golden import answered
from simops.deploy.manifest import read


@final
@dataclass(frozen=True)
class Beside:
    """What two bundles differ in."""

    one: Bundle
    other: Bundle
    contract: tuple[Difference, ...]
    tensors: dict[str, float] | None
    """Largest difference of each weight matrix that both have; None where onnx is not installed."""
    answers: float | None
    """Largest difference of an action along the golden sequences of the first; None if their contracts do not fit."""
    provenance: tuple[Difference, ...]

    @property
    def same(self) -> bool:
        """Whether they are one and the same policy."""
        return self.one.digest == self.other.digest


def beside(one: Path, other: Path) -> Beside:
    """Verify and compare two bundles."""
    a, b = load(one), load(other)
    contract = a.contract.differences(b.contract)
    memory = tuple(f"{slot.name} {slot.shape}" for slot in a.contract.memory)
    theirs = tuple(f"{slot.name} {slot.shape}" for slot in b.contract.memory)
    if memory != theirs:
        contract = (*contract, Difference("memory", ", ".join(memory), ", ".join(theirs)))
    return Beside(a, b, contract, _tensors(one, other), _answers(a, b), _told(a, b))


def _tensors(one: Path, other: Path) -> dict[str, float] | None:
    if importlib.util.find_spec("onnx") is None or importlib.util.find_spec("torch") is None:
        return None
    from simops.learn.quantise import gaps

    found = gaps(read(one).files["policy_1.onnx"], read(other).files["policy_1.onnx"])
    return {name: gap.worst for name, gap in found.items()}


def _answers(a: Bundle, b: Bundle) -> float | None:
    sequence = a.golden["observation"]
    if a.contract.observation.size != b.contract.observation.size or a.contract.action.size != b.contract.action.size:
        return None
    ours, theirs = (answered(each.network, each.contract, sequence)["action"] for each in (a, b))
    return float(np.abs(ours.astype(np.float64) - theirs).max())


def _told(a: Bundle, b: Bundle) -> tuple[Difference, ...]:
    names = sorted({*a.provenance, *b.provenance})
    return tuple(
        Difference(name, _said(a.provenance.get(name)), _said(b.provenance.get(name)))
        for name in names
        if a.provenance.get(name) != b.provenance.get(name)
    )


def _said(value: Any) -> str:  # noqa: ANN401 - whatever JSON holds
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, sort_keys=True)
