"""How well does a network imitate the pick and place expert, from how many of its episodes, after how long?

Records episodes of the expert, trains examples/pick_and_place_imitation/train.yaml on them once a seed and tries the
policy in closed loop over the whole randomization. Every episode that the expert drives or finishes is counted.

    python benchmarks/imitate_pick_and_place.py [--seeds 1] [--episodes 1024] [--data DIR] [--set KEY=VALUE]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np

from simops.core.protocols import Policy
from simops.core.rollout import Recipe, wave
from simops.core.training import Course
from simops.core.trajectory import OUTCOMES
from simops.ops import build, factory
from simops.ops.train import load_order
from simops.ops.variants import wilson

EXAMPLES = Path(__file__).parents[1] / "examples"
BAR, BAR_S, BAR_EPISODES = 0.92, 360.0, 5000
AT_ONCE = 256


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--episodes", type=int, default=1024)
    parser.add_argument("--expert", type=int, default=2000, help="episodes recorded before training")
    parser.add_argument("--data", type=Path, help="where they are, or are to be; forgotten when left out")
    parser.add_argument("--set", dest="overrides", action="append", default=[])
    parser.add_argument("--full", action="store_true", help="three seeds, for the nightly proof")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        data = args.data or Path(made) / "episodes"
        record(data, args.expert)
        for seed in range(3 if args.full else args.seeds):
            one(data, seed, args.episodes, args.overrides)


def record(data: Path, episodes: int) -> None:
    copies = min(episodes, 1000)
    order = build.load_pass(
        EXAMPLES / "pick_and_place" / "spec.yaml",
        overrides=[f"rollout.parallel_envs={copies}", f"rollout.episodes_per_env={-(-episodes // copies)}"],
        out=data,
    )
    seen = factory.run(order, lambda _: None)
    print(f"recorded {seen.fresh:,} episodes of the expert in {seen.elapsed_s:.0f} s, {seen.done:,} there", flush=True)


def one(data: Path, seed: int, episodes: int, overrides: list[str]) -> None:
    chosen = [f"trainer.clone.data={data}", f"seed={seed}", *overrides]
    order = load_order(EXAMPLES / "pick_and_place_imitation" / "train.yaml", overrides=chosen)
    began, cpu = time.perf_counter(), time.process_time()
    with order.trainer.open(order.course) as training:
        laps = [training.advance().figures for _ in range(training.laps)]
        policy = training.policy
        wall_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu
        succeeded, took_s = tried(policy, order.course, episodes)
    rate, count = wilson(succeeded, episodes), int(laps[-1]["teacher_episodes"])
    collecting = sum(lap["physics_s"] + lap["collection_s"] for lap in laps)
    print(
        f"seed {seed}: {rate.rate:.1%} of {episodes} [{rate.low:.1%}, {rate.high:.1%}] (bar {BAR:.0%}) after "
        f"{wall_s:.0f} s (bar {BAR_S:.0f} s; {cpu_s:.0f} s of processor, {collecting:.0f} s in simulation) from "
        f"{count:,} expert episodes (bar {BAR_EPISODES:,}); {took_s:.2f} s an episode that succeeds; "
        f"load {os.getloadavg()[0]:.1f}",
        flush=True,
    )


def tried(policy: Policy, course: Course, episodes: int) -> tuple[int, float]:
    """Successes in closed loop, and how long they took on average."""
    recipe = Recipe(policy=policy, task=course.task, engine=course.engine, seed=course.seed, realm="evaluation")
    lengths: list[int] = []
    with course.engine.open(course.task, AT_ONCE) as sim:
        for start in range(0, episodes, AT_ONCE):
            block = wave(recipe, sim, np.arange(start, min(start + AT_ONCE, episodes)))
            lengths += block.lengths[block.outcomes == OUTCOMES.index("success")].tolist()
    return len(lengths), float(np.mean(lengths or [np.nan])) * course.task.control_dt_s


if __name__ == "__main__":
    main()
