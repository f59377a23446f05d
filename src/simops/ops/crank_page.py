# pyright: basic
# matplotlib's stubs are partial; what is drawn here is looked at, and its numbers are tested.
"""What a crank came to: one picture, and one page that needs nothing else."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from simops.core.errors import ExtraError, SimOpsError
from simops.core.task import Task
from simops.data.files import publish
from simops.data.store import Dataset
from simops.gate import rate
from simops.ops import crank_story, kept
from simops.ops.crank import Run
from simops.ops.page import Page
from simops.ops.stages import LOG
from simops.ops.turn import Turn, share
from simops.sim.film import sheet
from simops.sim.render import FAST, Camera

INK, GOOD, OTHER = "#22303c", "#2a7f62", "#c4573a"


def draw(turns: Sequence[Turn], out: Path) -> Path:
    """Sealed success, and prediction error, turn by turn, as a PNG."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ExtraError("a picture needs matplotlib", attempt="pip install 'simops[render]'") from error
    figure = Figure(figsize=(9, 3.6), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    tried = [one for one in turns if one.tried is not None]
    if tried:
        at, value, low, high = (
            np.array(row) for row in zip(*[(one.number, *_rate(one)) for one in tried], strict=True)
        )
        left.errorbar(at, value, [value - low, high - value], fmt="o-", color=GOOD, capsize=4, label="candidate")
    live = [(one.number, one.live_success) for one in turns if one.live_success is not None]
    if live:
        left.step(*zip(*live, strict=True), where="post", color=INK, alpha=0.4, label="live")
    left.set(ylim=(-0.03, 1.03), ylabel="sealed success", xlabel="turn", xticks=[one.number for one in turns])
    left.legend(loc="lower right", frameon=False)
    known = _lessons(turns)
    if known:
        at = [number for number, _ in known]
        before, after = ([said[key] for _, said in known] for key in ("before", "after"))
        right.vlines(at, after, before, color=INK, alpha=0.3)
        right.plot(at, before, "o", color=OTHER, label="before")
        right.plot(at, after, "o", color=GOOD, label="after learning")
        right.set(yscale="log")
        right.legend(frameon=False)
    right.set(ylabel="held-out prediction error", xlabel="turn", xticks=[one.number for one in turns])
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=120)
    publish(out, drawn.getbuffer())
    return out


def report(run: Run) -> Path:
    """The page of a run, beside its steps."""
    order = run.order
    turns = kept.told(order.out)
    page = Page(f"Crank: {order.loaded.value.scene.task.name}", lead=f"{len(turns)} turns; ended: {run.ended}.")
    crank_story.fill(page, turns)
    shown = list(_sheets(order.loaded.value.task, turns))
    if shown:
        page.section("Trials that failed", "The first of each turn's candidate, from left to right as time goes by.")
        for data, caption in shown:
            page.image(data, caption)
    return page.write(order.out / "report.html")


def _sheets(task: Task, turns: Sequence[kept.Told]) -> Iterator[tuple[bytes, str]]:
    """A strip of pictures for a turn that had failures, where this machine can draw."""
    for turn in turns:
        trials = [one for one in turn.steps if one.stage == "trials" and one.inputs["policy"] == turn.bundle]
        failed = (
            (one, int(number), str(outcome))
            for one in trials
            for number, outcome in zip(one.said["numbers"], one.said["outcomes"], strict=True)
            if outcome != "success"
        )
        first = next(failed, None)
        if first is None:
            continue
        step, number, outcome = first
        with tempfile.TemporaryDirectory(prefix="simops-") as folder:
            path = Path(folder) / "sheet.png"
            try:
                one = Dataset.open(step.folder / LOG).trajectory(number)
                sheet(one, task, None, path, camera=Camera("", 200, 150), look=FAST)
                yield path.read_bytes(), f"turn {turn.number}, trial {number}: {outcome}"
            except (SimOpsError, OSError, RuntimeError):  # no way to draw here, or not this task
                continue


def _lessons(turns: Sequence[Turn]) -> list[tuple[int, Mapping[str, Any]]]:
    """What the simulator learned, and in which turn."""
    return [(one.number, one.learned) for one in turns if one.learned is not None]


def _rate(one: Turn) -> tuple[float, float, float]:
    said = one.tried or {"outcomes": []}
    good = said["outcomes"].count("success")
    within = rate.interval(good, len(said["outcomes"]) - good, 0.05)
    return share(said), within.low, within.high
