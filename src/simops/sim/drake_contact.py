"""Shapes, and what a contact of every two of them is like, in Drake's geometry.

Drake mixes what each of two shapes says of itself. Here a pair says it: a shape is there once for
every kind of contact it takes part in, and only those meet that are of a pair of that kind. So
friction, restitution and stiffness of a pair are what the scene says, whatever else the two touch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np

from simops.core.signal import Array
from simops.sim.drake_binding import Body, Geometry, Plant, Results, SceneGraph, geometry, plants
from simops.sim.drake_plant import transform
from simops.sim.walk import Parts, Shape
from simops.sim.world import Touch

LIVELY = 20.0
"""Dissipation of a contact from which nothing comes back [s/m]."""
LOSS = 0.0025
"""Ratio of the damping that steps may add to a bounce from which everything comes back."""
MOST = 64
"""Into how many a step is cut at most."""
DENT = 0.05
"""Depth at which a corner's stiffness is the scene's, as a share of half the box's least side."""
FINE = 0.5
"""Edges of a round shape's mesh, as a share of its radius."""
AT_M_S = 1.0
"""Drake's restitution falls with the speed of an impact; at this one it is the scene's."""


class Kind(NamedTuple):
    """What two shapes' contact is like."""

    friction: float
    dissipation: float
    """Hunt and Crossley's [s/m]."""
    stiffness: float
    """Of a point contact [N/m]."""
    modulus_pa: float | None
    """Of pressure fields; None where the two touch at a point."""


@final
@dataclass(frozen=True)
class Feel:
    """How everything touches that the scene says nothing about."""

    modulus_pa: float
    sink_m: float
    fields: bool
    """Whether there are pressure fields at all."""


@final
class Skins:
    """All shapes of the parts, in the plant."""

    def __init__(self, plant: Plant, scene: SceneGraph, parts: Parts, bodies: tuple[Body, ...], feel: Feel) -> None:
        """Register them, and let nothing else meet."""
        self.geoms: dict[Geometry, int] = {}
        """The MuJoCo geom that each is."""
        shapes = {shape.geom: (-1, shape) for shape in parts.ground}
        shapes |= {shape.geom: (i, shape) for i, link in enumerate(parts.links) for shape in link.shapes}
        grips = manipulated(parts)
        kinds = _kinds(parts, shapes, feel)
        placed: dict[tuple[int, Kind], Geometry] = {}
        for pair, kind in zip(parts.pairs, kinds, strict=True):
            for geom in pair.geoms:
                if (geom, kind) not in placed:
                    link, shape = shapes[geom]
                    body = plant.world_body() if link < 0 else bodies[link]
                    given = _properties(shape, kind, soft=link in grips, rigid=link < 0)
                    name = f"geom{geom}_{len(placed)}"
                    made = plant.RegisterCollisionGeometry(body, transform(shape.pose), _shape(shape), name, given)
                    placed[geom, kind] = made
                    self.geoms[made] = geom
        meeting = [
            (placed[pair.geoms[0], kind], placed[pair.geoms[1], kind])
            for pair, kind in zip(parts.pairs, kinds, strict=True)
        ]
        _filter(scene, list(self.geoms), meeting)

    def touches(self, results: Results) -> tuple[Touch, ...]:
        """Every contact that carries force."""
        found: list[Touch] = []
        for i in range(results.num_point_pair_contacts()):
            info = results.point_pair_contact_info(i)
            near = info.point_pair()
            geoms = self.geoms[near.id_A], self.geoms[near.id_B]
            found.append(Touch(geoms, info.contact_point(), info.contact_force(), -near.nhat_BA_W))
        for i in range(results.num_hydroelastic_contacts()):
            info = results.hydroelastic_contact_info(i)
            surface = info.contact_surface()
            geoms = self.geoms[surface.id_M()], self.geoms[surface.id_N()]
            force = -info.F_Ac_W().translational()
            found.append(Touch(geoms, surface.centroid(), force, _normal(surface)))
        return tuple(found)


def manipulated(parts: Parts) -> frozenset[int]:
    """Links on which nothing hangs: objects, fingers, feet."""
    return frozenset(range(len(parts.links))) - {link.parent for link in parts.links}


def _normal(surface: Results) -> Array:
    """Out of the first shape, as the surface's faces have it on the whole: Drake's point into the first."""
    faces = range(surface.num_faces())
    total = -np.sum([surface.area(f) * surface.face_normal(f) for f in faces], axis=0)
    return total / max(1e-12, float(np.linalg.norm(total)))


def _filter(scene: SceneGraph, everything: list[Geometry], meeting: list[tuple[Geometry, Geometry]]) -> None:
    """Let those meet, and no others."""
    manager, chosen = scene.collision_filter_manager(), geometry.GeometrySet
    declare = geometry.CollisionFilterDeclaration
    manager.Apply(declare().ExcludeWithin(chosen(everything)))
    for one, other in meeting:
        manager.Apply(declare().AllowBetween(chosen([one]), chosen([other])))


