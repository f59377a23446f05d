"""What if: failures replayed with one thing changed, so that what changes the end is what they come from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, final

import numpy as np

from simops.core import chance, marginal
from simops.core.belief import Belief
from simops.core.errors import SimOpsError
from simops.core.failure import Evidence
from simops.core.perform import run as perform
from simops.core.plugin import Registry
from simops.core.protocols import Engine, Policy, Sensor
from simops.core.rollout import Recipe, wave
from simops.core.scenario import Scenario
from simops.core.signal import Array
from simops.core.simulator import Simulator
from simops.core.task import Task
from simops.core.trajectory import OUTCOMES, Block, Trajectory
from simops.ops import learn
from simops.ops.windows import kinematic

T = TypeVar("T")
REALM = "diagnosis"
EPISODES = 48
MOST = 24
"""Failures, or trials, that are replayed."""


@final
@dataclass(frozen=True, kw_only=True)
class Ground:
    """What is diagnosed: a policy, what trained it, and where it failed."""

    policy: Policy
    task: Task
    """With its reward as it was trained, and its own belief of where episodes begin."""
    simulator: Simulator
    """What is believed of the world."""
    trained_in: Belief
    """What worlds the training drew."""
    judge: Engine
    """Where the gate's scenarios failed."""
    sensors: tuple[Sensor, ...] = ()
    failed: tuple[Scenario, ...] = ()
    """Of the gate."""
    trials: tuple[Trajectory, ...] = ()
    """On the robot."""
    metrics: Path | None = None
    """Figures of the training, lap by lap."""
    window_s: float = 0.2

    @property
    def centre(self) -> Mapping[str, float]:
        """The middle of what is believed."""
        whole = marginal.beside(self.task.belief, self.simulator.belief)
        values: list[float] = marginal.moments(whole).mean.tolist()
        return dict(zip((param.name for param in whole.params), values, strict=True))


class Ended(NamedTuple):
    """Episodes that were run."""

    success: Array
    """(n,) whether each did."""
    score: Array
    """(n,) return of each."""
    blocks: tuple[Block, ...]


def evidence(ground: Ground) -> Evidence:
    """Every counterfactual that there is something to replay for."""
    own = within(ground, ground.policy)
    found = Evidence(trained=float(own.success.mean()), preferred=preferred(ground, own), rising=rising(ground.metrics))
    if ground.failed:
        some = _some(ground.failed)
        moved = [replace(one, params={**one.params, **_physical(ground)}, disturbances=()) for one in some]
        found = replace(
            found,
            failed=len(ground.failed),
            mended_by_engine=float(played(ground, some, ground.simulator.engine).success.mean()),
            mended_by_centre=float(played(ground, moved, ground.judge).success.mean()),
            outside=float(np.mean([not covered(ground, one) for one in some])),
        )
    if ground.trials:
        some = _some(ground.trials)
        wires = miswired(ground)
        found = replace(
            found,
            trials=len(ground.trials),
            real=float(np.mean([one.outcome == "success" for one in ground.trials])),
            predicted=float(played(ground, [begun(ground, t) for t in some], ground.simulator.engine).success.mean()),
            error=wires[0][0],
            error_miswired=wires[1][0] if len(wires) > 1 else None,
            wire=wires[1][1] if len(wires) > 1 else "",
        )
    return found


def within(ground: Ground, policy: Policy, n: int = EPISODES) -> Ended:
    """Episodes in the very worlds of the training, from where the task begins."""
    own = {param.name for param in ground.task.belief.params if not param.changes}
    kept = marginal.keep(ground.task.belief, sorted(own))
    belief = ground.trained_in if kept is None else marginal.beside(ground.trained_in, kept)
    task = replace(ground.task, belief=belief)
    recipe = Recipe(policy=policy, task=task, engine=ground.simulator.engine, sensors=ground.sensors, realm=REALM)
    with recipe.engine.open(task, n) as sim:
        return _ended([wave(recipe, sim, np.arange(n))])


def played(ground: Ground, scenarios: Sequence[Scenario], engine: Engine, *, honest: bool = False) -> Ended:
    """Scenarios in an engine; with `honest`, every sensor tells the truth."""
    sensors = () if honest else ground.sensors
    task = replace(ground.task, belief=marginal.beside(ground.task.belief, ground.simulator.belief))
    recipe = Recipe(policy=ground.policy, task=task, engine=engine, sensors=sensors, realm=REALM)
    return _ended(perform(recipe, list(scenarios), batch=64))


def begun(ground: Ground, trial: Trajectory) -> Scenario:
    """The scenario that is most like a trial: it begins there, at the middle of what is believed."""
    names = [r.signal.name for r in ground.task.state]
    settable = set(kinematic(ground.task, ground.simulator.engine))
    initial = {
        name: tuple(float(v) for v in trial.columns[name][0].reshape(-1).tolist()) for name in names if name in settable
    }
    seed = int(chance.seeds(0, np.array([trial.episode]), realm=REALM)[0])
    name = f"trial {trial.episode}"
    return Scenario(
        name=name, category="regression", task=ground.task.name, params=ground.centre, initial=initial, seed=seed
    )


