"""Reflected inertia and ties between joints for engines that have neither."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from simops.core.signal import Array
from simops.sim.walk import Link, Parts

TIE = 0.1
"""Radians that the vibration of a tie goes on in a step: as stiff as a step holds."""


class Tie(NamedTuple):
    """A spring and damper that let a joint follow another; at these places in qpos and qvel."""

    position: int
    dof: int
    other_position: int
    other_dof: int
    offset: float
    ratio: float
    stiffness: float
    damping: float


def burdened(parts: Parts) -> tuple[Link, ...]:
    """The links, each carrying the armature of its joint: right for itself, too much for joints before it.

    Inertia about the joint's own axis is exact, and so is everything that stands still, as no weight is added. What
    is approximate is that joints further up, as far as their axes are parallel, feel it as well.
    """
    return tuple(_burdened(link) for link in parts.links)


def ties(parts: Parts, step_s: float) -> tuple[Tie, ...]:
    """One for each coupling, as stiff as the lighter of both joints and the step allow."""
    joints = {joint.id: (joint, link) for link in burdened(parts) for joint in link.joints}
    found: list[Tie] = []
    for coupling in parts.couplings:
        (one, mine), (other, its) = joints[coupling.joint], joints[coupling.other]
        inertia = min(_about(mine), _about(its) / max(coupling.ratio**2, 1e-12))
        rate = TIE / step_s
        stiffness, damping = inertia * rate**2, 1.4 * inertia * rate
        places = one.position, one.dof, other.position, other.dof
        found.append(Tie(*places, coupling.offset, coupling.ratio, stiffness, damping))
    return tuple(found)


def pull(found: Sequence[Tie], qpos: Array, qvel: Array, forces: Array) -> None:
    """Add what ties do to the forces on all degrees of freedom."""
    for tie in found:
        apart = qpos[tie.position] - tie.offset - tie.ratio * qpos[tie.other_position]
        force = -tie.stiffness * apart - tie.damping * (qvel[tie.dof] - tie.ratio * qvel[tie.other_dof])
        forces[tie.dof] += force
        forces[tie.other_dof] -= tie.ratio * force


def _burdened(link: Link) -> Link:
    joint = link.joints[0]
    if joint.kind == "hinge":
        axis = joint.axis / np.linalg.norm(joint.axis)
        return replace(link, inertia=link.inertia + joint.armature * np.outer(axis, axis))
    if joint.kind == "slide" and joint.armature > 0:
        mass_kg = link.mass_kg + joint.armature
        lifted = (link.lifted * link.mass_kg + joint.armature) / mass_kg
        return replace(link, mass_kg=mass_kg, lifted=lifted)
    return link


def _about(link: Link) -> float:
    """Inertia of a link, along or about its joint's axis."""
    joint = link.joints[0]
    if joint.kind == "slide":
        return link.mass_kg
    axis, arm = joint.axis / np.linalg.norm(joint.axis), link.centre - joint.anchor
    return float(axis @ link.inertia @ axis + link.mass_kg * (arm @ arm - (axis @ arm) ** 2))
