"""How long do questions about a whole pass take? 204,800 episodes, asked through the verified, sandboxed query."""

from __future__ import annotations

import argparse
import dataclasses
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

from simops.core.params import Params
from simops.core.signal import Schema, Signal
from simops.core.trajectory import Block, Provenance
from simops.data.header import Header
from simops.data.query import query
from simops.data.store import Dataset
from simops.data.writer import Writer

SCHEMA = Schema((Signal("state", (31,)), Signal("action", (8,)), Signal("executed", (8,)), Signal("reward")))
MADE = Provenance(engine="Made()", simulator="made", task="made", policy="0", seed=0)
PARAMS = ("friction", "mass", "light", *(f"p{i}" for i in range(7)))

DECILES = """
SELECT decile, count(*) AS episodes, avg(param_friction) AS friction, avg(reward) AS reward
FROM (SELECT reward, param_friction, ntile(10) OVER (ORDER BY param_friction) AS decile FROM episodes)
GROUP BY decile ORDER BY decile
"""
QUESTIONS = {
    "mean reward by friction decile": DECILES,
    "success rate by outcome": "SELECT outcome, count(*) FROM episodes GROUP BY outcome",
    "one episode by number": "SELECT * FROM steps WHERE episode = 123456 ORDER BY step",
    "largest of one joint over all steps": "SELECT max(abs(state_3)) FROM steps",
}


def block(first: int, count: int, steps: int) -> Block:
    chance = np.random.default_rng(first)
    time_s = np.arange(steps + 1, dtype=np.float32)[None, :, None] * 0.05
    slow, phase = chance.uniform(0.5, 4, (2, count, 1, SCHEMA.size)).astype(np.float32)
    rows = np.sin(slow * time_s + phase)
    for name in ("action", "executed", "reward"):
        rows[:, -1, SCHEMA.slices[name]] = np.nan
    friction = chance.uniform(0.2, 1.1, (count, len(PARAMS)))
    return Block(
        schema=SCHEMA,
        rows=rows.reshape(-1, SCHEMA.size),
        episodes=np.arange(first, first + count),
        seeds=chance.integers(0, 2**63, count).astype(np.uint64),
        lengths=np.full(count, steps),
        outcomes=chance.integers(0, 3, count).astype(np.int8),
        params=Params(PARAMS, friction),
        scores={"reward": friction[:, 0] + chance.normal(0, 1, count)},
        provenance=MADE,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=204_800)
    parser.add_argument("--steps", type=int, default=70)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--data", type=Path, help="ask an existing dataset instead")
    args = parser.parse_args()
    folder: Path = args.data or Path(tempfile.mkdtemp()) / "set"
    try:
        if not args.data:
            header = Header(
                schema=SCHEMA, provenance=MADE, control_dt_s=0.05, params=dict.fromkeys(PARAMS, ""), terms=("reward",)
            )
            same = block(0, args.batch, args.steps)  # one batch of motion, told apart by what is asked about
            with Writer.create(folder, header) as writer:
                for first in range(0, args.episodes, args.batch):
                    thin = block(first, args.batch, 1)
                    writer.append(
                        dataclasses.replace(
                            same, episodes=thin.episodes, seeds=thin.seeds, params=thin.params, scores=thin.scores
                        )
                    )
        dataset = Dataset.open(folder)
        rows = sum(one.rows for one in dataset.shards)
        print(f"{len(dataset):,} episodes, {rows:,} steps, {len(dataset.shards)} shards, {dataset.bytes / 1e6:,.0f} MB")
        for what, sql in QUESTIONS.items():
            for verify in (True, False):
                times: list[float] = []
                for _ in range(3):
                    began = time.perf_counter()
                    query(folder, sql, verify=verify)
                    times.append(time.perf_counter() - began)
                how = "verified" if verify else "unverified"
                print(f"{what:<40} {how:<11} {min(times):6.3f} s best, {max(times):6.3f} s worst of 3")
    finally:
        if not args.data:
            shutil.rmtree(folder.parent)


if __name__ == "__main__":
    main()
