# pyright: basic
# pybullet has no types; this is the one file that asks it.
"""Bullet: reduced coordinates and sequential impulses, through files of its own that are written for each scene.

Friction of two surfaces is the product of theirs. Bullet's own damping of everything that moves is off. Servos,
springs and dampers act as forces at every step.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np

from simops.core.errors import EngineError, ExtraError
from simops.core.protocols import Motor
from simops.core.signal import Array
from simops.core.task import Task
from simops.sim.efforts import Efforts
from simops.sim.freely import Flight, flight, land
from simops.sim.meeting import apart
from simops.sim.per_copy import PerCopySim, opened
from simops.sim.rotors import burdened, pull, ties
from simops.sim.scene import digest
from simops.sim.surfaces import frictions, restitutions
from simops.sim.trees import members, principal, sizes
from simops.sim.urdf import SLIGHT, described
from simops.sim.walk import Parts, Pose, Shape
from simops.sim.world import Load, Touch

CAN = frozenset({"joint spring", "joint friction", "coupling", "mesh"})
MOST_COPIES = 1000
"""Worlds that one process may hold."""
PUSHED_OUT = 0.05
"""Share of a penetration that a step takes back; what it pushes out adds to what bounces."""
ROOT = -1
"""What Bullet calls the first link of a body."""


@final
@dataclass(frozen=True)
class Bullet:
    """Bullet 3."""

    workers: int = field(default=0, repr=False)
    """Worker processes; 0 uses every core. No part of the recipe: the bytes are the same at any number."""
    step_s: float = 0.00025
    """Longest physics step [s]; a little less where the control period asks it."""
    iterations: int = 100
    """Of the solver, at every step."""
    bounce_m_s: float = 0.05
    """Impacts slower than this do not bounce."""
    cone: bool = True
    """Friction in a cone; else in a box."""
    without: tuple[str, ...] = ()
    """What of the scene may be lost; without `armature`, links carry it in place of rotors."""
    motor: Motor | None = None
    """Replaces the scene's actuators by this one, asked at every physics step."""

    def open(self, task: Task, n: int) -> AbstractContextManager[PerCopySim]:
        """Make `n` copies of the task's scene."""
        if n > MOST_COPIES:
            raise EngineError(f"{n} copies", where="Bullet", attempt=f"at most {MOST_COPIES} at once")
        return opened(self, task, n, self.step_s)

    def version(self, task: Task) -> str:
        """Bullet's interface version and the digest of the scene."""
        return f"bullet {_bullet().getAPIVersion()} scene {digest(task)}"

    def build(self, parts: Parts, step_s: float) -> BulletWorld:
        """Make one world."""
        parts.require("Bullet", CAN, self.without)
        return BulletWorld(self, parts, step_s)


