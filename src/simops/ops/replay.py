"""Ask a policy again what the training process recorded, and name the fault that explains a different answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from simops.core.contract import Contract
from simops.core.policy import centre_and_scale
from simops.core.signal import Array, Schema
from simops.core.task import Task
from simops.ops.explain import links, name
from simops.ops.mismatch import Mismatch

Network: TypeAlias = Callable[[Sequence[Array]], Sequence[Array]]
"""Observation and memory of some rows to action and memory."""
LIMIT = 10.0
"""Spreads at which a normaliser cuts off."""
LIKELY = 0.5
"""A fault whose undoing leaves less than this share of the error is taken for the cause."""


class Scale(NamedTuple):
    """Mean and spread of every observation, (observation size,) each."""

    mean: Array
    std: Array


def replay(network: Network, contract: Contract, observation: Array) -> dict[str, Array]:
    """Actions and what is remembered after each step, (steps, rows, ...), from an empty memory."""
    names = ("action", *(f"after_{slot.name}" for slot in contract.memory))
    memory: list[Array] = [slot.zeros(observation.shape[1]) for slot in contract.memory]
    found: list[list[Array]] = []
    for rows in observation:
        action, *memory = network([rows, *memory])
        found.append([action, *memory])
    return {key: np.stack([step[i] for step in found]) for i, key in enumerate(names)}


def diagnose(
    network: Network,
    contract: Contract,
    golden: Mapping[str, Array],
    task: Task,
    *,
    tolerance: float = 1e-5,
    scale: Scale | None = None,
) -> list[Mismatch]:
    """Name what lies between the network that was trained and the one at hand; nothing when they answer alike.

    Args:
        network: What is to be judged.
        contract: Its own.
        golden: `observation`, `action` and `after_<slot>`, (steps, rows, ...), as training recorded them.
        task: What gives the action its centre and scale.
        tolerance: How far answers may be apart.
        scale: The normaliser's numbers; those of the recorded observations when left out.
    """
    got = replay(network, contract, golden["observation"])
    gaps = {key: _gap(got[key], golden[key]) for key in got}
    sizes = {key: max(1.0, float(np.abs(golden[key]).max(initial=0.0))) for key in got}
    if gaps["action"] <= tolerance and all(gap <= tolerance * sizes[key] for key, gap in gaps.items()):
        return []
    said = f"the largest difference to what training recorded is {gaps['action']:.3g}"
    found = _memory(network, contract, golden, got, tolerance)
    if not found:
        found = _actions(task, got["action"], golden["action"], tolerance)
    if not found:
        found = _observations(network, contract, golden, gaps["action"], scale)
    if not found:
        what = "the answers are another policy's, or those of another number format"
        found = [Mismatch("answers", "golden", ("action",), what)]
    return [Mismatch(m.kind, m.level, m.where, f"{m.what}; {said}", m.fix) for m in found]


def _memory(
    network: Network, contract: Contract, golden: Mapping[str, Array], got: Mapping[str, Array], tolerance: float
) -> list[Mismatch]:
    """What is remembered in the wrong order, or not at all."""
    for slot in contract.memory:
        after, want = got[f"after_{slot.name}"], golden[f"after_{slot.name}"]
        if len(slot.shape) < 2 or slot.shape[0] < 2:
            continue
        if _gap(after, want) > tolerance and _gap(after[:, :, ::-1], want) <= tolerance:
            return [Mismatch("history", "golden", (slot.name,), f"{slot.name} is kept newest first")]
    if not contract.memory or len(golden["action"]) < 2:
        return []
    names = [slot.name for slot in contract.memory]
    told = _told(network, golden, names, flip=False)
    action = golden["action"][1:]
    blank = np.stack(
        [network([rows, *(s.zeros(len(rows)) for s in contract.memory)])[0] for rows in golden["observation"]]
    )
    lost = _gap(blank, got["action"]) <= tolerance or _gap(told, action) <= tolerance
    if lost and _gap(got["action"][:1], golden["action"][:1]) <= tolerance:
        return [Mismatch("memory", "golden", tuple(names), "the first answer is right and later ones are not")]
    windows = [slot.name for slot in contract.memory if len(slot.shape) > 1 and slot.shape[0] > 1]
    if (
        windows
        and _gap(told, action) > tolerance
        and _gap(_told(network, golden, names, flip=True), action) <= tolerance
    ):
        return [Mismatch("history", "golden", tuple(windows), f"{', '.join(windows)} is read newest first")]
    return []


def _told(network: Network, golden: Mapping[str, Array], names: Sequence[str], *, flip: bool) -> Array:
    """Answers from the second step on when memory is what training remembered, not what was handed back."""
    found: list[Array] = []
    for step in range(1, len(golden["action"])):
        memory = [golden[f"after_{slot}"][step - 1] for slot in names]
        if flip:
            memory = [np.ascontiguousarray(rows[:, ::-1]) if rows.ndim > 2 else rows for rows in memory]
        found.append(network([golden["observation"][step], *memory])[0])
    return np.stack(found)


def _actions(task: Task, got: Array, want: Array, tolerance: float) -> list[Mismatch]:
    """What was done to the actions: scaled once too often or once too little, or bent one by one."""
    rows, size = want.reshape(-1, task.action.size).astype(np.float64), task.action.size
    seen = got.reshape(-1, size).astype(np.float64)
    centre, scale = centre_and_scale(task)
    slack = max(tolerance * 10, 1e-4 * float(np.abs(scale).max()))
    names = (task.action.name,)
    if _gap(task.action.clip(centre + scale * seen), rows) <= slack:
        what = f"{task.action.name} is the network's raw output: centre and scale are missing"
        return [Mismatch("action_scale_missing", "golden", names, what)]
    if _gap(seen, task.action.clip(centre + scale * rows)) <= slack or _gap(seen, centre + scale * rows) <= slack:
        what = f"{task.action.name} went through centre and scale twice"
        return [Mismatch("action_scale_doubled", "golden", names, what)]
    low = np.array(task.action.low or (-np.inf,) * size) + slack
    high = np.array(task.action.high or (np.inf,) * size) - slack
    masked = np.where((rows > low) & (rows < high), rows, np.nan)
    found = links(masked, np.where((seen > low) & (seen < high), seen, np.nan))
    if all(link.straight for link in found) or any(link.source < 0 for link in found):
        return []
    return name(found, Schema((task.action,)), "golden", want=masked, got=seen)


def _observations(
    network: Network, contract: Contract, golden: Mapping[str, Array], gap: float, scale: Scale | None
) -> list[Mismatch]:
    """Whether normalising once more, or once less, brings the answers back."""
    seen = golden["observation"].astype(np.float64)
    rows = seen.reshape(-1, seen.shape[-1])
    mean, std = scale or Scale(rows.mean(axis=0), np.maximum(rows.std(axis=0), 1e-2))
    once_more = np.clip((seen - mean) / std, -LIMIT, LIMIT)
    once_less = seen * std + mean
    before = _rms(replay(network, contract, golden["observation"])["action"], golden["action"])
    after = {
        kind: _rms(replay(network, contract, put.astype(np.float32))["action"], golden["action"])
        for kind, put in (("normaliser_missing", once_more), ("normaliser_doubled", once_less))
    }
    missing, doubled = after["normaliser_missing"], after["normaliser_doubled"]
    if min(missing, doubled) > LIKELY * before or gap == 0.0:
        return []
    if missing <= doubled:
        what = "the graph does not normalise what it sees: normalised by hand, its answers come back"
        return [Mismatch("normaliser_missing", "golden", contract.observation.names, what)]
    what = "the graph normalises what it sees twice: undone once by hand, its answers come back"
    fix = "export again with the normaliser inside the graph once"
    return [Mismatch("normaliser_doubled", "golden", contract.observation.names, what, fix)]


def _gap(a: Array, b: Array) -> float:
    return float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max(initial=0.0))


def _rms(a: Array, b: Array) -> float:
    return float(np.sqrt(np.mean((a.astype(np.float64) - b.astype(np.float64)) ** 2)))
