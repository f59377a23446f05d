# pyright: basic
# neither cma nor ribs says its types; what goes in and out of them here does.
"""Look for failures in a cube: at random, then downhill to the first, then along all that fail.

First points drawn evenly. Then two thirds of every lap are a guess: the points that a parabola along each axis, taught
by all that is known, thinks fail most, in cells of the map that were not looked at much. The rest follows the margin
itself, wherever a parabola does not: while little has failed CMA-ES goes down from the worst point seen, and from
another when it gets no further; from then on two CMA-ES go along what fails, guided by an archive whose cells each
keep the worst that was found there (Fontaine & Nikolaidis 2023, CMA-MAE): what fails more than its cell's
expectation counts, and the expectation rises with what is found.

Nothing here simulates: `ask` gives points, `tell` takes their margins. The same seed and the same margins give the
same points, so a search that was stopped goes on by being told again what it has been told.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol, final

import numpy as np

from simops.core import chance
from simops.core.errors import ExtraError
from simops.core.signal import Array
from simops.gate.guess import Guess

SPREAD = 0.25
"""Of the cube's edge, that a descent begins with."""
WALK = 0.15
"""The same, where something has failed already."""
OFTEN, MOSTLY = 0.1, 0.5
"""Share of a lap that fails, drawn evenly or on the way down, from which on failures are gone along."""
EMITTERS = 2
GUESSED = 2 / 3
"""Share of a lap that is guessed."""
FORGET = 0.2
"""By which share of what is found in a cell more is expected there."""


class _Descent(Protocol):
    """What is used of CMA-ES."""

    def ask(self) -> Sequence[Array]: ...
    def tell(self, solutions: Sequence[Array], function_values: Sequence[float]) -> None: ...
    def stop(self) -> object: ...


class _Schedule(Protocol):
    """What is used of a scheduler of ribs."""

    def ask(self) -> Array: ...
    def tell(self, objective: Array, measures: Array) -> object: ...


class _Archive(Protocol):
    """What is used of an archive of ribs."""

    def add(self, solution: Array, objective: Array, measures: Array) -> object: ...


class Phase(NamedTuple):
    """What the points that are asked next are for."""

    name: str
    """`look`, `descend` or `spread`."""
    points: Array


