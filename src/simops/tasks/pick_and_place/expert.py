"""A scripted expert for pick and place: phases decide where the tool goes, damped least squares how the joints follow.

It plans on its own command, not on the lagging arm, so the servos see a smooth path; what it sees of the arm and the
cube decides when a phase is over, where the cube sits in the hand, and whether to try again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np

from simops.core.errors import SignalError
from simops.core.protocols import Act, Memory
from simops.tasks.pick_and_place.kinematics import SPEED_LIMIT_RAD_S, Tool, damped_step, jacobian, tool
from simops.tasks.pick_and_place.scores import CUBE_HALF_M
from simops.tasks.pick_and_place.task import ACTION, CONTROL_DT_S, OBSERVATION, OPEN_M

if TYPE_CHECKING:
    from simops.core.signal import Array
    from simops.core.task import Task

REACH, GRASP, CARRY, RELEASE = range(4)
"""Phases: go down around the cube, close on it, bring it to the goal, let go and rise."""
_OFFSETS = OBSERVATION.slices


class _View(NamedTuple):
    """What the phases look at; vectors (3, n), the rest (n,)."""

    tool: Array
    cube: Array
    goal: Array
    cube_axis: Array
    """x and y of an edge of the cube that lies level, (2, n)."""


class _Aim(NamedTuple):
    """Where the tool should go now."""

    position: Array
    turn: Array
    """Sine of the turn about the vertical that is still missing, (n,)."""
    clear: Array
    """Share of the sideways speed that is safe at this height, (n,)."""


@final
@dataclass(frozen=True)
class Expert:
    """Picks the cube up and puts it down at the goal."""

    speed_m_s: float = 0.9
    """Fastest the tool is asked to go."""
    acceleration_m_s2: float = 6.0
    """How quickly it may get there."""
    clearance_m: float = 0.1
    """How high above its resting place the cube is carried, and approached."""
    grip_steps: int = 4
    """Control steps given to the fingers to close."""

    @property
    def digest(self) -> str:
        """Its recipe."""
        return repr(self)

    def start(self, task: Task, seeds: Array) -> Memory:
        """Nothing is commanded yet; raises if the task is not pick and place."""
        if task.observation.digest != OBSERVATION.digest or task.action != ACTION:
            raise SignalError(f"{task.name} is not what this expert was written for", attempt="task pick_and_place")
        n = len(seeds)
        return {
            "command": np.full((n, 7), np.nan),
            "speed": np.zeros(n),
            "phase": np.full(n, REACH),
            "since": np.zeros(n, np.int64),
        }

    def act(self, observation: Array, memory: Memory) -> Act:
        """One step along the way, every copy in its own phase."""
        seen = np.ascontiguousarray(observation.T, np.float64)
        view = _look(seen)
        command = memory["command"].T
        command = np.where(np.isnan(command), seen[_OFFSETS["joint_position"]], command)
        at = tool(command)
        phase, since = memory["phase"], memory["since"]
        turn = _turn(at, view)
        following = self._next(phase, since, view, turn)
        since = np.where(following == phase, since + 1, 0)
        aim = self._aim(following, view, at, turn)
        move, speed = self._move(aim, at, memory["speed"])
        command = _follow(command, at, move, aim.turn)
        action = np.empty((len(observation), ACTION.size), np.float32)
        action[:, :7] = command.T
        action[:, 7] = np.where((following == GRASP) | (following == CARRY), 0.0, OPEN_M)
        remembered = {"command": command.T, "speed": speed, "phase": following, "since": since}
        return Act(action, remembered)

    def _next(self, phase: Array, since: Array, view: _View, turn: Array) -> Array:
        """The phase to be in now."""
        from_cube, from_goal = view.cube - view.tool, view.cube - view.goal
        around = (_level(from_cube) < 0.008) & (np.abs(from_cube[2]) < 0.008) & (np.abs(turn) < 0.12)
        there = (_level(from_goal) < 0.008) & (from_goal[2] < 0.006)
        gone = (_level(from_cube) > 0.03) | (np.abs(from_cube[2]) > 0.03)
        following = np.where((phase == REACH) & around, GRASP, phase)
        following = np.where((phase == GRASP) & (since >= self.grip_steps), CARRY, following)
        following = np.where((phase == CARRY) & there, RELEASE, following)
        following = np.where(((phase == CARRY) | (phase == GRASP)) & gone, REACH, following)
        return np.where((phase == RELEASE) & (since > 15) & (_level(from_goal) > 0.015), REACH, following)

    def _aim(self, phase: Array, view: _View, at: Tool, turn: Array) -> _Aim:
        """Above the place while still beside it, down onto it as it comes under the tool."""
        in_hand = view.tool - view.cube
        down = np.where(phase == CARRY, view.goal + in_hand, view.cube)
        beside = _level(np.where(phase == CARRY, view.goal - view.cube, view.cube - view.tool))
        beside = beside + 0.03 * np.abs(turn) * (phase == REACH)
        rise = np.clip(6.0 * (beside - 0.006), 0.0, self.clearance_m)
        height = np.where(phase == CARRY, view.cube - view.goal, view.tool - view.cube)[2]
        clear = np.where(beside < 0.015, 1.0, np.clip(height / 0.045, 0.0, 1.0))
        position = down.copy()
        position[2] = np.maximum(position[2], CUBE_HALF_M) + rise
        moving = (phase == REACH) | (phase == CARRY)
        away = at.position.copy()
        away[2] = np.where(phase == RELEASE, CUBE_HALF_M + self.clearance_m, away[2])
        return _Aim(np.where(moving, position, away), np.where(phase == REACH, turn, 0.0), clear)

    def _move(self, aim: _Aim, at: Tool, speed: Array) -> tuple[Array, Array]:
        """The tool's step (3, n), and how fast that is: accelerate, cruise, slow down near the aim."""
        way = aim.position - at.position
        way[:2] *= aim.clear
        distance = np.sqrt(way[0] * way[0] + way[1] * way[1] + way[2] * way[2])
        wanted = np.minimum(self.speed_m_s, 0.1 + 7.0 * distance)
        wanted = np.minimum(wanted, speed + self.acceleration_m_s2 * CONTROL_DT_S)
        step = np.minimum(distance, wanted * CONTROL_DT_S)
        return way * (step / np.maximum(distance, 1e-9)), step / CONTROL_DT_S


