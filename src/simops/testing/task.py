"""Conformance kit for tasks: pure functions of their draw and of their columns, and an expert that can do it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from simops.core.plugin import Registry
from simops.core.policy import Random, centre_and_scale
from simops.core.protocols import Engine, Policy
from simops.core.rollout import Recipe, score, wave
from simops.core.signal import Array, Columns, Schema
from simops.core.task import Draw, Task
from simops.core.trajectory import OUTCOMES, Block, Trajectory, recorded, scored
from simops.testing.law import copied, draw_of, fits, invented, require, rows_of, same, same_columns

EPISODES, DRAWS = 8, 64
EDGE = 1e-5
"""How far a margin may be from 0 on the wrong side: two ways to compute one number."""


def check_task(task: Task, engine: Engine, *, expert_share: float = 0.75) -> None:
    """Raise AssertionError where `task` breaks a promise, as run by `engine`.

    Args:
        task: The task to check.
        engine: An engine that runs it.
        expert_share: Share of a few episodes in which the expert must succeed, if the task names one.
    """
    _described(task)
    _believed(task)
    draw = draw_of(task, DRAWS)
    _pure(task.initial, draw, "initial")
    _pure(task.goal, draw, "goal")
    _pure(task.goal, Draw(draw.params, draw.seeds, draw.step + round(2.0 / task.control_dt_s)), "goal")
    _begins_with_its_own(task, draw)
    _scores_any_rows(task)
    _scores(task, _episodes(task, engine, Random(hold_steps=5)))
    if task.expert:
        block = _episodes(task, engine, Registry[Policy]("policy").load(task.expert)())
        _scores(task, block)
        done = int(np.sum(block.outcomes == OUTCOMES.index("success")))
        require(done >= expert_share * EPISODES, f"{task.expert} succeeds in {done} of {EPISODES} episodes")


def _episodes(task: Task, engine: Engine, policy: Policy) -> Block:
    recipe = Recipe(policy=policy, task=task, engine=engine, realm="kit")
    with engine.open(task, EPISODES) as sim:
        return wave(recipe, sim, np.arange(EPISODES))


def _described(task: Task) -> None:
    require(task.name.isidentifier(), f"the task is called {task.name!r}, want letters, digits and underscores")
    _ = recorded(task, frozenset(task.state_schema.names))  # raises where columns would clash
    terms = [term.name for term in task.reward]
    require(len(set(terms)) == len(terms), f"two reward terms share a name: {terms}")
    require("reward" not in terms, "a reward term is called 'reward', the name of their sum")
    require(all(np.isfinite(term.weight) for term in task.reward), "a reward term has a weight that is not finite")
    signals = (*task.state_schema.signals, *task.observation.signals, task.action)
    for signal in signals:
        require(signal.dtype == "float32", f"{signal.name} is {signal.dtype}, want float32")
        limits = zip(signal.low, signal.high, strict=True) if signal.low and signal.high else ()
        require(all(low < high for low, high in limits), f"{signal.name} has limits of no width")
    centre, scale = centre_and_scale(task)
    middle = centre.reshape(1, *task.action.shape)
    same(task.action.clip(middle), middle, "the centre of the action is beyond its limits")
    require(np.all(scale > 0.0), "the scale of the action is not positive")
    off = abs(task.horizon_s / task.control_dt_s - task.steps)
    require(off < 1e-6, f"a horizon of {task.horizon_s} s is no whole number of steps of {task.control_dt_s} s")


def _believed(task: Task) -> None:
    draw = draw_of(task, DRAWS)
    points, names = draw.params, tuple(param.name for param in task.belief.params)
    require(points.names == names, f"the belief draws {points.names}, want {names}")
    require(len(set(names)) == len(names), f"two params share a name: {names}")
    require(np.all(np.isfinite(points.values)), "the belief draws numbers that are not finite")
    for param in task.belief.params:
        inside = (points[param.name] >= param.low) & (points[param.name] <= param.high)
        require(inside.all(), f"the belief draws {param.name} beyond its physical bounds")
    require(np.all(np.isfinite(task.belief.log_density(points))), "the belief gives its own draws no density")
    require(np.mean(task.belief.inside(points)) >= 0.5, "most of the belief's own draws are not inside it")


def _pure(function: Callable[[Draw], Columns], draw: Draw, words: str) -> None:
    found = copied(function(draw))
    same_columns(found, function(draw), f"{words}() of the same draw twice")
    again = draw.params.values.copy()
    for ids in (np.arange(1), np.array([5, 2, 40, 7, 63, 0, 11])):
        part = Draw(draw.params.rows(ids), draw.seeds[ids], draw.step[ids])
        same_columns(function(part), rows_of(found, ids), f"{words}() of some rows and of the same among others")
    same(draw.params.values, again, f"{words}() writes into its draw")


def _begins_with_its_own(task: Task, draw: Draw) -> None:
    initial, goal = task.initial(draw), task.goal(draw)
    for name in initial:
        known = name in task.sources or name == task.action.name
        require(known, f"initial() gives {name!r}, neither a signal of the state nor the action")
        signal = task.action if name == task.action.name else task.state_schema[name]
        fits(initial, signal, DRAWS, "initial()")
    require(set(goal) == set(task.goal_signals.names), f"goal() gives {sorted(goal)}, want {task.goal_signals.names}")
    for signal in task.goal_signals.signals:
        fits(goal, signal, DRAWS, "goal()")


def _scores_any_rows(task: Task) -> None:
    columns = invented(Schema((*task.state_schema.signals, replace(task.action, name="action"))), DRAWS)
    columns |= {"previous_action": columns["action"], "time_s": np.full(DRAWS, task.control_dt_s, np.float32)}
    with np.errstate(all="ignore"):
        flags = {"failure": task.failure(columns), "success": task.success(columns)}
        found = {**flags, **{term.name: term.score(columns) for term in task.reward}}
    for name, values in found.items():
        require(values.shape == (DRAWS,), f"{name} gives shape {values.shape} for {DRAWS} rows")
        require(name not in flags or values.dtype == bool, f"{name} gives {values.dtype}, want bool")
    margins = {"failure": (task.failure_margin, -1.0), "success": (task.success_margin, 1.0)}
    for name, (margin, sign) in margins.items():
        if margin is None:
            continue
        with np.errstate(all="ignore"):
            inside = sign * np.asarray(margin(columns), float)
        require(inside.shape == (DRAWS,), f"{name}_margin gives shape {inside.shape} for {DRAWS} rows")
        agree = np.where(flags[name], inside >= -EDGE, inside <= EDGE) | ~np.isfinite(inside)
        require(agree.all(), f"{name}_margin does not change its sign where {name} changes")


def _scores(task: Task, block: Block) -> None:
    for i, trajectory in enumerate(block):
        where = f"episode {i} of {trajectory.provenance.policy[:40]}"
        log = scored(task, trajectory)
        sound = len(trajectory) - (trajectory.outcome == "diverged")
        live, terms = trajectory["reward"][:-1], score(task, trajectory)
        same(terms["reward"][:sound], live[:sound], f"{where}: the reward of the log and the one given live")
        for name, summed in block.scores.items():
            total = float(np.cumsum(np.concatenate([[0.0], terms[name][:sound]]))[-1])
            require(total == summed[i], f"{where}: {name} sums to {total} in the log, {summed[i]} live")
        _rows_are_rows(task, log, where)
        _ends_as_scored(task, trajectory, log, where)
        _observes(task, trajectory, where)


def _rows_are_rows(task: Task, log: Columns, where: str) -> None:
    functions = {"failure": task.failure, "success": task.success, **{t.name: t.score for t in task.reward}}
    steps = len(log["time_s"])
    rows = sorted({0, steps // 2, steps - 1})
    for name, function in functions.items():
        whole = function(log)
        for row in rows:
            alone = function({key: np.ascontiguousarray(values[row : row + 1]) for key, values in log.items()})
            same(alone, whole[row : row + 1], f"{where}: {name} of a row alone and in the log")


def _ends_as_scored(task: Task, trajectory: Trajectory, log: Columns, where: str) -> None:
    if trajectory.outcome == "diverged":
        return
    failed, asked = task.failure(log), task.success(log)
    require(not failed[:-1].any(), f"{where} goes on after a failure")
    require(failed[-1] == (trajectory.outcome == "failure"), f"{where} ends in {trajectory.outcome}, the log says else")
    hold = max(1, round(task.success_hold_s / task.control_dt_s))
    held = len(asked) >= hold and bool(asked[-hold:].all())
    if trajectory.outcome == "success":
        require(held, f"{where} succeeds, but the log is not as asked for {task.success_hold_s} s")
    if trajectory.outcome == "timeout":
        require(not held and len(trajectory) == task.steps, f"{where} times out, the log says else")


def _observes(task: Task, trajectory: Trajectory, where: str) -> None:
    """What observe() says of some rows of the log, it says of each alone."""
    columns: dict[str, Array] = {name: trajectory[name][:-1] for name in task.state_schema.names}
    action = trajectory["action"][:-1]
    columns["previous_action"] = np.concatenate([action[:1], action[:-1]])
    columns["time_s"] = (np.arange(len(action)) * task.control_dt_s).astype(np.float32)
    given = copied(columns)
    seen: dict[str, Array] = {**columns, **task.observe(columns)}
    same_columns(columns, given, "observe() writes into the columns it was given")
    for signal in task.observation.signals:
        fits(seen, signal, len(action), f"{where}: observe()")
    alone = task.observe({name: np.ascontiguousarray(rows[:1]) for name, rows in columns.items()})
    for name in task.observation.names:
        if name in alone:
            same(alone[name], seen[name][:1], f"{where}: observe() of a row alone and among others: {name}")