def covered(ground: Ground, one: Scenario) -> bool:
    """Whether the training drew such worlds: every param between the ends of what it drew."""
    points = ground.trained_in.sample(chance.seeds(0, np.arange(2048), realm=REALM))
    for param in ground.trained_in.params:
        if not param.changes or param.name not in one.params:
            continue
        drawn = points[param.name]
        low, high = float(drawn.min()), float(drawn.max())
        slack = 0.02 * (high - low) + 1e-9 * (1 + abs(high))
        if not low - slack <= one.params[param.name] <= high + slack:
            return False
    return True


def preferred(ground: Ground, own: Ended) -> float | None:
    """How much better the reward likes what the policy does than an episode that succeeded, as a share of that.

    What succeeds is the task's expert, where it has one that can, or the policy itself in its luckier episodes.
    """
    lost = own.score[~own.success]
    if not len(lost):
        return None
    won = own.score[own.success]
    expert = _expert(ground.task)
    if expert is not None:
        shown = within(ground, expert)
        won = shown.score[shown.success] if shown.success.mean() > 0.2 else won
    if len(won) < 3:
        return None
    typical = float(np.median(won))
    return (float(np.median(lost)) - typical) / max(abs(typical), 1e-9)


def rising(metrics: Path | None) -> float | None:
    """By how much the share of successes still rose over the last quarter of a training."""
    if metrics is None or not metrics.is_file():
        return None
    said = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
    shares = [float(one["success"]) for one in said if one.get("success") is not None]
    if len(shares) < 8:
        return None
    quarter = len(shares) // 4
    return float(np.mean(shares[-quarter:]) - np.mean(shares[-2 * quarter : -quarter]))


def miswired(ground: Ground) -> list[tuple[float, str]]:
    """Prediction error of the trials as they are, then with the one wire changed that explains them best."""
    trials = _some(ground.trials)
    try:
        plain = _error(ground, trials)
    except SimOpsError:
        return [(0.0, "")]
    tried = [(_error(ground, changed), words) for changed, words in _wires(ground.task, trials)]
    return [(plain, ""), *sorted(tried)[:1]]


def _wires(task: Task, trials: Sequence[Trajectory]) -> Iterator[tuple[list[Trajectory], str]]:
    """The trials over other wires: one element turned round, or two commands in each other's place; and in words."""
    size = task.action.size
    labels = task.action.scalars
    for i in range(size):
        yield [_turned(one, ("action", "executed"), i) for one in trials], f"command {labels[i]} is turned round"
    for i in range(min(size - 1, 24)):
        yield (
            [_swapped(one, ("action", "executed"), i, i + 1) for one in trials],
            (f"commands {labels[i]} and {labels[i + 1]} change places"),
        )
    for reading in task.state:
        what = getattr(reading.source, "what", "")
        if what not in {"position", "velocity"} or not hasattr(reading.source, "names"):
            continue
        name = reading.signal.name
        for i in range(min(reading.signal.size, 12)):
            yield [_turned(one, (name,), i) for one in trials], f"{name} {i} is turned round"


def _turned(one: Trajectory, names: Sequence[str], i: int) -> Trajectory:
    columns = dict(one.columns)
    for name in names:
        rows = np.array(columns[name]).reshape(len(columns[name]), -1)
        rows[:, i] = -rows[:, i]
        columns[name] = rows.reshape(columns[name].shape)
    return replace(one, columns=columns)


def _swapped(one: Trajectory, names: Sequence[str], i: int, j: int) -> Trajectory:
    columns = dict(one.columns)
    for name in names:
        rows = np.array(columns[name]).reshape(len(columns[name]), -1)
        rows[:, [i, j]] = rows[:, [j, i]]
        columns[name] = rows.reshape(columns[name].shape)
    return replace(one, columns=columns)


def _error(ground: Ground, trials: Sequence[Trajectory]) -> float:
    errors = learn.per_session(ground.simulator, trials, window_s=ground.window_s, most=96)
    return float(errors.mean())


def _expert(task: Task) -> Policy | None:
    if not task.expert:
        return None
    registry: Registry[Any] = Registry("policy")
    if task.expert not in registry.names():
        return None
    made: Policy = registry.load(task.expert)()
    return made


def _physical(ground: Ground) -> dict[str, float]:
    """The middle of every param that changes the physics; where an episode begins stays as it was."""
    changing = {param.name for param in ground.task.belief.params if param.changes}
    return {name: value for name, value in ground.centre.items() if name in changing}


def _some(found: Sequence[T]) -> list[T]:
    """Not more than can be replayed, evenly from all."""
    return list(found[:: max(1, -(-len(found) // MOST))])


def _ended(blocks: Sequence[Block]) -> Ended:
    success = np.concatenate([block.outcomes == OUTCOMES.index("success") for block in blocks])
    return Ended(success, np.concatenate([block.scores["reward"] for block in blocks]), tuple(blocks))
