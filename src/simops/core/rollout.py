"""The loop over time: a policy, a task and an engine in, trajectories out.

Evidence is reproducible: what an episode becomes depends on its recipe, the root seed and its
number alone, never on the batch it ran in. Scores are computed on the very float32 rows that are
recorded, so reading a trajectory back and scoring it again gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import metadata
from typing import final

import numpy as np

from simops.core import chance
from simops.core.belief import Belief
from simops.core.errors import SignalError
from simops.core.judge import Done, judge
from simops.core.judge import score as judged
from simops.core.params import Params
from simops.core.policy import Tape, centre_and_scale
from simops.core.protocols import Engine, Memory, Policy, Recorder, Sensor, Sim
from simops.core.senses import Senses, rows
from simops.core.signal import Array, Schema
from simops.core.task import Draw, Task
from simops.core.trajectory import Block, Provenance, Trajectory, recorded, scored, shown


@final
@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything an episode depends on, but for its number."""

    policy: Policy
    task: Task
    engine: Engine
    sensors: tuple[Sensor, ...] = ()
    belief: Belief | None = None
    """The task's own when left out."""
    seed: int = 0
    realm: str = "train"

    @cached_property
    def sensed(self) -> frozenset[str]:
        """The signals that some sensor changes."""
        return frozenset(name for sensor in self.sensors for name in sensor.names(self.task))

    @cached_property
    def schema(self) -> Schema:
        """What the trajectories hold."""
        return recorded(self.task, self.sensed)

    @cached_property
    def provenance(self) -> Provenance:
        """Enough to run it again."""
        return Provenance(
            engine=repr(self.engine),
            simulator=self.engine.version(self.task),
            task=self.task.name,
            policy=self.policy.digest,
            seed=self.seed,
            realm=self.realm,
            sensors=tuple(repr(sensor) for sensor in self.sensors),
            packages=(f"simops {metadata.version('simops')}", f"numpy {np.__version__}"),
        )

    def draw(self, episodes: Array) -> Draw:
        """The seeds and params of these episodes, at their first step."""
        seeds = chance.seeds(self.seed, episodes, realm=self.realm)
        return Draw((self.belief or self.task.belief).sample(seeds), seeds, np.zeros(len(episodes), np.int64))


def rollout(
    policy: Policy,
    task: Task,
    engine: Engine,
    *,
    n: int = 1,
    seed: int = 0,
    sensors: Sequence[Sensor] = (),
    belief: Belief | None = None,
    batch: int = 256,
) -> list[Trajectory]:
    """Run episodes 0 to n - 1 of `policy` at `task`, at most `batch` of them at a time."""
    recipe = Recipe(policy=policy, task=task, engine=engine, sensors=tuple(sensors), belief=belief, seed=seed)
    found: list[Trajectory] = []
    with engine.open(task, min(batch, n)) as sim:
        for start in range(0, n, batch):
            found.extend(wave(recipe, sim, np.arange(start, min(start + batch, n))))
    return found


def replay(
    trajectory: Trajectory,
    task: Task,
    engine: Engine,
    *,
    sensors: Sequence[Sensor] = (),
    watch: Recorder | None = None,
) -> Trajectory:
    """Run a recording again as a policy, from the same seed and at the same params.

    A recording heeds no sensor; hand over those it was made with to have what they showed again.
    """
    made = trajectory.provenance
    if trajectory.scenario:
        raise SignalError(
            f"episode {trajectory.episode} ran a scenario, which its root seed does not say",
            attempt="performing the scenario of its hash",
        )
    actions = trajectory.columns["action"][:-1]
    recipe = Recipe(
        policy=Tape(actions), task=task, engine=engine, sensors=tuple(sensors), seed=made.seed, realm=made.realm
    )
    with engine.open(task, 1) as sim:
        params = Params.of([trajectory.params])
        [again] = wave(recipe, sim, np.array([trajectory.episode]), params=params, watch=watch)
    return again


def score(task: Task, trajectory: Trajectory) -> Mapping[str, Array]:
    """Every reward term over the steps of a trajectory, and their weighted sum as `reward`."""
    return judged(task, scored(task, trajectory))


def wave(
    recipe: Recipe,
    sim: Sim,
    episodes: Array,
    *,
    draw: Draw | None = None,
    params: Params | None = None,
    watch: Recorder | None = None,
) -> Block:
    """Run these episodes side by side in one simulation, one a copy, each until it ends.

    Args:
        recipe: What acts, in which task and engine.
        sim: Open for the task, with a copy for each episode at least.
        episodes: Their numbers under the recipe's root seed.
        draw: Their seeds and params, where the root seed does not say them.
        params: Their params, where the belief does not say them.
        watch: Who looks on.
    """
    if len(episodes) > sim.n:
        raise SignalError(f"{len(episodes)} episodes and {sim.n} copies", attempt="a smaller batch")
    draw = recipe.draw(episodes) if draw is None else draw
    if params is not None:
        draw = replace(draw, params=params)
    sim.reset(np.arange(len(episodes)), draw.params, recipe.task.initial(draw))
    running = _Wave(recipe, sim, episodes, draw)
    step = 0
    while running.arrive(step):
        if watch is not None:
            watch.frame(sim, running.ids, step)
        running.act(step)
        step += 1
    return running.block()


