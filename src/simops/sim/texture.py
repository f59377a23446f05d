"""A pool of procedural textures: which one is a pure function of its number, and no files are needed.

Every texture repeats without a seam, so a material may tile it.
"""

from __future__ import annotations

import colorsys
import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from simops.core import chance
from simops.core.signal import Array

Blend: TypeAlias = Callable[[Array, int], Array]
"""(seed, side) to how much of the second colour each pixel takes, (side, side) in [0, 1]."""


def texture(number: int, *, side: int = 256) -> Array:
    """Draw texture `number` of the pool, (side, side, 3) uint8."""
    seed = chance.seeds(number, np.zeros(1, np.int64), realm="texture")
    kinds = (_noise, _checker, _gradient, _wood, _stripes, _speckle)
    kind = kinds[number % len(kinds)]
    blend = kind(seed, side)[..., None]
    first, second = _colours(seed, browns=kind is _wood)
    grain = 0.03 * (_cloud(seed, "grain", side, 64) - 0.5)[..., None]
    mixed = first * (1.0 - blend) + second * blend + grain
    return np.rint(255.0 * np.clip(mixed, 0.0, 1.0)).astype(np.uint8)


def _colours(seed: Array, *, browns: bool) -> tuple[Array, Array]:
    """Two colours that can be told apart: another brightness, and often another hue."""
    hue, turn, grey, other_grey, bright, step = chance.uniform(seed, "colours", (6,))[0].tolist()
    if browns:
        hue, turn, grey, other_grey = 0.045 + 0.07 * hue, 0.45 + 0.1 * turn, 0.4 + 0.6 * grey, 0.4 + 0.6 * other_grey
    light = 0.35 + 0.5 * bright
    other = light + (0.18 + 0.2 * step) * (1.0 if light < 0.6 else -1.0)
    first = colorsys.hsv_to_rgb(hue, 0.08 + 0.62 * grey, light)
    second = colorsys.hsv_to_rgb((hue + 0.4 * (turn - 0.5)) % 1.0, 0.08 + 0.62 * other_grey, other)
    return np.array(first), np.array(second)


def _noise(seed: Array, side: int) -> Array:
    octaves = [(4, 0.5), (8, 0.25), (16, 0.15), (32, 0.1)]
    return sum(
        (share * _cloud(seed, f"noise/{cells}", side, cells) for cells, share in octaves), np.zeros((side, side))
    )


def _checker(seed: Array, side: int) -> Array:
    cells = 2 * _whole(seed, "checker", 2, 8)
    across, down = _plane(side)
    return (np.floor(across * cells) + np.floor(down * cells)) % 2.0


def _gradient(seed: Array, side: int) -> Array:
    across, down = _plane(side)
    wave = _whole(seed, "gradient/across", 0, 2) * across + _whole(seed, "gradient/down", 1, 2) * down
    return 0.5 - 0.5 * np.cos(2.0 * math.pi * wave)


def _wood(seed: Array, side: int) -> Array:
    """Long bands bent by slow noise, and fine fibres along them."""
    across, _ = _plane(side)
    bent = across * _whole(seed, "wood/rings", 5, 12) + 1.6 * _cloud(seed, "wood/bend", side, 2, down_cells=2)
    bands = np.abs(2.0 * (bent % 1.0) - 1.0)
    fibres = _cloud(seed, "wood/fibres", side, 128, down_cells=4)
    return np.clip(0.75 * bands + 0.35 * fibres - 0.05, 0.0, 1.0)


def _stripes(seed: Array, side: int) -> Array:
    across, down = _plane(side)
    turned = _whole(seed, "stripes/across", 2, 10) * across + _whole(seed, "stripes/down", 0, 6) * down
    share = 0.3 + 0.4 * float(chance.uniform(seed, "stripes/share")[0])
    return ((turned % 1.0) < share).astype(float)


def _speckle(seed: Array, side: int) -> Array:
    fine = _cloud(seed, "speckle/fine", side, 64)
    coarse = _cloud(seed, "speckle/coarse", side, 24)
    level = 0.72 + 0.14 * float(chance.uniform(seed, "speckle/level")[0])
    return np.clip((np.maximum(fine, coarse) - level) * 12.0, 0.0, 1.0)


def _plane(side: int) -> tuple[Array, Array]:
    """Where each pixel lies, in [0, 1): across, and down."""
    at = (np.arange(side) + 0.5) / side
    return np.broadcast_to(at, (side, side)), np.broadcast_to(at[:, None], (side, side))


def _whole(seed: Array, purpose: str, low: int, high: int) -> int:
    """A whole number from `low` to `high`, both included."""
    return low + int(chance.uniform(seed, purpose)[0] * (high - low + 1))


def _cloud(seed: Array, purpose: str, side: int, cells: int, *, down_cells: int = 0) -> Array:
    """Smooth noise in [0, 1]: random heights on a grid that wraps around, blended between."""
    rows = down_cells or cells
    grid = chance.uniform(seed, purpose, (rows, cells))[0]
    return _between(_between(grid, side).T, side).T


def _between(grid: Array, side: int) -> Array:
    """Stretch the second axis to `side`, smoothly, wrapping around."""
    count = grid.shape[1]
    at = (np.arange(side) + 0.5) * count / side
    left = np.floor(at).astype(int)
    part = at - left
    ease = part * part * (3.0 - 2.0 * part)
    return grid[:, left % count] * (1.0 - ease) + grid[:, (left + 1) % count] * ease
