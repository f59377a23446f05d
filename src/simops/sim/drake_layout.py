"""Where every joint lies in MuJoCo's state and in Drake's."""

from __future__ import annotations

from typing import final

import numpy as np

from simops.core.signal import Array
from simops.sim.drake_binding import Plant
from simops.sim.drake_plant import Plan
from simops.sim.walk import Parts, Pose


@final
class Layout:
    """Two ways to write one state.

    Drake counts hinges and slides from the pose the scene is drawn at, writes a free body's turn before
    its place, and its spin in the world's axes, not the body's.
    """

    def __init__(self, parts: Parts, plan: Plan, plant: Plant) -> None:
        """Look it up once, in a finalized plant."""
        joints = {joint.id: joint for link in parts.links for joint in link.joints}
        seats = sorted(plan.seats.items())
        self._nq, self._nv = plant.num_positions(), plant.num_velocities()
        self._q = np.array([joints[i].position for i, _ in seats], int)
        self._v = np.array([joints[i].dof for i, _ in seats], int)
        self._their_q = np.array([seat.joint.position_start() for _, seat in seats], int)
        self._their_v = np.array([seat.joint.velocity_start() for _, seat in seats], int)
        self._rest = np.array([seat.rest for _, seat in seats])
        self._free = [
            (joints[i].position, joints[i].dof, joined.position_start(), joined.velocity_start())
            for i, joined in sorted(plan.free.items())
        ]

    def theirs(self, qpos: Array, qvel: Array) -> Array:
        """Drake's positions, then its velocities."""
        state = np.zeros(self._nq + self._nv)
        q, v = state[: self._nq], state[self._nq :]
        q[self._their_q] = qpos[self._q] - self._rest
        v[self._their_v] = qvel[self._v]
        for at, dof, their_at, their_dof in self._free:
            quaternion = qpos[at + 3 : at + 7]
            q[their_at : their_at + 4] = quaternion
            q[their_at + 4 : their_at + 7] = qpos[at : at + 3]
            v[their_dof : their_dof + 3] = Pose(qpos[at : at + 3], quaternion).turn @ qvel[dof + 3 : dof + 6]
            v[their_dof + 3 : their_dof + 6] = qvel[dof : dof + 3]
        return state

    def ours(self, state: Array, qpos: Array, qvel: Array) -> None:
        """Write Drake's state into MuJoCo's."""
        q, v = state[: self._nq], state[self._nq :]
        qpos[self._q] = q[self._their_q] + self._rest
        qvel[self._v] = v[self._their_v]
        for at, dof, their_at, their_dof in self._free:
            quaternion = q[their_at : their_at + 4]
            quaternion = quaternion / np.sqrt(quaternion @ quaternion)
            qpos[at : at + 3] = q[their_at + 4 : their_at + 7]
            qpos[at + 3 : at + 7] = quaternion
            turn = Pose(qpos[at : at + 3], quaternion).turn
            qvel[dof + 3 : dof + 6] = turn.T @ v[their_dof : their_dof + 3]
            qvel[dof : dof + 3] = v[their_dof + 3 : their_dof + 6]