def _look(seen: Array) -> _View:
    """Name the parts of an observation laid out component first."""
    w, x, y, z = seen[_OFFSETS["cube_quaternion"]]
    edge_x = np.stack([1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z)])
    edge_y = np.stack([2.0 * (x * y - w * z), 1.0 - 2.0 * (x * x + z * z)])
    upright = np.abs(x * z - w * y) < 0.35  # the x edge points up or down once the cube has rolled over
    edge = np.where(upright, edge_x, edge_y)
    edge = edge / np.maximum(np.sqrt(edge[0] * edge[0] + edge[1] * edge[1]), 1e-6)
    return _View(
        tool=seen[_OFFSETS["tool_position"]],
        cube=seen[_OFFSETS["cube_position"]],
        goal=seen[_OFFSETS["goal_position"]],
        cube_axis=edge,
    )


def _level(vector: Array) -> Array:
    """Length of the horizontal part."""
    return np.sqrt(vector[0] * vector[0] + vector[1] * vector[1])


def _turn(at: Tool, view: _View) -> Array:
    """Sine of the smallest turn of the hand that sets the pads flat on two faces of the cube."""
    hand, cube = at.axes[0], view.cube_axis
    along: Array = hand[0] * cube[0] + hand[1] * cube[1]
    across: Array = hand[0] * cube[1] - hand[1] * cube[0]
    quarter = np.abs(across) > np.abs(along)  # the next face is nearer
    return np.where(quarter, -along * np.sign(across), across * np.sign(along))


def _follow(command: Array, at: Tool, move: Array, turn: Array) -> Array:
    """Joint targets after the tool's step `move`, the hand kept level and turned by at most 0.12 rad."""
    twist = np.empty((6, command.shape[1]))
    z = at.axes[2]
    twist[:3], twist[3], twist[4], twist[5] = move, -z[1], z[0], np.clip(turn, -0.12, 0.12)
    step = damped_step(jacobian(at), twist)
    limit = np.array(SPEED_LIMIT_RAD_S)[:, None] * CONTROL_DT_S
    share = np.max(np.abs(step) / limit, axis=0)
    command = command + step / np.maximum(share, 1.0)
    low, high = np.array(ACTION.low[:7])[:, None], np.array(ACTION.high[:7])[:, None]
    return np.clip(command, low, high)
