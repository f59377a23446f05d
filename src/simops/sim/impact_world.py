"""Worlds of the impact engine: what a scene's parts are to it, and how one goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, final

import numpy as np

from simops.core.errors import EngineError, ExtraError
from simops.core.signal import Array, Columns
from simops.sim.pairs import Pair
from simops.sim.walk import Link, Parts, Shape
from simops.sim.world import Load, Touch

try:
    from simops.sim import impact_kernel as kernel
except ModuleNotFoundError as error:
    raise ExtraError("the engine impact needs numba", attempt="pip install 'simops[fit]'") from error

STATE = 13


class Contact(NamedTuple):
    """What the engine's fields say of every contact."""

    numbers: tuple[float, ...]
    """As the kernel has them, up to the radius."""
    network: tuple[float, ...]
    rounding_m: float
    corners_m: tuple[float, ...]
    inertia: float


class Body(NamedTuple):
    """One free body, in the numbers the kernel works on."""

    link: int
    position: int
    """Where it begins in qpos."""
    dof: int
    centre: Array
    """Of mass, in the body's frame."""
    points: Array
    """(k, 3) from the centre of mass: centres of the balls whose hull touches."""
    surfaces: Array
    """(planes, 7): normal, offset, friction, stiffness and damping per mass."""
    law: Array
    mass: Array
    """(10,) mass, gravity, and the force and torque of the loads."""
    tensors: Array
    """(2, 3, 3) moment of inertia in the body's axes, and its inverse."""


def bodies(law: Contact, parts: Parts) -> tuple[Body, ...]:
    """Every free body of a scene; raises for what the engine would lose."""
    parts.require("impact", frozenset())
    grounds = {shape.geom: shape for shape in parts.ground}
    geoms = {shape.geom for link in parts.links for shape in link.shapes}
    for pair in parts.pairs:
        if all(geom in geoms for geom in pair.geoms):
            raise EngineError("impact has bodies meet planes, not each other", attempt="another engine")
    return tuple(_body(law, parts, i, link, grounds) for i, link in enumerate(parts.links))


def _body(law: Contact, parts: Parts, index: int, link: Link, grounds: dict[int, Shape]) -> Body:
    if len(link.joints) != 1 or link.joints[0].kind != "free" or len(link.shapes) > 1:
        raise EngineError(f"impact has free bodies of one shape; {link.name!r} is none", attempt="another engine")
    points, radius = np.zeros((0, 3)), 0.0
    surfaces: list[Array] = []
    for shape in link.shapes:
        points, radius = _points(law, shape)
        points = points - link.centre
        touching = [pair for pair in parts.pairs if shape.geom in pair.geoms]
        surfaces = [_surface(grounds, pair, shape.geom) for pair in touching]
    tensor = law.inertia * link.inertia
    held = 1.0 - link.lifted
    return Body(
        link=index,
        position=link.joints[0].position,
        dof=link.joints[0].dof,
        centre=np.array(link.centre, np.float64),
        points=np.ascontiguousarray(points),
        surfaces=np.array(surfaces).reshape(-1, 7),
        law=_numbers(law, points, radius),
        mass=np.array([link.mass_kg, *(held * parts.gravity), *np.zeros(6)]),
        tensors=np.array([tensor, np.linalg.inv(tensor)]),
    )


def _points(law: Contact, shape: Shape) -> tuple[Array, float]:
    """Balls whose hull is the shape, in the link's frame, and their radius."""
    if shape.kind == "sphere":
        return shape.pose.position[None], float(shape.size[0])
    if shape.kind != "box":
        raise EngineError(f"impact has boxes and balls, no {shape.kind}", where=shape.name, attempt="another engine")
    radius = min(law.rounding_m, 0.5 * float(shape.size.min()))
    signs = np.array([(i, j, k) for i in (-1.0, 1.0) for j in (-1.0, 1.0) for k in (-1.0, 1.0)])
    corners = signs * (shape.size - radius)
    if law.corners_m:
        corners = corners + np.array(law.corners_m).reshape(-1, 3)
    return corners @ shape.pose.turn.T + shape.pose.position, radius


