"""How far two engines are apart on the same scenarios: success, path, force, timing, where it ends; with intervals.

Intervals are those of the mean over scenarios, by resampling them: 95 % of the resampled means lie inside. That of the
success rate is a confidence sequence, which is wide on few scenarios even where all of them agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from simops.core import chance
from simops.core.scenario import CATEGORIES
from simops.core.signal import Array
from simops.core.task import Body, Joint, Sensor, Site, Task
from simops.core.trajectory import Trajectory
from simops.core.verdict import Finding, Interval
from simops.gate.compare import Pairs, interval

_RESAMPLES = 1000
_ALPHA = 0.025
"""Of each end."""


class Target(NamedTuple):
    """A figure of the gap, and what it should stay within."""

    name: str
    unit: str
    bound: float
    above: bool = False
    """Whether it should be above the bound instead of below."""


TARGETS = (
    Target("success rate", "", 0.05),
    Target("path", "m", 0.010),
    Target("path of joints", "rad", 0.010),
    Target("force correlation", "", 0.95, above=True),
    Target("timing", "", 0.03),
    Target("final position", "m", 0.005),
    Target("final joint position", "rad", 0.005),
)
"""Published aims for a validated simulator; angles as millimetres at the end of a metre."""


@final
@dataclass(frozen=True)
class Apart:
    """One scenario in both engines; `None` for what the task's state does not tell."""

    category: str
    figures: tuple[float | None, ...]
    """One for each of `TARGETS`."""


def apart(task: Task, category: str, trained: Trajectory, validated: Trajectory) -> Apart:
    """Compare one scenario's two episodes, step by step as long as both last."""
    places = [name for name, s in task.sources.items() if isinstance(s, Body | Site) and s.what == "position"]
    joints = [name for name, s in task.sources.items() if isinstance(s, Joint) and s.what == "position"]
    longest = max(1, len(trained))
    success = float(trained.outcome == "success") - float(validated.outcome == "success")
    return Apart(
        category,
        (
            success,
            _path(places, trained, validated),
            _path(joints, trained, validated),
            _force(task, trained, validated),
            abs(len(validated) - len(trained)) / longest,
            _final(places, trained, validated),
            _final(joints, trained, validated),
        ),
    )


def gap(rows: Sequence[Apart]) -> tuple[Finding, ...]:
    """Means with their intervals, category by category, and what the aim is."""
    found: list[Finding] = []
    for category in CATEGORIES:
        some = [row for row in rows if row.category == category]
        for i, target in enumerate(TARGETS):
            values = np.array([v for row in some if (v := row.figures[i]) is not None and np.isfinite(v)], float)
            if values.size:
                found.append(_finding(target, category, values))
    return tuple(found)


def _finding(target: Target, category: str, values: Array) -> Finding:
    value = float(values.mean())
    if target.name == "success rate":  # what counts is how far they are apart, whichever is higher
        better, worse = int((values > 0).sum()), int((values < 0).sum())
        ends = interval(Pairs(better, len(values) - better - worse, worse), _ALPHA)
        nearest = 0.0 if ends.low <= 0.0 <= ends.high else min(abs(ends.low), abs(ends.high))
        furthest = max(abs(ends.low), abs(ends.high))
    else:
        ends = _mean_interval(values)
        nearest, furthest = ends
    if target.above:
        status = "pass" if nearest >= target.bound else "fail" if furthest < target.bound else "marginal"
    else:
        status = "pass" if furthest <= target.bound else "fail" if nearest > target.bound else "marginal"
    return Finding(
        check=f"gap of {target.name}{f' [{target.unit}]' if target.unit else ''}",
        category=category,
        value=value,
        bound=target.bound,
        interval=ends,
        count=len(values),
        status=status,
    )


def _mean_interval(values: Array) -> Interval:
    picks = chance.uniform(np.arange(_RESAMPLES, dtype=np.uint64), "gap/resample", (len(values),))
    means = values[np.minimum((picks * len(values)).astype(int), len(values) - 1)].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return Interval(float(low), float(high))


def _rows(names: Sequence[str], trajectory: Trajectory) -> Array:
    """(rows, signals, scalars of one), without the rows that say nothing."""
    found = np.concatenate([trajectory[name].astype(float).reshape(len(trajectory) + 1, -1) for name in names], axis=1)
    return found[np.isfinite(found).all(axis=1)]


def _path(names: Sequence[str], one: Trajectory, other: Trajectory) -> float | None:
    """Root mean square of the distance, over the steps that both have."""
    if not names:
        return None
    a, b = _rows(names, one), _rows(names, other)
    both = min(len(a), len(b))
    return float(np.sqrt(((a[:both] - b[:both]) ** 2).sum(axis=1).mean() / len(names))) if both else None


def _final(names: Sequence[str], one: Trajectory, other: Trajectory) -> float | None:
    """How far apart the two end."""
    if not names:
        return None
    a, b = _rows(names, one), _rows(names, other)
    return float(np.sqrt(((a[-1] - b[-1]) ** 2).sum() / len(names))) if len(a) and len(b) else None


def _force(task: Task, one: Trajectory, other: Trajectory) -> float | None:
    """Correlation of the recorded forces over the steps that both have; of the torques asked for where none is read."""
    names = [
        name
        for name, source in task.sources.items()
        if (isinstance(source, Joint) and source.what == "torque")
        or (isinstance(source, Sensor) and task.state_schema[name].unit in {"N", "N m"})
    ]
    if not names and task.action.unit in {"N", "N m"}:
        names = ["executed"]
    if not names:
        return None
    a, b = (np.concatenate([t[name].reshape(len(t) + 1, -1) for name in names], axis=1) for t in (one, other))
    both = min(len(a), len(b)) - 1
    x, y = a[:both].astype(float), b[:both].astype(float)
    x, y = (x - x.mean(axis=0)).ravel(), (y - y.mean(axis=0)).ravel()
    size = float(np.sqrt((x**2).sum() * (y**2).sum())) if both > 1 else 0.0
    return float((x * y).sum()) / size if size > 0 and np.isfinite(size) else None
