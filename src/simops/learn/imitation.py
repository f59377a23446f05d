"""Imitation: a network learns to do what was done, from a dataset and from a teacher where one is at hand."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, NamedTuple, Protocol, final

import torch

from simops.core.contract import Contract
from simops.core.errors import DataError, Problem, SpecError
from simops.core.training import Course, Lap
from simops.data.store import Dataset
from simops.learn.actor import Windowed
from simops.learn.begin import begun_from, checkpoint_at
from simops.learn.checkpoint import Saved, actor_of, pack, unpack
from simops.learn.lessons import Lessons, Source, Split, joined, split
from simops.learn.policy import Learned
from simops.learn.pupil import Bench, Pupil, Study, fitted
from simops.learn.student import Student, remembering
from simops.spec.bounds import Above, AtLeast, AtMost, Below


@final
@dataclass(frozen=True, kw_only=True)
class Clone:
    """Does what was done in a dataset: behaviour cloning, and tuning of what was learned before."""

    data: Path | None = None
    """A dataset, as `simops rollout` makes them."""
    recorded: Path | None = None
    """A second dataset, as of a robot: a small one counts as much as `recorded_share` says."""
    recorded_share: Annotated[float, AtLeast(0.0), AtMost(1.0)] = 0.5
    """Share of every batch that comes from `recorded`."""
    begin: Path | None = None
    """A checkpoint to begin from, with its network and its normaliser; `student` is left aside then."""
    frozen: Annotated[int, AtLeast(0)] = 0
    """First layers that stay as they are."""
    student: Student = field(default_factory=Student)
    outcomes: tuple[str, ...] = ("success",)
    """How an episode must have ended to be learned from."""
    episodes: Annotated[int, AtLeast(0)] = 0
    """Episodes taken of `data`, the first of them; 0 for all."""
    at_least: Annotated[int, AtLeast(2)] = 20
    """Fewer episodes than this in `data` are refused."""
    held_out: Annotated[float, AtLeast(0.0), Below(1.0)] = 0.05
    """Share of the episodes that is not learned from, but tells how good the rest was."""
    laps: Annotated[int, AtLeast(1)] = 40
    """Rounds of learning."""
    updates: Annotated[int, AtLeast(1)] = 500
    """Updates of the weights in a lap."""
    batch: Annotated[int, AtLeast(1)] = 512
    """Steps that an update is made from."""
    learning_rate: Annotated[float, Above(0.0), AtMost(1.0)] = 1e-3
    """To begin with; it falls to a hundredth along a cosine."""
    weight_decay: Annotated[float, AtLeast(0.0)] = 1e-4
    huber: Annotated[float, Above(0.0)] = 1.0
    """Errors beyond this, in spreads of the action, count linearly. Where an expert waits for what is not observed, a
    small one learns to do what it does most often: to wait, for ever. It suits an expert whose answer depends on what
    it sees alone."""
    average: Annotated[float, Above(0.0), AtMost(1.0)] = 0.005
    """What acts is an average of the weights over time, which takes over so much of the newest at each update."""
    checkpoint_every: Annotated[int, AtLeast(1)] = 10
    """Laps between checkpoints."""
    threads: Annotated[int, AtLeast(1)] = 2
    """Threads of the network; part of the recipe, for sums depend on it."""

    @contextmanager
    def open(self, course: Course, *, checkpoint: bytes = b"") -> Generator[Imitation]:
        """Begin, or go on from a checkpoint."""
        if self.data is None and self.recorded is None:
            problem = Problem("data", "there is nothing to learn from", attempt="a dataset", fault="CFG-001")
            raise SpecError("trainer", [problem])
        with pinned(self.threads):
            yield Imitation(self, course, checkpoint=checkpoint)

    def study(self) -> Study:
        """How the network learns from rows."""
        return Study(
            batch=self.batch,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            huber=self.huber,
            average=self.average,
            frozen=self.frozen,
        )


class Practice(Protocol):
    """A teacher who shows more, between the laps."""

    @property
    def recipe(self) -> str:
        """What it shows depends on this alone, and on the student."""
        ...

    def due(self, done: int) -> bool:
        """Whether it shows something before the next lap, after so many."""
        ...

    def show(self, student: Learned | None) -> Shown:
        """Episodes of the student, or its own to begin with, and what should be done in them."""
        ...

    def again(self, rounds: int) -> None:
        """Go on after so many rounds."""
        ...


class Shown(NamedTuple):
    """What a teacher showed in one round."""

    lessons: Lessons
    success: float
    """Share of the episodes that succeeded, with the teacher's help."""
    physics_s: float
    """Seconds spent inside the physics."""


