"""Somebody else's vector environment, timed by its own loop; run by the Python that has it, without simops.

    python vector.py (envpool | async | sync) COPIES [BATCH]

Answers every line of its standard input with one line of JSON: "facts" with what can be compared,
a number of seconds with what was done in about that time.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

NAME = "Ant-v4"
"""27 numbers to observe and no contact forces: the least that a peer can be asked for."""
THREADS = 2
PLANS = 64
"""Actions drawn beforehand, so that drawing them is not timed."""


class Peer(Protocol):
    """What is timed."""

    def facts(self) -> dict[str, Any]:
        """What of the model and of its way can be compared."""
        ...

    def run(self, seconds: float) -> dict[str, float]:
        """Step for about that time."""
        ...


class Tally:
    """What a learner keeps count of anyway."""

    def __init__(self, workers: Sequence[int] = ()) -> None:
        self._workers = workers
        self.began, self._busy = time.perf_counter(), self._cpu()
        self.rows, self.ended, self.reward = 0, 0, 0.0

    def add(self, step: tuple[Any, ...]) -> None:
        """Count what a vector environment gave back."""
        _, reward, terminated, truncated, _ = step
        self.rows += len(reward)
        self.ended += int(np.count_nonzero(terminated | truncated))
        self.reward += float(reward.sum())

    @property
    def seconds(self) -> float:
        """Since the turn began."""
        return time.perf_counter() - self.began

    def result(self, resets: int) -> dict[str, float]:
        """Rows that only show the beginning of an episode took no physics, so they do not count."""
        done = {"steps": self.rows - resets, "ended": self.ended, "reward": self.reward}
        return {"seconds": self.seconds, "cpu": self._cpu() - self._busy, **done}

    def _cpu(self) -> float:
        """Processor seconds of this process and of its workers; without those where the system does not say."""
        told = [Path(f"/proc/{pid}/schedstat") for pid in self._workers]
        return time.process_time() + sum(int(file.read_text().split()[0]) * 1e-9 for file in told if file.exists())


class Lockstep:
    """A vector environment in which all copies take a step together."""

    def __init__(self, env: Any, copies: int, facts: dict[str, Any]) -> None:  # noqa: ANN401
        self._env, self._facts, self._at, self._resets = env, facts, 0, 0
        self._workers = [process.pid for process in getattr(env, "processes", ())]
        self._plans = _plans(copies)
        self._observation = env.reset()[0]

    def facts(self) -> dict[str, Any]:
        """What of the model can be compared, and one step: from where, with what, to where."""
        before, action = self._observation, self._plans[0]
        self._observation = self._env.step(action)[0]
        return {
            **self._facts,
            "before": before.tolist(),
            "action": action.tolist(),
            "after": self._observation.tolist(),
        }

    def run(self, seconds: float) -> dict[str, float]:
        """Step for about that time."""
        tally, resets = Tally(self._workers), 0
        while tally.seconds < seconds:
            resets += self._resets  # the copies that ended show their beginning in the step that follows
            before = tally.ended
            self._at = (self._at + 1) % PLANS
            step = self._env.step(self._plans[self._at])
            tally.add(step)
            self._resets = tally.ended - before
        return tally.result(resets)


class InTurn:
    """EnvPool as it comes: whichever copies are ready first are stepped first."""

    def __init__(self, env: Any, copies: int, batch: int) -> None:  # noqa: ANN401
        self._env, self._copies, self._batch = env, copies, batch
        self._at, self._resets = 0, 0
        self._plans = _plans(copies)
        self._over = np.zeros(copies, bool)
        env.async_reset()
        self._all(Tally())

    def facts(self) -> dict[str, Any]:
        """Nothing that the same environment in lockstep would not say."""
        return {}

    def run(self, seconds: float) -> dict[str, float]:
        """Step for about that time."""
        tally = Tally()
        self._resets = 0
        self._env.send(self._plans[self._at], np.arange(self._copies, dtype=np.int32))
        while tally.seconds < seconds:
            ids = self._take(tally)
            self._at = (self._at + 1) % PLANS
            self._env.send(self._plans[self._at][ids], ids)
        self._all(tally)  # nothing may be under way while others are timed
        return tally.result(self._resets)

    def _take(self, tally: Tally) -> Any:  # noqa: ANN401
        step = self._env.recv()
        ids = step[4]["env_id"]
        self._resets += int(np.count_nonzero(self._over[ids]))
        self._over[ids] = step[2] | step[3]
        tally.add(step)
        return ids

    def _all(self, tally: Tally) -> None:
        for _ in range(self._copies // self._batch):
            self._take(tally)


def main() -> None:
    kind, copies = sys.argv[1], int(sys.argv[2])
    batch = int(sys.argv[3]) if len(sys.argv) > 3 else copies
    peer = _envpool(copies, batch) if kind == "envpool" else _gymnasium(kind, copies)
    for line in sys.stdin:
        asked = line.strip()
        print(json.dumps(peer.facts() if asked == "facts" else peer.run(float(asked))), flush=True)


def _envpool(copies: int, batch: int) -> Peer:
    import envpool

    env = envpool.make(NAME, env_type="gymnasium", num_envs=copies, batch_size=batch, num_threads=THREADS)
    config = env.spec.config
    facts = {"version": f"envpool {envpool.__version__}", "frame_skip": config.frame_skip}
    return Lockstep(env, copies, facts) if batch == copies else InTurn(env, copies, batch)


def _gymnasium(kind: str, copies: int) -> Peer:
    import gymnasium
    import mujoco

    gymnasium.logger.min_level = gymnasium.logger.ERROR
    one: Any = gymnasium.make(NAME).unwrapped
    model = one.model
    facts = {
        "version": f"gymnasium {gymnasium.__version__}, mujoco {mujoco.__version__}",
        "frame_skip": one.frame_skip,
        "path": one.fullpath,
        "nq": model.nq,
        "nv": model.nv,
        "nu": model.nu,
        "ngeom": model.ngeom,
        **{name: getattr(model.opt, name) for name in ("timestep", "integrator", "cone", "impratio", "solver")},
        **{name: getattr(model.opt, name) for name in ("iterations", "tolerance")},
    }
    facts = {name: getattr(value, "item", lambda value=value: value)() for name, value in facts.items()}
    return Lockstep(gymnasium.make_vec(NAME, copies, vectorization_mode=kind), copies, facts)


def _plans(copies: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, (PLANS, copies, 8)).astype(np.float32)


if __name__ == "__main__":
    main()
