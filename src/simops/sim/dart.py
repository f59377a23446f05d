# pyright: basic
# dartpy's types are its own; this is the one file that asks it.
"""DART: hard contacts and exact Coulomb friction by a linear complementarity problem, with a choice of collision code.

Friction of two surfaces is the smaller of theirs, so a shape is there once for each kind of contact. Servos, springs
and dampers act as forces at every step, never as DART's own implicit ones: those let contacts push with less than what
they are pressed with.
"""

from __future__ import annotations

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
from simops.sim.kinds import Skin, skins
from simops.sim.per_copy import PerCopySim, opened
from simops.sim.rotors import burdened, pull, ties
from simops.sim.scene import digest
from simops.sim.trees import sizes
from simops.sim.walk import Link, Parts, Pose, Shape
from simops.sim.world import Load, Touch

CAN = frozenset({"joint spring", "joint friction", "coupling"})
DETECTORS = {
    "ode": frozenset({"plane", "box", "sphere", "capsule", "cylinder"}),
    "bullet": frozenset({"plane", "box", "sphere", "capsule", "cylinder"}),
    "fcl": frozenset({"plane", "box", "sphere", "cylinder"}),
    "dart": frozenset({"plane", "box", "sphere"}),
}
"""Who finds contacts, and between which shapes; for others they put a sphere of their own, or nothing."""
GROUND_M = 200.0
"""Sides of the box that stands for a plane."""
SLIGHT = 1e-9
"""Mass and inertia of what only carries shapes [kg, kg m^2]."""
CARRIES_N = 1e-9
"""A contact with less force carries none."""


@final
@dataclass(frozen=True)
class Dart:
    """DART 6."""

    workers: int = field(default=0, repr=False)
    """Worker processes; 0 uses every core. No part of the recipe: the bytes are the same at any number."""
    step_s: float = 0.00025
    """Longest physics step [s]; a little less where the control period asks it."""
    collision: str = "ode"
    """Who finds the contacts: `ode`, `bullet`, `fcl` or `dart`."""
    without: tuple[str, ...] = ()
    """What of the scene may be lost; without `armature`, links carry it in place of rotors."""
    motor: Motor | None = None
    """Replaces the scene's actuators by this one, asked at every physics step."""

    def __post_init__(self) -> None:
        if self.collision not in DETECTORS:
            raise EngineError(f"DART has no collision code {self.collision!r}", attempt=", ".join(DETECTORS))

    def open(self, task: Task, n: int) -> AbstractContextManager[PerCopySim]:
        """Make `n` copies of the task's scene."""
        return opened(self, task, n, self.step_s)

    def version(self, task: Task) -> str:
        """DART's version and the digest of the scene."""
        return f"dart {_dart().__version__} scene {digest(task)}"

    def build(self, parts: Parts, step_s: float) -> DartWorld:
        """Make one world."""
        parts.require("DART", CAN, self.without)
        return DartWorld(self, parts, step_s)


