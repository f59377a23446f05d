# pyright: basic
# matplotlib's stubs are partial; what is drawn here is looked at, and its numbers are tested.
"""A picture of a dataset: what succeeded where, how long it took, what it was worth."""

from __future__ import annotations

import io
from pathlib import Path
from typing import NamedTuple

import numpy as np

from simops.core.errors import ExtraError
from simops.core.signal import Array
from simops.data.files import publish
from simops.data.store import Dataset

INK, GOOD, SHADE = "#22303c", "#2a7f62", "#d9e4dd"
MOST_PARAMS = 6


class Bins(NamedTuple):
    """Success rate over the range of one param, in bins of equal numbers of episodes."""

    centre: Array
    rate: Array
    low: Array
    """Ends of 95 % Wilson intervals."""
    high: Array


def binned(values: Array, succeeded: Array, *, bins: int = 10) -> Bins:
    """Success rate by deciles of a param."""
    order = np.argsort(values, kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    n = np.array([len(part) for part in parts])
    rate = np.array([succeeded[part].mean() for part in parts])
    z = 1.96
    middle = (rate + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(rate * (1 - rate) / n + z**2 / (4 * n**2))
    centre = np.array([np.median(values[part]) for part in parts])
    return Bins(centre, rate, middle - half, middle + half)


def chart(path: Path, out: Path) -> Path:
    """Draw the episodes of a dataset into a PNG."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ExtraError("charts need matplotlib", attempt="pip install 'simops[render]'") from error
    dataset = Dataset.open(path)
    table = dataset.episodes()
    succeeded = np.array([outcome == "success" for outcome in table["outcome"]])
    varied = [name for name in table if name.startswith("param_") and np.ptp(table[name]) > 0][:MOST_PARAMS]
    panels = len(varied) + 2
    columns = min(4, panels)
    rows = -(-panels // columns)
    figure = Figure(figsize=(3.4 * columns, 2.6 * rows), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    axes = np.atleast_1d(figure.subplots(rows, columns)).ravel()
    for axis, name in zip(axes, varied, strict=False):
        _rate(axis, binned(table[name], succeeded), name.removeprefix("param_"), dataset)
    _spread(axes[len(varied)], table["steps"] * dataset.header.control_dt_s, "length [s]")
    _spread(axes[len(varied) + 1], table["reward"], "reward of an episode")
    for axis in axes[panels:]:
        axis.set_visible(False)
    task = dataset.header.provenance.task
    figure.suptitle(f"{task}: {len(succeeded):,} episodes, {succeeded.mean():.1%} succeed", color=INK)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=110)
    publish(out, drawn.getbuffer())
    return out


def _rate(axis, bins: Bins, name: str, dataset: Dataset) -> None:  # noqa: ANN001 (an untyped matplotlib axis)
    axis.fill_between(bins.centre, bins.low, bins.high, color=SHADE, linewidth=0)
    axis.plot(bins.centre, bins.rate, color=GOOD, marker="o", markersize=3)
    axis.set_ylim(min(0.9, float(bins.low.min())) - 0.02, 1.01)
    unit = dataset.header.params.get(name, "")
    axis.set_xlabel(f"{name} [{unit}]" if unit else name, fontsize=8, color=INK)
    axis.set_ylabel("success", fontsize=8, color=INK)
    axis.tick_params(labelsize=7)


def _spread(axis, values: Array, label: str) -> None:  # noqa: ANN001 (an untyped matplotlib axis)
    axis.hist(values, bins=40, color=GOOD)
    axis.set_xlabel(label, fontsize=8, color=INK)
    axis.set_ylabel("episodes", fontsize=8, color=INK)
    axis.tick_params(labelsize=7)
