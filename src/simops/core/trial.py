"""Trials: a policy drives robots that cannot be put anywhere, and what was seen becomes trajectories.

The same rows as a rollout's, so whatever reads one reads the other. Params are nobody's to know and left out; what
counts as executed is what the guard let through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata
from typing import final

import numpy as np

from simops.core import chance
from simops.core.judge import score
from simops.core.params import Params
from simops.core.policy import centre_and_scale
from simops.core.protocols import Memory, Policy
from simops.core.robot import Guard, Reading, Robot
from simops.core.senses import Senses, rows
from simops.core.signal import Array, Columns
from simops.core.task import Draw, Task
from simops.core.trajectory import OUTCOMES, Block, Provenance, recorded, shown

REALM = "trial"
"""Namespace of the seeds of goals: nothing that trains or judges shares one."""


def attempt(
    policy: Policy, task: Task, robot: Robot, numbers: Sequence[int], *, seed: int = 0, guard: Guard | None = None
) -> Block:
    """Try the policy on the robot, once for each number, as many side by side as there are places."""
    if not numbers:
        raise ValueError("no trial to make")
    parts: list[Block] = []
    for start in range(0, len(numbers), robot.n):
        some = np.array(numbers[start : start + robot.n], np.int64)
        parts.append(_Trials(policy, task, robot, some, seed, guard or Guard()).run())
    return joined(parts)


def joined(parts: Sequence[Block]) -> Block:
    """Blocks of one making as one block."""
    first = parts[0]
    return replace(
        first,
        rows=np.concatenate([part.rows for part in parts]),
        episodes=np.concatenate([part.episodes for part in parts]),
        seeds=np.concatenate([part.seeds for part in parts]),
        lengths=np.concatenate([part.lengths for part in parts]),
        outcomes=np.concatenate([part.outcomes for part in parts]),
        params=Params(first.params.names, np.concatenate([part.params.values for part in parts])),
        scores={name: np.concatenate([part.scores[name] for part in parts]) for name in first.scores},
    )


@final
class _Trials:
    """Trials side by side: what is recorded of all, and what is remembered of those that go on."""

    def __init__(self, policy: Policy, task: Task, robot: Robot, numbers: Array, seed: int, guard: Guard) -> None:
        self.policy, self.task, self.robot, self.guard = policy, task, robot, guard
        self.numbers, self.seed = numbers, seed
        n = len(numbers)
        seeds = chance.seeds(seed, numbers, realm=REALM)
        self.draw = Draw(Params.nominal(task.belief.params, n), seeds, np.zeros(n, np.int64))
        self.schema = recorded(task, frozenset())
        self.rows = np.full((task.steps + 1, n, self.schema.size), np.nan, np.float32)
        self.lengths = np.zeros(n, np.int64)
        self.outcomes = np.full(n, OUTCOMES.index("timeout"), np.int8)
        self.scores = {name: np.zeros(n) for name in ("reward", *(term.name for term in task.reward))}

    def run(self) -> Block:
        """All of them, to their ends."""
        task, n = self.task, len(self.numbers)
        goal: Columns = task.goal(self.draw)
        senses, memory = Senses(task, (), self.draw), self.policy.start(task, self.draw.seeds)
        rest = np.tile(centre_and_scale(task)[0].astype(np.float32), (n, 1)).reshape(n, *task.action.shape)
        action, before, going = rest, None, np.arange(n)
        reading = self.robot.ready(self.numbers, goal)
        state = self._state(reading, goal)
        self.rows[0, :, : task.state_schema.size] = state
        for step in range(task.steps):
            if not going.size:
                break
            now = replace(self.draw, step=np.full(n, step))
            if step and step % task.goal_every == 0:
                goal = task.goal(now)
                state = self._state(reading, goal)
                self.rows[step, going, : task.state_schema.size] = state[going]
            seen = senses.show(state, action, now)
            asked, memory = self._decided(seen, memory, going, action)
            bad = np.zeros(n, bool)
            bad[going] = self.guard.violated(task, rows(reading.columns, going), asked[going])
            if bad.any():
                self.robot.stop(np.flatnonzero(bad))
            passed = self.guard.passed(task, asked, before)
            previous, action, before = (action if step else passed), passed, passed
            reading = self.robot.act(passed, goal)
            self._note(step, going, seen, asked, passed)
            state = self._state(reading, goal)
            self._arrive(step + 1, going, state, passed, previous)
            over = reading.ended[going]
            self.lengths[going], self.outcomes[going[over]] = step + 1, reading.outcome[going[over]]
            going = going[~over]
        return self._block()

    def _decided(self, seen: Array, memory: Memory, going: Array, action: Array) -> tuple[Array, Memory]:
        """What the policy asks for where a trial goes on, and what stood before elsewhere."""
        act = self.policy.act(seen, memory)
        asked = action.copy()
        asked[going] = np.asarray(act.action, np.float32).reshape(action.shape)[going]
        return asked, act.memory

    def _state(self, reading: Reading, goal: Columns) -> Array:
        return self.task.state_schema.pack({**reading.columns, **goal})

    def _note(self, step: int, going: Array, seen: Array, asked: Array, passed: Array) -> None:
        spans = self.schema.slices
        for name, where in self.task.observation.slices.items():
            if shown(name) in spans:
                self.rows[step, going, spans[shown(name)]] = seen[going][:, where]
        for name, values in (("action", asked), ("executed", passed)):
            self.rows[step, going, spans[name]] = values[going].reshape(len(going), -1)

    def _arrive(self, step: int, going: Array, state: Array, action: Array, previous: Array) -> None:
        columns = {
            **self.task.state_schema.unpack(state[going]),
            "action": action[going],
            "previous_action": previous[going],
            "time_s": np.full(len(going), step * self.task.control_dt_s, np.float32),
        }
        with np.errstate(invalid="ignore", over="ignore"):
            terms = score(self.task, columns)
        for name, values in terms.items():
            self.scores[name][going] += values
        self.rows[step - 1, going, self.schema.slices["reward"].start] = terms["reward"]
        self.rows[step, going, : self.task.state_schema.size] = state[going]

    def _block(self) -> Block:
        kept = np.arange(len(self.rows))[:, None] <= self.lengths[None, :]
        n = len(self.numbers)
        return Block(
            schema=self.schema,
            rows=self.rows.transpose(1, 0, 2)[kept.T],
            episodes=self.numbers,
            seeds=self.draw.seeds,
            lengths=self.lengths,
            outcomes=self.outcomes,
            params=Params((), np.empty((n, 0))),
            scores=self.scores,
            provenance=provenance(self.task, self.policy, self.robot, self.seed),
        )


def provenance(task: Task, policy: Policy, robot: Robot, seed: int) -> Provenance:
    """Where trials come from: a robot that tells its identity, and nothing of what is inside."""
    return Provenance(
        engine="robot",
        simulator=f"{robot.origin} {robot.identity}",
        task=task.name,
        policy=policy.digest,
        seed=seed,
        realm=REALM,
        origin=robot.origin,
        packages=(f"simops {metadata.version('simops')}", f"numpy {np.__version__}"),
    )
