"""LeRobot v3 and v2.1 as recordings: an episode each, actions as commands, states as positions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np

from simops.core.errors import DataError
from simops.core.recording import Recording, Stream
from simops.core.signal import Array, Schema, Signal
from simops.core.trajectory import Origin
from simops.data import lerobot_read
from simops.data.rename import Renamed, renamed

STREAM = "frames"
NAMES = {"action": "command", "observation_state": "position"}
"""What the usual features are to a robot; a map says so where it is otherwise."""


@final
@dataclass(frozen=True)
class LeRobot:
    """A LeRobot dataset as the log that it was."""

    robot: str = ""
    """By default the type that the dataset names."""
    session: str = ""
    """What was logged in one go; each episode by default."""
    unit: str = ""
    """Unit of actions and states, which the format does not tell, as `rad`."""
    origin: Origin = "recorded"
    signals: Mapping[str, Renamed] = field(default_factory=dict[str, Renamed])
    """Names, labels, units and signs, over `action` as command and `observation.state` as position."""

    def read(self, path: Path) -> Iterator[Recording]:
        """One recording an episode, in order."""
        told = lerobot_read.told(path)
        for table in lerobot_read.episodes(path, told):
            number = int(table["episode_index"][0])
            yield renamed(self._recording(path, told, table, number), self.signals)

    def _recording(self, path: Path, told: lerobot_read.Told, table: Mapping[str, Array], number: int) -> Recording:
        rows = len(table["episode_index"])
        time_s = np.asarray(table.get("timestamp", np.arange(rows) / told.fps), np.float64).reshape(-1)
        if not np.all(np.isfinite(time_s)):
            raise DataError(f"episode {number} has frames without a time", where=str(path), fault="DAT-007")
        signals: list[Signal] = []
        columns: dict[str, Array] = {}
        for name, signal in told.signals.items():
            plain = NAMES.get(signal.name, signal.name)
            unit = self.unit if signal.name in NAMES else ""
            dtype = "float32" if table[name].dtype == np.float32 else "float64"
            signals.append(Signal(plain, signal.shape, unit, "", dtype, signal.labels))
            columns[plain] = np.asarray(table[name], dtype).reshape(rows, *signal.shape)
        facts: dict[str, Any] = {"task": told.task(table)} if told.tasks else {}
        return Recording(
            name=f"episode_{number:06d}",
            streams=(Stream(STREAM, time_s, Schema(tuple(signals)), columns),),
            robot=self.robot or told.robot,
            session=self.session or f"episode_{number:06d}",
            facts=facts,
            notes=told.notes if self.unit else (*told.notes, "units unknown: `--set unit=rad` says them"),
            origin=self.origin,
        )
