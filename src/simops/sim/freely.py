"""Free bodies: MuJoCo's coordinates are those of a body's origin, most engines' those of its centre of mass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simops.core.signal import Array
from simops.sim.walk import Link, Pose


class Flight(NamedTuple):
    """Where the origin of a free body is, how it lies, and how its centre of mass moves; all in the world."""

    origin: Array
    quaternion: Array
    linear: Array
    """Velocity of the centre of mass."""
    angular: Array


def flight(link: Link, qpos: Array, qvel: Array) -> Flight:
    """Of the link in this state."""
    joint = link.joints[0]
    at = qpos[joint.position : joint.position + 7]
    speed = qvel[joint.dof : joint.dof + 6]
    turn = Pose(at[:3], at[3:]).turn
    angular = turn @ speed[3:]
    return Flight(at[:3].copy(), at[3:].copy(), speed[:3] + np.cross(angular, turn @ link.centre), angular)


def land(link: Link, seen: Flight, qpos: Array, qvel: Array) -> None:
    """Write it into a state."""
    joint = link.joints[0]
    turn = Pose(seen.origin, seen.quaternion).turn
    qpos[joint.position : joint.position + 3] = seen.origin
    qpos[joint.position + 3 : joint.position + 7] = seen.quaternion
    qvel[joint.dof : joint.dof + 3] = seen.linear - np.cross(seen.angular, turn @ link.centre)
    qvel[joint.dof + 3 : joint.dof + 6] = turn.T @ seen.angular
