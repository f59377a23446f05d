"""Runs to look at, made once for all workers: a crank of two turns and a dataset."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import numpy as np

from simops.core.params import Params
from simops.core.signal import Schema, Signal
from simops.core.trajectory import Block, Provenance
from simops.data.header import Header
from simops.data.writer import Writer
from simops.ops.crank_page import report
from tests.ops.cranked import cranked

SCHEMA = Schema((Signal("state", (2,)), Signal("action"), Signal("executed"), Signal("reward")))
MADE = Provenance(engine=f"Made({'x' * 120})", simulator="made", task="made <b>task</b>", policy="0", seed=0)
PARAMS = {"friction": "", "mass": "kg"}


def crank_in(base: Path) -> Path:
    """The folder of a crank, cranked by whoever comes first."""
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with (shared / "crank.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = shared / "cranked"
        if not (made / "out" / "report.html").is_file():
            report(cranked(made / "project", made / "out", turns=1))
        return made / "out"


def dataset(folder: Path, episodes: int = 600, steps: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Episodes that succeed the more often the more friction there is; gives friction and success."""
    chance = np.random.default_rng(0)
    params = np.column_stack([chance.uniform(0.2, 1.1, episodes), chance.uniform(1, 2, episodes)])
    good = chance.random(episodes) < params[:, 0]
    rows = chance.normal(size=(episodes, steps + 1, SCHEMA.size)).astype(np.float32)
    for name in ("action", "executed", "reward"):
        rows[:, -1, SCHEMA.slices[name]] = np.nan
    header = Header(schema=SCHEMA, provenance=MADE, control_dt_s=0.05, params=PARAMS, terms=("reward",))
    with Writer.create(folder, header) as writer:
        for some in np.array_split(np.arange(episodes), 3):
            writer.append(
                Block(
                    schema=SCHEMA,
                    rows=rows[some].reshape(-1, SCHEMA.size),
                    episodes=some,
                    seeds=some.astype(np.uint64),
                    lengths=np.full(len(some), steps),
                    outcomes=np.where(good[some], 0, 2).astype(np.int8),
                    params=Params(tuple(PARAMS), params[some]),
                    scores={"reward": params[some, 0]},
                    provenance=MADE,
                )
            )
    return params[:, 0], good
