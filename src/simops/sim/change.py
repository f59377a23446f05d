"""How params change a MuJoCo model: every field, one model or one for each copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias, final

import numpy as np

from simops.core.errors import SceneError, nearest
from simops.core.params import Change, Param, Params
from simops.core.signal import Array
from simops.sim.binding import CONSTANTS_FOLLOW, Index, Model, mj

Expand: TypeAlias = Callable[[str], Array]
"""Name of a model field to its writable values, (copies, ...)."""

_CONTACT = frozenset({"contact_stiffness", "contact_damping"})
VISUAL = frozenset({"texture", "light", "camera_pan", "camera_tilt", "camera_roll"})
"""Fields that only pictures show."""


@final
@dataclass(frozen=True)
class _Part:
    """Some elements of one model field, and what a value of 1 means there."""

    field: str
    index: tuple[Index, ...]
    sign: float = 1.0


@final
@dataclass(frozen=True)
class Changes:
    """What the params of a belief do to one model."""

    model: Model
    params: tuple[Param, ...]

    def __post_init__(self) -> None:
        _ = self._plan  # raises for what the scene lacks

    @cached_property
    def fields(self) -> frozenset[str]:
        """The model fields that are written."""
        return frozenset(part.field for _, _, parts in self._plan for part in parts)

    @cached_property
    def constants(self) -> bool:
        """Whether derived constants of the model have to follow."""
        return bool(self.fields & CONSTANTS_FOLLOW) or any(f.startswith("opt.") for f in self.fields)

    @property
    def longest_delay_s(self) -> float:
        """The largest delay any point may ask for; 0 when none asks. Raises where a param has no bound."""
        delays = {p.name: p.high for p, change in self._physical() if change.field == "delay"}
        for name, high in delays.items():
            if not np.isfinite(high):
                raise SceneError(f"{name} may be any delay", where=name, attempt="an upper bound, as high=0.1")
        return max(delays.values(), default=0.0)

    def write(self, expand: Expand, ids: Array, points: Params) -> None:
        """Set copies `ids` to the model's own values, then to the points."""
        for field, rows in self._begun.items():
            expand(field)[ids] = rows
        for param, change, parts in self._plan:
            if param.name in points:
                self._apply(expand, ids, change, parts, points[param.name])

    @cached_property
    def _plan(self) -> tuple[tuple[Param, Change, list[_Part]], ...]:
        """What each change writes, looked up once: copies begin anew all the time."""
        return tuple((param, change, _parts(self.model, change)) for param, change in self._physical())

    @cached_property
    def _begun(self) -> dict[str, Array]:
        """What every copy has before its own numbers: the model's values, stiffness and damping written as such."""
        rows = {field: nominal(self.model, field).copy() for field in sorted(self.fields)}
        for _, change, parts in self._plan:
            for part in parts if change.field in _CONTACT else ():
                geom = part.index[0]
                rows["geom_solref"][geom] = _stiffness_and_damping(self.model, rows["geom_solref"][geom])
        return rows

    def _apply(self, expand: Expand, ids: Array, change: Change, parts: list[_Part], values: Array) -> None:
        if change.field == "mass":
            _mass(parts[0].index[0], expand, ids, change, values)
            return
        for part in parts:
            rows = expand(part.field)
            index = (ids, *part.index)
            tall = values.reshape(-1, *([1] * (rows[index].ndim - 1)))
            rows[index] = _changed(rows[index], part.sign, change.how, tall)

    def _physical(self) -> Iterator[tuple[Param, Change]]:
        for param in self.params:
            for change in param.changes:
                if change.field not in VISUAL:
                    yield param, change


def nominal(model: Model, field: str) -> Array:
    """The model's own values of a field."""
    source = model.opt if field.startswith("opt.") else model
    return np.asarray(getattr(source, field.removeprefix("opt.")))


def _stiffness_and_damping(model: Model, solref: Array) -> Array:
    """The same contact with its time constant and damping ratio written as -stiffness and -damping."""
    constant_s, ratio = solref
    if constant_s <= 0:
        return solref
    if not model.opt.disableflags & mj.mjtDisableBit.mjDSBL_REFSAFE:
        constant_s = max(constant_s, 2 * model.opt.timestep)
    return np.array([-1.0 / (constant_s * ratio) ** 2, -2.0 / constant_s])


