"""From what a perfect camera would see to what a camera hands on: shutter, lens, light, pixels, depth.

Light is added up where it is linear; every random number is a function of the episode's seed and the picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from simops.core.chance import normal, uniform
from simops.core.signal import Array
from simops.spec.optics import Optics

GAMMA = 2.2
"""Between a pixel's value and its light."""
JUMP = 0.05
"""Change of depth between neighbours, as a share of it, that is an edge."""


class Eye(NamedTuple):
    """What the geometry of a picture follows from."""

    width: int
    height: int
    focal_px: float


def moments(optics: Optics) -> Array:
    """When a picture looks, in seconds before the instant that it stands for."""
    span_s = optics.exposure_s + optics.rolling_s
    count = optics.looks if span_s > 0 else 1
    return optics.latency_s + np.linspace(span_s, 0.0, count)


def gathered(looks: Sequence[Array], optics: Optics) -> Array:
    """Light of each row, from the looks that fall into its exposure; (h, w, 3) from 0 to 1."""
    if len(looks) == 1:
        return linear(looks[0])
    height, count = looks[0].shape[0], len(looks)
    span_s = optics.exposure_s + optics.rolling_s
    at_s = np.linspace(0.0, span_s, count)
    opens_s: Array = np.linspace(0.0, optics.rolling_s, height)
    inside = np.minimum(at_s[None] + 0.5 * span_s / (count - 1), opens_s[:, None] + optics.exposure_s)
    inside = inside - np.maximum(at_s[None] - 0.5 * span_s / (count - 1), opens_s[:, None])
    weights = np.maximum(inside, 0.0)
    nearest = np.abs(at_s[None] - (opens_s + 0.5 * optics.exposure_s)[:, None]).argmin(axis=1)
    empty = weights.sum(axis=1) <= 1e-9
    weights[empty, nearest[empty]] = 1.0
    weights /= weights.sum(axis=1, keepdims=True)
    light = np.zeros(looks[0].shape)
    for i, look in enumerate(looks):
        light += weights[:, i, None, None] * linear(look)
    return light


def developed(light: Array, optics: Optics, eye: Eye, seed: Array, number: int) -> Array:
    """Light to pixels: lens, vignette, gain, the noise of light and of reading, 8 bits."""
    seen = bent(light, optics, eye)
    if optics.vignette:
        x, y = _middle(eye)
        far = (x**2 + y**2) / float((x**2 + y**2).max())
        seen = seen * (1.0 - optics.vignette * far)[..., None]
    seen = np.clip(seen * optics.gain, 0.0, 1.0)
    variance = np.full(seen.shape, optics.read_noise**2)
    if optics.full_well:
        variance = variance + seen / optics.full_well
    if optics.full_well or optics.read_noise:
        noise = normal(seed, "optics/light", seen.shape, step=number)[0]
        seen = np.clip(seen + np.sqrt(variance) * noise, 0.0, 1.0)
    return np.rint(255.0 * seen ** (1.0 / GAMMA)).astype(np.uint8)


def measured(depth_m: Array, optics: Optics, eye: Eye, seed: Array, number: int) -> Array:
    """Depth as a depth camera tells it; infinite where it sees nothing."""
    seen = bent(depth_m[..., None], optics, eye, blend=False)[..., 0].astype(np.float64)
    known = np.isfinite(seen) & (seen > 0)
    if optics.depth_noise:
        seen = seen + optics.depth_noise * seen**2 * normal(seed, "optics/depth", seen.shape, step=number)[0]
    if optics.depth_baseline_m and optics.depth_step_px:
        with np.errstate(divide="ignore", invalid="ignore"):
            disparity = eye.focal_px * optics.depth_baseline_m / seen
            steps = np.rint(disparity / optics.depth_step_px) * optics.depth_step_px
            seen = np.where(known, eye.focal_px * optics.depth_baseline_m / steps, np.inf)
    lost = ~known | ~(seen > optics.depth_near_m)
    if optics.depth_far_m:
        lost |= seen > optics.depth_far_m
    if optics.depth_dropout:
        lost |= uniform(seed, "optics/dropout", seen.shape, step=number)[0] < optics.depth_dropout
    if optics.depth_edge:
        lost |= edges(depth_m) & (uniform(seed, "optics/edge", seen.shape, step=number)[0] < optics.depth_edge)
    return np.where(lost, np.inf, seen).astype(np.float32)