def _weights(parts: Parts) -> Callable[[int], float]:
    """Mass in kg that a contact of a link has to hold: all of what moves freely, else the link's own."""
    roots: list[int] = []
    for i, link in enumerate(parts.links):
        roots.append(i if link.parent < 0 else roots[link.parent])
    totals = np.bincount(roots, [link.mass_kg for link in parts.links]) if roots else np.zeros(0)

    def weight(link: int) -> float:
        if link < 0:
            return np.inf
        free = parts.links[roots[link]].joints[0].kind == "free"
        return float(totals[roots[link]]) if free else parts.links[link].mass_kg

    return weight


def _kinds(parts: Parts, shapes: Mapping[int, tuple[int, Shape]], feel: Feel) -> list[Kind]:
    """What the contact of each pair is like."""
    weigh = _weights(parts)
    gravity = max(1.0, float(np.linalg.norm(parts.gravity)))
    found: list[Kind] = []
    for pair in parts.pairs:
        mass_kg = min(weigh(shapes[geom][0]) for geom in pair.geoms)
        told = pair.given or pair.restitution > 0
        stiffness = mass_kg * (pair.stiffness if told else gravity / feel.sink_m)
        both = [shapes[geom][1] for geom in pair.geoms]
        modulus = _modulus(both, stiffness) if told else feel.modulus_pa
        found.append(
            Kind(pair.friction, dissipation(pair.restitution), stiffness, modulus if feel.fields else None),
        )
    return found


def _modulus(both: list[Shape], stiffness: float) -> float | None:
    """The modulus at which a corner of the smaller of two boxes is as stiff as told, pressed in by `DENT` of it.

    Pressure grows evenly to the middle, so a corner gives way by the cube of its depth, a face is far stiffer.
    Round shapes, of which the scene says a stiffness, touch at a point: under those a field has no one stiffness.
    """
    if any(shape.kind not in {"box", "plane"} for shape in both):
        return None
    thin = min(float(np.min(shape.size)) for shape in both if shape.kind == "box")
    return stiffness / (8.0 * DENT**2 * thin)


def finer(parts: Parts, step_s: float) -> int:
    """How many steps to make of one, so that implicit steps take little more from a bounce than the scene does.

    A spring of frequency w loses as much to steps of h as to a damper of the ratio w h / 2.
    """
    most = 1.0
    for pair in parts.pairs:
        if pair.restitution > 0:
            frequency = float(np.sqrt(pair.stiffness))
            ratio = pair.damping / (2.0 * frequency)
            most = max(most, frequency * step_s / 2.0 / max(LOSS, 0.1 * ratio))
    return min(MOST, int(np.ceil(most)))


def dissipation(restitution: float) -> float:
    """Hunt and Crossley's dissipation at which this share of `AT_M_S` comes back from an impact [s/m].

    An impact at u that leaves at e u under F = k x (1 + d v) has ln((1 + d u) / (1 - d e u)) = d u (1 + e).
    """
    if restitution >= 1.0:
        return 0.0
    if restitution <= 1.0 / LIVELY:
        return LIVELY
    low, high = 0.0, 1.0 / restitution
    for _ in range(60):
        d = (low + high) / 2.0
        lost = np.log((1.0 + d) / (1.0 - d * restitution)) - d * (1.0 + restitution)
        low, high = (d, high) if lost < 0 else (low, d)
    return min(LIVELY, (low + high) / 2.0 / AT_M_S)


def _properties(shape: Shape, kind: Kind, *, soft: bool, rigid: bool) -> object:
    """What Drake is told; two alike mix to the kind that both have."""
    given = geometry.ProximityProperties()
    friction = plants.CoulombFriction(kind.friction, kind.friction)
    geometry.AddContactMaterial(
        dissipation=kind.dissipation, point_stiffness=2.0 * kind.stiffness, friction=friction, properties=given
    )
    if soft and kind.modulus_pa is not None:
        geometry.AddCompliantHydroelasticProperties(_grain(shape), kind.modulus_pa, given)
    elif rigid and kind.modulus_pa is not None:
        geometry.AddRigidHydroelasticProperties(_grain(shape), given)
    return given


def _grain(shape: Shape) -> float:
    """Edge length of the mesh that stands for a shape [m]: a round one falls short of itself by a thirtieth."""
    if shape.kind in {"sphere", "capsule", "cylinder", "ellipsoid"}:
        return FINE * float(np.min(shape.size[: 3 if shape.kind == "ellipsoid" else 1]))
    return float(np.min(shape.size)) or 0.01


def _shape(shape: Shape) -> object:
    size = shape.size
    makers: Mapping[str, Callable[[], object]] = {
        "plane": geometry.HalfSpace,
        "sphere": lambda: geometry.Sphere(size[0]),
        "capsule": lambda: geometry.Capsule(size[0], 2.0 * size[1]),
        "ellipsoid": lambda: geometry.Ellipsoid(*size),
        "cylinder": lambda: geometry.Cylinder(size[0], 2.0 * size[1]),
        "box": lambda: geometry.Box(*(2.0 * size)),
        "mesh": lambda: geometry.Convex(points=shape.vertices.T, label=shape.name or "hull"),
    }
    return makers[shape.kind]()
