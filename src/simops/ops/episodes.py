"""Scenarios that one policy runs in one engine, kept on disk: what is there is not run again, whatever stopped it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self, final

import numpy as np

from simops.core.errors import EngineError
from simops.core.perform import perform, staged
from simops.core.protocols import Sim
from simops.core.rollout import Recipe
from simops.core.scenario import Push
from simops.core.signal import Array
from simops.core.trajectory import OUTCOMES, Block, Outcome, Trajectory
from simops.data.header import Header
from simops.data.writer import Writer
from simops.gate.audit import Limits, Suspicion, audit
from simops.gate.suite import Suite
from simops.ops.notes import Notes
from simops.sim.inspect import Inspector

LOST: Outcome = "diverged"
"""How an episode counts that never came to an end."""


ENDED = "CLU-001"
"""Fault of an engine whose worker process ended."""


class _LateError(Exception):
    """A wave has taken longer than it may."""


@final
class Episodes:
    """One policy's episodes of a suite; a context manager. Episode i is the suite's scenario i."""

    def __init__(
        self,
        recipe: Recipe,
        suite: Suite,
        folder: Path,
        *,
        batch: int = 32,
        timeout_s: float = 600.0,
        limits: Limits | None = None,
    ) -> None:
        """Keep them in `folder`; an engine is opened when the first one has to run."""
        self.recipe = staged(recipe, suite.scenarios)
        self.suite, self.folder = suite, folder
        self._batch, self._timeout_s = batch, timeout_s
        self._limits = limits or Limits()
        self._number = {each.hash: i for i, each in enumerate(suite.scenarios)}
        self._held, self._engine = ExitStack(), ExitStack()
        self._sim: Sim | None = None
        self._inspector: Inspector | None = None
        self.outcomes: dict[str, Outcome] = {}
        """By the scenario's hash: a success that the audit does not believe is a failure here."""
        self.suspicions: dict[str, tuple[Suspicion, ...]] = {}
        """What the audit found, by hash; none where it found nothing."""
        self.lost: dict[str, str] = {}
        """Scenarios whose episode never came to an end, and why."""
        self.spent_s = 0.0
        """Wall-clock seconds spent running."""

    def __enter__(self) -> Self:
        _ = self.recipe.policy.start(self.recipe.task, np.zeros(1, np.uint64))  # before anything is on disk
        self._data = self._held.enter_context(Writer.resume(self.folder, Header.of(self.recipe)))
        self._notes = Notes(self.folder / "notes.jsonl")
        self.lost.update(self._notes.lost)
        self.outcomes.update(dict.fromkeys(self.lost, LOST))
        for block in self._data.dataset.blocks():
            self._take(block, self._notes.suspicions)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._engine.close()
        self._held.close()

    def run(self, wanted: Sequence[str], tick: Callable[[], None] | None = None) -> None:
        """Run these scenarios, those that are there left out; each is on disk before the next wave begins."""
        missing = [one for one in wanted if one not in self.outcomes]
        for start in range(0, len(missing), self._batch):
            self._wave(missing[start : start + self._batch], tick)

    def trajectory(self, scenario: str) -> Trajectory:
        """The stored episode of a scenario."""
        return self._data.dataset.trajectory(self._number[scenario])

    def again(self, scenario: str) -> bool:
        """Run a stored scenario once more, alone, and say whether every byte is the same."""
        stored = self.trajectory(scenario)
        [fresh] = self._performed([scenario], None)
        same = (stored.outcome, stored.seed, len(stored)) == (fresh.outcome, fresh.seed, len(fresh))
        return same and all(stored[name].tobytes() == fresh[name].tobytes() for name in stored.schema.names)

    def _wave(self, some: Sequence[str], tick: Callable[[], None] | None, *, second: bool = False) -> None:
        began = time.perf_counter()
        block, why = None, f"took longer than {self._timeout_s:g} s"
        try:
            block = self._performed(some, tick, limit_s=self._timeout_s)
        except _LateError:
            self._close()
        except EngineError as error:
            if error.fault != ENDED:
                raise
            why = error.what
            self._close()
        self.spent_s += time.perf_counter() - began
        if block is not None:
            self._keep(block)
        elif len(some) > 1 or not second:  # who was at fault shows when each is alone
            for one in some:
                self._wave([one], tick, second=True)
        else:
            self.lost[some[0]] = why
            self._notes.lose(some[0], why)
            self.outcomes[some[0]] = LOST

    def _keep(self, block: Block) -> None:
        found = {each.scenario: suspicions for each in block if (suspicions := self._suspected(each))}
        self._notes.suspect(found)  # before the episodes, so that none is ever without
        self._data.append(block)
        self._take(block, found)

    def _suspected(self, trajectory: Trajectory) -> tuple[Suspicion, ...]:
        """What the audit says; a push puts energy in that the columns know nothing of."""
        if self._inspector is None:
            self._inspector = Inspector(self.recipe.task)
        told = self._inspector.look(trajectory)
        pushed = any(isinstance(one, Push) for one in self.suite.by_hash[trajectory.scenario].disturbances)
        known = {name: values for name, values in told.items() if name != "work_j" or not pushed}
        return audit(self.recipe.task, trajectory, known, self._limits)

    def _take(self, block: Block, found: Mapping[str, tuple[Suspicion, ...]]) -> None:
        for one, code in zip(block.scenarios, block.outcomes, strict=True):
            suspicions = found.get(one, ())
            outcome: Outcome = OUTCOMES[int(code)]
            self.outcomes[one] = "failure" if suspicions and outcome == "success" else outcome
            if suspicions:
                self.suspicions[one] = suspicions

    def _performed(self, some: Sequence[str], tick: Callable[[], None] | None, *, limit_s: float = np.inf) -> Block:
        sim = self._opened()
        scenarios = [self.suite.by_hash[one] for one in some]
        numbers = np.array([self._number[one] for one in some], np.int64)
        watch = _Watch(tick, time.perf_counter() + limit_s)
        with _alarm(limit_s):
            return perform(self.recipe, sim, scenarios, numbers=numbers, watch=watch)

    def _opened(self) -> Sim:
        if self._sim is None:
            self._sim = self._engine.enter_context(self.recipe.engine.open(self.recipe.task, self._batch))
        return self._sim

    def _close(self) -> None:
        """Let go of an engine that nobody knows the state of."""
        self._sim = None
        self._engine.close()


@contextmanager
def _alarm(limit_s: float) -> Generator[None]:
    """Wake up whoever waits for a worker process that does not answer; only the main thread can be woken."""
    if not np.isfinite(limit_s) or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise _LateError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 1.1 * limit_s)  # the watch, if it is asked, is first
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@final
class _Watch:
    """Looks on for whoever waits, and at the clock."""

    def __init__(self, tick: Callable[[], None] | None, until: float) -> None:
        self._tick, self._until = tick, until

    def frame(self, sim: Sim, ids: Array, step: int) -> None:
        """Tell whoever waits; raises when it is too late."""
        del sim, ids, step
        if self._tick is not None:
            self._tick()
        if time.perf_counter() > self._until:
            raise _LateError
