"""A compiled MjModel walked into plain parts that any physics can be built from.

Bodies welded to each other become one link, so every link hangs on its parent by at least one
joint. Frames are MuJoCo's: a link's frame is that of the body its joints belong to, poses and axes
are those at `qpos0`, free bodies move at their origin. What a scene uses beyond rigid links and
motors on joints stands under `needs`, so that an engine can refuse by name what it would lose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, cast, final

import numpy as np

from simops.core.errors import EngineError
from simops.core.signal import Array
from simops.sim.binding import Model, mj
from simops.sim.pairs import Pair, pairs_of

JointKind: TypeAlias = Literal["free", "ball", "slide", "hinge"]
ShapeKind: TypeAlias = Literal["plane", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh"]
_JOINTS: tuple[JointKind, ...] = ("free", "ball", "slide", "hinge")
_SHAPES: dict[int, ShapeKind] = {
    0: "plane",
    2: "sphere",
    3: "capsule",
    4: "ellipsoid",
    5: "cylinder",
    6: "box",
    7: "mesh",
}


class Pose(NamedTuple):
    """A frame in another one; the quaternion is w, x, y, z."""

    position: Array
    quaternion: Array

    def then(self, inner: Pose) -> Pose:
        """`a_from_b.then(b_from_c)` is a_from_c."""
        return Pose(self.position + self.turn @ inner.position, _product(self.quaternion, inner.quaternion))

    @property
    def turn(self) -> Array:
        """The rotation matrix."""
        flat = np.zeros(9)
        mj.mju_quat2Mat(flat, self.quaternion)
        return flat.reshape(3, 3)


HERE = Pose(np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]))


@final
@dataclass(frozen=True)
class Joint:
    """One joint between a link and its parent."""

    id: int
    name: str
    kind: JointKind
    axis: Array
    """In the link's frame."""
    anchor: Array
    """In the link's frame."""
    position: int
    """Where it begins in qpos."""
    dof: int
    """Where it begins in qvel."""
    rest: float
    """What qpos says where the poses are those of the scene; for hinges and slides."""
    low: float
    high: float
    """Limits of qpos, infinite where there are none."""
    damping: float
    armature: float
    frictionloss: float
    stiffness: float
    spring: float
    """Where the spring is at ease."""


@final
@dataclass(frozen=True)
class Shape:
    """Something to collide with, fixed to a link."""

    geom: int
    name: str
    kind: ShapeKind
    size: Array
    """As MuJoCo has it: radius, radius and half length, half sides."""
    pose: Pose
    """In the link's frame."""
    vertices: Array
    """(k, 3) of a mesh, in the shape's frame; its convex hull collides."""


@final
@dataclass(frozen=True)
class Link:
    """A rigid body that moves."""

    body: int
    """The MuJoCo body whose frame it has."""
    name: str
    parent: int
    """Among the links; -1 for the world."""
    pose: Pose
    """In the parent's frame."""
    joints: tuple[Joint, ...]
    mass_kg: float
    centre: Array
    inertia: Array
    """(3, 3) about the centre of mass, in the link's axes."""
    lifted: float
    """Share of its weight that is held up; 1 for a link that compensates its own gravity."""
    shapes: tuple[Shape, ...]


@final
@dataclass(frozen=True)
class Drive:
    """An actuator on one hinge or slide: torque = gain * ctrl + offset - kp q - kd v, between two limits."""

    actuator: int
    name: str
    position: int
    dof: int
    gain: float
    offset: float
    kp: float
    kd: float
    low: float
    high: float

    @property
    def centre(self) -> float:
        """The middle of its limits; 0 where one of them is none."""
        return (self.low + self.high) / 2.0 if np.isfinite([self.low, self.high]).all() else 0.0


@final
@dataclass(frozen=True)
class Coupling:
    """A joint that follows another: q = offset + ratio * q of the other."""

    joint: int
    other: int
    offset: float
    ratio: float


@final
@dataclass(frozen=True)
class Parts:
    """A scene in plain parts."""

    gravity: Array
    links: tuple[Link, ...]
    """Parents come before their children."""
    ground: tuple[Shape, ...]
    """What is fixed to the world; poses are in the world."""
    drives: tuple[Drive, ...]
    pairs: tuple[Pair, ...]
    couplings: tuple[Coupling, ...]
    needs: Mapping[str, tuple[str, ...]]
    """What the scene uses that some physics lacks, and where."""

    def require(self, engine: str, can: frozenset[str], without: Sequence[str] = ()) -> None:
        """Raise for what the engine would lose, unless it is among what the user can do `without`."""
        for feature, names in self.needs.items():
            if feature not in can and feature not in without:
                shown = ", ".join(sorted(set(names))[:4]) + (", ..." if len(set(names)) > 4 else "")
                attempt = f"another engine, or without: [{feature}] to lose it knowingly"
                raise EngineError(f"{engine} has no {feature}", where=shown, attempt=attempt)