def _surface(grounds: dict[int, Shape], pair: Pair, geom: int) -> Array:
    [other] = [g for g in pair.geoms if g != geom]
    ground = grounds.get(other)
    if ground is None or ground.kind != "plane":
        raise EngineError("impact has bodies fall on planes and nothing else", attempt="another engine")
    normal = ground.pose.turn[:, 2]
    return np.array([*normal, normal @ ground.pose.position, pair.friction, pair.stiffness, pair.damping])


def _numbers(law: Contact, points: Array, radius: float) -> Array:
    reach = radius + float(np.max(np.linalg.norm(points, axis=1), initial=0.0)) + 1e-9
    numbers = (*law.numbers, radius, reach, *law.network)
    return np.array(numbers, np.float64)


@final
class ImpactWorld:
    """One copy of a scene of free bodies."""

    def __init__(self, parts: tuple[Body, ...], step_s: float) -> None:
        """Nothing moves before `begin`."""
        self._bodies, self._step_s = parts, step_s
        self._states = np.zeros((len(parts), STATE))

    def begin(self, qpos: Array, qvel: Array) -> None:
        """Put every body there, with no load."""
        for body, state in zip(self._bodies, self._states, strict=True):
            body.mass[4:] = 0.0
            _put(body, state, qpos[body.position :], qvel[body.dof :])

    def load(self, loads: Sequence[Load]) -> None:
        """Push with these, and no others, from now on."""
        for body in self._bodies:
            body.mass[4:] = 0.0
            for one in loads:
                if one.link == body.link:
                    body.mass[4:] += one.wrench

    def advance(self, control: Array, steps: int) -> None:
        """Go on for so many physics steps."""
        del control
        for body, state in zip(self._bodies, self._states, strict=True):
            kernel.advance(
                state, body.points, body.surfaces, body.law, body.mass, body.tensors, self._step_s, steps
            )  # fmt: skip

    def look(self, qpos: Array, qvel: Array) -> None:
        """Write the state of all bodies into the two vectors."""
        for body, s in zip(self._bodies, self._states, strict=True):
            turn = turned(s[3:7], -body.centre)
            qpos[body.position : body.position + 3] = s[:3] + turn
            qpos[body.position + 3 : body.position + 7] = s[3:7]
            qvel[body.dof : body.dof + 3] = s[7:10] + turned(s[3:7], np.cross(s[10:13], -body.centre))
            qvel[body.dof + 3 : body.dof + 6] = s[10:13]

    def touches(self) -> Sequence[Touch]:
        """None are told."""
        return ()


def _put(body: Body, state: Array, qpos: Array, qvel: Array) -> None:
    state[3:7] = qpos[3:7]
    state[:3] = qpos[:3] + turned(state[3:7], body.centre)
    state[10:13] = qvel[3:6]
    state[7:10] = qvel[:3] + turned(state[3:7], np.cross(state[10:13], body.centre))


def turned(quaternion: Array, vector: Array) -> Array:
    """A vector of the body in the world."""
    axis = quaternion[1:]
    across = 2.0 * np.cross(axis, vector)
    return vector + quaternion[0] * across + np.cross(axis, across)


def thrown(body: Body, begun: Columns, rows: Array, step_s: float, steps: int) -> dict[str, Array]:
    """Poses of many throws of one body."""
    count = len(rows)
    states = np.zeros((count, STATE))
    qpos = np.concatenate([begun["position"], begun["quaternion"]], 1).astype(np.float64)
    qpos[:, 3:] /= np.sqrt((qpos[:, 3:] ** 2).sum(1))[:, None]
    qvel = np.concatenate([begun["velocity"], begun["angular_velocity"]], 1).astype(np.float64)
    for i in range(count):
        _put(body, states[i], qpos[i], qvel[i])
    seen = kernel.throw(
        states, rows.astype(np.int64), body.points, body.surfaces, body.law, body.mass, body.tensors, step_s, steps
    )  # fmt: skip
    position = seen[..., :3]
    if np.any(body.centre):
        for i in range(count):
            position[i] -= np.array([turned(q, body.centre) for q in seen[i, :, 3:7]])
    return {"position": position, "quaternion": seen[..., 3:7]}
