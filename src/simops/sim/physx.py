# pyright: basic
# sapien's types are its own; this is the one file that asks it.
"""PhysX 5 through SAPIEN: patch contacts, implicit drives, single precision, on the processor.

Friction of two surfaces is the mean of theirs, so a shape is there once for each kind of contact that it takes part in.
Contacts are remembered from step to step, so every episode begins in a world made anew.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from simops.core.errors import EngineError, ExtraError
from simops.core.protocols import Motor
from simops.core.signal import Array
from simops.core.task import Task
from simops.sim.efforts import Efforts
from simops.sim.freely import Flight, flight, land
from simops.sim.kinds import Skin, skins
from simops.sim.per_copy import PerCopySim, opened
from simops.sim.scene import digest
from simops.sim.trees import from_x, members, principal, sizes
from simops.sim.walk import HERE, Link, Parts, Pose, Shape
from simops.sim.world import Load, Touch

CAN = frozenset({"armature", "joint spring", "mesh", "coupling"})
MOST_GROUPS = 30
"""Kinds of shapes that PhysX' filter tells apart."""
TENDON_N_M = 1e5
"""How stiffly a joint follows another."""


@final
@dataclass(frozen=True)
class Physx:
    """PhysX 5."""

    workers: int = field(default=0, repr=False)
    """Worker processes; 0 uses every core. No part of the recipe: the bytes are the same at any number."""
    step_s: float = 0.001
    """Longest physics step [s]; a little less where the control period asks it."""
    solver: str = "tgs"
    """`tgs`, which steps within the step, or `pgs`."""
    position_iterations: int = 16
    velocity_iterations: int = 1
    bounce_m_s: float = 0.05
    """Impacts slower than this do not bounce."""
    without: tuple[str, ...] = ()
    """What of the scene may be lost."""
    motor: Motor | None = None
    """Replaces the scene's actuators by this one, asked at every physics step."""

    def __post_init__(self) -> None:
        if self.solver not in {"tgs", "pgs"}:
            raise EngineError(f"PhysX has no solver {self.solver!r}", attempt="'tgs' or 'pgs'")

    def open(self, task: Task, n: int) -> AbstractContextManager[PerCopySim]:
        """Make `n` copies of the task's scene."""
        return opened(self, task, n, self.step_s)

    def version(self, task: Task) -> str:
        """SAPIEN's version and the digest of the scene."""
        return f"physx sapien {_sapien().__version__} scene {digest(task)}"

    def build(self, parts: Parts, step_s: float) -> PhysxWorld:
        """Make one world."""
        parts.require("PhysX", CAN, self.without)
        return PhysxWorld(self, parts, step_s)