def walk(model: Model) -> Parts:
    """Walk a compiled model, such as one copy's own."""
    needs: dict[str, list[str]] = {}
    _refuse(model)
    pairs = pairs_of(model)
    touching = {geom for pair in pairs for geom in pair.geoms}
    roots = [b for b in range(1, model.nbody) if model.body_weldid[b] == b and model.body_mocapid[b] < 0]
    index = {0: -1} | {body: i for i, body in enumerate(roots)}
    links = tuple(_link(model, body, index, touching, needs) for body in roots)
    ground = _shapes(model, 0, touching, needs)
    drives = tuple(_drive(model, a) for a in range(model.nu))
    couplings = tuple(_coupling(model, e) for e in range(model.neq) if model.eq_active0[e])
    for coupling in couplings:
        needs.setdefault("coupling", []).append(model.joint(coupling.joint).name)
    for pair in pairs:
        if pair.torsion_m > 0:
            needs.setdefault("torsional friction", []).extend(model.geom(g).name for g in pair.geoms)
    held = {feature: tuple(names) for feature, names in needs.items()}
    return Parts(np.array(model.opt.gravity), links, ground, drives, pairs, couplings, held)


def within(model: Model, body: int) -> Pose:
    """A body's frame in that of the body it is welded to."""
    pose, root = HERE, int(model.body_weldid[body])
    while body != root:
        pose = Pose(np.array(model.body_pos[body]), np.array(model.body_quat[body])).then(pose)
        body = int(model.body_parentid[body])
    return pose


def _link(model: Model, body: int, index: Mapping[int, int], touching: set[int], needs: dict[str, list[str]]) -> Link:
    parent = int(model.body_parentid[body])
    welded = index[int(model.body_weldid[parent])]
    pose = within(model, parent).then(Pose(np.array(model.body_pos[body]), np.array(model.body_quat[body])))
    first, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
    joints = tuple(_joint(model, j, needs) for j in range(first, first + count))
    if count > 1:
        needs.setdefault("several joints on a body", []).append(model.body(body).name)
    members = [b for b in range(model.nbody) if model.body_weldid[b] == body]
    masses = model.body_mass[members]
    mass = float(masses.sum())
    poses = [within(model, b) for b in members]
    centres = np.array([p.position + p.turn @ model.body_ipos[b] for p, b in zip(poses, members, strict=True)])
    centre = (masses[:, None] * centres).sum(axis=0) / mass if mass > 0 else np.zeros(3)
    inertia = np.zeros((3, 3))
    for b, pose_in, at in zip(members, poses, centres, strict=True):
        turn = pose_in.then(Pose(np.zeros(3), np.array(model.body_iquat[b]))).turn
        arm = at - centre
        inertia += turn @ np.diag(model.body_inertia[b]) @ turn.T
        inertia += model.body_mass[b] * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    lifted = float((masses * model.body_gravcomp[members]).sum()) / mass if mass > 0 else 0.0
    shapes = _shapes(model, body, touching, needs)
    return Link(body, model.body(body).name, welded, pose, joints, mass, centre, inertia, lifted, shapes)


def _joint(model: Model, joint: int, needs: dict[str, list[str]]) -> Joint:
    kind = _JOINTS[int(model.jnt_type[joint])]
    dof, position = int(model.jnt_dofadr[joint]), int(model.jnt_qposadr[joint])
    single = kind in {"slide", "hinge"}
    limited = bool(model.jnt_limited[joint])
    found = Joint(
        id=joint,
        name=model.joint(joint).name,
        kind=kind,
        axis=np.array(model.jnt_axis[joint]),
        anchor=np.array(model.jnt_pos[joint]),
        position=position,
        dof=dof,
        rest=float(model.qpos0[position]) if single else 0.0,
        low=float(model.jnt_range[joint, 0]) if limited else -np.inf,
        high=float(model.jnt_range[joint, 1]) if limited else np.inf,
        damping=float(model.dof_damping[dof]),
        armature=float(model.dof_armature[dof]),
        frictionloss=float(model.dof_frictionloss[dof]),
        stiffness=float(model.jnt_stiffness[joint]),
        spring=float(model.qpos_spring[position]),
    )
    uses = {
        "armature": found.armature > 0,
        "joint friction": found.frictionloss > 0,
        "joint spring": found.stiffness > 0,
        "ball joint": kind == "ball",
        "damping of a free body": not single and found.damping > 0,
    }
    for feature, used in uses.items():
        if used:
            needs.setdefault(feature, []).append(found.name)
    return found