def ids_of(model: Model, kind: str, names: tuple[str, ...]) -> list[int]:
    """Ids of the objects of a kind by name, all of them when no name is given."""
    count = {"body": model.nbody, "geom": model.ngeom, "joint": model.njnt, "actuator": model.nu}[kind]
    every = {getattr(model, kind)(i).name: i for i in range(count)}
    if not names:
        return list(range(1 if kind == "body" else 0, count))
    for name in names:
        if name not in every:
            raise SceneError(f"the scene has no {kind} {name!r}", attempt=nearest(name, every))
    return [every[name] for name in names]


def _changed(before: Array, sign: float, how: str, values: Array) -> Array:
    if how == "set":
        return np.broadcast_to(sign * values, before.shape)
    return before * values if how == "scale" else before + sign * values


def _mass(bodies: list[int], expand: Expand, ids: Array, change: Change, values: Array) -> None:
    """Change masses; inertias follow in proportion, as for more or less of the same stuff."""
    mass, inertia = expand("body_mass"), expand("body_inertia")
    for body in bodies:
        before = mass[ids, body]
        after = _changed(before, 1.0, change.how, values)
        inertia[ids, body] *= np.divide(after, before, out=np.ones_like(after), where=before > 0)[:, None]
        mass[ids, body] = after


def _parts(model: Model, change: Change) -> list[_Part]:
    """Where a change is written."""
    field = change.field
    if field == "gravity":
        return [_Part("opt.gravity", (2,), -1.0)]
    if field == "mass":
        bodies = ids_of(model, "body", change.of)
        return [_Part("body_mass", (bodies,)), _Part("body_inertia", (bodies,))]
    if field in {"com_x", "com_y", "com_z"}:
        return [_Part("body_ipos", (b, "xyz".index(field[-1]))) for b in ids_of(model, "body", change.of)]
    if field in {"friction", "contact_stiffness", "contact_damping"}:
        name, column, sign = {
            "friction": ("geom_friction", 0, 1.0),
            "contact_stiffness": ("geom_solref", 0, -1.0),
            "contact_damping": ("geom_solref", 1, -1.0),
        }[field]
        return [_Part(name, (g, column), sign) for g in ids_of(model, "geom", change.of)]
    if field in {"damping", "armature", "frictionloss"}:
        dofs = [d for j in ids_of(model, "joint", change.of) for d in dofs_of(model, j)]
        return [_Part(f"dof_{field}", (d,)) for d in dofs]
    return [part for a in ids_of(model, "actuator", change.of) for part in _actuator(model, field, a)]


def _actuator(model: Model, field: str, actuator: int) -> list[_Part]:
    if field in {"kp", "kd"} and model.actuator_biastype[actuator] != mj.mjtBias.mjBIAS_AFFINE:
        raise SceneError(
            f"actuator {model.actuator(actuator).name!r} is no position servo, it has no {field}",
            attempt=f"a belief without {field}, if a motor takes the servo's place",
        )
    if field == "strength" and not model.actuator_forcelimited[actuator]:
        raise SceneError(f"actuator {model.actuator(actuator).name!r} has no effort limit", attempt="a forcerange")
    if field == "kp":
        return [_Part("actuator_gainprm", (actuator, 0)), _Part("actuator_biasprm", (actuator, 1), -1.0)]
    if field == "kd":
        return [_Part("actuator_biasprm", (actuator, 2), -1.0)]
    if field == "strength":
        return [_Part("actuator_forcerange", (actuator, 0), -1.0), _Part("actuator_forcerange", (actuator, 1))]
    if field == "delay":
        return [_Part("actuator_delay", (actuator,))]
    raise SceneError(f"MuJoCo has nothing called {field!r} to change")


def dofs_of(model: Model, joint: int) -> range:
    """Degrees of freedom of a joint."""
    width = {0: 6, 1: 3, 2: 1, 3: 1}[int(model.jnt_type[joint])]
    return range(int(model.jnt_dofadr[joint]), int(model.jnt_dofadr[joint]) + width)