@final
class _Wave:
    """Episodes in flight: what is recorded of all, and what is remembered of those that go on."""

    def __init__(self, recipe: Recipe, sim: Sim, episodes: Array, draw: Draw) -> None:
        task = self.task = recipe.task
        self.recipe, self.sim, self.episodes, self.begun = recipe, sim, episodes, draw
        self.schema = recipe.schema
        n = len(episodes)
        self.rows = np.full((task.steps + 1, n, self.schema.size), np.nan, np.float32)
        self.lengths = np.zeros(n, np.int64)
        self.outcomes = np.zeros(n, np.int8)
        self.scores = {name: np.zeros(n) for name in ("reward", *(term.name for term in task.reward))}
        # one row for each episode that goes on
        self.ids = np.arange(n)
        self.draw = draw
        self.state = np.empty((n, task.state_schema.size), np.float32)
        self.goal = task.goal(draw)
        self.memory: Memory = recipe.policy.start(task, draw.seeds)
        self.senses = Senses(task, recipe.sensors, draw)
        self.action = np.tile(centre_and_scale(task)[0].astype(np.float32), (n, 1)).reshape(n, *task.action.shape)
        self.previous = self.action
        self.broken = np.zeros(n, bool)
        self.streak = np.zeros(n, np.int64)

    def arrive(self, step: int) -> bool:
        """Read, score and record the state of this step; drop what has ended; whether any goes on."""
        task, schema = self.task, self.task.state_schema
        if self.ids.size == 0:
            return False
        read = self.sim.read()
        everyone = len(self.ids) == self.sim.n
        fresh = {name: read[name] if everyone else read[name][self.ids] for name in task.sources}
        self.draw = replace(self.draw, step=np.full(len(self.ids), step))
        with np.errstate(over="ignore", invalid="ignore"):  # a copy may have broken down, and is judged so below
            self.state = schema.pack({**fresh, **self.goal})
        ended = self._judge(step) if step > 0 else np.zeros(len(self.ids), bool)
        if step > 0 and step % task.goal_every == 0:
            self.goal = task.goal(self.draw)
            self.state = schema.pack({**fresh, **self.goal})
        sound = ~self.broken
        self.rows[step, self.ids[sound], : schema.size] = self.state[sound]
        if ended.any():
            self._keep(~ended)
        return self.ids.size > 0

    def act(self, step: int) -> None:
        """Sense, decide and step the copies that go on."""
        seen = self.senses.show(self.state, self.action, self.draw)
        action, self.memory = self.recipe.policy.act(seen, self.memory)
        before, self.action = self.action, self.task.action.check(np.ascontiguousarray(action, np.float32))
        self.previous = before if step > 0 else self.action  # nothing changed at the first step
        self._record_act(step, seen)
        finite = np.all(np.isfinite(self.action).reshape(len(self.ids), -1), axis=1)
        safe = self.action if finite.all() else np.nan_to_num(self.action, nan=0.0, posinf=0.0, neginf=0.0)
        everyone = len(self.ids) == self.sim.n
        self.sim.step(safe, None if everyone else self.ids)
        executed = self.schema.slices["executed"]
        self.rows[step, self.ids, executed] = self.sim.executed[self.ids].reshape(len(self.ids), -1)
        self.broken = self.sim.diverged[self.ids] | ~finite

    def block(self) -> Block:
        """Everything recorded, episode after episode."""
        kept = np.arange(len(self.rows))[:, None] <= self.lengths[None, :]
        return Block(
            schema=self.schema,
            rows=self.rows.transpose(1, 0, 2)[kept.T],
            episodes=self.episodes.astype(np.int64),
            seeds=self.begun.seeds,
            lengths=self.lengths,
            outcomes=self.outcomes,
            params=self.begun.params,
            scores=self.scores,
            provenance=self.recipe.provenance,
        )

    def _record_act(self, step: int, seen: Array) -> None:
        spans = self.schema.slices
        for name, where in self.task.observation.slices.items():
            if shown(name) in spans:
                self.rows[step, self.ids, spans[shown(name)]] = seen[:, where]
        self.rows[step, self.ids, spans["action"]] = self.action.reshape(len(self.ids), -1)

    def _judge(self, step: int) -> Array:
        """Score the step that led here, and say which episodes end with it."""
        done = Done(self.state, self.action, self.previous, self.draw.step, self.broken)
        terms, ended, outcome, self.streak = judge(self.task, done, self.streak)
        sound = ~self.broken
        for name, values in terms.items():
            self.scores[name][self.ids[sound]] += values[sound]
        self.rows[step - 1, self.ids[sound], self.schema.slices["reward"].start] = terms["reward"][sound]
        self.lengths[self.ids[ended]] = step
        self.outcomes[self.ids[ended]] = outcome[ended]
        return ended

    def _keep(self, going: Array) -> None:
        self.ids, self.state, self.streak = self.ids[going], self.state[going], self.streak[going]
        self.action, self.previous, self.broken = self.action[going], self.previous[going], self.broken[going]
        self.draw = Draw(self.draw.params.rows(going), self.draw.seeds[going], self.draw.step[going])
        self.goal, self.memory = rows(self.goal, going), rows(self.memory, going)
        self.senses.keep(going)
