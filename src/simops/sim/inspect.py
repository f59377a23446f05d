"""What a recorded episode implies, whichever engine or robot ran it: energy, work, depth of contact, outer force.

Positions are read from the recorded columns, speeds and accelerations are their differences, and the scene's own
masses at the episode's params say the rest. So no simulator is asked about itself.
"""

from __future__ import annotations

from typing import final

import numpy as np

from simops.core.errors import SimOpsError
from simops.core.params import Params
from simops.core.signal import Array, Columns
from simops.core.task import Task
from simops.core.trajectory import Trajectory
from simops.sim.binding import Data, Model, mj
from simops.sim.mujoco import Mujoco
from simops.sim.stage import poses, stage, undetermined


@final
class Inspector:
    """Looks at episodes of one task."""

    def __init__(self, task: Task) -> None:
        """Compile the scene once."""
        self._task = task
        self._stage = None
        try:
            made = stage(task)
            self._stage = None if undetermined(made) else made
        except SimOpsError:  # a scene that only its own engine can read
            self._stage = None

    @property
    def able(self) -> bool:
        """Whether the task's state says where everything is."""
        return self._stage is not None

    def look(self, trajectory: Trajectory) -> Columns:
        """A row a control step, of what the state tells; nothing where it does not say where everything is.

        `energy_j` kinetic and potential; `work_j` the most that motors could have done since the start, where their
        strength has a limit; `penetration_m`; `outer_n` the largest force from outside on a body that moves freely.
        """
        if self._stage is None:
            return {}
        stood = poses(self._stage, trajectory)
        if len(stood) < 3:
            return {}
        model = self._model(trajectory)
        data = mj.MjData(model)
        dt_s = self._task.control_dt_s
        speeds = np.zeros((len(stood), model.nv))
        for i in range(len(stood)):
            first, last = max(0, i - 1), min(len(stood) - 1, i + 1)
            mj.mj_differentiatePos(model, speeds[i], (last - first) * dt_s, stood.qpos[first], stood.qpos[last])
        accelerations = np.gradient(speeds, dt_s, axis=0)
        found = {name: np.zeros(len(stood)) for name in ("energy_j", "penetration_m", "outer_n")}
        for i in range(len(stood)):
            data.qpos[:], data.qvel[:], data.qacc[:] = stood.qpos[i], speeds[i], accelerations[i]
            data.mocap_pos[:], data.mocap_quat[:] = stood.mocap_pos[i], stood.mocap_quat[i]
            mj.mj_fwdPosition(model, data)
            found["penetration_m"][i] = _depth(data)
            mj.mj_fwdVelocity(model, data)
            mj.mj_energyPos(model, data)
            mj.mj_energyVel(model, data)
            found["energy_j"][i] = float(data.energy.sum())
            found["outer_n"][i] = _outer(model, data)
        strength = _strength(model)
        if np.isfinite(strength).all():
            moved = np.abs(np.diff(stood.qpos[:, _addresses(model)], axis=0)) @ strength
            found["work_j"] = np.concatenate([[0.0], np.cumsum(moved)])
        return found

    def _model(self, trajectory: Trajectory) -> Model:
        """The scene at the episode's params."""
        with Mujoco(threads=1).open(self._task, 1) as sim:
            sim.reset(np.zeros(1, np.int64), Params.of([trajectory.params]), {})
            return sim.model_of(0)


def _depth(data: Data) -> float:
    """How deep the deepest contact is."""
    return max(0.0, -float(data.contact.dist.min())) if data.ncon else 0.0


def _outer(model: Model, data: Data) -> float:
    """The largest force on a free body that neither gravity nor inertia explains."""
    free = [int(model.jnt_dofadr[j]) for j in range(model.njnt) if model.jnt_type[j] == mj.mjtJoint.mjJNT_FREE]
    if not free:
        return 0.0
    forces = np.zeros(model.nv)
    mj.mj_rne(model, data, 1, forces)
    return max(float(np.linalg.norm(forces[start : start + 3])) for start in free)


def _driven(model: Model) -> list[int]:
    """The joint of each actuator that drives one, hinge or slide."""
    return [
        int(model.actuator_trnid[a, 0])
        for a in range(model.nu)
        if model.actuator_trntype[a] == mj.mjtTrn.mjTRN_JOINT
        and int(model.jnt_type[int(model.actuator_trnid[a, 0])]) > 1
    ]


def _addresses(model: Model) -> list[int]:
    return [int(model.jnt_qposadr[joint]) for joint in _driven(model)]


def _strength(model: Model) -> Array:
    """The most that each actuator can put on its joint; infinite where nothing limits it."""
    found: list[float] = []
    for a in range(model.nu):
        gear = abs(float(model.actuator_gear[a, 0]))
        joint = int(model.actuator_trnid[a, 0])
        if model.actuator_trntype[a] != mj.mjtTrn.mjTRN_JOINT or int(model.jnt_type[joint]) <= 1:
            return np.array([np.inf])
        limits = [np.inf]
        if model.actuator_forcelimited[a]:
            limits.append(gear * float(np.abs(model.actuator_forcerange[a]).max()))
        if model.jnt_actfrclimited[joint]:
            limits.append(float(np.abs(model.jnt_actfrcrange[joint]).max()))
        if model.actuator_ctrllimited[a] and model.actuator_biastype[a] == mj.mjtBias.mjBIAS_NONE:
            gain = abs(float(model.actuator_gainprm[a, 0]))
            limits.append(gear * gain * float(np.abs(model.actuator_ctrlrange[a]).max()))
        found.append(min(limits))
    return np.array(found)
