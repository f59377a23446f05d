"""Proximal policy optimisation: the algorithm and storage of rsl_rl, on copies of our own simulation."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Annotated, final

import numpy as np
import torch

from simops.core.belief import Belief
from simops.core.contract import Contract
from simops.core.env import Env, Step
from simops.core.errors import DataError, EngineError, Problem, SpecError
from simops.core.judge import DIVERGED
from simops.core.policy import centre_and_scale
from simops.core.protocols import Sim
from simops.core.task import Draw
from simops.core.training import Course, Dump, Lap
from simops.learn.checkpoint import Saved, actor_of, pack, unpack
from simops.learn.curriculum import Curriculum, Progress, Shrunk
from simops.learn.network import EPS, LIMIT, Network
from simops.learn.policy import Learned
from simops.learn.quarantine import Ended, Ring
from simops.learn.rsl import Inputs, Learner, NotFiniteError
from simops.learn.symmetry import require_symmetric
from simops.learn.tally import Pay, Split, Tally
from simops.spec.bounds import Above, AtLeast, AtMost, Below

STRIKES = 3
"""Gradients in a row that are no numbers before training stops."""
MOST_BROKEN = 0.01
"""Share of the copies that may break down between two checkpoints."""
CALMEST = 0.1
"""Of `target_kl`, at the end of a training that settles."""
WIDE = Network(hidden=(256, 128, 64))


@final
@dataclass(frozen=True, kw_only=True)
class Ppo:
    """Proximal policy optimisation with a critic that sees the true state."""

    laps: Annotated[int, AtLeast(1)] = 200
    """Rounds of collecting and learning."""
    copies: Annotated[int, AtLeast(1), AtMost(1_000_000)] = 1024
    """Copies of the scene that run side by side."""
    steps: Annotated[int, AtLeast(2)] = 24
    """Control steps of every copy in one lap."""
    epochs: Annotated[int, AtLeast(1)] = 5
    """How often a lap's steps are learned from."""
    minibatches: Annotated[int, AtLeast(1)] = 4
    """Parts that a lap's steps are learned from in."""
    learning_rate: Annotated[float, Above(0.0)] = 1e-3
    """To begin with, where it adapts."""
    critic_rate: Annotated[float, AtLeast(0.0)] = 0.0
    """Learning rate of the critic; 0 for that of the actor, which adapting may bring down to a crawl."""
    target_kl: Annotated[float, AtLeast(0.0)] = 0.01
    """The learning rate adapts so that the policy moves by about this much; 0 keeps the learning rate."""
    settle: Annotated[float, AtLeast(0.0), AtMost(1.0)] = 0.0
    """Share of the laps, the last ones, over which `target_kl` and `entropy` fall: what has been found is refined."""
    clip: Annotated[float, Above(0.0)] = 0.2
    """How far an action's probability may move in one lap before it no longer pays."""
    discount: Annotated[float, Above(0.0), Below(1.0)] = 0.99
    """What the next step's reward is worth now."""
    smoothing: Annotated[float, AtLeast(0.0), AtMost(1.0)] = 0.95
    """Lambda of the generalised advantage."""
    entropy: Annotated[float, AtLeast(0.0)] = 0.005
    """Reward for acting at random."""
    value_weight: Annotated[float, Above(0.0)] = 1.0
    """Weight of the critic's error."""
    max_gradient: Annotated[float, Above(0.0)] = 1.0
    """Longer gradients are cut."""
    actor: Network = WIDE
    """The network that acts."""
    critic: Network = WIDE
    """The network that judges; it remembers if the one that acts does."""
    normalise_observations: bool = True
    """Bring inputs to zero mean and unit spread; the policy takes the numbers along."""
    symmetric: bool = False
    """Networks that do on the left what they do on the right; the task says what a mirror makes of its signals."""
    normalise_rewards: bool = True
    """Bring returns to unit spread, so that only the ratios of the reward's weights matter."""
    curriculum: Curriculum = field(default_factory=Curriculum)
    checkpoint_every: Annotated[int, AtLeast(1)] = 50
    """Laps between checkpoints; every copy begins a new episode there."""
    threads: Annotated[int, AtLeast(1)] = 1
    """Threads of the networks; part of the recipe, for sums depend on it."""

    @contextmanager
    def open(self, course: Course, *, checkpoint: bytes = b"") -> Generator[PpoTraining]:
        """Begin, or go on from a checkpoint."""
        if self.copies * self.steps < self.minibatches or (self.actor.memory and self.copies < self.minibatches):
            what = f"{self.minibatches} parts of {self.copies} copies and {self.steps} steps"
            raise SpecError("trainer", [Problem("minibatches", what, attempt="fewer", fault="CFG-005")])
        if self.symmetric:
            require_symmetric(course.task, (self.actor, self.critic))
        saved = unpack(checkpoint) if checkpoint else None
        with _pinned(self.threads), course.engine.open(course.task, self.copies) as sim:
            yield PpoTraining(self, course, sim, saved)

    def options(self) -> dict[str, object]:
        """What the algorithm is told."""
        return {
            "normalise": self.normalise_observations,
            "symmetric": self.symmetric,
            "critic_rate": self.critic_rate,
            "num_learning_epochs": self.epochs,
            "num_mini_batches": self.minibatches,
            "clip_param": self.clip,
            "gamma": self.discount,
            "lam": self.smoothing,
            "value_loss_coef": self.value_weight,
            "entropy_coef": self.entropy,
            "learning_rate": self.learning_rate,
            "max_grad_norm": self.max_gradient,
            "use_clipped_value_loss": False,
            "schedule": "adaptive" if self.target_kl else "fixed",
            "desired_kl": self.target_kl or None,
        }


