# pyright: basic
# The only file that meets numba, which has no types.
"""A convex body striking planes, compiled: what a contact may do holds for every impulse, whatever was learned.

Each point that is below a plane gives one impulse a step, one point after the other, on the speeds the last one left.
Its normal part never pulls. Its tangential part is against the slip, within the cone of the friction of that instant,
and never more than what stops the slip, so it takes energy or nothing. The normal force is a spring and a damper as
they will be at the end of the step, so that they give back less than they took. What was learned scales friction,
damping and stiffness, and all stay positive; so no numbers, however they were come by, make a contact that pulls,
drives or leaves the cone.

A state is (13,): centre of mass, quaternion, velocity, spin in the body's axes.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numba import njit

from simops.core.signal import Array

Vector: TypeAlias = tuple[float, float, float]
STIFFNESS, DAMPING, GRIP, SLOW, SLOW_SPEED, LOAD, CREEP, ROUND, REACH, WIDTH = range(10)
"""Where each number of a law stands; after them, the network's weights."""
HIDDEN, INPUTS = 4, 3
MOST = math.log(2.0)
"""The network may double or halve."""
_compiled = njit(cache=True, nogil=True, fastmath=False)


@_compiled
def dot(a: Vector, b: Vector) -> float:
    """Inner product."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@_compiled
def cross(a: Vector, b: Vector) -> Vector:
    """Cross product."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@_compiled
def within(s: Array, v: Vector) -> Vector:
    """A vector of the world in the body's axes."""
    w, x, y, z = s[3], -s[4], -s[5], -s[6]
    t = cross((x, y, z), v)
    t = (2.0 * t[0], 2.0 * t[1], 2.0 * t[2])
    u = cross((x, y, z), t)
    return v[0] + w * t[0] + u[0], v[1] + w * t[1] + u[1], v[2] + w * t[2] + u[2]


@_compiled
def outward(s: Array, v: Vector) -> Vector:
    """A vector of the body in the world's axes."""
    w, q = s[3], (s[4], s[5], s[6])
    t = cross(q, v)
    t = (2.0 * t[0], 2.0 * t[1], 2.0 * t[2])
    u = cross(q, t)
    return v[0] + w * t[0] + u[0], v[1] + w * t[1] + u[1], v[2] + w * t[2] + u[2]


@_compiled
def times(m: Array, v: Vector) -> Vector:
    """A matrix on a vector."""
    return (
        m[0, 0] * v[0] + m[0, 1] * v[1] + m[0, 2] * v[2],
        m[1, 0] * v[0] + m[1, 1] * v[1] + m[1, 2] * v[2],
        m[2, 0] * v[0] + m[2, 1] * v[1] + m[2, 2] * v[2],
    )


@_compiled
def learned(law: Array, load: float, slip: float, closing: float, out: int) -> float:
    """A factor between a half and two: the network's word on friction (0) or damping (1) at a contact like this."""
    if len(law) == WIDTH:
        return 1.0
    seen = (math.log(1.0 + load) / 3.0 - 0.5, slip - 0.5, closing - 0.5)
    at, said = WIDTH, law[WIDTH + HIDDEN * (INPUTS + 1) + out * (HIDDEN + 1) + HIDDEN]
    for unit in range(HIDDEN):
        sum_ = law[at + INPUTS]
        for i in range(INPUTS):
            sum_ += law[at + i] * seen[i]
        at += INPUTS + 1
        said += law[WIDTH + HIDDEN * (INPUTS + 1) + out * (HIDDEN + 1) + unit] * math.tanh(sum_)
    return math.exp(MOST * math.tanh(said))


@_compiled
def friction(law: Array, base: float, load: float, slip: float, closing: float) -> float:
    """The coefficient at a contact: less where it is slow, other where it is pressed, and as was learned; positive."""
    slow = 1.0 + law[SLOW] * math.exp(-slip / law[SLOW_SPEED])
    pressed = math.pow(max(load, 0.05), -law[LOAD])
    return max(base * law[GRIP] * max(slow, 0.0) * pressed * learned(law, load, slip, closing, 0), 0.0)


@_compiled
def touch(s: Array, arm: Vector, up: Vector, depth: float, surface: Array, law: Array, mass: Array, inverse: Array,
          h: float) -> None:  # fmt: skip
    """Give one point's impulse to the body: never pulling, never beyond the cone, never driving."""
    m = mass[0]
    spin = (s[10], s[11], s[12])
    turning = cross(spin, arm)
    moving = within(s, (s[7], s[8], s[9]))
    u = (moving[0] + turning[0], moving[1] + turning[1], moving[2] + turning[2])
    rising = dot(u, up)
    slide = (u[0] - rising * up[0], u[1] - rising * up[1], u[2] - rising * up[2])
    slip = math.sqrt(dot(slide, slide))
    lift = cross(arm, up)
    ease = 1.0 / m + dot(lift, times(inverse, lift))
    stiff = law[STIFFNESS] * surface[5] * m
    load = stiff * depth / (9.81 * m)
    damp = law[DAMPING] * surface[6] * m * learned(law, load, slip, abs(rising), 1)
    # as the spring and the damper will be at the end of the step: that takes energy at any stiffness
    normal = h * (stiff * (depth - h * rising) - damp * rising) / (1.0 + ease * h * (h * stiff + damp))
    if normal <= 0.0:
        return
    stopping = 0.0
    if slip > 1e-12:
        slide = (slide[0] / slip, slide[1] / slip, slide[2] / slip)
        lever = cross(arm, slide)
        ease = 1.0 / m + dot(lever, times(inverse, lever))
        cone = friction(law, surface[4], normal / h / (9.81 * m), slip, abs(rising)) * normal
        if law[CREEP] > 0.0:
            cone *= slip / math.sqrt(slip * slip + law[CREEP] * law[CREEP])
        stopping = min(cone, slip / ease)
    j = (
        normal * up[0] - stopping * slide[0],
        normal * up[1] - stopping * slide[1],
        normal * up[2] - stopping * slide[2],
    )
    turn = times(inverse, cross(arm, j))
    push = outward(s, j)
    for i in range(3):
        s[7 + i] += push[i] / m
        s[10 + i] += turn[i]


