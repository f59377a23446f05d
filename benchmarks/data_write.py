"""How fast are trajectories kept? 100 steps of 48 float32 an episode, durable and read back verified.

Beside it, in the same run: plain bytes with fsync, one Parquet file an episode, and our LeRobot export;
and LeRobot's own writer where `--lerobot PYTHON` names an interpreter that has lerobot.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from lerobot_load import SHIM, ask

from simops.core.params import Params
from simops.core.signal import Schema, Signal
from simops.core.trajectory import Block, Provenance
from simops.data import files, lerobot, parquet
from simops.data.header import Header
from simops.data.store import Dataset
from simops.data.writer import Writer

STEPS = 100
SCHEMA = Schema((Signal("state", (31,)), Signal("action", (8,)), Signal("executed", (8,)), Signal("reward")))
MADE = Provenance(engine="Made()", simulator="made", task="made", policy="0", seed=0)

LEROBOT = (
    SHIM
    + """
import time, shutil, tempfile, numpy as np
count, folder = int(sys.argv[1]), tempfile.mkdtemp()
names = {"observation.state": 31, "executed_action": 8, "action": 8, "next.reward": 1}
features = {k: {"dtype": "float32", "shape": (n,), "names": None} for k, n in names.items()}
made = LeRobotDataset.create("bench/bench", fps=50, features=features, root=folder + "/set", use_videos=False)
data = {k: np.random.default_rng(0).normal(size=(100, n)).astype(np.float32) for k, n in names.items()}
began = time.perf_counter()
for _ in range(count):
    for i in range(100):
        made.add_frame({k: v[i] for k, v in data.items()} | {"task": "bench"})
    made.save_episode()
print("RATE", count / (time.perf_counter() - began))
shutil.rmtree(folder)
"""
)


def block(first: int, count: int) -> Block:
    """Smooth closed-loop motion with a little noise, as a simulation makes it."""
    time_s = np.arange(STEPS + 1, dtype=np.float32)[None, :, None] * 0.02
    chance = np.random.default_rng(first)
    rate, phase = chance.uniform(0.5, 4, (2, count, 1, SCHEMA.size)).astype(np.float32)
    rows = np.sin(rate * time_s + phase) + chance.normal(0, 1e-3, (count, STEPS + 1, SCHEMA.size)).astype(np.float32)
    for name in ("action", "executed", "reward"):
        rows[:, -1, SCHEMA.slices[name]] = np.nan
    return Block(
        schema=SCHEMA,
        rows=rows.reshape(-1, SCHEMA.size),
        episodes=np.arange(first, first + count),
        seeds=np.arange(first, first + count, dtype=np.uint64),
        lengths=np.full(count, STEPS),
        outcomes=np.zeros(count, np.int8),
        params=Params(("friction", "mass"), chance.uniform(0.2, 1.1, (count, 2))),
        scores={"reward": chance.normal(0, 1, count)},
        provenance=MADE,
    )


def header() -> Header:
    return Header(
        schema=SCHEMA, provenance=MADE, control_dt_s=0.02, params={"friction": "", "mass": "kg"}, terms=("reward",)
    )


def rate(work: Callable[[], int]) -> float:
    """Episodes a second; `work` says how many it did."""
    began = time.perf_counter()
    return work() / (time.perf_counter() - began)


def native(folder: Path, blocks: list[Block]) -> int:
    with Writer.create(folder, header()) as writer:
        for one in blocks:
            writer.append(one)
    return sum(len(one) for one in blocks)


def plain(folder: Path, blocks: list[Block]) -> int:
    folder.mkdir()
    for i, one in enumerate(blocks):
        files.publish(folder / f"{i}.bin", one.rows.data.cast("B"))
    return sum(len(one) for one in blocks)


def one_each(folder: Path, one: Block, count: int) -> int:
    folder.mkdir()
    for i in range(count):
        columns = {name: part.reshape(len(part), -1) for name, part in one.trajectory(i).columns.items()}
        files.publish(folder / f"{i}.parquet", parquet.encode(columns))
    return count


def read_back(folder: Path) -> int:
    return sum(len(one) for one in Dataset.open(folder).blocks())


def of_lerobot(python: str, count: int) -> float:
    printed = ask(python, LEROBOT, str(count))
    found = [line.split()[1] for line in printed.splitlines() if line.startswith("RATE")]
    return float(found[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=16384)
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--lerobot", metavar="PYTHON", help="an interpreter that has lerobot")
    args = parser.parse_args()
    blocks = [block(first, args.batch) for first in range(0, args.episodes, args.batch)]
    raw = sum(one.rows.nbytes for one in blocks)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kept = rate(lambda: native(folder / "set", blocks))
        found = {
            "native: append, durable": kept,
            "native: read back, verified": rate(lambda: read_back(folder / "set")),
            "plain bytes + fsync, a batch a file": rate(lambda: plain(folder / "plain", blocks)),
            "Parquet + fsync, an episode a file": rate(lambda: one_each(folder / "each", blocks[0], 100)),
            "LeRobot v3 export of the native set": rate(
                lambda: lerobot.export(folder / "set", folder / "lerobot").episodes
            ),
        }
        if args.lerobot:
            found["lerobot's own writer"] = of_lerobot(args.lerobot, 30)
        stored = Dataset.open(folder / "set").bytes
    print(f"{args.episodes} episodes of {STEPS} steps x {SCHEMA.size} float32, {args.batch} an append")
    for what, value in found.items():
        print(f"{what:<40} {value:>10,.0f} episodes/s  {value / kept:>8.4f} of native")
    if args.lerobot:
        slow = found["lerobot's own writer"]
        print(f"native is {kept / slow:,.0f} x lerobot's writer")
        print(f"our LeRobot export is {found['LeRobot v3 export of the native set'] / slow:,.0f} x lerobot's writer")
    else:
        print("lerobot's own writer: skipped, no --lerobot PYTHON given")
    print(f"{stored / args.episodes:,.0f} bytes an episode, {stored / raw:.2f} of its float32")


if __name__ == "__main__":
    main()
