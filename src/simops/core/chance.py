"""Every random number is a pure function of a seed, a purpose and a step.

Nothing is drawn from a stream, so a row's numbers do not depend on which rows stand beside it,
in which order, or on how many numbers were drawn before. The generator is SplitMix64, counter
based: `mix(key + counter * golden ratio)`.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np

from simops.core.signal import Array

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_STEP = np.uint64(0xD1B54A32D192ED03)


def seeds(root: int, episodes: Array, *, realm: str = "train") -> Array:
    """One seed an episode; different realms ("train", "gate") never share one by construction."""
    key = _mix(np.uint64(root & 0xFFFFFFFFFFFFFFFF) ^ _purpose(f"realm/{realm}"))
    with np.errstate(over="ignore"):
        return _mix(key + (episodes.astype(np.uint64) + np.uint64(1)) * _GOLDEN)


def uniform(seed: Array, purpose: str, shape: tuple[int, ...] = (), *, step: Array | int = 0) -> Array:
    """Numbers in [0, 1), (n, *shape), for n seeds."""
    bits = _bits(seed, purpose, int(np.prod(shape, dtype=int)), step)
    return ((bits >> np.uint64(11)) * 2.0**-53).reshape(len(seed), *shape)


def normal(seed: Array, purpose: str, shape: tuple[int, ...] = (), *, step: Array | int = 0) -> Array:
    """Standard normal numbers, (n, *shape), for n seeds."""
    count = int(np.prod(shape, dtype=int))
    half = (count + 1) // 2
    bits = (_bits(seed, purpose, 2 * half, step) >> np.uint64(11)) * 2.0**-53
    radius = np.sqrt(-2.0 * np.log1p(-bits[:, :half]))
    angle = 2.0 * np.pi * bits[:, half:]
    both = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return both[:, :count].reshape(len(seed), *shape)


def between(seed: Array, purpose: str, low: Array | float, high: Array | float) -> Array:
    """Uniform numbers in [low, high), one a seed and an element of the bounds."""
    low_, high_ = np.broadcast_arrays(np.asarray(low, float), np.asarray(high, float))
    return low_ + (high_ - low_) * uniform(seed, purpose, low_.shape)


def _bits(seed: Array, purpose: str, count: int, step: Array | int) -> Array:
    with np.errstate(over="ignore"):
        key = _mix(seed.astype(np.uint64) ^ _purpose(purpose))
        key = _mix(key + np.asarray(step).astype(np.uint64) * _STEP)
        return _mix(key[:, None] + np.arange(1, count + 1, dtype=np.uint64) * _GOLDEN)


@lru_cache(maxsize=1024)
def _purpose(name: str) -> np.uint64:
    return np.uint64(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little"))


def _mix(value: Array | np.uint64) -> Array:
    z = np.asarray(value, np.uint64)
    with np.errstate(over="ignore"):
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
