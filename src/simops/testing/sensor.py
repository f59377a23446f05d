"""Conformance kit for sensors: rows stand alone, nothing is kept, and only the named signals change."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from simops.core.params import Param, Params
from simops.core.protocols import Memory, Sensor, Variable
from simops.core.signal import Array, Columns
from simops.core.task import Draw, Task
from simops.testing.law import BATCHES, copied, draw_of, fits, invented, require, rows_of, same_columns

STEPS = 12


def check_sensor(sensor: Sensor, task: Task) -> None:
    """Raise AssertionError where `sensor` breaks a promise at `task`."""
    named = sensor.names(task)
    require(named == sensor.names(task), "names() of one sensor and task differs from call to call")
    for name in named:
        require(name in task.state_schema, f"names() gives {name!r}, which is no signal of the state or the goal")
    draw = draw_of(task, max(BATCHES))
    inputs = [invented(task.state_schema, max(BATCHES), step) for step in range(STEPS)]
    whole = _shown(sensor, task, draw, inputs)
    for one, other in zip(whole, _shown(sensor, task, draw, inputs), strict=True):
        same_columns(one, other, "the same episode twice")
    for n in BATCHES:
        ids = np.arange(n)
        found = _shown(sensor, task, _rows(draw, ids), [rows_of(columns, ids) for columns in inputs])
        for one, other in zip(found, whole, strict=True):
            same_columns(one, rows_of(other, ids), f"{n} rows and the same among {max(BATCHES)}")
    _rows_can_be_dropped(sensor, task, draw, inputs, whole)
    if isinstance(sensor, Variable):
        _heeds_a_belief(sensor.params, sensor, task, draw, inputs[:2], whole[:2])


def _shown(
    sensor: Sensor, task: Task, draw: Draw, inputs: list[dict[str, Array]], memory: Memory | None = None, first: int = 0
) -> list[Columns]:
    """What the sensor shows at every step."""
    named = set(sensor.names(task))
    n = len(draw.seeds)
    remembered = sensor.start(task, draw) if memory is None else memory
    keys = set(remembered)
    found: list[Columns] = []
    for i, columns in enumerate(inputs):
        given, before = copied(columns), copied(remembered)
        now = Draw(draw.params, draw.seeds, np.full(n, first + i))
        shown, after = sensor.sense(columns, now, remembered)
        same_columns(columns, given, "sense() writes into the columns it was given")
        same_columns(remembered, before, "sense() writes into the memory it was given")
        require(set(shown) == set(columns), f"sense() gives {sorted(shown)}, want {sorted(columns)}")
        for name in columns:
            signal = task.state_schema[name]
            fits(shown, signal, n, "sense()")
            require(shown[name].dtype == np.float32, f"sense() gives {name} as {shown[name].dtype}, want float32")
        kept = set(columns) - named
        same_columns(
            {name: shown[name] for name in kept},
            {name: columns[name] for name in kept},
            "sense() changes a signal that names() does not name",
        )
        require(set(after) == keys, f"memory holds {sorted(after)}, began with {sorted(keys)}")
        for name, rows in after.items():
            require(rows.shape[:1] == (n,), f"memory {name!r} has shape {rows.shape}, want one row a copy")
        found.append(copied(shown))
        remembered = after
    return found


def _rows_can_be_dropped(
    sensor: Sensor, task: Task, draw: Draw, inputs: list[dict[str, Array]], whole: list[Columns]
) -> None:
    half = STEPS // 2
    memory = sensor.start(task, draw)
    for step, columns in enumerate(inputs[:half]):
        now = Draw(draw.params, draw.seeds, np.full(len(draw.seeds), step))
        memory = sensor.sense(columns, now, memory).memory
    kept = np.arange(0, len(draw.seeds), 3)
    rest = [rows_of(columns, kept) for columns in inputs[half:]]
    found = _shown(sensor, task, _rows(draw, kept), rest, rows_of(memory, kept), half)
    for one, other in zip(found, whole[half:], strict=True):
        same_columns(one, rows_of(other, kept), "after taking some rows of the memory away, the others")


def _rows(draw: Draw, ids: Array) -> Draw:
    return Draw(draw.params.rows(ids), draw.seeds[ids], draw.step[ids])


def _heeds_a_belief(
    params: tuple[Param, ...],
    sensor: Sensor,
    task: Task,
    draw: Draw,
    inputs: list[dict[str, Array]],
    whole: list[Columns],
) -> None:
    """A belief that holds every setting as it is set changes nothing."""
    own = tuple(param for param in params if param.name not in draw.params)
    names = [param.name for param in params]
    require(len(set(names)) == len(names), f"params names a setting twice: {sorted(names)}")
    nominal = Params.nominal(own, len(draw.seeds))
    both = Params(draw.params.names + nominal.names, np.concatenate([draw.params.values, nominal.values], axis=1))
    for one, other in zip(_shown(sensor, task, replace(draw, params=both), inputs), whole, strict=True):
        for name in one:
            words = f"with every setting in the belief as it is set, {name} differs"
            require(np.allclose(one[name], other[name], rtol=1e-6, atol=1e-7), words)
