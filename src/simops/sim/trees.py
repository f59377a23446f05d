"""Small questions about plain parts that several engines ask."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from simops.core.signal import Array
from simops.sim.binding import mj
from simops.sim.walk import Parts

_SIZES = {"free": (7, 6), "ball": (4, 3), "slide": (1, 1), "hinge": (1, 1)}


class Sizes(NamedTuple):
    """Lengths of MuJoCo's vectors."""

    qpos: int
    qvel: int


class Principal(NamedTuple):
    """An inertia along its own axes, and how they lie."""

    values: Array
    quaternion: Array


def sizes(parts: Parts) -> Sizes:
    """Of all joints."""
    found = [_SIZES[joint.kind] for link in parts.links for joint in link.joints]
    return Sizes(sum(size[0] for size in found), sum(size[1] for size in found))


def members(parts: Parts, root: int) -> list[int]:
    """The links of a tree, parents first."""
    found = [root]
    for i in range(root + 1, len(parts.links)):
        if parts.links[i].parent in found:
            found.append(i)
    return found


def principal(inertia: Array) -> Principal:
    """Of an inertia in a link's axes."""
    values, axes = np.linalg.eigh(inertia)
    if np.linalg.det(axes) < 0:
        axes[:, 0] *= -1
    quaternion = np.zeros(4)
    mj.mju_mat2Quat(quaternion, axes.ravel())
    return Principal(values, quaternion)


def from_x(axis: Array) -> Array:
    """The shortest turn of x onto an axis."""
    unit = axis / np.linalg.norm(axis)
    if unit[0] < -1 + 1e-12:
        return np.array([0.0, 0.0, 0.0, 1.0])
    found = np.array([1.0 + unit[0], 0.0, -unit[2], unit[1]])
    return found / np.linalg.norm(found)