@final
class BulletWorld:
    """One copy's scene. Contacts are remembered by Bullet, so every episode begins in a world made anew."""

    def __init__(self, engine: Bullet, parts: Parts, step_s: float) -> None:
        """Solve for the surfaces; nothing is built yet."""
        self._p = p = _bullet()
        self._id: int = p.connect(p.DIRECT)
        if self._id < 0:
            raise EngineError("Bullet has no room for another world", attempt=f"at most {MOST_COPIES} copies")
        weakref.finalize(self, p.disconnect, self._id)
        self._engine, self._parts, self._links, self._step_s = engine, parts, burdened(parts), step_s
        self._efforts, self._ties = Efforts(parts), ties(parts, step_s)
        owner = {shape.geom: -1 - shape.geom for shape in parts.ground}
        owner |= {shape.geom: i for i, link in enumerate(parts.links) for shape in link.shapes}
        self._friction = frictions(parts, owner, "Bullet", engine.without)
        self._bounce = restitutions(parts, owner)
        self._roots = [i for i, link in enumerate(parts.links) if link.parent < 0]
        self._files = {root: described(parts, self._links, root) for root in self._roots}
        groups = [(shape,) for shape in parts.ground] + [link.shapes for link in parts.links if link.shapes]
        self._apart = tuple(apart(parts, groups, "Bullet"))
        self._lifts = any(link.lifted > 0 for link in self._links)
        self._loads: Sequence[Load] = ()
        self._state = np.zeros(sizes(parts).qpos), np.zeros(sizes(parts).qvel)
        self._build()

    def begin(self, qpos: Array, qvel: Array) -> None:
        """Put everything there."""
        self._build()
        p, at = self._p, {"physicsClientId": self._id}
        for root in self._roots:
            body, link = self._at[root][0], self._links[root]
            if link.joints[0].kind == "free":
                seen = flight(link, qpos, qvel)
                pose = Pose(seen.origin, seen.quaternion).then(self._inertial[root])
                p.resetBasePositionAndOrientation(body, pose.position, _xyzw(pose.quaternion), **at)
                p.resetBaseVelocity(body, seen.linear, seen.angular, **at)
        for i, link in enumerate(self._links):
            joint = link.joints[0]
            if joint.kind != "free":
                body, index = self._at[i]
                p.resetJointState(body, index, qpos[joint.position] - joint.rest, qvel[joint.dof], **at)
        self._loads = ()

    def load(self, loads: Sequence[Load]) -> None:
        """Push with these from now on."""
        self._loads = loads

    def advance(self, control: Array, steps: int) -> None:
        """Go on for so many steps."""
        p, at = self._p, {"physicsClientId": self._id}
        qpos, qvel = self._state
        for _ in range(steps):
            if self._driven:
                self._look_joints(qpos, qvel)
                forces = self._efforts.of(control, qpos, qvel)
                pull(self._ties, qpos, qvel, forces)
                for body, indices, _, dofs, _ in self._driven:
                    p.setJointMotorControlArray(body, indices, p.TORQUE_CONTROL, forces=forces[dofs], **at)
            for i, link in enumerate(self._links if self._lifts else ()):
                if link.lifted < 1.0:
                    weight = (1.0 - link.lifted) * link.mass_kg * self._parts.gravity
                    self._push(i, weight, self._pose(i).position)
            for load in self._loads:
                pose = self._pose(load.link).then(_inverse(self._inertial[load.link]))
                self._push(load.link, load.wrench[:3], pose.position + pose.turn @ load.point)
                body, index = self._at[load.link]
                p.applyExternalTorque(body, index, load.wrench[3:], p.WORLD_FRAME, **at)
            p.stepSimulation(**at)

    def look(self, qpos: Array, qvel: Array) -> None:
        """Write the state of all joints."""
        self._look_joints(qpos, qvel)
        for root in self._roots:
            if self._links[root].joints[0].kind == "free":
                linear, angular = self._p.getBaseVelocity(self._at[root][0], physicsClientId=self._id)
                pose = self._pose(root).then(_inverse(self._inertial[root]))
                quaternion = pose.quaternion / np.linalg.norm(pose.quaternion)
                land(
                    self._links[root],
                    Flight(pose.position, quaternion, np.array(linear), np.array(angular)),
                    qpos,
                    qvel,
                )

    def touches(self) -> list[Touch]:
        """The contacts that carry force."""
        found: list[Touch] = []
        for contact in self._p.getContactPoints(physicsClientId=self._id):
            normal, pressed = np.array(contact[7]), contact[9]
            if pressed > 0:
                force = pressed * normal + contact[10] * np.array(contact[11]) + contact[12] * np.array(contact[13])
                one, other = self._geoms[contact[1], contact[3]], self._geoms[contact[2], contact[4]]
                found.append(Touch((one, other), np.array(contact[6]), -force, -normal))
        return found

    def _look_joints(self, qpos: Array, qvel: Array) -> None:
        for body, indices, positions, dofs, rest in self._driven:
            states = self._p.getJointStates(body, indices, physicsClientId=self._id)
            qpos[positions] = np.array([state[0] for state in states]) + rest
            qvel[dofs] = [state[1] for state in states]

    def _pose(self, i: int) -> Pose:
        """Where a link's centre of mass and its principal axes are."""
        body, index = self._at[i]
        if index == ROOT:
            position, turned = self._p.getBasePositionAndOrientation(body, physicsClientId=self._id)
        else:
            position, turned = self._p.getLinkState(body, index, physicsClientId=self._id)[:2]
        return Pose(np.array(position), np.array(turned)[[3, 0, 1, 2]])

    def _push(self, i: int, force: Array, point: Array) -> None:
        body, index = self._at[i]
        self._p.applyExternalForce(body, index, force, point, self._p.WORLD_FRAME, physicsClientId=self._id)

    def _build(self) -> None:
        p, at = self._p, {"physicsClientId": self._id}
        p.resetSimulation(**at)
        p.setGravity(*(np.zeros(3) if self._lifts else self._parts.gravity), **at)
        p.setPhysicsEngineParameter(
            fixedTimeStep=self._step_s,
            numSolverIterations=self._engine.iterations,
            numSubSteps=0,
            solverResidualThreshold=0.0,
            restitutionVelocityThreshold=self._engine.bounce_m_s,
            deterministicOverlappingPairs=1,
            contactERP=PUSHED_OUT,
            enableConeFriction=int(self._engine.cone),
            **at,
        )
        self._at: dict[int, tuple[int, int]] = {}
        self._inertial: dict[int, Pose] = {}
        self._geoms: dict[tuple[int, int], int] = {}
        self._driven: list[tuple[int, list[int], Array, Array, Array]] = []
        places = {shape.geom: (self._ground(shape), ROOT) for shape in self._parts.ground}
        with tempfile.TemporaryDirectory(prefix="simops-") as folder:
            for root in self._roots:
                self._tree(root, Path(folder))
        for i, link in enumerate(self._links):
            places |= {shape.geom: self._at[i] for shape in link.shapes}
            self._surface(self._at[i], link.shapes)
        for one, other in self._apart:
            (a, index), (b, other_index) = places[one], places[other]
            p.setCollisionFilterPair(a, b, index, other_index, 0, **at)

    def _tree(self, root: int, folder: Path) -> None:
        p, at, link = self._p, {"physicsClientId": self._id}, self._links[root]
        for name, text in self._files[root].items():
            (folder / name).write_text(text)
        flags = p.URDF_USE_INERTIA_FROM_FILE | p.URDF_USE_IMPLICIT_CYLINDER
        flags |= p.URDF_USE_SELF_COLLISION | p.URDF_USE_SELF_COLLISION_INCLUDE_PARENT
        free = link.joints[0].kind == "free"
        body = p.loadURDF(str(folder / f"tree{root}.urdf"), useFixedBase=not free, flags=flags, **at)
        numbers = {p.getJointInfo(body, j, **at)[12].decode(): j for j in range(p.getNumJoints(body, **at))}
        within = members(self._parts, root)
        for i in within:
            self._at[i] = body, numbers.get(f"link{i}", ROOT)
            position, turned = p.getDynamicsInfo(body, self._at[i][1], **at)[3:5]
            anchor = self._links[i].joints[0].anchor if i != root or not free else np.zeros(3)
            inner = Pose(np.array(position), np.array(turned)[[3, 0, 1, 2]])
            self._inertial[i] = Pose(anchor, np.array([1.0, 0.0, 0.0, 0.0])).then(inner)
            values = principal(self._links[i].inertia).values
            p.changeDynamics(*self._at[i], localInertiaDiagonal=np.maximum(values, SLIGHT), **at)
        joints = [(self._at[i][1], self._links[i].joints[0]) for i in within if self._at[i][1] != ROOT]
        for index in range(ROOT, p.getNumJoints(body, **at)):
            p.changeDynamics(body, index, linearDamping=0, angularDamping=0, jointDamping=0, maxJointVelocity=1e6, **at)
        for index, joint in joints:
            p.setJointMotorControl2(body, index, p.VELOCITY_CONTROL, force=joint.frictionloss, **at)
        if joints:
            columns = [np.array([getattr(j, name) for _, j in joints]) for name in ("position", "dof", "rest")]
            self._driven.append((body, [index for index, _ in joints], *columns))  # pyright: ignore[reportArgumentType]

    def _ground(self, shape: Shape) -> int:
        p, at, size = self._p, {"physicsClientId": self._id}, shape.size
        kinds: dict[str, dict[str, Any]] = {
            "plane": {"shapeType": p.GEOM_PLANE, "planeNormal": [0, 0, 1]},
            "box": {"shapeType": p.GEOM_BOX, "halfExtents": size},
            "sphere": {"shapeType": p.GEOM_SPHERE, "radius": size[0]},
            "capsule": {"shapeType": p.GEOM_CAPSULE, "radius": size[0], "height": 2 * size[1]},
            "cylinder": {"shapeType": p.GEOM_CYLINDER, "radius": size[0], "height": 2 * size[1]},
            "mesh": {"shapeType": p.GEOM_MESH, "vertices": shape.vertices.tolist()},
        }
        made = p.createCollisionShape(**kinds[shape.kind], **at)
        pose = shape.pose
        body = p.createMultiBody(0, made, -1, pose.position, _xyzw(pose.quaternion), **at)
        self._surface((body, ROOT), (shape,))
        return body

    def _surface(self, place: tuple[int, int], shapes: Sequence[Shape]) -> None:
        if shapes:
            geom = shapes[0].geom
            self._geoms[place] = geom
            owner = next((i for i, at in self._at.items() if at == place), -1 - geom)
            self._p.changeDynamics(
                *place,
                lateralFriction=self._friction.get(owner, 0.0),
                spinningFriction=0.0,
                rollingFriction=0.0,
                contactProcessingThreshold=0.0,  # else what comes near bounces, before it touches, and too little
                restitution=self._bounce.get(owner, 0.0),
                physicsClientId=self._id,
            )


def _inverse(pose: Pose) -> Pose:
    back = pose.quaternion * np.array([1.0, -1.0, -1.0, -1.0])
    turn = Pose(np.zeros(3), back).turn
    return Pose(-turn @ pose.position, back)


def _xyzw(quaternion: Array) -> Array:
    return quaternion[[1, 2, 3, 0]]


def _bullet() -> Any:
    try:
        import pybullet
    except ModuleNotFoundError as missing:
        attempt = "pip install 'simops[bullet]'"
        raise ExtraError("engine 'bullet' needs pybullet, which is not installed", attempt=attempt) from missing
    return pybullet
