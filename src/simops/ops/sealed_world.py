"""The inside of a sealed reality: runs as a process of its own, and answers nothing but the robot's interface.

    python -m simops.ops.sealed_world reality.yaml [seed=3]

It alone reads the file. Through the pipe go readings, times and outcomes; not a number of what is hidden.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, final

import numpy as np

from simops.core import chance
from simops.core.errors import SignalError, SimOpsError
from simops.core.judge import FAILURE, TIMEOUT, Done, judge
from simops.core.params import Params
from simops.core.policy import centre_and_scale
from simops.core.protocols import Sim
from simops.core.signal import Array, Columns
from simops.core.task import Draw, Task
from simops.ops.wire import Frame, receive, send
from simops.sim.worn import Drive, Gauges, Wear
from simops.spec.reality import Drawn, World, drawn, load_world

REALM = "sealed"


@final
class Inside:
    """Robots of one reality, side by side."""

    def __init__(self, world: World, task: Task, found: Drawn, sim: Sim) -> None:
        self._world, self._task, self._found, self._sim = world, task, found, sim
        effects, servo = found.effects, world.servo
        own = {name: value for name, value in effects.items() if name != "dropout"}
        stall = servo.stall or float(np.max(np.abs(task.action.high or (0.0,))))
        wear = Wear(**own, kp=servo.kp, kd=servo.kd, stall=stall, position=servo.position, velocity=servo.velocity)
        self._drive = Drive(wear, task, sim, world.ticks)
        self._gauges = Gauges(world.effects.noise, world.effects.bias, effects["dropout"], world.seed)
        self.trials = 0

    def ready(self, numbers: Array, goal: Columns) -> Frame:
        """Begin the trials of these numbers."""
        n, task = len(numbers), self._task
        self.trials += n
        if self.trials > self._world.trials:
            raise SignalError(f"the robot stands {self._world.trials} trials, and has had them", attempt="a fresh one")
        seeds = chance.seeds(self._world.seed, numbers, realm=REALM)
        points = Params(self._found.params.names, np.repeat(self._found.params.values, n, axis=0))
        self._draw = Draw(points, seeds, np.zeros(n, np.int64))
        self._ids = np.arange(n)
        self._goal = goal
        self._sim.reset(self._ids, points, task.initial(self._draw))
        rest = np.tile(centre_and_scale(task)[0], (n, 1))
        self._drive.begin(seeds, rest)
        self._gauges.begin(seeds)
        self._over, self._outcome = np.zeros(n, bool), np.full(n, TIMEOUT, np.int8)
        self._streak: Array = np.zeros(n, np.int64)
        self._step = 0
        self._before: Array | None = None
        return self._reading()

    def act(self, action: Array, goal: Columns) -> Frame:
        """One control period."""
        going = np.flatnonzero(~self._over)
        if not going.size:
            return self._reading()
        self._drive.step(action, going)
        self._step += 1
        previous = action if self._before is None else self._before
        n = len(self._over)
        truth = {name: rows[:n] for name, rows in self._sim.read().items()}
        with np.errstate(over="ignore", invalid="ignore"):
            state = self._task.state_schema.pack({**truth, **self._goal})
        broken = self._sim.diverged[:n]
        done = Done(state, action, previous, np.full(n, self._step), broken)
        found = judge(self._task, done, self._streak)
        self._streak, self._before, self._goal = found.streak, action, goal
        ends = found.ended & ~self._over
        self._outcome[ends] = np.where(broken[ends], FAILURE, found.outcome[ends])  # a robot falls, it never diverges
        self._over |= ends
        return self._reading()

    def stop(self, places: Array) -> None:
        """Stop these trials; they have failed."""
        places = places[~self._over[places]]
        self._over[places], self._outcome[places] = True, FAILURE

    def _reading(self) -> Frame:
        n = len(self._over)
        truth = {r.signal.name: self._sim.read()[r.signal.name][:n] for r in self._task.state}
        seen = self._gauges.read({name: np.nan_to_num(rows) for name, rows in truth.items()})
        arrays = {
            **seen,
            "time_s": np.full(n, self._step * self._task.control_dt_s),
            "ended": self._over.copy(),
            "outcome": self._outcome.copy(),
        }
        return Frame("reading", {"trials": self.trials}, arrays)


def serve(path: Path, overrides: Sequence[str], inward: BinaryIO, outward: BinaryIO) -> None:
    """Answer until the other side has gone."""
    loaded = load_world(path, overrides=overrides)
    world, identity = loaded.value, loaded.digest.removeprefix("sha256:")
    opening = receive(inward)
    if opening is None:
        return
    task = replace(world.scene.task, horizon_s=float(opening.said["horizon_s"]))
    if opening.said["state"] != task.state_schema.digest or opening.said["action"] != repr(task.action):
        raise SignalError(f"the robot is one for {task.name}, and is asked for another task")
    found = drawn(world, task)
    with ExitStack() as stack:
        sim, ticks = _opened(world, found.task, int(opening.said["places"]), stack)
        inside = Inside(replace(world, ticks=ticks), found.task, found, sim)
        send(outward, Frame("open", {"identity": identity}))
        while (frame := receive(inward)) is not None:
            goal = {name: rows for name, rows in frame.arrays.items() if name in task.goal_signals}
            match frame.verb:
                case "ready":
                    send(outward, inside.ready(frame.arrays["numbers"], goal))
                case "act":
                    send(outward, inside.act(frame.arrays["action"], goal))
                case "stop":
                    inside.stop(frame.arrays["places"])
                case _:
                    raise SignalError(f"a robot knows no {frame.verb!r}", attempt="open, ready, act, stop")


def _opened(world: World, task: Task, places: int, stack: ExitStack) -> tuple[Sim, int]:
    """The simulation, and how many ticks make a control period: as many as asked for that are whole physics steps."""
    for ticks in range(world.ticks, 1, -1):
        fine = replace(task, control_dt_s=task.control_dt_s / ticks)
        try:
            return stack.enter_context(world.engine.open(fine, places)), ticks
        except SimOpsError:  # fewer may do; what is wrong with the scene shows at one
            continue
    return stack.enter_context(world.engine.open(task, places)), 1


def main() -> int:
    """Speak through what was standard output; whatever else prints goes nowhere."""
    inward = os.fdopen(os.dup(0), "rb")
    outward = os.fdopen(os.dup(1), "wb")
    quiet = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(quiet, number)
    try:
        serve(Path(sys.argv[1]), sys.argv[2:], inward, outward)
    except SimOpsError as error:
        send(outward, Frame("refused", {"code": error.code, "fault": error.fault}))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