def bent(pixels: Array, optics: Optics, eye: Eye, *, blend: bool = True) -> Array:
    """Through the lens: each pixel shows what its ray sees, bent by Brown and Conrady's law; black beyond the edge."""
    if not (optics.k1 or optics.k2 or optics.p1 or optics.p2):
        return pixels
    wanted_x, wanted_y = _middle(eye)
    x, y = wanted_x, wanted_y
    for _ in range(12):  # the law gives where a ray lands; asked is which ray lands here
        square = x * x + y * y
        radial = 1.0 + optics.k1 * square + optics.k2 * square**2
        x = (wanted_x - 2 * optics.p1 * x * y - optics.p2 * (square + 2 * x * x)) / radial
        y = (wanted_y - optics.p1 * (square + 2 * y * y) - 2 * optics.p2 * x * y) / radial
    column, row = x * eye.focal_px + 0.5 * (eye.width - 1), y * eye.focal_px + 0.5 * (eye.height - 1)
    return _blended(pixels, row, column) if blend else _picked(pixels, row, column)


def edges(depth_m: Array) -> Array:
    """Pixels beside a jump of depth."""
    near = np.where(np.isfinite(depth_m), depth_m, 1e6).astype(np.float64)
    found = np.zeros(depth_m.shape, bool)
    for axis in (0, 1):
        step = np.abs(np.diff(near, axis=axis)) > JUMP * np.minimum(*_sides(near, axis))
        first, second = [slice(None)] * 2, [slice(None)] * 2
        first[axis], second[axis] = slice(None, -1), slice(1, None)
        found[tuple(first)] |= step
        found[tuple(second)] |= step
    return found


def linear(pixels: Array) -> Array:
    """8 bits to light."""
    return (pixels.astype(np.float64) / 255.0) ** GAMMA


def _sides(rows: Array, axis: int) -> tuple[Array, Array]:
    return (rows[:-1], rows[1:]) if axis == 0 else (rows[:, :-1], rows[:, 1:])


def _middle(eye: Eye) -> tuple[Array, Array]:
    """Each pixel's distance from the middle, in focal lengths."""
    x = (np.arange(eye.width) - 0.5 * (eye.width - 1)) / eye.focal_px
    y = (np.arange(eye.height) - 0.5 * (eye.height - 1)) / eye.focal_px
    return np.broadcast_arrays(x[None], y[:, None])[0].copy(), np.broadcast_arrays(x[None], y[:, None])[1].copy()


def _blended(pixels: Array, row: Array, column: Array) -> Array:
    top, left = np.floor(row).astype(int), np.floor(column).astype(int)
    down, right = (row - top)[..., None], (column - left)[..., None]
    found = np.zeros(pixels.shape)
    for i, share_i in ((0, 1 - down), (1, down)):
        for j, share_j in ((0, 1 - right), (1, right)):
            found += share_i * share_j * _taken(pixels, top + i, left + j, 0.0)
    return found


def _picked(pixels: Array, row: Array, column: Array) -> Array:
    return _taken(pixels, np.rint(row).astype(int), np.rint(column).astype(int), np.inf)


def _taken(pixels: Array, row: Array, column: Array, beyond: float) -> Array:
    height, width = pixels.shape[:2]
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
    found = pixels[np.clip(row, 0, height - 1), np.clip(column, 0, width - 1)].astype(np.float64)
    return np.where(inside[..., None], found, beyond)
