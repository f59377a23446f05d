"""Conformance kit for engines: what every rollout relies on, and no engine may promise less."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from simops.core.errors import SimOpsError
from simops.core.params import Params
from simops.core.protocols import Engine, Sim
from simops.core.signal import Array, Columns
from simops.core.task import Body, Task
from simops.testing.law import Case, copied, fits, require, rows_of, same, same_columns

COPIES, STEPS = 7, 8
LATER = 40
"""Steps after which every param must have shown."""
PICTURES = frozenset({"texture", "light", "camera_pan", "camera_tilt", "camera_roll"})
"""Fields of a param that no motion shows."""


def check_engine(engine: Engine, task: Task, *, also: Sequence[Engine] = ()) -> None:
    """Raise AssertionError where `engine` breaks a promise at `task`.

    Args:
        engine: The engine to check.
        task: A task it can run.
        also: Recipes that promise the same bytes, as the same engine at another number of threads.
    """
    case = Case.of(task, COPIES, STEPS)
    for law in _LAWS:
        law(engine, task, case)
    alone = _played(engine, task, case)
    for other in also:
        _same_frames(alone, _played(other, task, case), f"{engine!r} and {other!r}")


def _version_stands(engine: Engine, task: Task, case: Case) -> None:
    del case
    version = engine.version(task)
    require(version.strip(), "version() is empty, want the physics' name, version and scene digest")
    require(engine.version(task) == version, "version() of one engine and task differs from call to call")


def _protocol(engine: Engine, task: Task, case: Case) -> None:
    with engine.open(task, COPIES) as sim:
        require(sim.n == COPIES, f"open(task, {COPIES}) made {sim.n} copies")
        everyone = np.arange(COPIES)
        sim.reset(everyone, case.draw.params, case.initial)
        _readable(sim, task, "after reset()")
        require(not sim.diverged.any(), "copies are diverged right after reset()")
        busy_s = sim.busy_s
        action = case.actions[0].copy()
        sim.step(action)
        same(action, case.actions[0], "step() writes into the action it was given")
        _readable(sim, task, "after step()")
        require(sim.busy_s >= busy_s >= 0.0, "busy_s does not count up from 0")
        same_columns(copied(sim.read()), sim.read(), "read() twice")
    _same_columns_given(case, task)


def _same_columns_given(case: Case, task: Task) -> None:
    again = Case.of(task, COPIES, STEPS)
    same_columns(case.initial, again.initial, "reset() writes into the initial columns it was given")
    same(case.draw.params.values, again.draw.params.values, "reset() writes into the params it was given")


def _readable(sim: Sim, task: Task, when: str) -> None:
    read = sim.read()
    require(set(read) == set(task.sources), f"read() {when} gives {sorted(read)}, want {sorted(task.sources)}")
    for reading in task.state:
        fits(read, reading.signal, sim.n, f"read() {when}")
    diverged, executed = sim.diverged, sim.executed
    want = (sim.n, *task.action.shape)
    require(diverged.shape == (sim.n,) and diverged.dtype == bool, f"diverged {when} is no (n,) array of bools")
    require(executed.shape == want, f"executed {when} has shape {executed.shape}, want {want}")
    require(np.all(np.isfinite(executed)), f"executed {when} is not finite")


def _begins_as_told(engine: Engine, task: Task, case: Case) -> None:
    with engine.open(task, COPIES) as sim:
        sim.reset(np.arange(COPIES), case.draw.params, case.initial)
        read = sim.read()
        for name in set(case.initial) & set(task.sources):
            told = case.initial[name].reshape(read[name].shape)
            off = np.max(np.abs(read[name] - told), initial=0.0)
            require(off <= 1e-5, f"after reset() {name} is {off:.3g} off the initial state it was given")


def _steps_only_the_named(engine: Engine, task: Task, case: Case) -> None:
    named, others = np.array([1, 4, 5]), np.array([0, 2, 3, 6])
    alone = _played(engine, task, case)
    with engine.open(task, COPIES) as sim:
        sim.reset(np.arange(COPIES), case.draw.params, case.initial)
        before = copied(sim.read())
        sim.step(case.actions[0][named], named)
        frame = _frame(sim, np.arange(COPIES))
        same_columns(
            rows_of({name: frame[name] for name in before}, others),
            rows_of(before, others),
            "step(action, ids) moves copies that are not in ids",
        )
        same_columns(rows_of(frame, named), rows_of(alone[1], named), "step(action, ids) and step(action)")


def _resets_only_the_named(engine: Engine, task: Task, case: Case) -> None:
    named, others = np.array([0, 3]), np.array([1, 2, 4, 5, 6])
    alone = _played(engine, task, case)
    with engine.open(task, COPIES) as sim:
        sim.reset(np.arange(COPIES), case.draw.params, case.initial)
        for action in case.actions:
            sim.step(action)
        sim.reset(named, case.draw.params.rows(named), rows_of(case.initial, named))
        frame = copied(sim.read())
        for ids, begun, words in (
            (others, alone[-1], "reset() of some copies changes others"),
            (named, alone[0], "a copy that has run does not begin anew as a fresh one does"),
        ):
            same_columns(rows_of(frame, ids), rows_of({name: begun[name] for name in frame}, ids), words)
        sim.step(case.actions[0])
        again = _frame(sim, named)
        same_columns(again, rows_of(alone[1], named), "the first step after reset() is not that of a fresh copy")


def _same_bytes_in_any_batch(engine: Engine, task: Task, case: Case) -> None:
    alone = _played(engine, task, case)
    turned = np.array([5, 2, 6, 0, 3, 1, 4])
    expected = [rows_of(frame, turned) for frame in alone]
    _same_frames(_played(engine, task, case.rows(turned)), expected, "episodes in another order")
    batches: tuple[tuple[list[int], int], ...] = (([2], 1), ([1, 4, 6], 3), ([0, 3], COPIES))
    for chosen, copies in batches:
        ids = np.array(chosen)
        expected = [rows_of(frame, ids) for frame in alone]
        found = _played(engine, task, case.rows(ids), copies)
        _same_frames(found, expected, f"{len(ids)} episodes among {copies} copies and the same among {COPIES}")


def _params_matter(engine: Engine, task: Task, case: Case) -> None:
    physical = {p.name for p in task.belief.params if any(c.field not in PICTURES for c in p.changes)}
    drawn = {name for name in physical if np.ptp(case.draw.params[name]) > 0}
    if not drawn:
        return
    for longer in (case, Case.of(task, COPIES, LATER)):  # an exact fall does not know its mass before it lands
        nominal = Params.nominal(task.belief.params, COPIES)
        at_nominal = replace(longer, draw=replace(longer.draw, params=nominal))
        moved, still = (_played(engine, task, one)[-1] for one in (longer, at_nominal))
        if any(moved[name].tobytes() != still[name].tobytes() for name in task.sources):
            return
    raise AssertionError(f"params {sorted(drawn)} change nothing in {LATER} steps")


def _limits_hold(engine: Engine, task: Task, case: Case) -> None:
    signal = task.action
    if not signal.size or not (signal.low and signal.high):
        return
    low, high = (np.array(side, np.float64).reshape(signal.shape) for side in (signal.low, signal.high))
    for beyond in (high + 10.0 * (high - low), low - 10.0 * (high - low)):
        with engine.open(task, COPIES) as sim:
            sim.reset(np.arange(COPIES), case.draw.params, case.initial)
            for _ in range(STEPS):
                sim.step(np.broadcast_to(beyond, (COPIES, *signal.shape)).astype(np.float32))
                executed = sim.executed
                slack = 1e-6 * np.maximum(1.0, np.abs(high - low))
                inside = np.all((executed >= low - slack) & (executed <= high + slack))
                require(inside, f"executed leaves the limits of {signal.name} when the action does")


def _pushes_only_the_named(engine: Engine, task: Task, case: Case) -> None:
    named, others = np.array([1, 4, 5]), np.array([0, 2, 3, 6])
    alone = _played(engine, task, case)
    for body in bodies(task):
        wrench = np.random.default_rng(0).uniform(-30.0, 30.0, (len(named), 6))
        given = wrench.copy()
        with engine.open(task, COPIES) as sim:
            sim.reset(np.arange(COPIES), case.draw.params, case.initial)
            sim.push(named, body, given)
            same(given, wrench, "push() writes into the wrench it was given")
            for action in case.actions:
                sim.step(action)
            frame = _frame(sim, np.arange(COPIES))
            expected = rows_of(alone[-1], others)
            same_columns(rows_of(frame, others), expected, f"a push on {body} moves copies that are not pushed")
            pushed = {name: rows for name, rows in rows_of(frame, named).items() if name in task.sources}
            still = all(rows.tobytes() == alone[-1][name][named].tobytes() for name, rows in pushed.items())
            require(not still, f"a push on {body} changes nothing in {STEPS} steps")
            sim.reset(named, case.draw.params.rows(named), rows_of(case.initial, named))
            sim.step(case.actions[0])
            same_columns(_frame(sim, named), rows_of(alone[1], named), "a copy is still pushed after reset()")
        _pushed_alike_alone(engine, task, case.rows(named), body, wrench, rows_of(frame, named))
    _no_such_body(engine, task, case)


def _pushed_alike_alone(engine: Engine, task: Task, case: Case, body: str, wrench: Array, expected: Columns) -> None:
    for row in range(len(wrench)):
        one = case.rows(np.array([row]))
        with engine.open(task, 2) as sim:
            sim.reset(np.arange(1), one.draw.params, one.initial)
            sim.push(np.arange(1), body, wrench[row : row + 1])
            for action in one.actions:
                sim.step(action, np.arange(1))
            found = _frame(sim, np.arange(1))
        want = rows_of(expected, np.array([row]))
        same_columns(found, want, f"a copy pushed on {body} alone and the same among {COPIES}")


def _no_such_body(engine: Engine, task: Task, case: Case) -> None:
    with engine.open(task, COPIES) as sim:
        sim.reset(np.arange(COPIES), case.draw.params, case.initial)
        try:
            sim.push(np.arange(1), "no such body", np.zeros((1, 6)))
        except SimOpsError:
            return
    raise AssertionError("push() on a body that is not there raises nothing")


def bodies(task: Task) -> tuple[str, ...]:
    """The bodies that a task names: those it reads, and those whose mass its belief is about."""
    read = {source.name for source in task.sources.values() if isinstance(source, Body)}
    changes = (change for param in task.belief.params for change in param.changes)
    return tuple(sorted(read.union(*(change.of for change in changes if change.field == "mass"))))


def _breaking_stays_alone(engine: Engine, task: Task, case: Case) -> None:
    alone = _played(engine, task, case)
    it, others = np.array([2]), np.array([0, 1, 3, 4, 5, 6])
    for words, broken in _breakages(task, case):
        with engine.open(task, COPIES) as sim:
            sim.reset(np.arange(COPIES), case.draw.params, broken.initial)
            for step, action in enumerate(broken.actions):
                sim.step(action)
                frame = _frame(sim, others)
                same_columns(frame, rows_of(alone[step + 1], others), f"{words} in one copy changes another")
            require(sim.diverged[2], f"{words} does not make the copy diverged")
            sim.reset(it, case.draw.params.rows(it), rows_of(case.initial, it))
            require(not sim.diverged[2], "reset() leaves a copy diverged")
            sim.step(case.actions[0])
            same_columns(_frame(sim, it), rows_of(alone[1], it), "a copy that broke down is not fresh after reset()")


def _breakages(task: Task, case: Case) -> list[tuple[str, Case]]:
    found: list[tuple[str, Case]] = []
    if task.action.size:
        actions = case.actions.copy()
        actions[0, 2] = np.nan
        found.append(("an action that is not a number", replace(case, actions=actions)))
    for name in sorted(set(case.initial) & set(task.sources)):
        if not np.issubdtype(case.initial[name].dtype, np.floating):
            continue
        for value in (np.nan, 1e200):
            rows = case.initial[name].astype(np.float64)
            rows[2] = value
            found.append((f"an initial {name} of {value}", replace(case, initial={**case.initial, name: rows})))
    return found


def _played(engine: Engine, task: Task, case: Case, copies: int = 0) -> list[dict[str, Array]]:
    """Every frame of the case, from reset to its last action, in the first of `copies` copies."""
    n = len(case.draw.seeds)
    ids = np.arange(n)
    with engine.open(task, copies or n) as sim:
        sim.reset(ids, case.draw.params, case.initial)
        frames = [_frame(sim, ids)]
        for action in case.actions:
            sim.step(action, None if n == sim.n else ids)
            frames.append(_frame(sim, ids))
    return frames


def _frame(sim: Sim, ids: Array) -> dict[str, Array]:
    return rows_of({**copied(sim.read()), "executed": sim.executed, "diverged": sim.diverged}, ids)


def _same_frames(one: Sequence[Columns], other: Sequence[Columns], words: str) -> None:
    for step, (a, b) in enumerate(zip(one, other, strict=True)):
        same_columns(a, b, f"{words}, after {step} steps")


_LAWS: tuple[Callable[[Engine, Task, Case], None], ...] = (
    _version_stands,
    _protocol,
    _begins_as_told,
    _steps_only_the_named,
    _resets_only_the_named,
    _same_bytes_in_any_batch,
    _params_matter,
    _limits_hold,
    _pushes_only_the_named,
    _breaking_stays_alone,
)
