"""A sealed reality from outside: a stand-in for a robot that nothing here can look into.

Another process holds it, and what it hides. What is learned from it is called sealed, never real.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast, final

import numpy as np

from simops.core.errors import DataError, EngineError
from simops.core.robot import Reading
from simops.core.signal import Array, Columns
from simops.core.task import Task
from simops.core.trajectory import Origin
from simops.ops.wire import Frame, receive, send

MODULE = "simops.ops.sealed_world"


@final
@dataclass(frozen=True)
class Sealed:
    """The sealed reality of a file that only the other process reads."""

    path: Path
    seed: int | None = None
    """Which reality of the file's family; the file's own when left out."""

    @contextmanager
    def open(self, task: Task, places: int) -> Generator[SealedRobot]:
        """Start the other process, and end it when done, however that comes about."""
        if not self.path.is_file():
            raise DataError("there is no sealed reality", where=str(self.path), attempt="a reality's .yaml file")
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        which = [] if self.seed is None else [f"seed={self.seed}"]
        command = [sys.executable, "-m", MODULE, str(self.path.resolve()), *which]
        process = subprocess.Popen(  # noqa: S603 (our own module)
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
        )
        try:
            yield SealedRobot(task, places, process)
        finally:
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@final
class SealedRobot:
    """Robots side by side, behind a pipe."""

    origin: Origin = "sealed"

    def __init__(self, task: Task, places: int, process: subprocess.Popen[bytes]) -> None:
        """Ask the other side whether it is a robot of this task."""
        self.n, self.trials = places, 0
        self._task = task
        self._in, self._out = cast("BinaryIO", process.stdout), cast("BinaryIO", process.stdin)
        said = {
            "horizon_s": task.horizon_s,
            "places": places,
            "state": task.state_schema.digest,
            "action": repr(task.action),
        }
        self.identity = str(self._asked(Frame("open", said)).said["identity"])

    def ready(self, numbers: Array, goal: Columns) -> Reading:
        """Begin the trials of these numbers; each is counted."""
        if len(numbers) > self.n:
            raise EngineError(f"{len(numbers)} trials and {self.n} places", attempt="fewer side by side")
        return self._read(Frame("ready", {}, {"numbers": numbers.astype(np.int64), **goal}))

    def act(self, action: Array, goal: Columns) -> Reading:
        """Hold an action for one control period."""
        return self._read(Frame("act", {}, {"action": action.astype(np.float32), **goal}))

    def stop(self, places: Array) -> None:
        """Stop these trials; they have failed."""
        self._send(Frame("stop", {}, {"places": places.astype(np.int64)}))

    def _read(self, frame: Frame) -> Reading:
        answer = self._asked(frame)
        self.trials = int(answer.said["trials"])
        arrays = dict(answer.arrays)
        time_s, ended, outcome = (arrays.pop(name) for name in ("time_s", "ended", "outcome"))
        return Reading(arrays, time_s, ended, outcome)

    def _asked(self, frame: Frame) -> Frame:
        self._send(frame)
        answer = receive(self._in)
        if answer is None:
            raise EngineError("the robot does not answer any more", attempt="its file; run it again", fault="CRK-001")
        if answer.verb == "refused":
            said = f"{answer.said['code']} {answer.said['fault']}".strip()
            raise EngineError(
                f"the robot refuses: {said}; what it hides, it does not explain",
                attempt="`simops check` on its file, by whoever may read it",
                fault="CRK-001",
            )
        return answer

    def _send(self, frame: Frame) -> None:
        try:
            send(self._out, frame)
        except (BrokenPipeError, ValueError) as error:
            raise EngineError("the robot has gone", attempt="its file; run it again", fault="CRK-001") from error
