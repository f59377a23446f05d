"""How fast is every installed engine at every task, on one core, and how long is a gate of 140 episodes in Drake?

Prints simulated seconds per second of CPU time, each engine as it comes and side by side in one run: the same
episodes of the same experts, with making the scene anew for each episode's params counted in. The ratio is to
MuJoCo's. An engine that refuses a task says what it would lose. With --full, the gate is run on all cores.

    python benchmarks/engine_speed.py [--episodes 2] [--engine drake ...] [--task pick_and_place ...] [--full]
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import time
from collections import Counter
from typing import Any

from simops.core.errors import SimOpsError
from simops.core.plugin import Registry
from simops.core.protocols import Engine, Policy
from simops.core.rollout import rollout
from simops.core.task import Task
from simops.sim.drake import Drake

GATE = 140


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=2)
    parser.add_argument("--engine", nargs="*", help="some engines only")
    parser.add_argument("--task", nargs="*", help="some tasks only")
    parser.add_argument("--full", action="store_true", help="a gate of 140 episodes as well")
    args = parser.parse_args()
    engines = {name: alone(engine) for name, engine in known(args.engine).items()}
    tasks = {name: made for name, made in every_task().items() if not args.task or name in args.task}
    for name, task in tasks.items():
        print(f"{name}: {args.episodes} episodes", flush=True)
        base: float | None = None
        for label, engine in engines.items():
            rate, words = measured(engine, task, args.episodes)
            base = rate if base is None else base
            ratio = f"{rate / base:8.3f}" if rate and base else " " * 8
            print(f"  {label:14} {rate or 0.0:9.1f} x real time {ratio} of {next(iter(engines))}  {words}", flush=True)
    if args.full:
        gate()


def known(chosen: list[str] | None) -> dict[str, Engine]:
    """Engines as they come, MuJoCo first, and Drake in its other scheme."""
    registry = Registry[Engine]("engine")
    found = {name: registry.load(name)() for name in sorted(registry.names(), key=lambda name: name != "mujoco")}
    found["drake cenic"] = Drake(scheme="cenic")
    return {name: engine for name, engine in found.items() if not chosen or name.split()[0] in chosen}


def every_task() -> dict[str, Task]:
    registry = Registry[Task]("task")
    return {name: registry.load(name)() for name in registry.names()}


def alone(engine: Engine) -> Engine:
    """The engine in this process, on one thread."""
    recipe: Any = engine
    settings = {f.name: 1 for f in dataclasses.fields(recipe) if f.name in {"workers", "threads"}}
    return dataclasses.replace(recipe, **settings)


def measured(engine: Engine, task: Task, episodes: int) -> tuple[float | None, str]:
    """Simulated seconds in a second of CPU time, and what became of the episodes."""
    policy = Registry[Policy]("policy").load(task.expert or "zero")()
    try:
        with engine.open(task, 1):
            pass  # what is loaded once is not counted
        began = time.process_time()
        runs = rollout(policy, task, engine, n=episodes, seed=0)
    except SimOpsError as error:
        return None, f"not applicable: {error.what}"
    spent_s = time.process_time() - began
    simulated_s = sum(len(run) * task.control_dt_s for run in runs)
    return simulated_s / spent_s, str(dict(Counter(str(run.outcome) for run in runs)))


def gate() -> None:
    """140 episodes of pick and place in Drake, on all cores."""
    task = every_task()["pick_and_place"]
    policy = Registry[Policy]("policy").load(task.expert or "zero")()
    began, before = time.perf_counter(), os.times()
    runs = rollout(policy, task, Drake(), n=GATE, seed=0)
    after, wall_s = os.times(), time.perf_counter() - began
    cpu_s = sum(after[:4]) - sum(before[:4])
    cores = len(os.sched_getaffinity(0))
    print(
        f"gate of {GATE} episodes in Drake: {wall_s / 60:.2f} min on {cores} cores, {cpu_s / 60:.2f} min of CPU time,"
    )
    print(f"  {cpu_s / 60 / cores:.2f} min on a quiet machine of {cores} cores; {Counter(r.outcome for r in runs)}")


if __name__ == "__main__":
    main()