@_compiled
def strike(s: Array, points: Array, surface: Array, law: Array, mass: Array, inverse: Array, h: float) -> None:
    """Let every point that is below a plane touch it."""
    above = surface[0] * s[0] + surface[1] * s[1] + surface[2] * s[2] - surface[3]
    if above > law[REACH]:
        return
    up = within(s, (surface[0], surface[1], surface[2]))
    r = law[ROUND]
    for i in range(len(points)):
        centre = (points[i, 0], points[i, 1], points[i, 2])
        depth = r - above - dot(up, centre)
        if depth > 0.0:
            arm = (centre[0] - r * up[0], centre[1] - r * up[1], centre[2] - r * up[2])
            touch(s, arm, up, depth, surface, law, mass, inverse, h)


@_compiled
def turn(s: Array, h: float) -> None:
    """Turn by the spin for a while."""
    spin = math.sqrt(s[10] * s[10] + s[11] * s[11] + s[12] * s[12])
    if spin < 1e-12:
        return
    half = math.sin(0.5 * h * spin) / spin
    c, e = math.cos(0.5 * h * spin), (s[10] * half, s[11] * half, s[12] * half)
    w, v = s[3], (s[4], s[5], s[6])
    across = cross(v, e)
    s[3] = w * c - dot(v, e)
    for i in range(3):
        s[4 + i] = w * e[i] + v[i] * c + across[i]
    length = math.sqrt(s[3] * s[3] + s[4] * s[4] + s[5] * s[5] + s[6] * s[6])
    for i in range(3, 7):
        s[i] /= length


@_compiled
def step(s: Array, points: Array, surfaces: Array, law: Array, mass: Array, tensors: Array, h: float) -> None:
    """One step: what pulls, then what is touched, then the way; a fall is exact whatever the step."""
    before = (s[7], s[8], s[9])
    spin = (s[10], s[11], s[12])
    twist = within(s, (mass[7], mass[8], mass[9]))
    gyro = cross(times(tensors[0], spin), spin)
    bend = times(tensors[1], (twist[0] + gyro[0], twist[1] + gyro[1], twist[2] + gyro[2]))
    for i in range(3):
        s[7 + i] += h * (mass[1 + i] + mass[4 + i] / mass[0])
        s[10 + i] += h * bend[i]
    pulled = (s[7], s[8], s[9])
    for i in range(len(surfaces)):
        strike(s, points, surfaces[i], law, mass, tensors[1], h)
    for i in range(3):
        s[i] += h * (s[7 + i] - 0.5 * (pulled[i] - before[i]))
    turn(s, h)


@_compiled
def flying(s: Array, surfaces: Array, law: Array, mass: Array, span: float) -> bool:
    """Whether nothing can be touched for a while, and nothing but the weight acts."""
    for i in range(4, 10):
        if mass[i] != 0.0:
            return False
    for i in range(len(surfaces)):
        n = (surfaces[i, 0], surfaces[i, 1], surfaces[i, 2])
        above = dot(n, (s[0], s[1], s[2])) - surfaces[i, 3]
        toward = min(dot(n, (s[7], s[8], s[9])), 0.0)
        pull = min(dot(n, (mass[1], mass[2], mass[3])), 0.0)
        if above + span * toward + 0.5 * span * span * pull <= law[REACH]:
            return False
    return True


@_compiled
def advance(s: Array, points: Array, surfaces: Array, law: Array, mass: Array, tensors: Array, h: float,
            steps: int) -> None:  # fmt: skip
    """So many steps; one long one where a round body flies free."""
    even = tensors[0, 0, 0] == tensors[0, 1, 1] == tensors[0, 2, 2]
    if even and flying(s, surfaces, law, mass, h * steps):
        step(s, points, surfaces, law, mass, tensors, h * steps)
        return
    for _ in range(steps):
        step(s, points, surfaces, law, mass, tensors, h)


@_compiled
def throw(begun: Array, rows: Array, points: Array, surfaces: Array, law: Array, mass: Array, tensors: Array,
          h: float, steps: int) -> Array:  # fmt: skip
    """(bodies, most rows, 13) states of many throws of one body, `steps` steps from row to row; NaN beyond the end."""
    seen = np.full((len(begun), rows.max(), 13), np.nan)
    s = np.empty(13)
    for i in range(len(begun)):
        s[:] = begun[i]
        seen[i, 0] = s
        for row in range(1, rows[i]):
            advance(s, points, surfaces, law, mass, tensors, h, steps)
            seen[i, row] = s
    return seen