@final
class PhysxWorld:
    """One copy's scene."""

    def __init__(self, engine: Physx, parts: Parts, step_s: float) -> None:
        """Sort the shapes; build all once, to raise for what cannot be."""
        self._engine, self._parts, self._step_s = engine, parts, step_s
        self._efforts = Efforts(parts)
        self._shapes = _Shapes(parts)
        self._free = [i for i, link in enumerate(parts.links) if link.joints[0].kind == "free"]
        self._light = [i for i, link in enumerate(parts.links) if link.lifted > 0.0 and link.mass_kg > 0]
        self._build()

    def begin(self, qpos: Array, qvel: Array) -> None:
        """Put everything there."""
        self._build()
        sapien = _sapien()
        for i in self._free:
            seen, body = flight(self._parts.links[i], qpos, qvel), self._bodies[i]
            pose = sapien.Pose(seen.origin, seen.quaternion)
            tree = next((tree for tree in self._trees if tree.root == i), None)
            if tree is None:
                body.entity.pose = pose
                body.linear_velocity, body.angular_velocity = seen.linear, seen.angular
            else:
                tree.articulation.root_pose = pose
                tree.articulation.root_linear_velocity = seen.linear
                tree.articulation.root_angular_velocity = seen.angular
        for tree in self._trees:
            tree.begin(qpos, qvel)

    def load(self, loads: Sequence[Load]) -> None:
        """Push with these from now on."""
        self._loads = loads

    def advance(self, control: Array, steps: int) -> None:
        """Go on for so many steps."""
        for _ in range(steps):
            for tree in self._trees:
                tree.drive(control)
            for i in self._light:
                link = self._parts.links[i]
                self._bodies[i].add_force_torque(-link.lifted * link.mass_kg * self._parts.gravity, np.zeros(3))
            for load in self._loads:
                body = self._bodies[load.link]
                pose = body.entity_pose
                at = pose.p + Pose(np.array(pose.p, float), np.array(pose.q, float)).turn @ load.point
                body.add_force_at_point(load.wrench[:3], at)
                body.add_force_torque(np.zeros(3), load.wrench[3:])
            self._system.step()

    def look(self, qpos: Array, qvel: Array) -> None:
        """Write the state of all joints."""
        for i in self._free:
            body = self._bodies[i]
            pose = body.entity_pose
            quaternion = np.array(pose.q, float)
            quaternion /= np.linalg.norm(quaternion)
            linear, angular = np.array(body.linear_velocity, float), np.array(body.angular_velocity, float)
            land(self._parts.links[i], Flight(np.array(pose.p, float), quaternion, linear, angular), qpos, qvel)
        for tree in self._trees:
            tree.look(qpos, qvel)

    def touches(self) -> list[Touch]:
        """The contacts that carry force."""
        found: list[Touch] = []
        for contact in self._system.get_contacts():
            one, other = (self._geoms[body.entity.name] for body in contact.bodies)
            for point in contact.points:
                impulse = np.array(point.impulse, float)
                if np.any(impulse):
                    normal = -np.array(point.normal, float)
                    force = -impulse / self._step_s
                    found.append(Touch((one, other), np.array(point.position, float), force, normal))
        return found

    def _build(self) -> None:
        sapien, engine = _sapien(), self._engine
        px = sapien.physx
        px.set_scene_config(
            gravity=np.asarray(self._parts.gravity, np.float32),
            bounce_threshold=engine.bounce_m_s,
            enable_tgs=engine.solver == "tgs",
            enable_enhanced_determinism=True,
        )
        px.set_body_config(engine.position_iterations, engine.velocity_iterations, 0.0)
        self._system = px.PhysxCpuSystem()
        self._system.timestep = self._step_s
        self._scene = sapien.Scene([self._system])
        self._geoms: dict[str, int] = {}
        self._bodies: list[Any] = [None] * len(self._parts.links)
        self._trees: list[_Tree] = []
        self._loads: Sequence[Load] = ()
        self._ground()
        for root, link in enumerate(self._parts.links):
            if link.parent < 0:
                self._tree(root, link)

    def _ground(self) -> None:
        sapien = _sapien()
        for shape in self._parts.ground:
            entity, body = sapien.Entity(), sapien.physx.PhysxRigidStaticComponent()
            for made in self._shapes.made(shape):
                body.attach(made)
            entity.add_component(body)
            entity.name = f"ground {shape.geom}"
            self._geoms[entity.name] = shape.geom
            self._scene.add_entity(entity)

    def _tree(self, root: int, link: Link) -> None:
        """One free body, or one articulation."""
        within = members(self._parts, root)
        if link.joints[0].kind == "free" and len(within) == 1:
            sapien = _sapien()
            entity, body = sapien.Entity(), sapien.physx.PhysxRigidDynamicComponent()
            self._fill(body, link)
            body.max_angular_velocity = 1e4
            entity.add_component(body)
            self._name(entity, link)
            self._scene.add_entity(entity)
            self._bodies[root] = body
            return
        builder = self._scene.create_articulation_builder()
        made: dict[int, Any] = {}
        if link.joints[0].kind != "free":
            made[-1] = builder.create_link_builder()
            made[-1].set_mass_and_inertia(1.0, _pose(HERE), np.ones(3))
        for i in within:
            made[i] = builder.create_link_builder(made.get(self._parts.links[i].parent))
            self._joint(made[i], self._parts.links[i])
        entities = builder.build_entities(fix_root_link=-1 in made)
        for i, entity in zip(made, entities, strict=True):
            if i >= 0:
                self._bodies[i] = entity.components[0]
                self._fill(entity.components[0], self._parts.links[i])
                self._name(entity, self._parts.links[i])
            self._scene.add_entity(entity)
        self._trees.append(_Tree(entities[0].components[0].articulation, root, self._parts, self._efforts, within))
        self._trees[-1].couple(self._bodies)

    def _joint(self, made: Any, link: Link) -> None:
        joint = link.joints[0]
        if joint.kind == "free":
            return
        inner = Pose(joint.anchor, from_x(joint.axis))
        limits = (joint.low - joint.rest, joint.high - joint.rest)
        turns = "revolute" if np.all(np.isfinite(limits)) else "revolute_unwrapped"
        made.set_joint_name(f"joint {joint.id}")
        made.set_joint_properties(
            "prismatic" if joint.kind == "slide" else turns, [limits], _pose(link.pose.then(inner)), _pose(inner)
        )

    def _fill(self, body: Any, link: Link) -> None:
        """Mass and shapes."""
        values, quaternion = principal(link.inertia)
        body.mass = link.mass_kg
        body.cmass_local_pose = _pose(Pose(link.centre, quaternion))
        body.inertia = np.maximum(values, 1e-9)
        body.linear_damping = body.angular_damping = 0.0
        for shape in link.shapes:
            for made in self._shapes.made(shape):
                body.attach(made)

    def _name(self, entity: Any, link: Link) -> None:
        entity.name = f"link {link.body}"
        if link.shapes:
            self._geoms[entity.name] = link.shapes[0].geom


