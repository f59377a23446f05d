"""How long does it take to learn a pendulum's swing-up, from nothing, and how sure is it?

Trains examples/pendulum/train.yaml once a seed and tries the policy, without noise, from near hanging.

    python benchmarks/train_pendulum.py [--seeds 3] [--episodes 1000] [--set KEY=VALUE]
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np

from simops.core.rollout import Recipe, wave
from simops.core.trajectory import OUTCOMES
from simops.ops.train import load_order

SPEC = Path(__file__).parents[1] / "examples" / "pendulum" / "train.yaml"
BAR_S = 30.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--set", dest="overrides", action="append", default=[])
    parser.add_argument("--full", action="store_true", help="ten seeds, for the nightly proof")
    args = parser.parse_args()
    for seed in range(10 if args.full else args.seeds):
        order = load_order(SPEC, overrides=[*args.overrides, f"seed={seed}"])
        course = order.course
        with order.trainer.open(course) as training:
            began, cpu = time.perf_counter(), time.process_time()
            while training.done < training.laps:
                lap = training.advance()
            wall_s, cpu_s, policy = time.perf_counter() - began, time.process_time() - cpu, training.policy
        recipe = Recipe(policy=policy, task=course.task, engine=course.engine, seed=seed, realm="evaluation")
        with course.engine.open(course.task, args.episodes) as sim:
            block = wave(recipe, sim, np.arange(args.episodes))
        success = float((block.outcomes == OUTCOMES.index("success")).mean())
        print(
            f"seed {seed}: {success:.1%} of {args.episodes} after {wall_s:.1f} s ({cpu_s:.1f} s of processor), "
            f"{lap.figures['steps']:,.0f} steps; bar {BAR_S:.0f} s; load {os.getloadavg()[0]:.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
