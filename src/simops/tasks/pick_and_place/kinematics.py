"""Where the Panda's tool is, how its joints move it, and the damped least squares step between the two.

Arrays are laid out component first, `(7, n)` or `(3, n)`, so that every operation runs over the whole batch at once.
Only elementwise operations are used: a row's bytes do not depend on how many rows there are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LINKS: tuple[tuple[float, float, int], ...] = (
    (0.0, 0.333, 0),
    (0.0, 0.0, -1),
    (0.0, 0.316, 1),
    (0.0825, 0.0, 1),
    (-0.0825, 0.384, -1),
    (0.0, 0.0, 1),
    (0.088, 0.0, 1),
)
"""Modified Denavit-Hartenberg numbers of the joints: a [m], d [m], alpha [quarter turns]."""
TOOL_OFFSET_M = 0.107 + 0.1034
"""From the seventh joint along its axis to the flange, and on to the point between the finger pads."""
SPEED_LIMIT_RAD_S = (2.175, 2.175, 2.175, 2.175, 2.61, 2.61, 2.61)
"""Joint speed limits of the maker."""


class Tool(NamedTuple):
    """Pose of the point between the pads, and the joints that carry it."""

    position: Floats
    """In the base frame, (3, n) [m]."""
    axes: tuple[Floats, Floats, Floats]
    """The hand's x, y (across the pads) and z (towards the object) in the base frame, each (3, n)."""
    joint_axes: Floats
    """Turning axis of each joint, (3, 7, n)."""
    joint_origins: Floats
    """A point on each joint's axis, (3, 7, n) [m]."""


def tool(q: Floats) -> Tool:
    """Forward kinematics of joint angles (7, n) [rad]."""
    n = q.shape[1]
    cosine, sine = np.cos(q), np.sin(q)
    x, y, z = (np.repeat(column[:, None], n, axis=1) for column in np.eye(3))
    position = np.zeros((3, n))
    joint_axes, joint_origins = np.empty((3, 7, n)), np.empty((3, 7, n))
    for i, (a, d, quarter) in enumerate(LINKS):
        if a:
            position = position + a * x
        if quarter > 0:
            y, z = z, -y
        elif quarter < 0:
            y, z = -z, y
        if d:
            position = position + d * z
        x, y = cosine[i] * x + sine[i] * y, cosine[i] * y - sine[i] * x
        joint_axes[:, i], joint_origins[:, i] = z, position
    half = np.sqrt(0.5)  # the hand is mounted an eighth of a turn back
    return Tool(position + TOOL_OFFSET_M * z, (half * (x - y), half * (x + y), z), joint_axes, joint_origins)


def jacobian(at: Tool) -> Floats:
    """How joint speeds move the tool: rows are its velocity, then its angular velocity, (6, 7, n)."""
    z = at.joint_axes
    arm = at.position[:, None] - at.joint_origins
    out = np.empty((6, *z.shape[1:]))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        np.subtract(z[j] * arm[k], z[k] * arm[j], out=out[i])
    out[3:] = z
    return out


def damped_step(jac: Floats, twist: Floats, *, damping: float = 0.02) -> Floats:
    """Joint step (7, n) that makes the tool's step `twist` (6, n), held small near singular poses by `damping`."""
    m, dof = twist.shape[0], jac.shape[1]
    normal = np.multiply(jac[:, None, 0], jac[None, :, 0])
    product = np.empty_like(normal)
    for k in range(1, dof):
        np.multiply(jac[:, None, k], jac[None, :, k], out=product)
        normal += product
    for i in range(m):
        normal[i, i] += damping * damping
    force = solve_symmetric(normal, twist)
    step = jac[0] * force[0]
    for i in range(1, m):
        step += jac[i] * force[i]
    return step


def solve_symmetric(matrix: Floats, right: Floats) -> Floats:
    """Solve positive definite systems (m, m, n) for right-hand sides (m, n); `matrix` is overwritten."""
    m = right.shape[0]
    out = right.copy()
    lower: list[Floats] = []
    for i in range(m):
        row = matrix[i, i + 1 :]
        factor = row / matrix[i, i]
        lower.append(factor)
        matrix[i + 1 :, i + 1 :] -= factor[:, None] * row[None]
        out[i + 1 :] -= factor * out[i]
    for i in reversed(range(m)):
        out[i] /= matrix[i, i]
        for k in range(m - 1 - i):
            out[i] -= lower[i][k] * out[i + 1 + k]
    return out
