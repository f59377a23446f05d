"""A task's scene made up for pictures, and how it stands at each row of a trajectory.

The physics is not needed: where the state of a task says where every joint is, a recording can be
shown, whatever simulator or robot it comes from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol, cast, final

import numpy as np

from simops.core.errors import EngineError, SceneError, nearest
from simops.core.params import Change, Param
from simops.core.protocols import Sim
from simops.core.signal import Array
from simops.core.task import Body, Joint, Marker, Task
from simops.core.trajectory import Trajectory
from simops.sim.binding import Data, Index, Model, Spec, mj
from simops.sim.scene import free_joint, load
from simops.sim.texture import texture

TEXTURE_SIDE = 256
_STRIDE = 37  # between the textures of two materials that one param changes


class Slot(NamedTuple):
    """Room in the model for a texture of the pool on one material."""

    param: str
    material: int
    texture: int
    shift: int
    """How many numbers of the pool this material's texture is from the param's."""
    pool: int
    """Size of the pool; 0 for no end."""

    def number(self, value: float) -> int:
        """Which texture of the pool; 0 for the material's own."""
        number = int(value)
        if number == 0 or self.shift == 0:
            return number
        return 1 + (number - 1 + self.shift) % (self.pool - 1) if self.pool > 1 else number + self.shift


@final
@dataclass(frozen=True)
class Stage:
    """A compiled scene with room for the textures that the task's params choose."""

    task: Task
    model: Model
    slots: tuple[Slot, ...]

    @property
    def cameras(self) -> tuple[str, ...]:
        """Names of the scene's cameras."""
        return tuple(self.model.camera(i).name for i in range(self.model.ncam))

    @property
    def objects(self) -> tuple[str, ...]:
        """What each number in a segmentation means: nothing, then the bodies of the scene."""
        return ("", *(self.model.body(i).name or f"body {i}" for i in range(self.model.nbody)))

    def changes(self, *fields: str) -> Iterator[tuple[Param, Change]]:
        """Params of the task that change these fields, and how."""
        return changes(self.task, *fields)


@final
@dataclass(frozen=True)
class Poses:
    """Where everything stands, a row an instant."""

    qpos: Array
    """(rows, nq)."""
    mocap_pos: Array
    """(rows, nmocap, 3) where the markers are."""
    mocap_quat: Array
    """(rows, nmocap, 4)."""
    time_s: Array
    """(rows,)."""

    def __len__(self) -> int:
        return len(self.time_s)

    def between(self, model: Model, times_s: Array) -> Poses:
        """How everything stood at other instants, on the shortest way from row to row; the ends hold."""
        times_s = np.clip(times_s, self.time_s[0], self.time_s[-1])
        before = np.clip(np.searchsorted(self.time_s, times_s, side="right") - 1, 0, max(0, len(self) - 2))
        after = np.minimum(before + 1, len(self) - 1)
        gap = np.maximum(self.time_s[after] - self.time_s[before], 1e-12)
        share = np.clip((times_s - self.time_s[before]) / gap, 0.0, 1.0)
        qpos = self.qpos[before].copy()
        rate = np.zeros(model.nv)
        for row, (one, other, part) in enumerate(zip(before, after, share, strict=True)):
            mj.mj_differentiatePos(model, rate, 1.0, self.qpos[one], self.qpos[other])
            mj.mj_integratePos(model, qpos[row], rate, float(part))
        place = self.mocap_pos[before] + share[:, None, None] * (self.mocap_pos[after] - self.mocap_pos[before])
        return Poses(qpos, place, self.mocap_quat[before], times_s)


