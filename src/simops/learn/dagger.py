"""Learning from a teacher at hand: the student acts, and the teacher says what should have been done (DAgger).

A teacher with a plan of its own, as a scripted expert, only makes sense while it acts. So the student drives first
and hands over at a random moment; what the teacher then does, from wherever the student got to, is learned. A teacher
without memory, as a trained network, is asked about every step instead.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, final

import numpy as np

from simops.core import chance
from simops.core.errors import Problem, SpecError
from simops.core.judge import SUCCESS
from simops.core.plugin import Registry
from simops.core.protocols import Act, Memory, Policy
from simops.core.rollout import Recipe, wave
from simops.core.signal import Array
from simops.core.task import Task
from simops.core.training import Course
from simops.core.trajectory import Block
from simops.learn.imitation import Clone, Imitation, Shown, pinned
from simops.learn.lessons import lessons, observed
from simops.learn.policy import Learned
from simops.learn.student import Student
from simops.spec.bounds import Above, AtLeast, AtMost

EXPERT = "expert"
Asked = Literal["driven", "all"]
"""Which steps are learned: those the teacher drove, or all, as it would have done them."""


@final
@dataclass(frozen=True, kw_only=True)
class Dagger:
    """Learns from a dataset first, if there is one, and then from a teacher in the states that the student reaches."""

    teacher: Literal["expert"] | Policy = EXPERT
    """Who knows better; `expert` is the one that the task names."""
    clone: Clone = field(default_factory=Clone)
    """How the student learns, and from which data to begin with."""
    rounds: Annotated[int, AtLeast(1)] = 6
    """How often the teacher is asked for more."""
    episodes: Annotated[int, AtLeast(1)] = 400
    """Episodes of a round."""
    after: Annotated[int, AtLeast(1)] = 4
    """Laps before the first round and between two."""
    labels: Asked = "driven"
    """Learn the steps that the teacher drove; or `all`, for a teacher whose answer depends on what it sees alone."""
    handover: Annotated[float, Above(0.0), AtMost(1.0)] = 0.75
    """The teacher takes over at a moment drawn from this share of the horizon, where it drives at all."""
    beta: Annotated[float, AtLeast(0.0), AtMost(1.0)] = 0.0
    """Share of the episodes that the teacher drives from the beginning, in the first round."""
    beta_decay: Annotated[float, AtLeast(0.0), AtMost(1.0)] = 0.5
    """What is left of `beta` from each round to the next."""

    @contextmanager
    def open(self, course: Course, *, checkpoint: bytes = b"") -> Generator[Imitation]:
        """Begin, or go on from a checkpoint."""
        last = 1 + (self.rounds - 1) * self.after
        if last >= self.clone.laps:
            what = f"{self.rounds} rounds, {self.after} laps apart, do not fit into {self.clone.laps} laps"
            raise SpecError("trainer", [Problem("rounds", what, attempt="fewer, or more laps", fault="CFG-005")])
        with pinned(self.clone.threads):
            yield Imitation(self.clone, course, practice=Lesson(self, course), checkpoint=checkpoint)

    def teacher_of(self, task: Task) -> Policy:
        """Who teaches; raises if the task names nobody."""
        if self.teacher != EXPERT:
            return self.teacher
        if not task.expert:
            problem = Problem("teacher", f"{task.name} has no expert", attempt="naming a policy", fault="CFG-001")
            raise SpecError("trainer", [problem])
        make = Registry[Policy]("policy").load(task.expert)
        return make()


def distil(
    *,
    teacher: Policy,
    student: Student | None = None,
    rounds: int = 6,
    episodes: int = 200,
    laps: int = 40,
    updates: int = 500,
    threads: int = 2,
) -> Dagger:
    """Train a student of any size from a teacher that needs no memory of its own: a network, a bundle."""
    clone = Clone(student=student or Student(), laps=laps, updates=updates, huber=0.1, threads=threads)
    return Dagger(teacher=teacher, clone=clone, rounds=rounds, episodes=episodes, labels="all")


@final
class Lesson:
    """A teacher and a simulation to show things in."""

    def __init__(self, dagger: Dagger, course: Course) -> None:
        """Begin with nothing shown."""
        self._dagger, self._course = dagger, course
        self._teacher = dagger.teacher_of(course.task)
        self._round = 0

    @property
    def recipe(self) -> str:
        """What is shown depends on this alone, and on the student."""
        course, dagger = self._course, self._dagger
        world = (course.engine, course.engine.version(course.task), course.sensors, course.belief or course.task.belief)
        return repr((replace(dagger, teacher=EXPERT, clone=Clone()), self._teacher.digest, world))

    def due(self, done: int) -> bool:
        """Whether something is shown before the next lap."""
        return self._round < self._dagger.rounds and done > 0 and done % self._dagger.after == 0

    def again(self, rounds: int) -> None:
        """Go on after so many rounds."""
        self._round = rounds

    def show(self, student: Learned | None) -> Shown:
        """Let the student drive and the teacher take over, or the teacher drive alone; and say what should be done."""
        dagger, course = self._dagger, self._course
        asked = dagger.labels == "all"
        policy = Handover(
            student=student,
            teacher=self._teacher,
            within=course.task.steps if student is None else round(dagger.handover * course.task.steps),
            beta=1.0 if student is None else dagger.beta * dagger.beta_decay**self._round,
            hands_over=not asked,
        )
        recipe = Recipe(
            policy=policy,
            task=course.task,
            engine=course.engine,
            sensors=course.sensors,
            belief=course.belief,
            seed=course.seed,
            realm="imitation",
        )
        first = self._round * dagger.episodes
        with course.engine.open(course.task, dagger.episodes) as sim:
            block = wave(recipe, sim, np.arange(first, first + dagger.episodes))
            physics_s = sim.busy_s
        self._round += 1
        found = lessons(block, course.task, label=self._label(policy, block))
        sound = block.outcomes == SUCCESS if not asked else np.ones(len(block), bool)
        kept = sound & (block.lengths > 0)
        return Shown(found.only(kept), float((block.outcomes == SUCCESS).sum()) / len(block), physics_s)

    def _label(self, policy: Handover, block: Block) -> Array:
        """What should have been done at every row, NaN where that is not to be learned."""
        if self._dagger.labels == "all":
            return relabelled(self._teacher, self._course.task, block)
        done = block.schema.unpack(block.rows)["action"].reshape(len(block.rows), -1)
        return np.where(policy.driven(block)[:, None], done, np.float32(np.nan))


@final
@dataclass(frozen=True, kw_only=True)
class Handover:
    """A student that drives until a moment drawn for each episode, when its teacher takes over; or does not."""

    student: Policy | None
    """Nobody when the teacher drives alone."""
    teacher: Policy
    within: int
    """Control steps that the moment is drawn from."""
    beta: float
    """Share of the episodes in which the teacher drives from the beginning."""
    hands_over: bool = True

    @property
    def digest(self) -> str:
        """Who, and how they share."""
        student = "" if self.student is None else self.student.digest
        return repr((student, self.teacher.digest, self.within, self.beta, self.hands_over))

    def start(self, task: Task, seeds: Array) -> Memory:
        """Both begin."""
        memory = {"step": np.zeros(len(seeds), np.int64), "moment": self.moments(seeds, task.steps)}
        memory |= {f"teacher/{name}": rows for name, rows in self.teacher.start(task, seeds).items()}
        if self.student is not None:
            memory |= {f"student/{name}": rows for name, rows in self.student.start(task, seeds).items()}
        return memory

    def moments(self, seeds: Array, steps: int) -> Array:
        """When the teacher takes over: the control step, one a seed."""
        if self.student is None:
            return np.zeros(len(seeds), np.int64)
        late = np.floor(chance.uniform(seeds, "imitation/handover") * self.within).astype(np.int64)
        late = late if self.hands_over else np.full(len(seeds), steps + 1)
        return np.where(chance.uniform(seeds, "imitation/beta") < self.beta, 0, late)

    def driven(self, block: Block) -> Array:
        """Which rows of a block the teacher drove."""
        steps = np.arange(len(block.rows)) - np.repeat(block.starts, block.lengths + 1)
        longest = int(block.lengths.max(initial=0))
        return steps >= np.repeat(self.moments(block.seeds, longest), block.lengths + 1)

    def act(self, observation: Array, memory: Memory) -> Act:
        """Ask the teacher in any case, so that it knows what was seen and done; carry out who drives."""
        said, known = self.teacher.act(observation, _part(memory, "teacher/"))
        action, after = said, dict[str, Array]()
        if self.student is not None:
            tried, remembered = self.student.act(observation, _part(memory, "student/"))
            drives = (memory["step"] >= memory["moment"]).reshape(-1, *([1] * (said.ndim - 1)))
            action = np.where(drives, said, tried)
            after = {f"student/{name}": rows for name, rows in remembered.items()}
        known = told(known, action)
        after |= {f"teacher/{name}": rows for name, rows in known.items()}
        return Act(action, {**after, "step": memory["step"] + 1, "moment": memory["moment"]})


def told(memory: Memory, action: Array) -> Memory:
    """What a teacher remembers once it knows what was carried out.

    A teacher that goes on from what it last asked for keeps that under `command`: the first elements of an action.
    """
    if "command" not in memory:
        return memory
    command = memory["command"]
    rows = action.reshape(len(action), -1)[:, : command.shape[1]]
    return {**memory, "command": rows.astype(command.dtype)}


def relabelled(teacher: Policy, task: Task, block: Block) -> Array:
    """What a teacher would have done at every row of a block, having seen all before; NaN in the last row of each."""
    seen, done = observed(block, task.observation), block.schema.unpack(block.rows)["action"]
    found = np.full((len(seen), task.action.size), np.nan, np.float32)
    going, memory = np.arange(len(block)), teacher.start(task, block.seeds)
    for step in range(int(block.lengths.max(initial=0))):
        on = block.lengths[going] > step
        going, memory = going[on], {name: rows[on] for name, rows in memory.items()}
        rows = block.starts[going] + step
        action, memory = teacher.act(np.ascontiguousarray(seen[rows]), memory)
        found[rows] = action.reshape(len(rows), -1)
        memory = told(memory, done[rows])
    return found


def _part(memory: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    return {name.removeprefix(prefix): rows for name, rows in memory.items() if name.startswith(prefix)}
