"""How much of the raw physics is left when observation, reward, reset and randomization are added?

Prints environment steps/s of `Env` on the Go2 beside the same physics steps through the bare batch,
measured turn by turn in one run on one machine, each round of both from the same states.

    python benchmarks/env_speed.py [--copies 2048] [--steps 50] [--rounds 5] [--task velocity]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from simops.core.env import Env
from simops.core.plugin import Registry
from simops.core.policy import centre_and_scale
from simops.core.task import Task
from simops.sim.binding import Batch
from simops.sim.mujoco import Mujoco


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copies", type=int, default=2048)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--task", default="velocity")
    parser.add_argument("--full", action="store_true", help="more rounds, for the nightly proof")
    args = parser.parse_args()
    make: Callable[[], Task] = Registry[Task]("task").load(args.task)
    task = make()
    rng = np.random.default_rng(0)
    centre, scale = centre_and_scale(task)
    noise = rng.uniform(-1, 1, (args.steps, args.copies, task.action.size))
    actions = (centre + 0.5 * scale * noise).astype(np.float32)
    rates: dict[str, list[float]] = {"env": [], "raw": []}
    with Mujoco().open(task, args.copies) as sim:
        env = Env(task, sim)
        for action in actions:  # until copies are spread over their episodes
            env.step(action)
        raw = Batch(sim.batch.model, args.copies, 0)
        substeps = round(task.control_dt_s / sim.batch.model.opt.timestep)
        for _ in range(args.rounds * (3 if args.full else 1)):
            start = sim.batch.state.copy()
            began = time.perf_counter()
            for action in actions:
                env.step(action)
            rates["env"].append(args.steps * args.copies / (time.perf_counter() - began))
            raw.state[:] = start
            began = time.perf_counter()
            for action in actions:
                raw.bind("ctrl")[:] = action
                raw.step(nstep=substeps)
            rates["raw"].append(args.steps * args.copies / (time.perf_counter() - began))
    env_rate, raw_rate = (statistics.median(rates[name]) for name in ("env", "raw"))
    ratio = statistics.median(e / r for e, r in zip(rates["env"], rates["raw"], strict=True))
    print(f"{task.name}: {args.copies} copies, median of {len(rates['env'])} rounds of {args.steps} steps")
    print(f"env        {env_rate:12,.0f} environment steps/s")
    print(f"raw batch  {raw_rate:12,.0f} environment steps/s")
    print(f"ratio      {ratio:12.3f}   (bar 0.80)")


if __name__ == "__main__":
    main()