def stage(task: Task) -> Stage:
    """Compile the task's scene for pictures."""
    spec = load(task.scene)
    wanted: list[tuple[str, str, int, int]] = []
    for param, change in changes(task, "texture"):
        known = [material.name for material in spec.materials]
        for shift, name in enumerate(change.of or known):
            if name not in known:
                raise SceneError(f"the scene has no material {name!r}", where=param.name, attempt=nearest(name, known))
            pool = int(param.high) if np.isfinite(param.high) else 0
            wanted.append((param.name, name, shift * _STRIDE, pool))
            _add_slot(spec, name)
    try:
        model = spec.compile()
    except ValueError as error:
        raise SceneError(f"{task.name} does not compile for pictures: {error}", where=task.scene.path) from error
    slots = tuple(
        Slot(param, model.material(name).id, model.texture(_slot_name(name)).id, shift, pool)
        for param, name, shift, pool in wanted
    )
    return Stage(task, model, slots)


def changes(task: Task, *fields: str) -> Iterator[tuple[Param, Change]]:
    """Params of a task that change these fields, and how."""
    for param in task.belief.params:
        for change in param.changes:
            if change.field in fields:
                yield param, change


def paint(stage: Stage, slot: Slot, number: int) -> None:
    """Write texture `number` of the pool into the model."""
    model = stage.model
    pixels = texture(number, side=TEXTURE_SIDE)
    start, height = int(model.tex_adr[slot.texture]), int(model.tex_height[slot.texture])
    faces = height // TEXTURE_SIDE
    model.tex_data[start : start + height * TEXTURE_SIDE * 3] = np.concatenate([pixels] * faces).ravel()


def poses(stage: Stage, trajectory: Trajectory) -> Poses:
    """Read where everything stood from a trajectory's state; raises if the state does not say."""
    unknown = undetermined(stage)
    if unknown:
        raise SceneError(
            f"the state of {stage.task.name} does not say where {', '.join(unknown)} is",
            attempt="a replay in the engine, or a reading of it in the task's state",
        )
    model, columns = stage.model, trajectory.columns
    sound = np.all(np.isfinite(np.stack([_flat(columns[name]).sum(axis=1) for name in stage.task.sources])), axis=0)
    rows = np.flatnonzero(sound)
    blank = _blank(stage, len(rows))
    for reading in stage.task.state:
        values = _flat(columns[reading.signal.name])[rows].astype(float)
        for where in _written(model, reading.source):
            target = {"qpos": blank.qpos, "mocap_pos": blank.mocap_pos, "mocap_quat": blank.mocap_quat}[where.field]
            target[(slice(None), *where.at)] = values[:, where.columns]
    _couple(model, blank.qpos, _known(stage))
    return Poses(blank.qpos, blank.mocap_pos, blank.mocap_quat, rows * stage.task.control_dt_s)


def undetermined(stage: Stage) -> tuple[str, ...]:
    """Joints whose position the task's state does not give."""
    model, known = stage.model, _known(stage)
    _couple(model, np.zeros((1, model.nq)), known)
    width = {0: 7, 1: 4, 2: 1, 3: 1}
    return tuple(
        model.joint(j).name or f"joint {j}"
        for j in range(model.njnt)
        if not known[model.jnt_qposadr[j] : model.jnt_qposadr[j] + width[int(model.jnt_type[j])]].all()
    )


class Posed(Protocol):
    """A simulation that can say how a copy stands."""

    def data_of(self, i: int) -> Data:
        """MuJoCo's state of copy `i`."""
        ...


@final
class Watcher:
    """Remembers how one copy stood at every step of a replay."""

    def __init__(self, control_dt_s: float, *, copy: int = 0) -> None:
        """Watch `copy` of whatever simulation goes by."""
        self._dt_s, self._copy = control_dt_s, copy
        self._seen: list[tuple[int, Array, Array, Array]] = []

    def frame(self, sim: Sim, ids: Array, step: int) -> None:
        """Remember how the copy stands at `step`."""
        if not hasattr(sim, "data_of"):
            raise EngineError(f"{type(sim).__name__} does not show how its copies stand", attempt="the mujoco engine")
        if self._copy in ids:
            data = cast("Posed", sim).data_of(self._copy)
            self._seen.append((step, data.qpos.copy(), data.mocap_pos.copy(), data.mocap_quat.copy()))

    def poses(self) -> Poses:
        """All that was seen."""
        steps, qpos, position, quaternion = zip(*self._seen, strict=True)
        return Poses(np.array(qpos), np.array(position), np.array(quaternion), np.array(steps) * self._dt_s)