@final
class _Tree:
    """An articulation, and how its joints lie in MuJoCo's vectors."""

    def __init__(self, articulation: Any, root: int, parts: Parts, efforts: Efforts, members: Sequence[int]) -> None:
        self.articulation, self.root, self._parts, self._efforts = articulation, root, parts, efforts
        by_name = {f"joint {j.id}": j for i in members for j in parts.links[i].joints}
        self._active = [joint for joint in articulation.active_joints if joint.dof]
        joints = [by_name[joint.name] for joint in self._active]
        self._positions = np.array([joint.position for joint in joints], int)
        self._dofs = np.array([joint.dof for joint in joints], int)
        self._rest = np.array([joint.rest for joint in joints])
        self._state = np.zeros(sizes(parts).qpos), np.zeros(sizes(parts).qvel)
        self._set: list[tuple[float, ...]] = [()] * len(joints)
        self._joints = joints
        for made, joint in zip(self._active, joints, strict=True):
            made.armature = np.full(1, joint.armature, np.float32)
            made.friction = 0.0
        self._drives = [[d for d in parts.drives if d.dof == joint.dof] for joint in joints]

    def begin(self, qpos: Array, qvel: Array) -> None:
        """Put the joints there."""
        self.articulation.qpos = qpos[self._positions] - self._rest
        self.articulation.qvel = qvel[self._dofs]
        self.articulation.qf = np.zeros(len(self._dofs))

    def look(self, qpos: Array, qvel: Array) -> None:
        """Write what the joints do."""
        qpos[self._positions] = self.articulation.qpos + self._rest
        qvel[self._dofs] = self.articulation.qvel

    def drive(self, control: Array) -> None:
        """Let PhysX hold within its step what is below its limit, and put the limit on the rest."""
        if not len(self._joints):
            return
        qpos, qvel = self._state
        self.look(qpos, qvel)
        forces = np.zeros(len(self._joints))
        for i, (joint, drives) in enumerate(zip(self._joints, self._drives, strict=True)):
            kp, kd, constant = joint.stiffness, joint.damping, joint.stiffness * joint.spring
            for drive in drives:
                given = drive.gain * control[drive.actuator] + drive.offset
                wanted = given - drive.kp * qpos[drive.position] - drive.kd * qvel[drive.dof]
                if drive.low <= wanted <= drive.high:
                    kp, kd, constant = kp + drive.kp, kd + drive.kd, constant + given
                else:
                    constant += min(max(wanted, drive.low), drive.high)
            target = constant / kp - joint.rest if kp > 0 else 0.0
            forces[i] = 0.0 if kp > 0 else constant
            self._hold(i, kp, kd, target)
        self.articulation.qf = forces

    def couple(self, bodies: Sequence[Any]) -> None:
        """Tie joints that follow another."""
        owner = {joint.id: i for i, link in enumerate(self._parts.links) for joint in link.joints}
        rest = {joint.id: joint.rest for joint in self._efforts.joints}
        for tie in self._parts.couplings:
            one, other = owner[tie.joint], owner[tie.other]
            if bodies[one] is None or bodies[one].articulation is not self.articulation:
                continue
            parent = self._parts.links[one].parent
            if parent != self._parts.links[other].parent or parent < 0:
                raise EngineError("PhysX ties joints of one body only", attempt="without: [coupling]")
            offset = tie.offset + tie.ratio * rest[tie.other] - rest[tie.joint]
            self.articulation.create_fixed_tendon(
                [bodies[parent], bodies[other], bodies[one]],
                [0.0, -tie.ratio, 1.0],
                [0.0, -1.0 / tie.ratio, 1.0],
                rest_length=offset,
                stiffness=TENDON_N_M,
            )

    def _hold(self, i: int, kp: float, kd: float, target: float) -> None:
        if self._set[i] != (kp, kd, target):
            self._set[i] = (kp, kd, target)
            self._active[i].set_drive_properties(kp, kd)
            self._active[i].drive_target = np.full((1, 1), target, np.float32)


