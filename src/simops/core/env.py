"""Endless episodes for a learner: a copy that ends begins anew at once, at freshly drawn params.

Terminated and truncated are kept apart, and what an ended episode would have shown next is handed
over, so that a learner can bootstrap where time ran out and only there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, final

import numpy as np

from simops.core import chance
from simops.core.belief import Belief
from simops.core.judge import TIMEOUT, Done, judge
from simops.core.policy import centre_and_scale
from simops.core.protocols import Sensor, Sim
from simops.core.senses import Senses, replaced
from simops.core.signal import Array, Columns, every_row
from simops.core.task import Draw, Task


class Step(NamedTuple):
    """What a learner gets for its actions; one row a copy."""

    observation: Array
    """Of the next step; of the new episode where one ended."""
    reward: Array
    terminated: Array
    """Ended by success, failure or divergence: nothing follows."""
    truncated: Array
    """Ended by the horizon: more would have followed."""
    ended: Array
    """Which copies, sorted."""
    last: Array
    """What those copies would have been shown next, (len(ended), observation size)."""
    last_state: Array
    """The packed state of those copies at their end, for a critic."""
    outcome: Array
    """How those episodes ended, indices into OUTCOMES."""
    length: Array
    """How many steps those episodes had."""
    episode: Array
    """The numbers of those episodes."""
    draw: Draw
    """What those episodes were drawn from."""
    terms: Mapping[str, Array]
    """Each reward term."""


@final
class Env:
    """`sim.n` copies of a task that never run out of episodes."""

    def __init__(
        self,
        task: Task,
        sim: Sim,
        *,
        sensors: Sequence[Sensor] = (),
        belief: Belief | None = None,
        seed: int = 0,
        realm: str = "train",
        first: int = 0,
        stagger: bool = False,
    ) -> None:
        """Begin episodes `first` to `first` + n - 1 of the root seed.

        With `stagger` these first ones stand at steps of their own, as if they had gone on for that long, so that
        copies do not run out of time all at once.
        """
        self.task, self.sim = task, sim
        self._belief, self._seed, self._realm = belief or task.belief, seed, realm
        n = sim.n
        self.begun = first + n
        """How many episodes have begun, those before `first` included."""
        self.episode = np.arange(first, first + n)
        """The number of each copy's episode."""
        self._draw = self._drawn(self.episode)
        self._offset = np.zeros(n, np.int64)
        if stagger:
            ages = chance.uniform(self._draw.seeds, "env/stagger") * task.steps
            self._offset = np.floor(ages).astype(np.int64)
            self._draw = replace(self._draw, step=self._offset)
        self._goal: Columns = task.goal(self._draw)
        self._senses = Senses(task, sensors, self._draw)
        centre = np.tile(centre_and_scale(task)[0].astype(np.float32), (n, 1))
        self._rest = centre.reshape(n, *task.action.shape)
        self._action = self._rest
        self._streak = np.zeros(n, np.int64)
        sim.reset(np.arange(n), self._draw.params, task.initial(self._draw))
        self.state = task.state_schema.pack({**sim.read(), **self._goal})
        """Packed state of every copy, for a critic that may know more than the policy."""
        self.observation = self._senses.show(self.state, self._action, self._draw)

    def step(self, action: Array) -> Step:
        """Take one action a copy, in physical units."""
        task, sim = self.task, self.sim
        asked = np.array(action, np.float32, order="C").reshape(self._rest.shape)  # theirs may be used again
        finite = every_row(np.isfinite(asked))
        asked = asked if finite.all() else np.nan_to_num(asked, nan=0.0, posinf=0.0, neginf=0.0)
        first = self._draw.step == self._offset
        previous, self._action = self._action, asked
        if first.any():
            previous = np.where(first.reshape(-1, *([1] * (asked.ndim - 1))), asked, previous)
        sim.step(asked)
        self._draw = Draw(self._draw.params, self._draw.seeds, self._draw.step + 1)
        self.state = task.state_schema.pack({**sim.read(), **self._goal})
        broken = sim.diverged | ~finite
        done = Done(self.state, asked, previous, self._draw.step, broken)
        terms, over, outcome, self._streak = judge(task, done, self._streak)
        self._set_goals()
        self.observation = self._senses.show(self.state, asked, self._draw)
        ended = np.flatnonzero(over)
        last, length = self.observation[ended], self._draw.step[ended] - self._offset[ended]
        last_state, episode, of = self.state[ended], self.episode[ended], self._rows(ended)
        if ended.size:
            self._restart(ended)
        return Step(
            observation=self.observation,
            reward=np.where(broken, np.float32(0), terms["reward"]),
            terminated=over & (outcome != TIMEOUT),
            truncated=over & (outcome == TIMEOUT),
            ended=ended,
            last=last,
            last_state=last_state,
            outcome=outcome[ended],
            length=length,
            episode=episode,
            draw=of,
            terms=terms,
        )

    def believe(self, belief: Belief) -> None:
        """Draw the params of episodes that begin from now on from `belief`, over the same params."""
        self._belief = belief

    def _rows(self, ids: Array) -> Draw:
        return Draw(self._draw.params.rows(ids), self._draw.seeds[ids], self._draw.step[ids])

    def _drawn(self, episodes: Array) -> Draw:
        seeds = chance.seeds(self._seed, episodes, realm=self._realm)
        return Draw(self._belief.sample(seeds), seeds, np.zeros(len(episodes), np.int64))

    def _set_goals(self) -> None:
        if not self.task.goal_signals.signals:
            return
        due = np.flatnonzero(self._draw.step % self.task.goal_every == 0)
        if due.size:
            self._put_goals(due, self.task.goal(self._rows(due)))

    def _put_goals(self, ids: Array, goals: Columns) -> None:
        self._goal = replaced(self._goal, ids, goals)
        spans = self.task.state_schema.slices
        for name, rows in goals.items():
            self.state[ids, spans[name]] = rows.reshape(len(ids), -1)

    def _restart(self, ids: Array) -> None:
        task = self.task
        self.episode = self.episode.copy()
        self.episode[ids] = np.arange(self.begun, self.begun + len(ids))
        self.begun += len(ids)
        draw = self._drawn(self.episode[ids])
        self._offset = self._offset.copy()
        self._offset[ids] = 0
        params = self._draw.params.values.copy()
        params[ids] = draw.params.values
        seeds, step = self._draw.seeds.copy(), self._draw.step.copy()
        seeds[ids], step[ids] = draw.seeds, 0
        self._draw = Draw(replace(self._draw.params, values=params), seeds, step)
        self.sim.reset(ids, draw.params, task.initial(draw))
        self._streak[ids] = 0
        self._action = self._action.copy()
        self._action[ids] = self._rest[ids]
        fresh = {name: column[ids] for name, column in self.sim.read().items()}
        goal = task.goal(draw)
        self._goal = replaced(self._goal, ids, goal)
        self.state[ids] = task.state_schema.pack({**fresh, **goal})
        self.observation = self.observation.copy()
        self.observation[ids] = self._senses.begin(ids, self.state[ids], self._action[ids], draw)
