"""The factory: a recipe goes in, randomised trajectories come out on disk, each exactly once.

Work is cut into waves of one episode a copy. A wave counts when its shard is on disk for good, so
a killed run loses at most the wave in flight and goes on where it stopped, with the same bytes.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

import numpy as np

from simops.core.protocols import Sim
from simops.core.rollout import Recipe, wave
from simops.core.signal import Array
from simops.core.trajectory import OUTCOMES, Block
from simops.data.files import publish
from simops.data.header import Header
from simops.data.writer import Writer
from simops.ops.cameras import Cameras, shoot


@final
@dataclass(frozen=True)
class Pass:
    """One pass of the factory."""

    recipe: Recipe
    episodes: int
    """Episodes 0 to this number, not included, will be on disk."""
    batch: int
    """Copies that run side by side."""
    out: Path
    lock: str = ""
    """The spec with every default written out, kept beside the data."""
    cameras: Cameras | None = None


@final
@dataclass
class Progress:
    """What has happened so far, for whoever watches."""

    total: int
    batch: int
    control_dt_s: float
    done: int = 0
    """Episodes on disk, those of earlier runs included."""
    fresh: int = 0
    """Episodes this run added."""
    running: int = 0
    """Episodes in flight that have not ended."""
    in_flight: int = 0
    step: int = 0
    steps: int = 1
    outcomes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    simulated_s: float = 0.0
    physics_s: float = 0.0
    writing_s: float = 0.0
    filmed: int = 0
    """Episodes that cameras recorded."""
    bytes: int = 0
    free_bytes: int = 0
    stage: str = "starting"
    began: float = field(default_factory=time.perf_counter)
    ended: float | None = None

    @property
    def elapsed_s(self) -> float:
        """Wall-clock seconds so far."""
        return (self.ended or time.perf_counter()) - self.began

    @property
    def settled(self) -> float:
        """Episodes of this run, those in flight counted by how far they are."""
        ended = self.in_flight - self.running
        return self.fresh + ended + self.running * self.step / self.steps

    @property
    def rate(self) -> float:
        """Episodes a second."""
        return self.settled / max(self.elapsed_s, 1e-9)

    @property
    def left_s(self) -> float | None:
        """Seconds to go, once there is something to judge by."""
        remaining = self.total - (self.done - self.fresh) - self.settled
        return remaining / self.rate if self.settled > 0 else None

    def take(self, block: Block, stored: int) -> None:
        """Count a block that is on disk."""
        self.fresh += len(block)
        self.done += len(block)
        self.in_flight = self.running = 0
        self.bytes += stored
        self.simulated_s += float(block.lengths.sum()) * self.control_dt_s
        for code, name in enumerate(OUTCOMES):
            self.outcomes[name] += int(np.sum(block.outcomes == code))


Watch = Callable[[Progress], None]


@final
@dataclass(frozen=True)
class _Eye:
    """Tells the watcher about every control step."""

    progress: Progress
    watch: Watch

    def frame(self, sim: Sim, ids: Array, step: int) -> None:
        """Note how many go on."""
        del sim
        self.progress.running, self.progress.step = len(ids), step
        self.watch(self.progress)


def run(order: Pass, watch: Watch) -> Progress:
    """Bring the dataset of `order` to its full number of episodes; what is there already is kept."""
    recipe, task = order.recipe, order.recipe.task
    progress = Progress(order.episodes, order.batch, task.control_dt_s, steps=task.steps)
    header = Header.of(recipe, lock=order.lock)
    if not order.out.exists():
        _try(recipe)
    with Writer.resume(order.out, header) as data:
        publish(order.out / "spec.lock", order.lock.encode())
        missing = data.missing(range(order.episodes))
        progress.done = order.episodes - len(missing)
        _film(order, np.setdiff1d(np.arange(order.episodes), missing), data, progress, watch, None)
        if len(missing):
            batch = min(order.batch, len(missing))
            with recipe.engine.open(task, batch) as sim:
                for episodes in _waves(missing, batch):
                    block = _one(recipe, sim, episodes, data, progress, watch)
                    _film(order, episodes, data, progress, watch, block)
    progress.ended = time.perf_counter()
    progress.stage = "done"
    watch(progress)
    return progress


def _try(recipe: Recipe) -> None:
    """Raise, before anything is on disk, if task, policy and engine do not fit each other."""
    first = np.zeros(1, np.int64)
    draw = recipe.draw(first)
    _ = recipe.policy.start(recipe.task, draw.seeds)
    with recipe.engine.open(recipe.task, 1) as sim:
        sim.reset(first, draw.params, recipe.task.initial(draw))


def _one(recipe: Recipe, sim: Sim, episodes: Array, data: Writer, progress: Progress, watch: Watch) -> Block:
    progress.in_flight = progress.running = len(episodes)
    progress.step = 0
    progress.stage = "simulating"
    block = wave(recipe, sim, episodes, watch=_Eye(progress, watch))
    progress.physics_s = sim.busy_s
    progress.stage = "writing"
    watch(progress)
    began = time.perf_counter()
    shard = data.append(block)
    progress.writing_s += time.perf_counter() - began
    progress.take(block, shard.bytes)
    progress.free_bytes = shutil.disk_usage(data.path).free
    watch(progress)
    return block


def _film(order: Pass, episodes: Array, data: Writer, progress: Progress, watch: Watch, block: Block | None) -> None:
    """Film what is due of these episodes and not filmed yet, whose rows are in `block` or else on disk."""
    if order.cameras is None:
        return
    due = list(order.cameras.unfilmed(episodes.tolist(), data.path))
    if not due:
        return
    progress.stage = "filming"
    watch(progress)
    at = {} if block is None else {episode: i for i, episode in enumerate(block.episodes.tolist())}
    one_by_one = (data.dataset.trajectory(one) if block is None else block.trajectory(at[one]) for one in due)
    for _ in shoot(order.cameras, order.recipe, one_by_one, data):
        progress.filmed += 1
        watch(progress)


def _waves(missing: Array, batch: int) -> Iterator[Array]:
    for start in range(0, len(missing), batch):
        yield missing[start : start + batch]