class _Where(NamedTuple):
    """Some columns of a signal, and where in the model's state they are written."""

    field: str
    at: tuple[Index, ...]
    columns: slice | list[int]


def _written(model: Model, source: object) -> list[_Where]:
    if isinstance(source, Joint) and source.what == "position":
        ids = [_id(model, "joint", name) for name in source.names]
        return [_Where("qpos", ([int(model.jnt_qposadr[j]) for j in ids],), slice(None))]
    if isinstance(source, Marker) or (isinstance(source, Body) and source.what in {"position", "quaternion"}):
        body = _id(model, "body", source.name)
        rotated = isinstance(source, Body) and source.what == "quaternion"
        joint, mocap = free_joint(model, body), int(model.body_mocapid[body])
        if joint is not None:
            start = int(model.jnt_qposadr[joint]) + (3 if rotated else 0)
            return [_Where("qpos", (slice(start, start + (4 if rotated else 3)),), slice(None))]
        if mocap >= 0:
            return [_Where("mocap_quat" if rotated else "mocap_pos", (mocap,), slice(None))]
    return []


def _known(stage: Stage) -> Array:
    known = np.zeros(stage.model.nq, bool)
    for reading in stage.task.state:
        for where in _written(stage.model, reading.source):
            if where.field == "qpos":
                known[where.at] = True
    return known


def _couple(model: Model, qpos: Array, known: Array) -> None:
    """Fill in joints that an equality ties to a known one."""
    for e in range(model.neq):
        if model.eq_type[e] != mj.mjtEq.mjEQ_JOINT or not model.eq_active0[e]:
            continue
        first, second = int(model.eq_obj1id[e]), int(model.eq_obj2id[e])
        if second < 0:
            continue
        here, there = int(model.jnt_qposadr[first]), int(model.jnt_qposadr[second])
        if known[there] and not known[here]:
            offset = qpos[:, there] - model.qpos0[there]
            qpos[:, here] = model.qpos0[here] + np.polynomial.polynomial.polyval(offset, model.eq_data[e, :5])
            known[here] = True


def _blank(stage: Stage, rows: int) -> Poses:
    data = mj.MjData(stage.model)
    tall = {name: np.repeat(getattr(data, name)[None], rows, axis=0) for name in ("qpos", "mocap_pos", "mocap_quat")}
    return Poses(tall["qpos"], tall["mocap_pos"], tall["mocap_quat"], np.zeros(rows))


def _id(model: Model, kind: str, name: str) -> int:
    found = mj.mj_name2id(model, getattr(mj.mjtObj, f"mjOBJ_{kind.upper()}"), name)
    if found < 0:
        raise SceneError(f"the scene has no {kind} {name!r}")
    return int(found)


def _flat(rows: Array) -> Array:
    return rows.reshape(len(rows), -1)


def _slot_name(material: str) -> str:
    return f"pool/{material}"


def _add_slot(spec: Spec, material: str) -> None:
    """Give the model an empty texture of the shape that this material's own has."""
    own = spec.material(material).textures[mj.mjtTextureRole.mjTEXROLE_RGB]
    flat = spec.texture(own).type == mj.mjtTexture.mjTEXTURE_2D if own else _lies_flat(spec, material)
    slot = spec.add_texture(name=_slot_name(material), width=TEXTURE_SIDE, height=TEXTURE_SIDE * (1 if flat else 6))
    slot.type = mj.mjtTexture.mjTEXTURE_2D if flat else mj.mjtTexture.mjTEXTURE_CUBE
    slot.builtin = mj.mjtBuiltin.mjBUILTIN_FLAT


def _lies_flat(spec: Spec, material: str) -> bool:
    flat = {mj.mjtGeom.mjGEOM_PLANE, mj.mjtGeom.mjGEOM_MESH, mj.mjtGeom.mjGEOM_HFIELD}
    return any(geom.type in flat for geom in spec.geoms if geom.material == material)