@final
class _Shapes:
    """Makes collision shapes: each once for every kind of contact, and only those of one kind meet.

    Two of a kind mix to what both have, so friction and restitution of a pair are what the scene says.
    """

    def __init__(self, parts: Parts) -> None:
        meets = skins(parts)
        groups = list(dict.fromkeys(meets.values()))
        if len(groups) > MOST_GROUPS:
            raise EngineError(f"{len(groups)} kinds of shapes that touch different ones", attempt="another engine")
        self._group = {each: groups.index(met) for each, met in meets.items()}
        self._meets = {each: sum(1 << g for g in {self._group[m] for m in met}) for each, met in meets.items()}

    def made(self, shape: Shape) -> list[Any]:
        """The shape once for each kind of contact it takes part in, in its link's frame."""
        return [self._made(shape, skin) for skin in self._group if skin.geom == shape.geom]

    def _made(self, shape: Shape, skin: Skin) -> Any:
        px = _sapien().physx
        material = px.PhysxMaterial(skin.kind.friction, skin.kind.friction, skin.kind.restitution)
        pose, size = shape.pose, shape.size
        along_x = Pose(np.zeros(3), np.array([0.5**0.5, 0.0, -(0.5**0.5), 0.0]))  # from MuJoCo's z to PhysX' x
        if shape.kind == "box":
            made = px.PhysxCollisionShapeBox(size, material)
        elif shape.kind == "sphere":
            made = px.PhysxCollisionShapeSphere(size[0], material)
        elif shape.kind == "capsule":
            made, pose = px.PhysxCollisionShapeCapsule(size[0], size[1], material), pose.then(along_x)
        elif shape.kind == "cylinder":
            made, pose = px.PhysxCollisionShapeCylinder(size[0], size[1], material), pose.then(along_x)
        elif shape.kind == "plane":
            made, pose = px.PhysxCollisionShapePlane(material), pose.then(along_x)
        elif shape.kind == "mesh":
            made = px.PhysxCollisionShapeConvexMesh(shape.vertices.astype(np.float32), np.ones(3), material)
        else:
            raise EngineError(f"PhysX has no {shape.kind}", where=shape.name, attempt="another shape")
        made.local_pose = _pose(pose)
        made.contact_offset, made.rest_offset = 0.01, 0.0
        made.set_collision_groups([1 << self._group[skin], self._meets[skin], 0, 0])
        return made


def _pose(pose: Pose) -> Any:
    return _sapien().Pose(np.asarray(pose.position, np.float32), np.asarray(pose.quaternion, np.float32))


def _sapien() -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import sapien
    except ModuleNotFoundError as missing:
        raise ExtraError(
            "engine 'physx' needs sapien, which is not installed", attempt="pip install 'simops[physx]'"
        ) from missing
    return sapien
