"""What is thought of the world's numbers: a joint distribution over params.

Randomization samples it, identification updates it, a scenario is a point in it, coverage is
measured over it. Draws are pure functions of an episode's seed and the param's name, so adding
a param changes no other's draws.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from typing import Any, Protocol, TypeAlias, cast, final

import numpy as np

from simops.core.chance import normal, uniform
from simops.core.errors import SignalError, nearest
from simops.core.params import Change, Param, Params
from simops.core.signal import Array

Row: TypeAlias = tuple[float, ...]


class Belief(Protocol):
    """A joint distribution over params."""

    @property
    def params(self) -> tuple[Param, ...]:
        """The params, in the order of every point drawn."""
        ...

    def sample(self, seeds: Array) -> Params:
        """Draw one point a seed."""
        ...

    def log_density(self, points: Params) -> Array:
        """Natural logarithm of the density at each point; minus infinity outside the support."""
        ...

    def inside(self, points: Params) -> Array:
        """Whether each point lies in the region this belief vouches for."""
        ...


@final
@dataclass(frozen=True)
class Box:
    """Independent uniform ranges; a range of no width is a constant."""

    params: tuple[Param, ...]
    low: Row
    high: Row

    def __post_init__(self) -> None:
        if not len(self.params) == len(self.low) == len(self.high):
            raise SignalError("a box wants one low and one high for each param")
        for param, low, high in zip(self.params, self.low, self.high, strict=True):
            if not param.low <= low <= high <= param.high:
                raise SignalError(
                    f"{param.name} in [{low}, {high}] is not a range inside [{param.low}, {param.high}]",
                    where=param.name,
                    fault="CFG-005",
                )

    def sample(self, seeds: Array) -> Params:
        """Draw one point a seed, each param from its own stream."""
        values = np.empty((len(seeds), len(self.params)))
        for i, (param, low, high) in enumerate(zip(self.params, self.low, self.high, strict=True)):
            values[:, i] = low + (high - low) * uniform(seeds, f"param/{param.name}")
            if param.integer and high > low:
                values[:, i] = np.minimum(np.floor(values[:, i]), high - 1)
        return Params(_names(self.params), values)

    def log_density(self, points: Params) -> Array:
        """Constant inside the box; constants and choices carry no density."""
        widths = [h - lo for lo, h in zip(self.low, self.high, strict=True) if h > lo]
        return np.where(self.inside(points), -sum(math.log(w) for w in widths), -np.inf)

    def inside(self, points: Params) -> Array:
        """Whether every param is in its range."""
        values = _aligned(self.params, points)
        return np.all((values >= np.array(self.low)) & (values <= np.array(self.high)), axis=1)


@final
@dataclass(frozen=True)
class Gaussian:
    """A joint normal distribution, clipped to what is physical."""

    params: tuple[Param, ...]
    mean: Row
    covariance: tuple[Row, ...]
    within: float = 3.0
    """Points up to this Mahalanobis distance from the mean are inside."""

    def sample(self, seeds: Array) -> Params:
        """Draw one point a seed; values beyond a param's physical bounds are brought back to them."""
        factor = np.linalg.cholesky(np.array(self.covariance, float))
        draws = np.stack([normal(seeds, f"param/{p.name}") for p in self.params], axis=1)
        values = np.tile(np.array(self.mean, float), (len(seeds), 1))
        for i in range(len(self.params)):  # summed term by term: same bytes for any number of seeds
            for j in range(i + 1):
                values[:, i] += factor[i, j] * draws[:, j]
        low, high = (np.array([getattr(p, side) for p in self.params]) for side in ("low", "high"))
        return Params(_names(self.params), np.clip(values, low, high))

    def log_density(self, points: Params) -> Array:
        """Density of the unclipped normal; minus infinity outside the physical bounds."""
        sign_det = np.linalg.slogdet(np.array(self.covariance, float))
        constant = -0.5 * (len(self.params) * math.log(2 * math.pi) + float(sign_det.logabsdet))
        return np.where(_physical(self.params, points), constant - 0.5 * self._distance(points) ** 2, -np.inf)

    def inside(self, points: Params) -> Array:
        """Whether a point is physical and near enough to the mean."""
        return _physical(self.params, points) & (self._distance(points) <= self.within)

    def _distance(self, points: Params) -> Array:
        off = _aligned(self.params, points) - np.array(self.mean)
        return np.sqrt(np.einsum("ni,ij,nj->n", off, np.linalg.inv(np.array(self.covariance, float)), off))


