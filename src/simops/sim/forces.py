"""Efforts of drives and sensors of force, by MuJoCo's own formulas, from another engine's state and contacts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np

from simops.core.errors import EngineError
from simops.core.signal import Array
from simops.sim.binding import Data, Model, mj
from simops.sim.walk import Parts
from simops.sim.world import Touch, World

_S = mj.mjtSensor
_ACCELERATE = {
    int(s)
    for s in (
        _S.mjSENS_ACCELEROMETER,
        _S.mjSENS_FORCE,
        _S.mjSENS_TORQUE,
        _S.mjSENS_FRAMELINACC,
        _S.mjSENS_FRAMEANGACC,
    )
}
_EFFORT = {int(s) for s in (_S.mjSENS_ACTUATORFRC, _S.mjSENS_JOINTACTFRC)}
_TOUCH = int(_S.mjSENS_TOUCH)


@final
class Forces:
    """What a copy's sensors of force show."""

    def __init__(self, model: Model, parts: Parts, sensors: Sequence[int]) -> None:
        """Raise for a sensor of what no other engine tells."""
        self._model, self._parts = model, parts
        kinds = {sensor: int(model.sensor_type[sensor]) for sensor in sensors}
        for sensor, kind in kinds.items():
            if kind not in _ACCELERATE | _EFFORT | {_TOUCH}:
                name = model.sensor(sensor).name
                raise EngineError(f"sensor {name!r} is of a kind that only MuJoCo has", attempt="the engine mujoco")
        self.accelerate = any(kind in _ACCELERATE for kind in kinds.values())
        """Whether accelerations are asked for."""
        self._asked = bool(kinds)
        self._touch = tuple(sensor for sensor, kind in kinds.items() if kind == _TOUCH)

    def show(self, data: Data, control: Array, world: World, acceleration: Array, loads: Array) -> None:
        """Write efforts and sensors of force into `data`, whose state is the world's and has been computed upon."""
        data.qfrc_actuator[:] = 0.0
        for drive in self._parts.drives:
            q, v = data.qpos[drive.position], data.qvel[drive.dof]
            effort = drive.gain * control[drive.actuator] + drive.offset - drive.kp * q - drive.kd * v
            effort = np.clip(effort, drive.low, drive.high)
            data.qfrc_actuator[drive.dof] += effort
            data.actuator_force[drive.actuator] = effort / self._model.actuator_gear[drive.actuator, 0]
        if not self._asked:
            return
        touches = world.touches()
        data.qacc[:] = acceleration
        data.xfrc_applied[:] = loads
        for touch in touches:
            self._press(data, touch)
        mj.mj_rnePostConstraint(self._model, data)
        mj.mj_sensorAcc(self._model, data)
        for sensor in self._touch:
            data.sensordata[self._model.sensor_adr[sensor]] = self._pressed(data, sensor, touches)

    def _press(self, data: Data, touch: Touch) -> None:
        for geom, force in zip(touch.geoms, (-touch.force, touch.force), strict=True):
            body = int(self._model.geom_bodyid[geom])
            data.xfrc_applied[body, :3] += force
            data.xfrc_applied[body, 3:] += np.cross(touch.point - data.xipos[body], force)

    def _pressed(self, data: Data, sensor: int, touches: Sequence[Touch]) -> float:
        """Sum of the normal forces on the site's body whose line meets the site."""
        model, site = self._model, int(self._model.sensor_objid[sensor])
        body, total = int(model.site_bodyid[site]), 0.0
        place = data.site_xpos[site], data.site_xmat[site], model.site_size[site]
        for touch in touches:
            bodies = [int(model.geom_bodyid[geom]) for geom in touch.geoms]
            inward = touch.normal if bodies[0] == body else -touch.normal
            if body in bodies and mj.mju_rayGeom(*place, touch.point, inward, int(model.site_type[site])) >= 0:
                total += max(0.0, float(touch.force @ touch.normal))
        return total