@final
class Imitation:
    """A training under way."""

    def __init__(
        self, clone: Clone, course: Course, *, practice: Practice | None = None, checkpoint: bytes = b""
    ) -> None:
        """Begin, or go on from a checkpoint."""
        self._clone, self._course, self._practice = clone, course, practice
        self.done, self._rounds = 0, list[Lessons]()
        self._figures: dict[str, float] = {}
        task = course.task
        student, begun = clone.student, None
        if clone.begin is not None:
            student, begun = begun_from(clone.begin, course.task)
        student.require_fit(task.observation, task.action)
        self._student = student
        self._recorded = None if clone.recorded is None else self._read(clone.recorded, at_least=2, at_most=0)
        self._data = (
            None if clone.data is None else self._read(clone.data, at_least=clone.at_least, at_most=clone.episodes)
        )
        saved = unpack(checkpoint) if checkpoint else None
        if saved is not None:
            self._rounds = self._recollected(saved)
        elif practice is not None and self._data is None and self._recorded is None:
            self._gather(None)
        actor = begun or self._fresh()
        self._pupil = Pupil(actor, clone.study(), course.seed)
        if saved is not None:
            self.done = int(saved.said("lap"))
            self._pupil.restore(saved.tensors, int(saved.said("updates")))
        self._lay_out()

    @property
    def laps(self) -> int:
        """Laps in all."""
        return self._clone.laps

    @property
    def due(self) -> bool:
        """Whether a checkpoint is worth its bytes now; all of them continue with the very same."""
        return self.done % self._clone.checkpoint_every == 0 or self.done == self.laps

    @property
    def policy(self) -> Learned:
        """What has been learned so far."""
        return Learned(actor_of(unpack(self.checkpoint())))

    @property
    def teacher_episodes(self) -> int:
        """Episodes in which an expert acted or was asked, those of the datasets included."""
        data = (0 if part is None else len(part.learned) + len(part.asked) for part in (self._data, self._recorded))
        return sum(data) + sum(len(shown) for shown in self._rounds)

    def advance(self) -> Lap:
        """Learn once, from more if the teacher has something to show."""
        start, physics_s = time.perf_counter(), 0.0
        if self._practice is not None and self._practice.due(self.done):
            physics_s = self._gather(self.policy)
            self._lay_out()
        gathered, clone = time.perf_counter(), self._clone
        count = round(clone.recorded_share * clone.batch) if len(self._benches) > 1 else 0
        counts = (clone.batch - count, count)
        benches = list(zip(self._benches, counts, strict=False))
        loss = self._pupil.learn(benches, updates=clone.updates, of=clone.updates * clone.laps)
        self.done += 1
        figures = {"loss": loss, **{f"held_out/{name}": self._pupil.error(b) for name, b in self._asked.items()}}
        ended = time.perf_counter()
        self._figures |= figures | {
            "steps": float(self._pupil.updates * clone.batch),
            "steps_per_s": clone.updates * clone.batch / max(ended - gathered, 1e-9),
            "teacher_episodes": float(self.teacher_episodes),
            "wall_s": ended - start,
            "physics_s": physics_s,
            "collection_s": gathered - start - physics_s,
            "learning_s": ended - gathered,
        }
        return Lap(self.done, dict(self._figures), ())

    def checkpoint(self) -> bytes:
        """Everything that the rest of the training depends on."""
        tensors = dict(self._pupil.tensors())
        for i, shown in enumerate(self._rounds):
            tensors |= {f"round.{i}.{name}": torch.from_numpy(getattr(shown, name)) for name in _PARTS}  # type: ignore[reportUnknownMemberType]
        contract = remembering(Contract.of(self._course.task), self._pupil.actor)
        body = {
            "recipe": self._recipe(),
            "contract": contract.body(),
            "actor": self._student.body(),
            "trainer": "imitation",
            "seed": self._course.seed,
            "lap": self.done,
            "updates": self._pupil.updates,
            "rounds": len(self._rounds),
            "teacher_episodes": self.teacher_episodes,
        }
        return pack(tensors, body)

    def _read(self, path: Path, *, at_least: int, at_most: int) -> Split:
        clone = self._clone
        source = Source(path, outcomes=clone.outcomes, at_most=at_most, at_least=at_least)
        return split(source.read(self._course.task), held_out=clone.held_out, seed=self._course.seed)

    def _fresh(self) -> Windowed:
        """A network that knows nothing but the scale of what it will learn first."""
        task = self._course.task
        with torch.random.fork_rng(devices=[]):  # type: ignore[reportUnknownMemberType]
            torch.manual_seed(self._course.seed)  # type: ignore[reportUnknownMemberType]
            actor = self._student.actor(task.observation, task.action)
        first = [part.learned for part in (self._data, self._recorded) if part is not None]
        fitted(actor, joined(first or self._rounds[:1]))
        return actor

    def _lay_out(self) -> None:
        """Put everything there is onto benches: the simulated first, the recorded behind it."""
        simulated = ([] if self._data is None else [self._data.learned]) + self._rounds
        parts = [joined(simulated)] if simulated else []
        parts += [] if self._recorded is None else [self._recorded.learned]
        self._benches: list[Bench] = [self._pupil.bench(part) for part in parts]
        held = {"data": self._data, "recorded": self._recorded}
        self._asked = {n: self._pupil.bench(s.asked) for n, s in held.items() if s is not None and len(s.asked)}

    def _gather(self, student: Learned | None) -> float:
        """Take what the teacher shows; give the seconds inside the physics."""
        if self._practice is None:
            return 0.0
        shown = self._practice.show(student)
        self._rounds.append(shown.lessons)
        self._figures["success_with_teacher"] = shown.success
        return shown.physics_s

    def _recollected(self, saved: Saved) -> list[Lessons]:
        if saved.said("recipe") != self._recipe():
            what = "the checkpoint is of another training: task, data, engine, seed, student or trainer differ"
            raise DataError(what, attempt="the spec it was made from, or another folder", fault="TRN-012")
        count = int(saved.said("rounds"))
        if self._practice is not None:
            self._practice.again(count)
        rounds = (saved.under(f"round.{i}") for i in range(count))
        return [Lessons(*(kept[name].numpy() for name in _PARTS)) for kept in rounds]

    def _recipe(self) -> str:
        """One digest over all that a lap's bytes depend on; laps in all are part of it, for the learning rate is."""
        course, clone = self._course, self._clone
        paths = {"data": clone.data, "recorded": clone.recorded}
        parts = (
            replace(clone, data=None, recorded=None, begin=None, checkpoint_every=1),
            {name: Dataset.open(path).digest() for name, path in paths.items() if path is not None},
            "" if clone.begin is None else hashlib.sha256(checkpoint_at(clone.begin).read_bytes()).hexdigest(),
            "" if self._practice is None else self._practice.recipe,
            course.seed,
            Contract.of(course.task).digest,
            torch.__version__,
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()


_PARTS = ("observation", "label", "lengths")


@contextmanager
def pinned(threads: int) -> Generator[None]:
    """The same sums in the same order, whatever else this process does."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)
