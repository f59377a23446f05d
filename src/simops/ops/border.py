"""Two contracts side by side, before anything runs: what differs, and what kind of mistake that looks like."""

from __future__ import annotations

import math

from simops.core.contract import Contract
from simops.core.signal import Signal
from simops.ops.mismatch import Kind, Mismatch

QUATERNION = ["w", "x", "y", "z"]


def compare(policy: Contract, task: Contract) -> list[Mismatch]:
    """Everything in which the policy would misunderstand the task, by name."""
    found: list[Mismatch] = []
    if policy.robot != task.robot:
        found.append(
            _said("robot", "robot", f"trained on {policy.robot or 'no robot'}, here is {task.robot or 'none'}")
        )
    if policy.task != task.task:
        found.append(_said("task", "task", f"trained for {policy.task}, asked for {task.task}"))
    if policy.control_dt_s != task.control_dt_s:
        found.append(
            _said(
                "rate",
                "control_dt_s",
                f"trained to act every {policy.control_dt_s:g} s ({1 / policy.control_dt_s:g} Hz), "
                f"asked every {task.control_dt_s:g} s ({1 / task.control_dt_s:g} Hz)",
                f"control_dt_s = {policy.control_dt_s:g}",
            )
        )
    found += _signals(policy.observation.names, task.observation.names)
    mine = {signal.name: signal for signal in policy.observation.signals}
    for theirs in task.observation.signals:
        if theirs.name in mine:
            found += _signal(mine[theirs.name], theirs)
    if policy.action.name != task.action.name:
        found.append(_said("names", "action", f"the policy writes {policy.action.name}, here is {task.action.name}"))
    return found + _signal(policy.action, task.action)


def _signals(mine: tuple[str, ...], theirs: tuple[str, ...]) -> list[Mismatch]:
    if mine == theirs:
        return []
    if sorted(mine) == sorted(theirs):
        moved = tuple(name for name, other in zip(mine, theirs, strict=True) if name != other)
        what = f"observation signals are in another order: yours {', '.join(mine)}; theirs {', '.join(theirs)}"
        return [Mismatch("signals", "contract", moved, what)]
    lacks = tuple(name for name in mine if name not in theirs)
    more = tuple(name for name in theirs if name not in mine)
    what = f"the policy wants {', '.join(lacks) or 'nothing'} which is not there"
    what += f", and does not know {', '.join(more)}" if more else ""
    return [Mismatch("signals", "contract", (*lacks, *more), what, "take the bundle that was trained on these signals")]


def _signal(mine: Signal, theirs: Signal) -> list[Mismatch]:
    found: list[Mismatch] = []
    name = theirs.name
    if mine.shape != theirs.shape:
        kind: Kind = "history" if mine.shape[1:] == theirs.shape[1:] and len(mine.shape) > 1 else "shape"
        found.append(_said(kind, name, f"{name} has shape {mine.shape} in the policy, {theirs.shape} here"))
    if mine.unit != theirs.unit:
        factor = _factor(mine.unit, theirs.unit)
        times = f": a factor of {factor:.6g}" if factor else ""
        found.append(_said("units", name, f"{name} is in {mine.unit or '1'}, here in {theirs.unit or '1'}{times}"))
    if mine.frame != theirs.frame:
        found.append(_said("frame", name, f"{name} is in frame {mine.frame or 'none'}, here {theirs.frame or 'none'}"))
    if mine.dtype != theirs.dtype:
        found.append(_said("shape", name, f"{name} is {mine.dtype}, here {theirs.dtype}"))
    if mine.size != theirs.size:
        return found
    return found + _labels(mine, theirs) + _limits(mine, theirs)


def _labels(mine: Signal, theirs: Signal) -> list[Mismatch]:
    yours, other = mine.labels, theirs.labels
    if yours == other:
        return []
    moved = tuple(a for a, b in zip(yours, other, strict=False) if a != b) or (theirs.name,)
    said = f"yours {', '.join(yours) or 'unnamed'}; theirs {', '.join(other) or 'unnamed'}"
    if sorted(yours) != sorted(other):
        return [Mismatch("names", "contract", moved, f"{theirs.name} has other elements: {said}")]
    kind: Kind = "quaternion" if sorted(yours) == QUATERNION else "permutation"
    order = [yours.index(name) for name in other]
    fix = f"{theirs.name}[..., {order}] turns your order into theirs"
    return [Mismatch(kind, "contract", moved, f"the order of {theirs.name} is a permutation: {said}", fix)]


def _limits(mine: Signal, theirs: Signal) -> list[Mismatch]:
    """Limits element by element, by name where both have the same names."""
    if mine.low == theirs.low and mine.high == theirs.high:
        return []
    tags = theirs.labels or tuple(map(str, range(theirs.size)))
    order = range(theirs.size)
    if sorted(mine.labels) == sorted(theirs.labels) and mine.labels:
        order = [mine.labels.index(tag) for tag in theirs.labels]
    off: list[str] = []
    said: list[str] = []
    for place, tag in zip(order, tags, strict=True):
        yours = _range(mine, place)
        here = _range(theirs, tags.index(tag))
        if yours != here:
            off.append(tag)
            said.append(f"{tag} {yours[0]:g} to {yours[1]:g}, here {here[0]:g} to {here[1]:g}")
    if not off:
        return []
    return [Mismatch("limits", "contract", tuple(off), f"limits of {theirs.name} differ: {'; '.join(said)}")]


def _range(signal: Signal, place: int) -> tuple[float, float]:
    low = signal.low[place] if signal.low else -math.inf
    return low, signal.high[place] if signal.high else math.inf


def _factor(mine: str, theirs: str) -> float:
    """How many of mine are one of theirs, for angles; 0 where that is not known."""
    if mine.replace("deg", "rad") != theirs.replace("deg", "rad"):
        return 0.0
    return math.pi / 180 if "rad" in mine else 180 / math.pi


def _said(kind: Kind, name: str, what: str, fix: str = "") -> Mismatch:
    return Mismatch(kind, "contract", (name,), what, fix)
