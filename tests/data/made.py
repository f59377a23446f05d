"""Blocks of a made-up task, of any size, in no time."""

from __future__ import annotations

import numpy as np

from simops.core.params import Params
from simops.core.signal import Schema, Signal
from simops.core.trajectory import Block, Provenance
from simops.data.header import Header

MADE = Provenance(engine="Made()", simulator="made 1", task="sway", policy="0" * 8, seed=0)


def made_schema(wide: int = 0) -> Schema:
    """A small recorded schema; `wide` makes the state that much wider."""
    extra = (Signal("wide", (wide,), "m"),) if wide else ()
    return Schema(
        (
            Signal("angle", (), "rad"),
            Signal("gyro", (3,), "rad/s", "imu"),
            *extra,
            Signal("shown_angle", (), "rad"),
            Signal("action", (2,), "N m", labels=("hip", "knee")),
            Signal("executed", (2,), "N m", labels=("hip", "knee")),
            Signal("reward"),
        )
    )


def made_block(count: int, *, steps: int = 5, first: int = 0, wide: int = 0, seed: int = 0) -> Block:
    """`count` episodes of `steps` steps, smooth in time, each episode the same whoever asks for it."""
    schema = made_schema(wide)
    episodes = np.arange(first, first + count, dtype=np.int64)
    phase = (episodes[:, None, None] * 0.731 + seed) + np.arange(steps + 1)[None, :, None] * 0.05
    noise = np.random.default_rng([seed, first]).normal(0, 0.01, (count, steps + 1, schema.size))
    rows = (np.sin(phase * (1 + np.arange(schema.size) * 0.1)) + noise).astype(np.float32)
    for name in ("action", "executed", "reward", "shown_angle"):
        rows[:, -1, schema.slices[name]] = np.nan
    friction = 0.2 + 0.9 * ((episodes * 0.618) % 1)
    reward = np.nansum(rows[:, :, schema.slices["reward"]].astype(float), axis=(1, 2))
    return Block(
        schema=schema,
        rows=rows.reshape(-1, schema.size),
        episodes=episodes,
        seeds=(episodes.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15),
        lengths=np.full(count, steps, np.int64),
        outcomes=(episodes % 3).astype(np.int8),
        params=Params(("friction", "mass"), np.stack([friction, 1 + friction], 1)),
        scores={"reward": reward, "upright": reward / 2},
        provenance=MADE,
    )


def header_of(block: Block) -> Header:
    """The header of a dataset that holds `block`."""
    return Header(
        schema=block.schema,
        provenance=block.provenance,
        control_dt_s=0.02,
        params=dict.fromkeys(block.params.names, "1"),
        terms=tuple(block.scores),
    )
