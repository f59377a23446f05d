# pyright: basic
# matplotlib's stubs are partial; what is drawn here is looked at, and its numbers are tested.
"""How much of a belief was tried by datasets, suites and searches; a picture of where nothing was, and what is missing.

What is missing is written as a suite, up to a budget, so that running it closes the holes.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from simops.core import chance, scenario
from simops.core.belief import Belief, parse
from simops.core.errors import DataError, ExtraError, SignalError, SpecError
from simops.core.scenario import Scenario
from simops.core.signal import Array
from simops.data.files import make_folder, publish
from simops.data.store import Dataset
from simops.gate.coverage import Coverage, inside, weakest
from simops.gate.space import Axis, believed
from simops.gate.suite import Suite
from simops.ops import falsify, suite_text
from simops.ops.validate import CANDIDATE
from simops.spec.run import load_run
from simops.spec.search import load_falsify

REALM = "coverage"
SUITE = "missing.json"
SHOWN = 7
"""Axes in the picture: those of the least covered pairs first."""
INK, HOLE = "#22303c", "#c2571a"


@final
@dataclass(frozen=True, eq=False)
class Tried:
    """What was tried of a belief."""

    task: str
    axes: tuple[Axis, ...]
    coverage: Coverage
    outside: int
    """Episodes at points outside of what is believed; they cover nothing."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the axes."""
        return tuple(axis.name for axis in self.axes)

    def point(self, shares: Array) -> dict[str, float]:
        """Params at a place in the cube."""
        return {axis.name: axis.at(share) for axis, share in zip(self.axes, shares.tolist(), strict=True)}

    def missing(self, budget: int, seed: int = 0) -> tuple[Scenario, ...]:
        """Scenarios that try what was not tried, at most so many."""
        points = self.coverage.closing(budget)
        seeds = chance.seeds(seed, np.arange(len(points)), realm=REALM)
        return tuple(
            Scenario(
                name=f"untried {i}",
                category="edge",
                task=self.task,
                params=self.point(point),
                seed=int(seeds[i]),
            )
            for i, point in enumerate(points)
        )


def measured(
    sources: Sequence[Path], *, belief: Belief | None = None, task: str = "", bins: int = 8, seed: int = 0
) -> Tried:
    """Measure what datasets, suites and scenarios tried of a belief.

    Args:
        sources: Folders of datasets, of gates, of searches or of scenarios, files of suites or of single scenarios.
        belief: What is believed; that of the first dataset when left out.
        task: Name of the task; that of the first source when left out.
        bins: Into how many each axis is cut.
        seed: Of the search for the largest hole.
    """
    sources = [path / CANDIDATE if _is_dataset(path / CANDIDATE) else path for path in sources]
    datasets = [Dataset.open(path) for path in sources if _is_dataset(path)]
    searches = [falsify.known(path) for path in sources if (path / falsify.HEAD).exists()]
    if belief is None:
        told = [
            *(parse(one.header.belief) for one in datasets if one.header.belief),
            *(one.belief for one, _ in searches),
        ]
        if not told:
            raise DataError("no belief to measure against", attempt="--spec SPEC, or a dataset that holds its belief")
        belief = told[0]
    axes = tuple(axis for axis in believed(belief) if axis.high > axis.low)
    if not axes:
        raise SignalError("nothing of this belief may vary", attempt="--spec with a range in `randomization`")
    nominal = {param.name: param.nominal for param in belief.params}
    rows: list[Array] = []
    for data in datasets:
        table = data.episodes()
        columns = [
            np.asarray(table.get(f"param_{axis.name}", np.full(len(data), nominal[axis.name])), float) for axis in axes
        ]
        rows.append(np.stack(columns, axis=1))
        task = task or data.header.provenance.task
    scenarios = [one for space, tried in searches for one in (space.scenario(t.point, t.number) for t in tried)]
    others = [path for path in sources if not _is_dataset(path) and not (path / falsify.HEAD).exists()]
    scenarios += [each for path in others for each in _scenarios(path)]
    task = task or (scenarios[0].task if scenarios else "")
    rows.append(
        np.array([[each.params.get(axis.name, nominal[axis.name]) for axis in axes] for each in scenarios], float)
        .reshape(-1, len(axes))
    )  # fmt: skip
    values = np.concatenate(rows)
    shares = np.stack([axis.shares(values[:, i]) for i, axis in enumerate(axes)], axis=1)
    kept = inside(shares)
    return Tried(task, axes, Coverage(np.clip(shares[kept], 0.0, 1.0), bins, seed), int((~kept).sum()))


def close(tried: Tried, budget: int, out: Path, *, seed: int = 0) -> tuple[Path, tuple[Scenario, ...]]:
    """Write the scenarios that are missing as a suite."""
    found = tried.missing(budget, seed)
    make_folder(out)
    publish(out / SUITE, suite_text.text(Suite(tried.task, found)).encode())
    return out / SUITE, found


def closed(tried: Tried, found: Sequence[Scenario]) -> Tried:
    """What will have been tried once these have been run."""
    values = np.array([[each.params[axis.name] for axis in tried.axes] for each in found], float)
    values = values.reshape(-1, len(tried.axes))
    shares = np.stack([axis.shares(values[:, i]) for i, axis in enumerate(tried.axes)], axis=1)
    points = np.concatenate([tried.coverage.points, np.clip(shares, 0.0, 1.0)])
    return Tried(tried.task, tried.axes, Coverage(points, tried.coverage.bins, tried.coverage.seed), tried.outside)