def _shapes(model: Model, root: int, touching: set[int], needs: dict[str, list[str]]) -> tuple[Shape, ...]:
    """The shapes of a link that touch anything at all; those of the world for body 0."""
    found: list[Shape] = []
    for geom in range(model.ngeom):
        body = int(model.geom_bodyid[geom])
        if geom not in touching or model.body_weldid[body] != root:
            continue
        name = model.geom(geom).name
        kind = _SHAPES.get(int(model.geom_type[geom]))
        if kind is None:
            raise EngineError(f"geom {name!r} is of a kind that only MuJoCo has", attempt="primitives or meshes")
        if kind in {"ellipsoid", "mesh"}:
            needs.setdefault(kind, []).append(name)
        pose = within(model, body).then(Pose(np.array(model.geom_pos[geom]), np.array(model.geom_quat[geom])))
        vertices = np.zeros((0, 3))
        if kind == "mesh":
            mesh = int(model.geom_dataid[geom])
            start = int(model.mesh_vertadr[mesh])
            vertices = np.array(model.mesh_vert[start : start + int(model.mesh_vertnum[mesh])], np.float64)
        found.append(Shape(geom, name, kind, np.array(model.geom_size[geom]), pose, vertices))
    return tuple(found)


def _drive(model: Model, actuator: int) -> Drive:
    name = model.actuator(actuator).name
    joint = int(model.actuator_trnid[actuator, 0])
    plain = (
        _among(model.actuator_trntype[actuator], mj.mjtTrn.mjTRN_JOINT)
        and _among(model.jnt_type[joint], mj.mjtJoint.mjJNT_HINGE, mj.mjtJoint.mjJNT_SLIDE)
        and _among(model.actuator_dyntype[actuator], mj.mjtDyn.mjDYN_NONE)
        and _among(model.actuator_gaintype[actuator], mj.mjtGain.mjGAIN_FIXED)
        and _among(model.actuator_biastype[actuator], mj.mjtBias.mjBIAS_NONE, mj.mjtBias.mjBIAS_AFFINE)
    )
    if not plain:
        raise EngineError(f"actuator {name!r} is no motor or servo on one joint", attempt="the engine mujoco")
    gear = float(model.actuator_gear[actuator, 0])
    low, high = model.actuator_forcerange[actuator] if model.actuator_forcelimited[actuator] else (-np.inf, np.inf)
    ends = sorted((gear * float(low), gear * float(high)))
    if model.jnt_actfrclimited[joint]:
        ends = [
            max(ends[0], float(model.jnt_actfrcrange[joint, 0])),
            min(ends[1], float(model.jnt_actfrcrange[joint, 1])),
        ]
    affine = _among(model.actuator_biastype[actuator], mj.mjtBias.mjBIAS_AFFINE)
    bias = model.actuator_biasprm[actuator, :3] if affine else np.zeros(3)
    return Drive(
        actuator=actuator,
        name=name,
        position=int(model.jnt_qposadr[joint]),
        dof=int(model.jnt_dofadr[joint]),
        gain=gear * float(model.actuator_gainprm[actuator, 0]),
        offset=gear * float(bias[0]),
        kp=-(gear**2) * float(bias[1]),
        kd=-(gear**2) * float(bias[2]),
        low=ends[0],
        high=ends[1],
    )


def _coupling(model: Model, equality: int) -> Coupling:
    curve = model.eq_data[equality, :5]
    linear = _among(model.eq_type[equality], mj.mjtEq.mjEQ_JOINT) and not np.any(curve[2:])
    if not linear or model.eq_obj2id[equality] < 0:
        name = model.equality(equality).name
        raise EngineError(f"constraint {name!r} is none between two joints", attempt="the engine mujoco")
    one, other = int(model.eq_obj1id[equality]), int(model.eq_obj2id[equality])
    at, from_at = (float(model.qpos0[model.jnt_qposadr[j]]) for j in (one, other))
    ratio = float(curve[1])
    return Coupling(one, other, at + float(curve[0]) - ratio * from_at, ratio)


def _refuse(model: Model) -> None:
    """Raise for what has no translation at all."""
    counts = {
        "tendons": model.ntendon,
        "deformables": model.nflex,
        "plugins": model.nplugin,
        "activations": model.na,
        "damping polynomials": np.any(model.dof_dampingpoly) or np.any(model.actuator_dampingpoly),
        "armature or damping of actuators": np.any(model.actuator_armature) or np.any(model.actuator_damping),
        "air": model.opt.density > 0 or model.opt.viscosity > 0,
    }
    for what, count in counts.items():
        if count:
            raise EngineError(f"the scene has {what}, which only MuJoCo has", attempt="the engine mujoco")


def _product(one: Array, other: Array) -> Array:
    found = np.zeros(4)
    mj.mju_mulQuat(found, one, other)
    return found


def _among(value: object, *kinds: object) -> bool:
    """Whether a number of the model is one of MuJoCo's enumerators."""
    return int(cast("int", value)) in {int(cast("int", kind)) for kind in kinds}
