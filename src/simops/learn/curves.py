# pyright: basic
# tensorboard has no types; it is met here only.
"""Learning curves as TensorBoard reads them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, final


@final
class Events:
    """One event file; flushed after every lap."""

    def __init__(self, folder: Path, *, name: str) -> None:
        """Begin `folder`/events.out.tfevents.`name`; what was there under that name is gone."""
        from tensorboard.compat.proto.event_pb2 import Event  # type: ignore[reportAttributeAccessIssue]
        from tensorboard.summary.writer.record_writer import RecordWriter

        self._make: Any = Event
        self._file = (folder / f"events.out.tfevents.{name}").open("wb")
        self._records: Any = RecordWriter(self._file)
        self._records.write(self._make(file_version="brain.Event:2").SerializeToString())

    def add(self, step: int, figures: Mapping[str, float], *, at_s: float) -> None:
        """Add the figures of one lap."""
        event = self._make(step=step, wall_time=at_s)
        for name, number in figures.items():
            event.summary.value.add(tag=name, simple_value=number)
        self._records.write(event.SerializeToString())
        self._records.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
