"""How long until `simops ui` shows something: 500 runs, and a dataset of two million episodes, in a real Chromium.

One small crank is turned, and stands 500 times under links to its files; the dataset is written by the store's own
writer, in shards of 4,096 episodes with ten params. First paint is what the browser says it was, from the moment
it was told to go there. Times of a question are those of whole pages, as the server gives them: by the clock, which
tells how busy the machine is, and of the processor, which tells what the page costs.
"""

from __future__ import annotations

import argparse
import http.client
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from simops.core.params import Params
from simops.core.signal import Schema, Signal
from simops.core.trajectory import Block, Provenance
from simops.data.header import Header
from simops.data.writer import Writer
from simops.ops.crank import crank, load_order

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
SCHEMA = Schema((Signal("state", (4,)), Signal("action", (2,)), Signal("executed", (2,)), Signal("reward")))
MADE = Provenance(engine="Made()", simulator="made", task="made", policy="0", seed=0)
PARAMS = ("friction", "mass", *(f"p{i}" for i in range(8)))
SMALL = (
    "trainer.laps=1", "trainer.copies=8", "trainer.steps=8", "validation.episodes=64", "trials.episodes=8",
    "trials.most=8", "trials.explore=2", "learning.most=8",
)  # fmt: skip


def runs(folder: Path, count: int) -> None:
    """One crank, and its likes."""
    spec = ROOT / "examples" / "crank_pendulum" / "crank.yaml"
    made = crank(load_order(spec, turns=1, overrides=SMALL, out=folder / "run-000"), lambda _: None).order.out
    for number in range(1, count):
        shutil.copytree(made, folder / f"run-{number:03d}", copy_function=os.link)


def dataset(folder: Path, episodes: int, batch: int = 4096) -> None:
    """Two rows an episode: what is asked about are the episodes."""
    header = Header(
        schema=SCHEMA, provenance=MADE, control_dt_s=0.05, params=dict.fromkeys(PARAMS, ""), terms=("reward",)
    )
    chance = np.random.default_rng(0)
    rows = chance.normal(size=(batch, 2, SCHEMA.size)).astype(np.float32)
    for name in ("action", "executed", "reward"):
        rows[:, -1, SCHEMA.slices[name]] = np.nan
    with Writer.create(folder, header) as writer:
        for first in range(0, episodes, batch):
            count = min(batch, episodes - first)
            params = chance.uniform(0.2, 1.1, (count, len(PARAMS)))
            good = chance.random(count) < params[:, 0]
            writer.append(
                Block(
                    schema=SCHEMA,
                    rows=rows[:count].reshape(-1, SCHEMA.size),
                    episodes=np.arange(first, first + count),
                    seeds=chance.integers(0, 2**63, count).astype(np.uint64),
                    lengths=np.ones(count, np.int64),
                    outcomes=np.where(good, 0, 2).astype(np.int8),
                    params=Params(PARAMS, params),
                    scores={"reward": params[:, 0]},
                    provenance=MADE,
                )
            )


@contextmanager
def dashboard(folder: Path) -> Iterator[tuple[int, int]]:
    """The command itself: the port it answers at, and its process."""
    words = [sys.executable, "-m", "simops.cli", "ui", str(folder), "--port", "0"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline().split("/")[2].rpartition(":")[2]), process.pid
    finally:
        process.terminate()
        process.wait()


class Took(NamedTuple):
    """Seconds."""

    clock: float
    processor: float


def spent(process: int) -> float:
    """Seconds of processor that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def page(at: tuple[int, int], path: str) -> tuple[Took, str]:
    """What a page took, and the page."""
    line = http.client.HTTPConnection("127.0.0.1", at[0], timeout=120)
    used, began = spent(at[1]), time.perf_counter()
    line.request("GET", path)
    got = line.getresponse()
    body = got.read().decode()
    took = Took(time.perf_counter() - began, spent(at[1]) - used)
    line.close()
    assert got.status == 200, (path, got.status, body[:300])
    return took, body


def told(what: str, times: list[Took], bar_s: float) -> None:
    """One row."""
    clock = [1000 * one.clock for one in times]
    processor = 1000 * statistics.median(one.processor for one in times)
    cost = f"{processor:5.0f} ms of processor" if processor > 0 else " " * 21
    short = "" if statistics.median(clock) <= 1000 * bar_s else "  short"
    print(
        f"{what:<56} {statistics.median(clock):6.0f} ms median {max(clock):6.0f} worst of {len(times)}, {cost}; "
        f"asked {1000 * bar_s:.0f}{short}"
    )


def paints(port: int, path: str, turns: int) -> list[Took]:
    """First contentful paint of a page that was never seen before, in seconds."""
    from tests.browser import Browser

    times: list[Took] = []
    with Browser() as browser:
        for _ in range(turns):
            browser.call("Network.clearBrowserCache")
            browser.open(f"http://127.0.0.1:{port}{path}")
            browser.until("performance.getEntriesByName('first-contentful-paint').length > 0")
            found = browser.js("performance.getEntriesByName('first-contentful-paint')[0].startTime")
            times.append(Took(float(found) / 1000, 0.0))
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--episodes", type=int, default=2_000_000)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="build there, or use what was built there")
    args = parser.parse_args()
    folder: Path = args.folder or Path(tempfile.mkdtemp(prefix="simops-dashboard-"))
    try:
        if not (folder / "worlds").is_dir():
            runs(folder, args.runs)
            began = time.perf_counter()
            dataset(folder / "worlds", args.episodes)
            print(f"{args.episodes:,} episodes written in {time.perf_counter() - began:.0f} s")
        with dashboard(folder) as at:
            first, body = page(at, "/")
            told(f"the list of {args.runs + 1} runs, the first time after a start", [first], 1.0)
            told("the list, asked again", [page(at, "/")[0] for _ in range(args.turns)], 1.0)
            told("first paint of the list in Chromium", paints(at[0], "/", args.turns), 1.0)
            listed = page(at, "/?kind=dataset")[1]
            worlds = listed.split('<a href="/run/')[1][:16]
            run = body.split('<a href="/run/')[2][:16]
            told("the page of a crank", [page(at, f"/run/{run}")[0] for _ in range(args.turns)], 1.0)
            told("first paint of a crank", paints(at[0], f"/run/{run}", args.turns), 1.0)
            times = [page(at, f"/run/{worlds}?by={name}")[0] for name in PARAMS[: args.turns]]
            told(f"{args.episodes:,} episodes, histogram by a param never asked of", times, 0.3)
            told("the same, asked again", [page(at, f"/run/{worlds}?by=p1")[0] for _ in range(args.turns)], 0.3)
            told("first paint of the dataset", paints(at[0], f"/run/{worlds}?by=p7", args.turns), 1.0)
            told("failures only", [page(at, f"/run/{worlds}?outcome=timeout")[0]], 0.3)
            middle = args.episodes // 2
            numbers = [f"/run/{worlds}/episode/{middle + i}" for i in range(1)]
            told("one episode by its number", [page(at, path)[0] for path in numbers], 0.3)
    finally:
        if args.folder is None:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