@final
class PpoTraining:
    """A training under way."""

    def __init__(self, ppo: Ppo, course: Course, sim: Sim, saved: Saved | None) -> None:
        """Begin, or go on from what was saved."""
        self._ppo, self._course, self._sim, self._task = ppo, course, sim, course.task
        self.done = self._strikes = self._first = 0
        self._level = Progress(ppo.curriculum.start)
        self._pay = Pay(ppo.discount if ppo.normalise_rewards else None)
        critic = replace(ppo.critic, memory=ppo.actor.memory)
        with torch.random.fork_rng(devices=[]):  # type: ignore[reportUnknownMemberType]
            torch.manual_seed(course.seed)  # type: ignore[reportUnknownMemberType]
            self.learner: Learner = Learner(course.task, (ppo.copies, ppo.steps), (ppo.actor, critic), ppo.options())
            self._random = torch.get_rng_state()
        if saved is not None:
            self._restore(saved)
        elif course.begun:
            self._take_over(unpack(course.begun))
        centre, scale = centre_and_scale(course.task)
        self._centre, self._scale = centre.astype(np.float32), scale.astype(np.float32)
        self._ring = Ring(course.task, sim.n)
        self._figures: dict[str, float] = {}
        self._broken: set[int] = set()
        self._earned = np.zeros(sim.n)
        self._scored = np.zeros((sim.n, len(self._task.reward)), np.float32)
        self._pay.begin(sim.n)
        self._env = self._opened()

    @property
    def laps(self) -> int:
        """Laps in all."""
        return self._ppo.laps

    @property
    def due(self) -> bool:
        """Whether a checkpoint taken now continues with the very bytes that this training continues with."""
        return self.done % self._ppo.checkpoint_every == 0 or self.done == self.laps

    @property
    def policy(self) -> Learned:
        """What has been learned so far, acting without noise."""
        return Learned(actor_of(unpack(self.checkpoint())))

    def advance(self) -> Lap:
        """Collect and learn once."""
        self._refuse_broken()
        tally, dumps = Tally(self._task), list[Dump]()
        busy, start = self._sim.busy_s, time.perf_counter()
        with torch.random.fork_rng(devices=[]):  # type: ignore[reportUnknownMemberType]
            torch.set_rng_state(self._random)
            for _ in range(self._ppo.steps):
                dumps.extend(self._step(tally))
            collected, physics = time.perf_counter(), self._sim.busy_s - busy
            self._calm()
            losses = self._learn()
            self._random = torch.get_rng_state()
        self.done += 1
        learned = time.perf_counter()
        self._open_up(tally)
        if self.done % self._ppo.checkpoint_every == 0:
            self._begin()
        split = Split(physics, collected - start - physics, learned - collected)
        return Lap(self.done, self._tell(tally, losses, split), tuple(dumps))

    def checkpoint(self) -> bytes:
        """Everything that the rest of the training depends on; when it is not `due`, all but where the copies are."""
        tensors = {**self.learner.tensors(), **self._pay.tensors(), "random.torch": self._random}
        network = self._ppo.actor
        body = {
            "recipe": self._recipe(),
            "contract": Contract.of(self._task).body(),
            "actor": {
                "hidden": list(network.hidden),
                "activation": network.activation,
                "memory": network.memory,
                "limit": LIMIT if self._ppo.normalise_observations else 0.0,
                "eps": EPS,
                "centre": self._centre.tolist(),
                "scale": self._scale.tolist(),
            },
            "lap": self.done,
            "episode": self._first if self.due else self._env.begun,
            "learning_rate": self.learner.learning_rate,
            "strikes": self._strikes,
            "level": self._level.level,
            "tried": self._level.tried,
            "succeeded": self._level.succeeded,
        }
        return pack(tensors, body)

    def _step(self, tally: Tally) -> list[Dump]:
        env, task = self._env, self._task
        raw = self.learner.act(self._inputs())
        action = task.action.clip((self._centre + self._scale * raw).reshape(len(raw), *task.action.shape))
        self._ring.note(env.state, action)
        step = env.step(action)
        over = step.terminated | step.truncated
        scored = np.stack([step.terms[term.name] for term in task.reward], axis=1).astype(np.float32)
        reward = self._pay.scaled(step.reward, over)
        out = step.truncated[step.ended]
        if out.any():
            ids = step.ended[out]
            ahead = self.learner.value(Inputs(step.last[out], np.hstack([step.last_state[out], scored[ids]])), ids)
            reward[ids] += np.float32(self._ppo.discount) * ahead
        scored[step.ended] = 0.0
        self._scored = np.nan_to_num(scored, nan=0.0, posinf=0.0, neginf=0.0)
        self.learner.record(self._inputs(), reward, over)
        self._earned += step.reward
        tally.take(step, self._earned[step.ended])
        self._earned[step.ended] = 0.0
        return [self._dump(step, int(i)) for i in np.flatnonzero(step.outcome == DIVERGED)]

    def _inputs(self) -> Inputs:
        """What the networks may see now: the critic knows the state, and what each term of the reward just said."""
        return Inputs(self._env.observation, np.hstack([self._env.state, self._scored]))

    def _dump(self, step: Step, row: int) -> Dump:
        copy = int(step.ended[row])
        self._broken.add(copy)
        draw = Draw(
            step.draw.params.rows(slice(row, row + 1)), step.draw.seeds[row : row + 1], step.draw.step[row : row + 1]
        )
        return self._ring.dump(self._course, Ended(copy, int(step.episode[row]), int(step.length[row]), draw))

    def _calm(self) -> None:
        """Search less as the end comes near."""
        ppo = self._ppo
        if ppo.settle > 0.0:
            left = min(1.0, (ppo.laps - self.done) / (ppo.settle * ppo.laps))
            self.learner.search(ppo.target_kl * max(left, CALMEST), ppo.entropy * left)

    def _learn(self) -> dict[str, float]:
        self._pay.close()
        if self.done < self._only_looked:
            self.learner.look()
            return {}
        try:
            losses = self.learner.learn(self._inputs())
        except NotFiniteError as error:
            self._strikes += 1
            if self._strikes >= STRIKES:
                what = f"the gradient was not a number {STRIKES} times in a row"
                attempt = "a lower learning_rate, or reward terms that stay finite"
                raise SpecError("trainer", [Problem("", what, attempt=attempt, fault="TRN-003")]) from error
            self.learner.slow()
            return {"strikes": float(self._strikes)}
        self._strikes = 0
        return losses

    @property
    def _only_looked(self) -> int:
        """Laps at the beginning that only tell how large things are."""
        return int(self._ppo.normalise_observations or self._ppo.normalise_rewards)

    def _begin(self) -> None:
        """Begin a new episode in every copy, so that what follows depends on nothing but what a checkpoint holds."""
        self._first, self._broken = self._env.begun, set[int]()
        self._env = self._opened()
        self._earned = np.zeros(self._sim.n)
        self._scored = np.zeros_like(self._scored)
        self._pay.begin(self._sim.n)
        self.learner.forget()

    def _opened(self) -> Env:
        course = self._course
        return Env(
            course.task,
            self._sim,
            sensors=course.sensors,
            belief=self._believed(),
            seed=course.seed,
            first=self._first,
            stagger=True,
        )

    def _believed(self) -> Belief:
        whole = self._course.belief or self._task.belief
        return whole if self._level.level == 1.0 else Shrunk(whole, self._level.level)

    def _open_up(self, tally: Tally) -> None:
        if self._level.move(self._ppo.curriculum, tally.ended, tally.succeeded):
            self._env.believe(self._believed())

    def _refuse_broken(self) -> None:
        """Stop if too many copies broke down since all began anew."""
        if len(self._broken) > max(1.0, MOST_BROKEN * self._sim.n):
            what = f"{len(self._broken)} of {self._sim.n} copies broke down"
            attempt = (
                "a smaller physics step, a narrower belief, or narrower action limits; see the dumps of the episodes"
            )
            raise EngineError(what, where=f"lap {self.done}", attempt=attempt, fault="TRN-001")

    def _tell(self, tally: Tally, losses: Mapping[str, float], split: Split) -> dict[str, float]:
        wall = sum(split)
        self._figures |= tally.figures() | {f"loss/{name}": number for name, number in losses.items()}
        self._figures |= {
            "steps": float(self.done * self._ppo.steps * self._sim.n),
            "steps_per_s": tally.steps / wall,
            "wall_s": wall,
            **split._asdict(),
            "noise": self.learner.std,
            "learning_rate": self.learner.learning_rate,
            "level": self._level.level,
            "broken": float(tally.diverged),
        }
        return {name: number for name, number in self._figures.items() if math.isfinite(number)}

    def _recipe(self) -> str:
        """One digest over all that a lap's bytes depend on; how many laps there are is not, unless it settles."""
        course, task = self._course, self._task
        weights = [(term.name, term.weight) for term in task.reward]
        parts = (
            self._ppo if self._ppo.settle > 0.0 else replace(self._ppo, laps=1),
            course.engine,
            course.engine.version(task),
            course.sensors,
            course.belief or task.belief,
            course.seed,
            task.name,
            weights,
            Contract.of(task).digest,
            torch.__version__,
            *([hashlib.sha256(course.begun).hexdigest()] if course.begun else []),
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def _take_over(self, saved: Saved) -> None:
        """Begin with another training's networks and what they know of their inputs, and with nothing else of it."""
        found = Contract.parse(saved.said("contract")).differences(Contract.of(self._task))
        if found:
            what = f"the checkpoint to begin from is of another contract: {found[0].what}"
            raise DataError(what, attempt="one that was trained for this task", fault="TRN-012")
        try:
            self.learner.take_over(saved.tensors, least_std=self._ppo.actor.init_std / 3)
            self._pay.restore(saved.under("pay"))
        except (RuntimeError, KeyError, ValueError) as error:
            what = f"the checkpoint to begin from has other networks: {str(error).splitlines()[0]}"
            raise DataError(what, attempt="networks of the same size, or beginning anew", fault="TRN-012") from error

    def _restore(self, saved: Saved) -> None:
        if saved.said("recipe") != self._recipe():
            what = "the checkpoint is of another training: task, engine, belief, seed, reward or trainer differ"
            raise DataError(what, attempt="the spec it was made from, or another folder", fault="TRN-012")
        self.done, self._first, self._strikes = (int(saved.said(name)) for name in ("lap", "episode", "strikes"))
        progress = (saved.said(name) for name in ("level", "tried", "succeeded"))
        self._level = Progress(*progress)
        try:
            self.learner.restore(saved.tensors, float(saved.said("learning_rate")))
            self._pay.restore(saved.under("pay"))
            self._random = saved.under("random")["torch"]
        except (RuntimeError, KeyError, ValueError) as error:
            what = f"the checkpoint is not complete: {str(error).splitlines()[0]}"
            raise DataError(what, attempt="an earlier checkpoint, or training anew", fault="TRN-012") from error
        if self.done > self._only_looked + self._strikes and not saved.under("optimizer"):
            raise DataError("the checkpoint has no optimizer", fault="TRN-012")


@contextmanager
def _pinned(threads: int) -> Generator[None]:
    """The same sums in the same order, whatever else this process does."""
    before, strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(mode=True)  # type: ignore[reportUnknownMemberType]
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(mode=strict)  # type: ignore[reportUnknownMemberType]
        torch.set_num_threads(before)
