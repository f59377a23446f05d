"""Event files, as TensorBoard itself reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from simops.learn.curves import Events


def test_tensorboard_reads_what_was_told(tmp_path: Path) -> None:
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
    events = Events(tmp_path, name="000000")
    events.add(1, {"reward": 2.5}, at_s=10.0)
    events.add(2, {"reward": 3.5, "success": 1.0}, at_s=11.0)
    events.close()
    [path] = tmp_path.iterdir()
    told = [
        (event.step, value.tag, value.tensor.float_val[0] if value.HasField("tensor") else value.simple_value)
        for event in reader.EventFileLoader(str(path)).Load()
        for value in event.summary.value
    ]
    assert told == [(1, "reward", 2.5), (2, "reward", 3.5), (2, "success", 1.0)]
