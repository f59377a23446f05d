"""Where each signal of a task's state is found in a batch of MuJoCo simulations.

What the state itself holds (joints, free bodies) is current. What MuJoCo derives from it (bodies
on joints, sites, sensors) is computed anew at the end of a step up to velocities; forces and
accelerations are those of the last physics step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from simops.core.errors import EngineError, SceneError
from simops.core.signal import Array
from simops.core.task import Body, Joint, Marker, Reading, Scan, Sensor, Site
from simops.sim.binding import Batched, Index, Model, mj
from simops.sim.change import dofs_of, ids_of
from simops.sim.scene import free_joint, joint_addresses

Read: TypeAlias = Callable[[], Array]
Write: TypeAlias = Callable[[Array, Array], None]
"""(ids, rows): put these copies there."""

NONE = int(mj.mjtStage.mjSTAGE_NONE)
POSITION = int(mj.mjtStage.mjSTAGE_POS)
VELOCITY = int(mj.mjtStage.mjSTAGE_VEL)
"""How far MuJoCo must compute at the end of a step before a signal can be read."""


def reader(batch: Batched, reading: Reading) -> tuple[Read, int]:
    """How to read a signal of all copies, and up to which stage MuJoCo must have computed."""
    source, model = reading.source, batch.model
    if isinstance(source, Joint):
        return _joint_reader(batch, source)
    if isinstance(source, Body):
        return _body_reader(batch, source)
    if isinstance(source, Marker):
        slot = _mocap(model, source.name)
        return (lambda: batch.bind("mocap_pos")[:, slot]), NONE
    if isinstance(source, Site):
        site = _named(model, "site", source.name)
        if source.what == "position":
            positions = batch.bind("site_xpos")
            return (lambda: positions[:, site]), POSITION
        frames = batch.bind("site_xmat")
        return (lambda: _quaternions(frames[:, site])), POSITION
    if isinstance(source, Scan):
        return _scan_reader(batch, source)
    return _sensor_reader(batch, source)


def writer(batch: Batched, reading: Reading) -> Write:
    """How to put copies into a state; raises for what the state does not hold."""
    source, model = reading.source, batch.model
    if isinstance(source, Joint) and source.what != "torque":
        positions, dofs = joint_addresses(model, source.names)
        where, index = ("qpos", positions) if source.what == "position" else ("qvel", dofs)
        return _into(batch.bind(where), index, len(index))
    if isinstance(source, Body):
        body = _named(model, "body", source.name)
        joint = free_joint(model, body)
        if joint is not None:
            start, dof = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
            where, first, width = {
                "position": ("qpos", start, 3),
                "quaternion": ("qpos", start + 3, 4),
                "velocity": ("qvel", dof, 3),
                "angular_velocity": ("qvel", dof + 3, 3),
            }[source.what]
            return _into(batch.bind(where), slice(first, first + width), width)
    if isinstance(source, Marker):
        return _into(batch.bind("mocap_pos"), _mocap(model, source.name), 3)
    raise SceneError(
        f"{reading.signal.name} is derived, no episode can begin with it", attempt="joints, free bodies or markers"
    )


def _into(rows: Array, index: Index, width: int) -> Write:
    scattered = isinstance(index, list)

    def write(ids: Array, values: Array) -> None:
        rows[np.ix_(ids, index) if scattered else (ids, index)] = values.reshape(len(ids), width)

    return write


def _joint_reader(batch: Batched, source: Joint) -> tuple[Read, int]:
    positions, dofs = joint_addresses(batch.model, source.names)
    if source.what == "position":
        qpos, index = batch.bind("qpos"), span(positions)
        return (lambda: qpos[:, index]), NONE
    if source.what == "velocity":
        qvel, index = batch.bind("qvel"), span(dofs)
        return (lambda: qvel[:, index]), NONE
    torque, index = batch.bind("qfrc_actuator"), span(dofs)
    return (lambda: torque[:, index]), NONE


def _body_reader(batch: Batched, source: Body) -> tuple[Read, int]:
    model = batch.model
    body = _named(model, "body", source.name)
    joint = free_joint(model, body)
    if joint is not None:
        start, dof = int(model.jnt_qposadr[joint]), dofs_of(model, joint).start
        qpos, qvel = batch.bind("qpos"), batch.bind("qvel")
        reads: dict[str, Read] = {
            "position": lambda: qpos[:, start : start + 3],
            "quaternion": lambda: qpos[:, start + 3 : start + 7],
            "velocity": lambda: qvel[:, dof : dof + 3],
            "angular_velocity": lambda: qvel[:, dof + 3 : dof + 6],
        }
        return reads[source.what], NONE
    if source.what == "position":
        positions = batch.bind("xpos")
        return (lambda: positions[:, body]), POSITION
    if source.what == "quaternion":
        turns = batch.bind("xquat")
        return (lambda: turns[:, body]), POSITION
    spatial, frames = batch.bind("cvel"), batch.bind("xmat")
    if source.what == "angular_velocity":
        return (lambda: _into_frame(frames[:, body], spatial[:, body, :3])), VELOCITY
    positions, centres = batch.bind("xpos"), batch.bind("subtree_com")
    root = int(model.body_rootid[body])

    def velocity() -> Array:
        arm = positions[:, body] - centres[:, root]
        return spatial[:, body, 3:] + np.cross(spatial[:, body, :3], arm)

    return velocity, VELOCITY


def _sensor_reader(batch: Batched, source: Sensor) -> tuple[Read, int]:
    model = batch.model
    sensors = [_named(model, "sensor", name) for name in source.names]
    index = span([int(model.sensor_adr[s]) + k for s in sensors for k in range(int(model.sensor_dim[s]))])
    data = batch.bind("sensordata")
    # forces stay as the last physics step left them, whatever is computed after it
    stages = [int(model.sensor_needstage[s]) for s in sensors]
    return (lambda: data[:, index]), max((s for s in stages if s <= VELOCITY), default=NONE)


def _scan_reader(batch: Batched, source: Scan) -> tuple[Read, int]:
    if not hasattr(batch, "ray"):
        raise EngineError("this engine casts no rays", where=source.site, attempt="the engine mujoco")
    model = batch.model
    site = _named(model, "site", source.site)
    body = int(model.site_bodyid[site])
    rays = np.array(source.directions, float)
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    positions, frames = batch.bind("site_xpos"), batch.bind("site_xmat")

    def cast() -> Array:
        at = np.repeat(positions[:, site][:, None], len(rays), axis=1)
        ways = np.einsum("nij,rj->nri", frames[:, site].reshape(-1, 3, 3), rays)
        if source.what == "range":
            return np.maximum(batch.ray(at, ways, bodyexclude=body)[0], 0.0)
        _, _, normals = batch.ray(at, ways, bodyexclude=body, normal=True)
        return np.abs((normals * ways).sum(axis=2))

    return cast, POSITION


def span(index: list[int]) -> Index:
    """A slice, which reads as a view, where the indices follow each other."""
    if index and index == list(range(index[0], index[0] + len(index))):
        return slice(index[0], index[0] + len(index))
    return index


def _named(model: Model, kind: str, name: str) -> int:
    if kind == "body":
        return ids_of(model, "body", (name,))[0]
    found = mj.mj_name2id(model, getattr(mj.mjtObj, f"mjOBJ_{kind.upper()}"), name)
    if found < 0:
        count = {"site": model.nsite, "sensor": model.nsensor}[kind]
        names = [getattr(model, kind)(i).name for i in range(count)]
        raise SceneError(f"the scene has no {kind} {name!r}", attempt=", ".join(sorted(names)[:8]))
    return found


def _mocap(model: Model, name: str) -> int:
    slot = int(model.body_mocapid[_named(model, "body", name)])
    if slot < 0:
        raise SceneError(f"body {name!r} is not a mocap body", attempt='mocap="true"')
    return slot


def _into_frame(frames: Array, vectors: Array) -> Array:
    """World vectors in the body's frame."""
    return np.einsum("nji,nj->ni", frames.reshape(-1, 3, 3), vectors)


def _quaternions(frames: Array) -> Array:
    """Rotation matrices, (n, 9), as quaternions w, x, y, z."""
    quaternions = np.empty((len(frames), 4))
    for row, frame in zip(quaternions, np.ascontiguousarray(frames), strict=True):
        mj.mju_mat2Quat(row, frame.ravel())
    return quaternions