def asked(path: Path) -> tuple[Belief, str]:
    """The belief of a spec, and the name of its task; of one to roll out, or of one to search."""
    try:
        run = load_run(path).value
    except SpecError as error:
        try:
            search = load_falsify(path).value
        except SpecError:
            raise error from None
        return search.belief, search.scene.task.name
    return run.belief, run.scene.task.name


def lines(tried: Tried) -> Iterator[str]:
    """What was tried and what was not, in sentences."""
    coverage = tried.coverage
    n = len(coverage.points)
    outside = f", {tried.outside:,} more outside of what is believed" if tried.outside else ""
    yield f"{tried.task}: {n:,} episodes over {coverage.size} params, each cut into {coverage.bins}{outside}"
    even = coverage.expected(n)
    yield f"pairs tried: {coverage.pairwise:.1%} of {coverage.possible:,}; as many drawn evenly: {even:.1%}"
    yield f"params tried: {coverage.single.mean():.1%}; discrepancy {coverage.discrepancy:.3g}"
    hole = coverage.hole
    where = ", ".join(f"{name} {value:.4g}" for name, value in tried.point(hole.centre).items())
    yield f"largest hole: radius {hole.radius:.2f} of a range, around {where}"
    for one, other, share in weakest(coverage, tried.names)[:3]:
        if share < 1.0:
            yield f"least covered: {one} with {other}, {share:.0%}"


def draw(tried: Tried, out: Path) -> Path:
    """Draw how often each pair of bins was tried, every two axes a field; what was not tried stands out."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ExtraError("pictures need matplotlib", attempt="pip install 'simops[render]'") from error
    coverage, shown = tried.coverage, _shown(tried)
    n = len(shown)
    figure = Figure(figsize=(1.6 * n + 1.2, 1.6 * n + 1.0), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    fields = np.atleast_2d(figure.subplots(n, n, squeeze=False))
    place = {pair: at for at, pair in enumerate(coverage.pairs)}
    most = max(1, int(coverage.counts.max(initial=0)))
    for row, down in enumerate(shown):
        for column, across in enumerate(shown):
            axis = fields[row, column]
            axis.set_xticks([])
            axis.set_yticks([])
            if column > row:
                axis.set_visible(False)
                continue
            if across == down:
                _bars(axis, coverage.points[:, across], coverage.bins)
            else:
                low, high = min(across, down), max(across, down)
                field = coverage.counts[place[low, high]]
                _field(axis, field.T if across == low else field, most)
            if row == n - 1:
                axis.set_xlabel(_label(tried.axes[across]), fontsize=7, color=INK)
            if column == 0:
                axis.set_ylabel(_label(tried.axes[down]), fontsize=7, color=INK)
    figure.suptitle(
        f"{tried.task}: {len(coverage.points):,} episodes tried {coverage.pairwise:.0%} of all pairs; orange: nothing",
        fontsize=10,
        color=INK,
    )
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=110)
    publish(out, drawn.getbuffer())
    return out


def _shown(tried: Tried) -> list[int]:
    """The axes to draw, in order: all, or those of the least covered pairs."""
    size = tried.coverage.size
    if size <= SHOWN:
        return list(range(size))
    untried = np.zeros(size)
    for number, pair in enumerate(tried.coverage.pairs):
        for axis in pair:
            untried[axis] += int((tried.coverage.counts[number] == 0).sum())
    return sorted(np.argsort(-untried, kind="stable")[:SHOWN].tolist())


def _label(axis: Axis) -> str:
    unit = f" {axis.unit}" if axis.unit else ""
    return f"{axis.name}\n{axis.low:.3g} to {axis.high:.3g}{unit}"


def _field(axis, counts: Array, most: int) -> None:  # noqa: ANN001 (an untyped matplotlib axis)
    axis.imshow(np.where(counts > 0, np.log1p(counts), np.nan), origin="lower", aspect="auto", cmap="Greens", vmin=0.0,
                vmax=np.log1p(most), interpolation="nearest")  # fmt: skip
    axis.set_facecolor(HOLE)


def _bars(axis, values: Array, bins: int) -> None:  # noqa: ANN001 (an untyped matplotlib axis)
    counts, edges = np.histogram(values, bins=bins, range=(0.0, 1.0))
    axis.bar(edges[:-1], counts, width=1 / bins, align="edge", color="#2a7f62")
    axis.set_xlim(0, 1)


def _is_dataset(path: Path) -> bool:
    return (path / "dataset.json").exists()


def _scenarios(path: Path) -> Iterator[Scenario]:
    """The scenarios of a folder, of a suite, or of a file of one."""
    if path.is_dir():
        found = sorted(path.glob("*.json"))
        if not found:
            raise DataError("neither a dataset nor scenarios", where=str(path), attempt="a folder that a run made")
        for one in found:
            yield from _scenarios(one)
        return
    try:
        body = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise DataError(f"no scenarios can be read here: {error}", where=str(path)) from error
    if isinstance(body, dict) and "scenarios" in body:
        for each in body["scenarios"]:
            yield Scenario.of(each, str(path))
    else:
        yield scenario.parse(path.read_text(), str(path))
