"""Which shapes of a compiled scene collide, and what each contact is like: MuJoCo's own rules, for other engines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from simops.core.errors import EngineError
from simops.core.signal import Array
from simops.sim.binding import Model, mj


@final
@dataclass(frozen=True)
class Pair:
    """Two shapes that collide, by their geoms, and what the contact is like."""

    geoms: tuple[int, int]
    friction: float
    """Sliding; 0 for contacts without friction."""
    torsion_m: float
    """0 for contacts without torsional friction."""
    restitution: float
    """Share of the speed that comes back, which follows from MuJoCo's damping ratio."""
    stiffness: float
    damping: float
    """MuJoCo's reference acceleration, in 1/s^2 and 1/s."""
    given: bool
    """Whether the scene says stiffness and damping themselves, and not how fast an error shall vanish."""


def pairs_of(model: Model) -> tuple[Pair, ...]:
    """Every two geoms that MuJoCo would let touch, by its own rules."""
    if model.npair:
        raise EngineError("the scene lists contact pairs", attempt="contype and conaffinity, or the engine mujoco")
    apart = {(int(s) >> 16, int(s) & 0xFFFF) for s in model.exclude_signature}
    solid = [g for g in range(model.ngeom) if model.geom_contype[g] or model.geom_conaffinity[g]]
    found: list[Pair] = []
    for i, one in enumerate(solid):
        found += [_pair(model, one, other) for other in solid[i + 1 :] if _meet(model, one, other, apart)]
    for pair in found:
        for geom in pair.geoms:
            if model.body_mocapid[model.geom_bodyid[geom]] >= 0:
                name = model.geom(geom).name
                raise EngineError(f"geom {name!r} is a marker that can be touched", attempt="the engine mujoco")
    return tuple(found)


def _meet(model: Model, one: int, other: int, apart: set[tuple[int, int]]) -> bool:
    bodies = int(model.geom_bodyid[one]), int(model.geom_bodyid[other])
    welds = [int(model.body_weldid[b]) for b in bodies]
    if welds[0] == welds[1] or (bodies in apart) or (bodies[::-1] in apart):
        return False
    parents = [int(model.body_weldid[model.body_parentid[w]]) for w in welds]
    filters = not model.opt.disableflags & mj.mjtDisableBit.mjDSBL_FILTERPARENT
    if filters and 0 not in welds and (welds[0] == parents[1] or welds[1] == parents[0]):
        return False
    kinds = [int(model.geom_type[g]) for g in (one, other)]
    if all(kind in (0, 1) for kind in kinds):
        return False
    return bool(
        (model.geom_contype[one] & model.geom_conaffinity[other])
        or (model.geom_contype[other] & model.geom_conaffinity[one])
    )


def _pair(model: Model, one: int, other: int) -> Pair:
    first, second = int(model.geom_priority[one]), int(model.geom_priority[other])
    if first != second:
        chosen = one if first > second else other
        friction, reference = model.geom_friction[chosen], model.geom_solref[chosen]
        condim = int(model.geom_condim[chosen])
    else:
        friction = np.maximum(model.geom_friction[one], model.geom_friction[other])
        condim = max(int(model.geom_condim[one]), int(model.geom_condim[other]))
        reference = _mixed(model, one, other)
    stiffness, damping = _reference(model, reference)
    ratio = damping / (2.0 * np.sqrt(stiffness)) if stiffness > 0 else 1.0
    bounce = float(np.exp(-np.pi * ratio / np.sqrt(1.0 - ratio**2))) if ratio < 1.0 else 0.0
    return Pair(
        geoms=(one, other),
        friction=float(friction[0]) if condim > 1 else 0.0,
        torsion_m=float(friction[1]) if condim > 3 else 0.0,
        restitution=bounce,
        stiffness=stiffness,
        damping=damping,
        given=bool(reference[0] <= 0),
    )


def _mixed(model: Model, one: int, other: int) -> Array:
    """The mean of two contacts weighed by solmix; the smaller of each where one is given as stiffness and damping."""
    a, b = model.geom_solref[one], model.geom_solref[other]
    if a[0] <= 0 or b[0] <= 0:
        return np.minimum(a, b)
    weights = np.array([model.geom_solmix[one], model.geom_solmix[other]])
    share = weights[0] / weights.sum() if weights.sum() > 0 else 0.5
    return share * a + (1.0 - share) * b


def _reference(model: Model, solref: Array) -> tuple[float, float]:
    """Stiffness and damping of the reference acceleration, whichever way they are written."""
    if solref[0] <= 0:
        return float(-solref[0]), float(-solref[1])
    constant_s, ratio = max(float(solref[0]), 2 * float(model.opt.timestep)), float(solref[1])
    return 1.0 / (constant_s * ratio) ** 2, 2.0 / constant_s
