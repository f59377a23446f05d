"""What the policy is shown of each copy: sensors over the state, then the task's observation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np

from simops.core.protocols import Memory, Sensor
from simops.core.signal import Array, Columns
from simops.core.task import Draw, Task


@final
class Senses:
    """The sensors of copies that are under way, one row of memory a copy."""

    def __init__(self, task: Task, sensors: Sequence[Sensor], draw: Draw) -> None:
        """Begin with every copy at the start of an episode."""
        self._task, self._sensors = task, tuple(sensors)
        self._memory: list[Memory] = [sensor.start(task, draw) for sensor in sensors]

    def show(self, state: Array, action: Array, draw: Draw) -> Array:
        """Packed observations of packed states; `action` is the one before."""
        seen, self._memory = self._look(state, action, draw, self._memory)
        return seen

    def keep(self, going: Array) -> None:
        """Forget the copies that do not go on."""
        self._memory = [rows(memory, going) for memory in self._memory]

    def begin(self, ids: Array, state: Array, action: Array, draw: Draw) -> Array:
        """Start copies `ids` anew, and show what they see first; one row of the others each."""
        fresh = [sensor.start(self._task, draw) for sensor in self._sensors]
        seen, after = self._look(state, action, draw, fresh)
        self._memory = [replaced(memory, ids, new) for memory, new in zip(self._memory, after, strict=True)]
        return seen

    def _look(self, state: Array, action: Array, draw: Draw, memory: list[Memory]) -> tuple[Array, list[Memory]]:
        task = self._task
        columns: Columns = {
            **task.state_schema.unpack(state),
            "previous_action": action,
            "time_s": (draw.step * task.control_dt_s).astype(np.float32),
        }
        after: list[Memory] = []
        for sensor, before in zip(self._sensors, memory, strict=True):
            columns, remembered = sensor.sense(columns, draw, before)
            after.append(remembered)
        return task.observation.pack({**columns, **task.observe(columns)}), after


def rows(columns: Columns, chosen: Array) -> dict[str, Array]:
    """The same columns, some rows."""
    return {name: column[chosen] for name, column in columns.items()}


def replaced(columns: Columns, ids: Array, fresh: Columns) -> dict[str, Array]:
    """The same columns, with rows `ids` taken from `fresh`."""
    out = {name: column.copy() for name, column in columns.items()}
    for name, column in fresh.items():
        out[name][ids] = column
    return out
