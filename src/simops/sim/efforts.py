"""What drives, springs and dampers put on the joints of a copy, in arrays, for engines without servos of their own."""

from __future__ import annotations

from typing import final

import numpy as np

from simops.core.signal import Array
from simops.sim.walk import Drive, Joint, Parts


@final
class Efforts:
    """Generalised forces on hinges and slides; free and ball joints carry none."""

    def __init__(self, parts: Parts) -> None:
        """Gather the numbers of all drives and joints."""
        self.joints: tuple[Joint, ...] = tuple(j for link in parts.links for j in link.joints if single(j))
        drives = parts.drives
        self._dofs = np.array([drive.dof for drive in drives], int)
        self._positions = np.array([drive.position for drive in drives], int)
        self._actuators = np.array([drive.actuator for drive in drives], int)
        self._gain, self._offset = _column(drives, "gain"), _column(drives, "offset")
        self._kp, self._kd = _column(drives, "kp"), _column(drives, "kd")
        self._low, self._high = _column(drives, "low"), _column(drives, "high")
        self.dofs = np.array([joint.dof for joint in self.joints], int)
        """Of the joints, in qvel."""
        self.positions = np.array([joint.position for joint in self.joints], int)
        """Of the joints, in qpos."""
        self.rest = np.array([joint.rest for joint in self.joints])
        self._damping = np.array([joint.damping for joint in self.joints])
        self._stiffness = np.array([joint.stiffness for joint in self.joints])
        self._spring = np.array([joint.spring for joint in self.joints])

    def of(self, control: Array, qpos: Array, qvel: Array) -> Array:
        """The force on every degree of freedom, (nv,): drives within their limits, springs, dampers."""
        found = np.zeros(len(qvel))
        found[self.dofs] = -self._damping * qvel[self.dofs]
        found[self.dofs] -= self._stiffness * (qpos[self.positions] - self._spring)
        if len(self._dofs):
            np.add.at(found, self._dofs, self.driven(control, qpos, qvel))
        return found

    def driven(self, control: Array, qpos: Array, qvel: Array) -> Array:
        """What each drive gives, within its limits."""
        wanted = self._gain * control[self._actuators] + self._offset
        wanted -= self._kp * qpos[self._positions] + self._kd * qvel[self._dofs]
        return np.clip(wanted, self._low, self._high)


def single(joint: Joint) -> bool:
    """Whether it is a hinge or a slide."""
    return joint.kind in {"hinge", "slide"}


def _column(drives: tuple[Drive, ...], name: str) -> Array:
    return np.array([getattr(drive, name) for drive in drives], float)