@final
@dataclass(kw_only=True)
class Search:
    """One search; tell it every answer before asking again."""

    size: int
    """Axes of the cube."""
    map: tuple[int, ...]
    """Axes of the map."""
    cells: int = 16
    together: int = 50
    """Points that are asked at once."""
    look: int = 100
    """Points that are drawn evenly before anything is learned."""
    seed: int = 0
    evenly: bool = False
    """Draw evenly to the end: what a search is compared with."""
    _points: list[Array] = field(default_factory=list, init=False)
    _margins: list[Array] = field(default_factory=list, init=False)
    _asked: Phase | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._down: _Descent | None = None
        self._scheduler: _Schedule | None = None
        self._archive: _Archive | None = None
        self._restarts = 0
        self._begun = False

    @property
    def told(self) -> int:
        """Points whose margins are known."""
        return sum(len(part) for part in self._points)

    def ask(self, most: int | None = None) -> Phase:
        """The points to try next, at most so many of them."""
        n = self.together if most is None else min(most, self.together)
        if self.evenly or (self.told < self.look and not self._begun):
            seeds = chance.seeds(self.seed, np.arange(self.told, self.told + n), realm="look")
            phase = Phase("look", chance.uniform(seeds, "point", (self.size,)))
        elif not self._begun:
            phase = Phase("descend", self._descend())
        else:
            phase = Phase("spread", self._spread())
        if phase.name != "look":
            phase = Phase(phase.name, np.concatenate([phase.points, self._guess(self.together - len(phase.points))]))
        self._asked = Phase(phase.name, np.clip(phase.points, 0.0, 1.0))
        return Phase(phase.name, self._asked.points[:n])

    def tell(self, margins: Array) -> None:
        """Say by how much the points that were asked succeeded or failed."""
        if self._asked is None:
            raise ValueError("nothing was asked")
        name, points = self._asked
        self._points.append(points[: len(margins)])
        self._margins.append(margins.astype(float))
        self._asked = None
        enough = OFTEN if name == "look" else MOSTLY
        self._begun |= name != "spread" and float((margins < 0).mean()) >= enough
        if len(margins) < len(points):
            return  # the budget ended within them: nobody will ask again
        led = self._led
        if name == "descend" and self._down is not None:
            self._down.tell(list(points[:led]), margins[:led].tolist())
        elif name == "spread" and self._scheduler is not None and self._archive is not None:
            with _hushed():
                self._scheduler.tell(-margins[:led], points[:led, self.map])
                self._archive.add(points[led:], -margins[led:], points[led:, self.map])

    @property
    def _led(self) -> int:
        """Points of a lap that follow the margin itself."""
        return self.together - round(GUESSED * self.together)

    def _guess(self, count: int) -> Array:
        points = np.concatenate(self._points)
        seeds = chance.seeds(self.seed, np.arange(self.told, self.told + count), realm="guess")
        return Guess(points, np.concatenate(self._margins), self.map, self.cells).picks(count, seeds)

    @property
    def _failed(self) -> Array:
        return np.concatenate(self._margins) < 0 if self._margins else np.zeros(0, bool)

    def _worst(self, count: int) -> Array:
        """The worst points so far, the worst first."""
        order = np.argsort(np.concatenate(self._margins), kind="stable")
        return np.concatenate(self._points)[order[:count]]

    def _descend(self) -> Array:
        cma = _cma()
        if self._down is None or self._down.stop():
            ranked = self._worst(self._restarts + 1)
            settings = {
                "seed": 1 + (self.seed + 7919 * self._restarts) % (2**31),
                "bounds": [0.0, 1.0],
                "popsize": self._led,
                "verbose": -9,
                "tolfun": 1e-4,
            }
            self._down = cma.CMAEvolutionStrategy(np.clip(ranked[-1], 0.02, 0.98), SPREAD, settings)
            self._restarts += 1
        return np.array(self._down.ask())

    def _spread(self) -> Array:
        if self._scheduler is None:
            self._scheduler = self._begin_spreading()
        with _hushed():
            return np.asarray(self._scheduler.ask(), float)

    def _begin_spreading(self) -> _Schedule:
        archives, emitters, schedulers = _ribs()
        archive = archives.GridArchive(
            solution_dim=self.size,
            dims=[self.cells] * len(self.map),
            ranges=[(0.0, 1.0)] * len(self.map),
            learning_rate=FORGET,
            threshold_min=0.0,
            seed=self.seed % 2**31,
        )
        failed = self._failed
        points, margins = np.concatenate(self._points)[failed], np.concatenate(self._margins)[failed]
        archive.add(points, -margins, points[:, self.map])
        self._archive = archive
        shares = np.full(EMITTERS, self._led // EMITTERS)
        shares[: self._led % EMITTERS] += 1
        begun = self._worst(EMITTERS)
        walk = WALK if self._down is None else float(np.clip(2.0 * np.std(self._points[-1], axis=0).mean(), 0.02, WALK))
        many = [
            emitters.EvolutionStrategyEmitter(
                archive,
                x0=begun[i % int(failed.sum())],
                sigma0=walk,
                ranker="imp",
                es="cma_es",
                bounds=[(0.0, 1.0)] * self.size,
                batch_size=int(share),
                seed=(self.seed + i) % 2**31,
            )
            for i, share in enumerate(shares)
        ]
        return schedulers.Scheduler(archive, many)


@final
@dataclass(frozen=True)
class Cell:
    """One cell of a map of failures."""

    place: tuple[int, ...]
    tried: int
    failed: int
    worst: int
    """Number of the episode with the least margin."""
    margin: float


@final
@dataclass(frozen=True, eq=False)
class Map:
    """Where what was tried lies, over some axes of the cube, and how it went there."""

    points: Array
    """(n, size)."""
    margins: Array
    """(n,)."""
    axes: tuple[int, ...]
    cells: int

    @cached_property
    def found(self) -> tuple[Cell, ...]:
        """Every cell in which something was tried, in order."""
        places = np.minimum((self.points[:, self.axes] * self.cells).astype(int), self.cells - 1)
        order: dict[tuple[int, ...], list[int]] = {}
        for number, place in enumerate(places.tolist()):
            order.setdefault(tuple(place), []).append(number)
        return tuple(self._cell(place, order[place]) for place in sorted(order))

    @property
    def failing(self) -> tuple[Cell, ...]:
        """The cells in which something failed."""
        return tuple(cell for cell in self.found if cell.failed)

    def _cell(self, place: tuple[int, ...], numbers: Sequence[int]) -> Cell:
        margins = self.margins[list(numbers)]
        worst = int(np.argmin(margins))
        return Cell(place, len(numbers), int(np.sum(margins < 0)), numbers[worst], float(margins[worst]))


@contextmanager
def _hushed() -> Generator[None]:
    """That no point entered the archive, or that many fell outside of the cube, is no news."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def _cma():  # noqa: ANN202 (a module)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import cma
    except ModuleNotFoundError as error:
        raise ExtraError("searching for failures needs cma", attempt="pip install 'simops[gate]'") from error
    return cma


def _ribs():  # noqa: ANN202 (modules)
    try:
        from ribs import archives, emitters, schedulers
    except ModuleNotFoundError as error:
        raise ExtraError("searching for failures needs ribs", attempt="pip install 'simops[gate]'") from error
    return archives, emitters, schedulers
