# pyright: basic
# matplotlib's stubs are partial; what is drawn here is looked at.
"""A lesson as one picture: error over horizon, what is believed of each param, a recording beside its prediction."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np

from simops.core.errors import ExtraError
from simops.data.files import publish
from simops.ops.study import Studied, Tried

INK, GOOD, SHADE, PALE = "#22303c", "#2a7f62", "#d9e4dd", "#b0563b"
MOST_POINTS = 1500


def chart(studied: Studied, out: Path) -> Path:
    """Draw a lesson into a PNG."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ExtraError("charts need matplotlib", attempt="pip install 'simops[render]'") from error
    best = next(one for one in studied.tried if one.candidate.name == studied.best.name)
    columns = len(best.shown[0].names) if best.shown else 0
    figure = Figure(figsize=(11, 3.2 + 1.9 * min(columns, 4)), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(1 + min(columns, 4), 2, height_ratios=[1.6, *[1.0] * min(columns, 4)])
    _horizon(figure.add_subplot(grid[0, 0]), studied.tried)
    _posterior(figure.add_subplot(grid[0, 1]), best)
    for column in range(min(columns, 4)):
        _overlay(figure.add_subplot(grid[1 + column, :]), best, studied.tried[0], column)
    name = studied.order.material.task.name
    figure.suptitle(f"{name}: {studied.best.name}, on recordings held out", color=INK)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=110)
    publish(out, drawn.getbuffer())
    return out


def _horizon(axis, tried: tuple[Tried, ...]) -> None:  # noqa: ANN001 (an untyped matplotlib axis)
    for one, colour in zip(tried, (PALE, GOOD, INK, "#4a6fa5"), strict=False):
        if one.ahead is not None:
            axis.plot(*one.ahead, color=colour, label=one.candidate.name)
    axis.set_xlabel("ahead [s]", fontsize=8)
    axis.set_ylabel("share of motion not explained", fontsize=8)
    axis.set_yscale("log")
    axis.legend(fontsize=8, frameon=False)
    axis.tick_params(labelsize=7)


def _posterior(axis, one: Tried) -> None:  # noqa: ANN001 (an untyped matplotlib axis)
    for row, told in enumerate(one.candidate.told):
        unit = told.before or 1.0
        at, reach = (told.mean - told.nominal) / unit, 1.645 * told.spread / unit
        axis.errorbar(at, row, xerr=reach, fmt="o", markersize=4, color=GOOD if told.trusted else PALE)
    axis.axvline(0.0, color=SHADE)
    axis.set_yticks(range(len(one.candidate.told)), [told.name for told in one.candidate.told], fontsize=7)
    axis.set_xlabel("learned, in spreads of what was thought before", fontsize=8)
    axis.tick_params(axis="x", labelsize=7)


def _overlay(axis, best: Tried, nominal: Tried, column: int) -> None:  # noqa: ANN001 (an untyped matplotlib axis)
    one = best.shown[0]
    rows = np.unique(np.linspace(0, len(one.time_s) - 1, MOST_POINTS).astype(int))
    time_s = one.time_s[rows]
    if one.low is not None and one.high is not None:
        axis.fill_between(time_s, one.low[rows, column], one.high[rows, column], color=SHADE, linewidth=0)
    if nominal.shown and len(nominal.shown[0].time_s) == len(one.time_s):
        axis.plot(time_s, nominal.shown[0].expected[rows, column], color=PALE, linewidth=0.7, label="as it came")
    axis.plot(time_s, one.recorded[rows, column], color=INK, linewidth=1.2, label="recorded")
    axis.plot(time_s, one.expected[rows, column], color=GOOD, linewidth=1.0, linestyle="--", label="predicted")
    span = float(np.ptp(one.recorded[rows, column])) or 1.0
    middle = float(one.recorded[rows, column].mean())
    axis.set_ylim(middle - 0.9 * span, middle + 0.9 * span)
    axis.set_ylabel(f"{one.names[column]}\n[{one.units[column]}]", fontsize=8)
    axis.tick_params(labelsize=7)
    if column == 0:
        axis.legend(fontsize=7, frameon=False, ncols=3, loc="upper right")