@final
@dataclass(frozen=True)
class Particles:
    """Weighted points, each blurred by a normal of the given spread: a posterior of any shape."""

    params: tuple[Param, ...]
    points: tuple[Row, ...]
    weights: Row = ()
    """One a point, of any sum; empty for equal weights."""
    spread: Row = ()
    """Standard deviation of the blur, one a param; empty for none when sampling."""
    within: float = 3.0
    """Points this many spreads from some particle are inside."""

    def sample(self, seeds: Array) -> Params:
        """Pick a particle by weight and blur it."""
        edges = np.cumsum(self._weights())
        purpose = "particle/" + "/".join(_names(self.params))  # two posteriors side by side pick on their own
        chosen = np.searchsorted(edges / edges[-1], uniform(seeds, purpose), side="right")
        values = np.array(self.points, float)[np.minimum(chosen, len(self.points) - 1)]
        if self.spread:
            draws = np.stack([normal(seeds, f"param/{p.name}") for p in self.params], axis=1)
            values = values + draws * np.array(self.spread)
        low, high = (np.array([getattr(p, side) for p in self.params]) for side in ("low", "high"))
        return Params(_names(self.params), np.clip(values, low, high))

    def log_density(self, points: Params) -> Array:
        """Density of the blurred mixture."""
        spread = self._blur()
        weights = np.log(self._weights() / self._weights().sum())
        constant = -np.log(spread * math.sqrt(2 * math.pi)).sum()
        each = weights + constant - 0.5 * self._squares(points).sum(axis=2)
        top = each.max(axis=1)
        return top + np.log(np.exp(each - top[:, None]).sum(axis=1))

    def inside(self, points: Params) -> Array:
        """Whether some particle lies within reach in every param."""
        return np.any(np.all(self._squares(points) <= self.within**2, axis=2), axis=1)

    def _weights(self) -> Array:
        return np.array(self.weights or (1.0,) * len(self.points), float)

    def _blur(self) -> Array:
        if self.spread:
            return np.array(self.spread, float)
        points = np.array(self.points, float)  # Scott's rule
        rule = len(points) ** (-1.0 / (points.shape[1] + 4))
        return np.maximum(points.std(axis=0) * rule, 1e-12)

    def _squares(self, points: Params) -> Array:
        off = _aligned(self.params, points)[:, None, :] - np.array(self.points, float)[None]
        return (off / self._blur()) ** 2


@final
@dataclass(frozen=True)
class Joint:
    """Independent beliefs side by side."""

    parts: tuple[Belief, ...]

    @property
    def params(self) -> tuple[Param, ...]:
        """The params of every part, in order."""
        return tuple(param for part in self.parts for param in part.params)

    def sample(self, seeds: Array) -> Params:
        """Draw each part."""
        values = [part.sample(seeds).values for part in self.parts]
        return Params(_names(self.params), np.concatenate(values, axis=1) if values else np.empty((len(seeds), 0)))

    def log_density(self, points: Params) -> Array:
        """Sum of the parts' log densities."""
        return sum((part.log_density(points) for part in self.parts), np.zeros(len(points)))

    def inside(self, points: Params) -> Array:
        """Whether a point is inside every part."""
        return np.logical_and.reduce([np.ones(len(points), bool), *(part.inside(points) for part in self.parts)])


_KINDS: dict[str, type[Box] | type[Gaussian] | type[Particles]] = {
    "box": Box,
    "gaussian": Gaussian,
    "particles": Particles,
}


def text(belief: Belief) -> str:
    """Write a belief as JSON that `parse` reads back to an equal one."""
    return json.dumps(_as_dict(belief), indent=1, allow_nan=False)


def parse(source: str) -> Belief:
    """Read what `text` wrote."""
    return _from_dict(cast("dict[str, Any]", json.loads(source)))


def _as_dict(belief: Belief) -> dict[str, Any]:
    if isinstance(belief, Joint):
        return {"kind": "joint", "parts": [_as_dict(part) for part in belief.parts]}
    for kind, cls in _KINDS.items():
        if isinstance(belief, cls):
            return {"kind": kind, **asdict(belief), "params": [_bounded(p) for p in belief.params]}
    raise SignalError(f"a {type(belief).__name__} has no text form", attempt="Box, Gaussian, Particles or Joint")


def _from_dict(entry: dict[str, Any]) -> Belief:
    kind = entry.pop("kind", "")
    if kind == "joint":
        return Joint(tuple(_from_dict(part) for part in entry["parts"]))
    if kind not in _KINDS:
        raise SignalError(f"no belief is called {kind!r}", attempt=nearest(kind, _KINDS))
    params = tuple(_param(p) for p in entry.pop("params"))
    return _KINDS[kind](params=params, **{key: _frozen(value) for key, value in entry.items()})


def _bounded(param: Param) -> dict[str, Any]:
    return {key: None if value in (math.inf, -math.inf) else value for key, value in asdict(param).items()}


def _param(entry: dict[str, Any]) -> Param:
    changes = tuple(Change(c["field"], tuple(c["of"]), c["how"]) for c in entry.pop("changes"))
    finite = {key: value for key, value in entry.items() if value is not None}
    return Param(**finite, changes=changes)


def _frozen(value: object) -> Any:  # noqa: ANN401 (fields of any belief)
    return tuple(_frozen(v) for v in cast("list[Any]", value)) if isinstance(value, list) else value


def _names(params: tuple[Param, ...]) -> tuple[str, ...]:
    return tuple(p.name for p in params)


def _aligned(params: tuple[Param, ...], points: Params) -> Array:
    return np.stack([points[p.name] for p in params], axis=1) if params else np.empty((len(points), 0))


def _physical(params: tuple[Param, ...], points: Params) -> Array:
    low, high = (np.array([getattr(p, side) for p in params]) for side in ("low", "high"))
    values = _aligned(params, points)
    return np.all((values >= low) & (values <= high), axis=1)
