"""A training run: laps go by, figures and checkpoints are kept, and a run that was stopped goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast, final

import numpy as np

from simops.core.errors import DataError, ExtraError, Problem, SpecError
from simops.core.rollout import Recipe, wave
from simops.core.training import Course, Lap, Trainer, Training
from simops.core.trajectory import OUTCOMES
from simops.data.files import Lock, digest, make_folder, publish
from simops.spec.lock import lock
from simops.spec.train import load_train

OUT = Path("out")
CHECKPOINT, STOPPED, METRICS, SPEC = "checkpoint.safetensors", "stopped.safetensors", "metrics.jsonl", "spec.lock"


@final
@dataclass(frozen=True)
class Order:
    """What is to be trained, and where it is kept."""

    course: Course
    trainer: Trainer
    out: Path
    lock: str = ""
    """The spec with every default written out."""
    evaluate: int = 0
    """Episodes that the policy is tried for at the end."""


@final
@dataclass
class Run:
    """What has happened so far, for whoever watches."""

    task: str
    out: Path
    laps: int
    history: list[Lap] = field(default_factory=list[Lap])
    """Laps of this run, and figures of those before it."""
    resumed: int = 0
    """Laps that were there before."""
    began: float = field(default_factory=time.perf_counter)
    trained_s: float = 0.0
    """Seconds inside the laps of this run."""
    dumps: int = 0
    checkpoint: str = ""
    """SHA-256 of the last checkpoint."""
    outcomes: dict[str, int] = field(default_factory=dict[str, int])
    """How the trained policy's episodes ended."""
    stopped: bool = False

    @property
    def left_s(self) -> float | None:
        """Seconds to go, once there is something to judge by."""
        done = len(self.history) - self.resumed
        return (self.laps - len(self.history)) * self.trained_s / done if done else None


Watch = Callable[[Run], None]


class Scalars(Protocol):
    """Somebody who writes figures down."""

    def add(self, step: int, figures: Mapping[str, float], *, at_s: float) -> None:
        """Take the figures of one lap."""
        ...

    def close(self) -> None:
        """No more will come."""
        ...


def load_order(path: Path, *, overrides: Sequence[str] = (), out: Path | None = None) -> Order:
    """Read a spec and say what would be trained and where it would go; touches nothing."""
    loaded = load_train(path, overrides=overrides)
    train = loaded.value
    folder = out or train.out or OUT / f"{train.scene.task.name}-{loaded.digest.removeprefix('sha256:')[:8]}"
    return Order(train.course, train.trainer, folder, lock(loaded), train.evaluation.episodes)


def run(order: Order, watch: Watch, *, resume: bool = False) -> Run:
    """Train to the last lap, or until interrupted; a checkpoint is left either way."""
    held = _held(order.out, resume=resume)
    make_folder(order.out)
    writer = Lock(order.out)
    try:
        with order.trainer.open(order.course, checkpoint=held) as training:
            publish(order.out / SPEC, order.lock.encode())
            seen = Run(order.course.task.name, order.out, training.laps)
            seen.history.extend(_laps(order.out, training.done))
            seen.resumed, seen.checkpoint = len(seen.history), digest(held) if held else ""
            _train(order, training, seen, watch)
            if not seen.stopped and order.evaluate:
                _evaluate(order, training, seen)
            watch(seen)
            return seen
    finally:
        writer.release()


def _held(folder: Path, *, resume: bool) -> bytes:
    """The checkpoint to go on from; raises if there is one and nobody said what to do with it."""
    path = folder / CHECKPOINT
    if resume:
        try:
            return path.read_bytes()
        except FileNotFoundError as error:
            message = f"there is no {CHECKPOINT} to go on from"
            raise DataError(message, where=str(folder), attempt="leaving --resume out", fault="TRN-011") from error
    if path.exists():
        problem = Problem("", f"{folder} holds a training", attempt="--resume, or another --out", fault="CFG-008")
        raise SpecError("command line", [problem])
    return b""


def _train(order: Order, training: Training, seen: Run, watch: Watch) -> None:
    out = order.out
    events = _events(out, training.done)
    try:
        if training.done == 0:
            seen.checkpoint = _keep(out / CHECKPOINT, training.checkpoint())
        with (out / METRICS).open("w", encoding="utf-8") as metrics:
            metrics.writelines(_row(lap) for lap in seen.history)
            while training.done < training.laps:
                began = time.perf_counter()
                lap = training.advance()
                seen.trained_s += time.perf_counter() - began
                seen.history.append(Lap(lap.number, lap.figures, ()))
                metrics.write(_row(lap))
                metrics.flush()
                events.add(lap.number, lap.figures, at_s=time.time())
                for dump in lap.dumps:
                    make_folder(out / "broken")
                    publish(out / "broken" / f"{dump.name}.safetensors", dump.data)
                    seen.dumps += 1
                if training.due:
                    seen.checkpoint = _keep(out / CHECKPOINT, training.checkpoint())
                watch(seen)
    except KeyboardInterrupt:
        seen.stopped = True
        _keep(out / STOPPED, training.checkpoint())
    finally:
        events.close()


def _keep(path: Path, data: bytes) -> str:
    publish(path, data)
    return digest(data)


def _events(folder: Path, done: int) -> Scalars:
    try:
        from simops.learn.curves import Events

        return Events(folder, name=f"{done:06d}")
    except ModuleNotFoundError as error:
        raise ExtraError("curves need tensorboard", attempt="pip install 'simops[learn]'") from error


def _row(lap: Lap) -> str:
    return json.dumps({"lap": lap.number, **lap.figures}) + "\n"


def _laps(folder: Path, done: int) -> list[Lap]:
    """Figures of the laps before; a line that a kill cut short is none."""
    path = folder / METRICS
    found: list[Lap] = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            said = cast("dict[str, Any]", json.loads(line))
            number = int(said.pop("lap"))
        except (ValueError, KeyError, AttributeError):
            continue
        if number <= done:
            found.append(Lap(number, said, ()))
    return found


def _evaluate(order: Order, training: Training, seen: Run) -> None:
    """Try the policy without noise, on episodes that no training has seen."""
    course, n = order.course, order.evaluate
    recipe = Recipe(
        policy=training.policy,
        task=course.task,
        engine=course.engine,
        sensors=course.sensors,
        seed=course.seed,
        realm="evaluation",
    )
    seen.outcomes = dict.fromkeys(OUTCOMES, 0)
    with course.engine.open(course.task, min(n, 256)) as sim:
        for start in range(0, n, 256):
            block = wave(recipe, sim, np.arange(start, min(start + 256, n)))
            for code, name in enumerate(OUTCOMES):
                seen.outcomes[name] += int(np.sum(block.outcomes == code))
