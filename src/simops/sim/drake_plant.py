"""Links, joints, drives and couplings as a Drake plant; contact is `drake_contact`'s.

Drake's hinges and slides count from the pose the scene is drawn at, MuJoCo's from where the scene
says: `Seat.rest` is what lies between.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simops.core.errors import EngineError
from simops.sim.drake_binding import Actuator, Body, Joined, Plant, math, tree
from simops.sim.walk import HERE, Drive, Joint, Link, Parts, Pose

STEEP = 1e4
"""Joint friction per speed, as multiples of the friction [s/rad or s/m]: how sharply it turns over at standstill."""


class Seat(NamedTuple):
    """A hinge or slide in both counts."""

    joint: Joined
    rest: float


class Plan(NamedTuple):
    """What was built of the parts."""

    bodies: tuple[Body, ...]
    """One a link."""
    seats: dict[int, Seat]
    """Hinges and slides by their id."""
    free: dict[int, Joined]
    """Free joints by their id."""
    actuators: tuple[str, ...]
    """One a drive."""


def furnish(plant: Plant, parts: Parts, *, continuous: bool) -> Plan:
    """Add links, joints, springs, drives and couplings to a plant that is not finalized."""
    lifted = plant.AddModelInstance("lifted")
    plant.set_gravity_enabled(lifted, is_enabled=False)
    heavy = plant.AddModelInstance("heavy")
    plant.mutable_gravity_field().set_gravity_vector(parts.gravity)
    bodies: list[Body] = []
    seats: dict[int, Seat] = {}
    free: dict[int, Joined] = {}
    for i, link in enumerate(parts.links):
        instance = lifted if link.lifted == 1.0 else heavy
        body = plant.AddRigidBody(f"link{i}", instance, _inertia(link))
        parent = plant.world_body() if link.parent < 0 else bodies[link.parent]
        bodies.append(body)
        if link.joints[0].kind == "free":
            joined = tree.QuaternionFloatingJoint(f"free{i}", plant.world_frame(), body.body_frame())
            free[link.joints[0].id] = plant.AddJoint(joined)
        else:
            seats |= _hang(plant, link, parent, body, instance)
    names = _drive(plant, parts, seats, continuous=continuous)
    for coupling in parts.couplings:
        one, other = seats[coupling.joint], seats[coupling.other]
        offset = coupling.offset + coupling.ratio * other.rest - one.rest
        plant.AddCouplerConstraint(one.joint, other.joint, coupling.ratio, offset)
    return Plan(tuple(bodies), seats, free, names)


def transform(pose: Pose) -> object:
    """A pose as Drake has it."""
    return math.RigidTransform(math.RotationMatrix(pose.turn), pose.position)


def _inertia(link: Link) -> object:
    matrix = link.inertia
    moments = tree.RotationalInertia(*np.diag(matrix), matrix[0, 1], matrix[0, 2], matrix[1, 2])
    return tree.SpatialInertia.MakeFromCentralInertia(link.mass_kg, link.centre, moments)


def _hang(plant: Plant, link: Link, parent: Body, body: Body, instance: object) -> dict[int, Seat]:
    """Put the link's joints between it and its parent, with a body of nothing between two of them."""
    found: dict[int, Seat] = {}
    below, pose = parent, link.pose
    for joint in link.joints:
        last = joint is link.joints[-1]
        above = body if last else plant.AddRigidBody(f"between{joint.id}", instance, tree.SpatialInertia.Zero())
        anchor = Pose(joint.anchor, HERE.quaternion)
        frames = (_frame(plant, f"below{joint.id}", below, pose.then(anchor)), _frame(plant, "", above, anchor))
        found[joint.id] = Seat(plant.AddJoint(_joined(joint, *frames)), joint.rest)
        _spring(plant, joint, found[joint.id])
        below, pose = above, HERE
    return found


def _frame(plant: Plant, name: str, body: Body, pose: Pose) -> object:
    return plant.AddFrame(tree.FixedOffsetFrame(name or f"on {body.name()}", body.body_frame(), transform(pose)))


def _joined(joint: Joint, below: object, above: object) -> Joined:
    kind = {"hinge": tree.RevoluteJoint, "slide": tree.PrismaticJoint}.get(joint.kind)
    if kind is None:
        raise EngineError(f"drake has no {joint.kind} joint between two links", where=joint.name)
    low, high = joint.low - joint.rest, joint.high - joint.rest
    return kind(f"joint{joint.id}", below, above, joint.axis, low, high, joint.damping)


def _spring(plant: Plant, joint: Joint, seat: Seat) -> None:
    if joint.stiffness > 0:
        kind = tree.RevoluteSpring if joint.kind == "hinge" else tree.PrismaticSpring
        plant.AddForceElement(kind(seat.joint, joint.spring - joint.rest, joint.stiffness))


def _drive(plant: Plant, parts: Parts, seats: dict[int, Seat], *, continuous: bool) -> tuple[str, ...]:
    """One actuator a drive, and one a joint with friction or with armature alone.

    Each says the joint's armature: Drake takes the word of the last, and adds up nothing.
    """
    by_dof = {joint.dof: joint for link in parts.links for joint in link.joints if joint.id in seats}
    driven = [drive.dof for drive in parts.drives]
    for drive in parts.drives:
        joint = by_dof[drive.dof]
        actuator = plant.AddJointActuator(f"drive{drive.actuator}", seats[joint.id].joint, reach(drive))
        if drive.kp or drive.kd:
            actuator.set_controller_gains(_gains(drive.kp, drive.kd))
        _arm(actuator, joint)
    for dof, joint in by_dof.items():
        if joint.frictionloss > 0:
            actuator = plant.AddJointActuator(f"friction{joint.id}", seats[joint.id].joint, joint.frictionloss)
            actuator.set_controller_gains(_gains(0.0, STEEP * joint.frictionloss))
            _arm(actuator, joint)
        elif joint.armature > 0 and dof not in driven:
            _arm(plant.AddJointActuator(f"armature{joint.id}", seats[joint.id].joint), joint)
    if continuous:
        _single(by_dof, driven)
    return tuple(f"drive{drive.actuator}" for drive in parts.drives)


def _single(by_dof: dict[int, Joint], driven: list[int]) -> None:
    """Raise where a joint has two actuators: the error-controlled scheme mixes up their limits."""
    for dof, joint in by_dof.items():
        if driven.count(dof) + (joint.frictionloss > 0) > 1:
            attempt = "scheme: similar, or a motor with friction of its own"
            raise EngineError(
                "cenic has no friction and no second drive in a driven joint", where=joint.name, attempt=attempt
            )


def _gains(stiffness: float, damping: float) -> object:
    """Gains of a servo inside the step."""
    return tree.PdControllerGains(p=stiffness, d=damping)


def reach(drive: Drive) -> float:
    """Half of what lies between the drive's limits: Drake's lie evenly about nothing, `Drive.centre` is added."""
    return max(1e-9, (drive.high - drive.low) / 2.0)


def _arm(actuator: Actuator, joint: Joint) -> None:
    actuator.set_default_rotor_inertia(joint.armature)
    actuator.set_default_gear_ratio(1.0)