@final
class DartWorld:
    """One copy's scene. Contacts are remembered from step to step, so every episode begins in a world made anew."""

    def __init__(self, engine: Dart, parts: Parts, step_s: float) -> None:
        """Solve for the surfaces; build all once, to raise for what cannot be."""
        self._engine, self._parts, self._links, self._step_s = engine, parts, burdened(parts), step_s
        self._efforts, self._ties = Efforts(parts), ties(parts, step_s)
        every = [*parts.ground, *(shape for link in parts.links for shape in link.shapes)]
        for shape in every:
            if shape.kind not in DETECTORS[engine.collision]:
                what = f"DART's {engine.collision} collision has no {shape.kind}"
                raise EngineError(what, where=shape.name, attempt="collision: ode, or another shape")
        self._meets = skins(parts)
        self._free = [i for i, link in enumerate(parts.links) if link.joints[0].kind == "free"]
        self._joints = [(i, link.joints[0]) for i, link in enumerate(parts.links) if link.joints[0].kind != "free"]
        self._state = np.zeros(sizes(parts).qpos), np.zeros(sizes(parts).qvel)
        self._build()

    def begin(self, qpos: Array, qvel: Array) -> None:
        """Put everything there."""
        self._build()
        for skeleton, (dofs, positions, speeds, rest) in zip(self._skeletons, self._by, strict=True):
            if len(dofs):
                at, speed = skeleton.getPositions(), skeleton.getVelocities()
                at[dofs], speed[dofs] = qpos[positions] - rest, qvel[speeds]
                skeleton.setPositions(at)
                skeleton.setVelocities(speed)
        for i in self._free:
            joint, body = self._links[i].joints[0], self._bodies[i]
            at, speed = qpos[joint.position : joint.position + 7], qvel[joint.dof : joint.dof + 6]
            turn = Pose(at[:3], at[3:]).turn
            moved = body.getParentJoint()
            moved.setTransform(_pose(Pose(at[:3].copy(), at[3:].copy())))
            moved.setLinearVelocity(speed[:3].copy())
            moved.setAngularVelocity(turn @ speed[3:])

    def load(self, loads: Sequence[Load]) -> None:
        """Push with these from now on."""
        self._loads = loads

    def advance(self, control: Array, steps: int) -> None:
        """Go on for so many steps."""
        qpos, qvel = self._state
        for _ in range(steps):
            if self._joints:
                self._look_joints(qpos, qvel)
                forces = self._efforts.of(control, qpos, qvel)
                pull(self._ties, qpos, qvel, forces)
                for skeleton, (dofs, _, speeds, _) in zip(self._skeletons, self._by, strict=True):
                    if len(dofs):
                        given = np.zeros(skeleton.getNumDofs())
                        given[dofs] = forces[speeds]
                        skeleton.setForces(given)
            for link, body in zip(self._links, self._bodies, strict=True):
                if 0.0 < link.lifted < 1.0:
                    weight = link.lifted * link.mass_kg * self._parts.gravity
                    body.addExtForce(-weight, offset=link.centre, isForceLocal=False, isOffsetLocal=True)
            for load in self._loads:
                body = self._bodies[load.link]
                body.addExtForce(load.wrench[:3], offset=load.point, isForceLocal=False, isOffsetLocal=True)
                body.addExtTorque(load.wrench[3:], isLocal=False)
            self._world.step()

    def look(self, qpos: Array, qvel: Array) -> None:
        """Write the state of all joints."""
        self._look_joints(qpos, qvel)
        for i in self._free:
            joint, body = self._links[i].joints[0], self._bodies[i]
            pose = body.getWorldTransform()
            turn = pose.rotation()
            qpos[joint.position : joint.position + 3] = pose.translation()
            qpos[joint.position + 3 : joint.position + 7] = pose.quaternion().wxyz()
            qvel[joint.dof : joint.dof + 3] = body.getLinearVelocity()
            qvel[joint.dof + 3 : joint.dof + 6] = turn.T @ body.getAngularVelocity()

    def touches(self) -> list[Touch]:
        """The contacts that carry force."""
        found: list[Touch] = []
        for contact in self._world.getLastCollisionResult().getContacts():
            one, other = (
                int(side.getShapeFrame().getName().split()[-1])
                for side in (contact.collisionObject1, contact.collisionObject2)
            )
            force = np.array(contact.force)
            if np.abs(force).max() > CARRIES_N:
                normal = -np.array(contact.normal)
                found.append(Touch((one, other), np.array(contact.point), -force, normal))
        return found

    def _build(self) -> None:
        d = _dart()
        self._world = d.simulation.World()
        self._world.setTimeStep(self._step_s)
        self._world.setGravity(self._parts.gravity)
        self._world.setCollisionDetector(_detector(self._engine.collision))
        self._bodies: list[Any] = []
        self._skeletons: list[Any] = []
        self._carriers: dict[tuple[Skin, ...], Any] = {}
        for shape in self._parts.ground:
            self._ground(shape)
        for link in self._links:
            self._link(link)
        for skeleton in self._skeletons:
            self._world.addSkeleton(skeleton)
        chosen = self._world.getConstraintSolver().getCollisionOption().collisionFilter
        carriers = list(self._carriers.items())
        for i, (one, body) in enumerate(carriers):
            for other, another in carriers[i + 1 :]:
                if not self._meet(one, other):
                    chosen.addBodyNodePairToBlackList(body, another)
        self._by = [self._placed(skeleton) for skeleton in self._skeletons]
        self._loads: Sequence[Load] = ()

    def _look_joints(self, qpos: Array, qvel: Array) -> None:
        for skeleton, (dofs, positions, speeds, rest) in zip(self._skeletons, self._by, strict=True):
            if len(dofs):
                qpos[positions] = skeleton.getPositions()[dofs] + rest
                qvel[speeds] = skeleton.getVelocities()[dofs]

    def _placed(self, skeleton: Any) -> tuple[Array, Array, Array, Array]:
        """Where the skeleton's hinges and slides lie in its own vectors and in MuJoCo's."""
        rows = [
            (self._bodies[i].getParentJoint().getIndexInSkeleton(0), joint.position, joint.dof, joint.rest)
            for i, joint in self._joints
            if self._bodies[i].getSkeleton().getName() == skeleton.getName()
        ]
        columns = list(zip(*rows, strict=True)) if rows else [(), (), (), ()]
        return *(np.array(c, int) for c in columns[:3]), np.array(columns[3], float)  # pyright: ignore[reportReturnType]

    def _ground(self, shape: Shape) -> None:
        """Every fixed shape is a tree of its own."""
        skeleton = _dart().dynamics.Skeleton(f"ground {shape.geom}")
        _, body = skeleton.createWeldJointAndBodyNodePair()
        skeleton.setMobile(False)
        self._dress(skeleton, body, (shape,))
        self._skeletons.append(skeleton)

    def _link(self, link: Link) -> None:
        d = _dart()
        joint = link.joints[0]
        if link.parent < 0:
            self._skeletons.append(d.dynamics.Skeleton(f"tree {link.body}"))
            self._skeletons[-1].enableSelfCollisionCheck()
            self._skeletons[-1].enableAdjacentBodyCheck()
        skeleton = self._skeletons[-1] if link.parent < 0 else self._bodies[link.parent].getSkeleton()
        make = {
            "free": skeleton.createFreeJointAndBodyNodePair,
            "hinge": skeleton.createRevoluteJointAndBodyNodePair,
            "slide": skeleton.createPrismaticJointAndBodyNodePair,
        }[joint.kind]
        made, body = make() if link.parent < 0 else make(self._bodies[link.parent])
        body.setInertia(d.dynamics.Inertia(link.mass_kg, link.centre, link.inertia))
        body.setGravityMode(link.lifted < 1.0)
        self._dress(skeleton, body, link.shapes)
        self._bodies.append(body)
        if joint.kind == "free":
            return
        inner = Pose(joint.anchor, np.array([1.0, 0.0, 0.0, 0.0]))
        made.setAxis(joint.axis / np.linalg.norm(joint.axis))
        made.setTransformFromParentBodyNode(_pose(link.pose.then(inner)))
        made.setTransformFromChildBodyNode(_pose(inner))
        made.setPositionLowerLimit(0, joint.low - joint.rest)
        made.setPositionUpperLimit(0, joint.high - joint.rest)
        made.setLimitEnforcement(bool(np.isfinite(joint.low) or np.isfinite(joint.high)))
        made.setCoulombFriction(0, joint.frictionloss)

    def _dress(self, skeleton: Any, body: Any, shapes: Sequence[Shape]) -> None:
        """Skins that meet alike on a body of their own, welded on: bodies are what DART tells who meets whom."""
        by_geom = {shape.geom: shape for shape in shapes}
        groups: dict[frozenset[Skin], list[Skin]] = {}
        for skin, met in self._meets.items():
            if skin.geom in by_geom:
                groups.setdefault(met, []).append(skin)
        for number, group in enumerate(groups.values()):
            carrier = body
            if number:
                _, carrier = skeleton.createWeldJointAndBodyNodePair(body)
                carrier.setInertia(_dart().dynamics.Inertia(SLIGHT, np.zeros(3), SLIGHT * np.eye(3)))
            for skin in group:
                self._shape(carrier, by_geom[skin.geom], skin)
            self._carriers[tuple(group)] = carrier

    def _meet(self, one: tuple[Skin, ...], other: tuple[Skin, ...]) -> bool:
        return any(skin in self._meets[one[0]] for skin in other)

    def _shape(self, body: Any, shape: Shape, skin: Skin) -> None:
        d, size, pose = _dart().dynamics, shape.size, shape.pose
        if shape.kind == "plane":
            made, pose = d.BoxShape([GROUND_M, GROUND_M, 1.0]), pose.then(Pose(np.array([0, 0, -0.5]), np.eye(4)[0]))
        elif shape.kind == "box":
            made = d.BoxShape(2.0 * size)
        elif shape.kind == "sphere":
            made = d.SphereShape(size[0])
        elif shape.kind == "capsule":
            made = d.CapsuleShape(size[0], 2.0 * size[1])
        else:
            made = d.CylinderShape(size[0], 2.0 * size[1])
        node = body.createShapeNode(made)
        node.setName(f"geom {shape.geom}")
        node.setRelativeTransform(_pose(pose))
        node.createCollisionAspect()
        node.createDynamicsAspect()
        node.getDynamicsAspect().setFrictionCoeff(skin.kind.friction)
        node.getDynamicsAspect().setRestitutionCoeff(skin.kind.restitution**0.5)  # they are multiplied


def _pose(pose: Pose) -> Any:
    found = _dart().math.Isometry3()
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = pose.turn, pose.position
    found.set_matrix(matrix)
    return found


def _detector(name: str) -> Any:
    c = _dart().collision
    kinds = {
        "fcl": c.FCLCollisionDetector,
        "ode": c.OdeCollisionDetector,
        "bullet": c.BulletCollisionDetector,
        "dart": c.DARTCollisionDetector,
    }
    return kinds[name]()


def _dart() -> Any:
    try:
        import dartpy
    except ModuleNotFoundError as missing:
        attempt = "pip install 'simops[dart]'"
        raise ExtraError("engine 'dart' needs dartpy, which is not installed", attempt=attempt) from missing
    return dartpy
