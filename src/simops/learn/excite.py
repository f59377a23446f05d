"""The next excitation: of many motions that stay within what the robot has done before, the one that would tell most.

A candidate motion is simulated at the centre of the belief and beside it, param by param. What it would tell is the
logarithm of how much smaller the posterior would be; motions that leave the recorded ranges are not considered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from simops.core import chance, marginal
from simops.core.belief import Belief
from simops.core.errors import DataError
from simops.core.learning import Proposal
from simops.core.params import Params
from simops.core.rig import POSITION, VELOCITY, Rig
from simops.core.signal import Array
from simops.learn.replay import Replay, Stretches, Track

TRIED = 24
TONES = 5
MARGIN = 1.0
"""Share of the recorded range of positions and velocities that a proposal may use."""
LADDER = (1.0, 0.7, 0.5, 0.3, 0.15)
"""Shares of the recorded command, tried from the strongest; a motion that leaves the ranges is tried weaker."""
STEP = 0.25
"""Width of a difference, in spreads of a param."""


class Ranges(NamedTuple):
    """What the robot has done before."""

    command_low: Array
    command_high: Array
    position_low: Array
    position_high: Array
    speed: Array


def propose(
    replay: Replay, rig: Rig, belief: Belief, tracks: Sequence[Track], noise: Array, *, seconds: float, seed: int
) -> Proposal:
    """The motion of `seconds` that would tell most; `noise` is what stays unexplained, column by column."""
    ranges, steps = _ranges(tracks), max(8, round(seconds / rig.dt_s))
    found = marginal.moments(belief)
    params = [i for i, p in enumerate(belief.params) if found.spread[i] > 0 and not p.integer]
    names = tuple(p.name for p in belief.params)
    best: tuple[float, Array, Array] | None = None
    shapes = waves(TRIED, steps, len(rig.joints), rig.dt_s, seed)
    safe: list[Array] = []
    for shape in shapes:
        safe += _safe(replay, tracks, shape, ranges, Params(names, found.mean[None]))
    for command in safe:
        told = _told(replay, tracks, command, names, found, params, noise)
        after = np.linalg.inv(np.eye(len(params)) + told)
        gain = -0.5 * float(np.linalg.slogdet(after).logabsdet)
        if best is None or gain > best[0]:
            best = (gain, command, np.sqrt(np.diag(after)))
    if best is None:
        what = "no motion that was tried stays within what the robot has done before"
        raise DataError(
            what, where=rig.name, attempt="recordings of larger motions, or a shorter proposal", fault="LRN-004"
        )
    gain, command, left = best
    spreads = {names[i]: (float(found.spread[i]), float(found.spread[i] * left[k])) for k, i in enumerate(params)}
    return Proposal(
        names=rig.joints, time_s=np.arange(steps) * rig.dt_s, command=command, gain_nats=gain, spreads=spreads
    )


def waves(count: int, steps: int, joints: int, dt_s: float, seed: int) -> Array:
    """(count, steps, joints) sums of a few tones between -1 and 1 that begin and end at rest."""
    seeds = chance.seeds(seed, np.arange(count), realm="excite")
    time_s = np.arange(steps) * dt_s
    low, high = np.log(1.0 / time_s[-1]), np.log(min(8.0, 0.1 / dt_s))
    hz = np.exp(low + (high - low) * chance.uniform(seeds, "hz", (joints, TONES)))
    phase = 2 * np.pi * chance.uniform(seeds, "phase", (joints, TONES))
    angle = 2 * np.pi * hz[:, None] * time_s[None, :, None, None] + phase[:, None]
    total: Array = np.sin(angle).sum(axis=3)
    total = total / np.maximum(np.abs(total).max(axis=1, keepdims=True), 1e-9)
    fade = np.minimum(1.0, np.minimum(time_s, time_s[::-1]) / (0.1 * time_s[-1]))
    return total * fade[None, :, None]


def _ranges(tracks: Sequence[Track]) -> Ranges:
    command = np.concatenate([one.command for one in tracks])
    position = np.concatenate([one.columns[POSITION] for one in tracks])
    speed = np.concatenate([np.abs(one.columns[VELOCITY]) for one in tracks])
    return Ranges(
        command.min(axis=0), command.max(axis=0), np.nanmin(position, axis=0), np.nanmax(position, axis=0),
        np.nanmax(speed, axis=0),
    )  # fmt: skip


def _stretch(tracks: Sequence[Track], command: Array) -> Stretches:
    start = tracks[0].columns[POSITION][:1]
    begins = {POSITION: start, VELOCITY: np.zeros_like(start), "command": command[:1]}
    nothing = np.zeros((1, len(command), 2 * start.shape[1]))
    return Stretches((POSITION, VELOCITY), begins, command[None], nothing, np.zeros(1, int), np.zeros(1, int))


def _safe(replay: Replay, tracks: Sequence[Track], shape: Array, ranges: Ranges, centre: Params) -> list[Array]:
    middle = (ranges.command_high + ranges.command_low) / 2
    reach = (ranges.command_high - ranges.command_low) / 2
    joints = len(reach)
    width = ranges.position_high - ranges.position_low
    for share in LADDER:
        command = middle + share * reach * shape
        state = replay(_stretch(tracks, command), centre)[0, 0]
        position, speed = state[:, :joints], np.abs(state[:, joints:])
        low, high = ranges.position_low - 1e-3 * width, ranges.position_high + 1e-3 * width
        inside = np.all((position >= low) & (position <= high)) and np.all(speed <= MARGIN * ranges.speed)
        if inside and np.isfinite(state).all():
            return [command]
    return []


def _told(
    replay: Replay,
    tracks: Sequence[Track],
    command: Array,
    names: tuple[str, ...],
    found: marginal.Moments,
    params: list[int],
    noise: Array,
) -> Array:
    """The information in units of the spreads of the params."""
    rows = np.repeat(found.mean[None], 1 + len(params), axis=0)
    for k, i in enumerate(params):
        rows[1 + k, i] += STEP * found.spread[i]
    states = replay(_stretch(tracks, command), Params(names, rows))[:, 0]
    slopes = np.nan_to_num((states[1:] - states[:1]) / STEP / np.maximum(noise, 1e-12)).reshape(len(params), -1)
    together = max(1.0, 0.1 * len(command))  # rows that follow each other tell the same thing
    return slopes @ slopes.T / together
