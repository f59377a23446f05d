"""How much of MuJoCo's own batch is left when our `Sim` stands in front of it?

Prints control steps/s of `step` and `read` beside the bare `Batch.step` on the same compiled model,
with the same stage, actions and states, in turns of one run on one machine; the ratio is the median
over the turns. With `--persistent`, also the bare batch that keeps one MjData a copy.

    python benchmarks/sim_speed.py [--tasks velocity pick_and_place pendulum] [--copies 1024] [--threads 2] [--full]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from simops.core import chance
from simops.core.plugin import Registry
from simops.core.policy import centre_and_scale
from simops.core.signal import Array
from simops.core.task import Draw, Task
from simops.sim.binding import Batch, Batched
from simops.sim.mujoco import Mujoco, MujocoSim

BAR = 0.92
SPREAD = 0.3
"""Share of the action's scale that the random actions use."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", nargs="+", default=["velocity", "pick_and_place", "pendulum"])
    parser.add_argument("--copies", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--persistent", action="store_true")
    parser.add_argument("--full", action="store_true", help="five times as many turns")
    args = parser.parse_args()
    print(f"{args.copies} copies, {args.threads} threads, turns of {args.steps} control steps; ratio at least {BAR}")
    print(f"{'task':<16} {'ours [1/s]':>11} {'bare [1/s]':>11} {'ratio':>6} {'least':>6} {'most':>6}")
    for name in args.tasks:
        make: Callable[[], Task] = Registry[Task]("task").load(name)
        measure(make(), args.copies, args.threads, args.steps, turns=35 if args.full else 7, kept=args.persistent)


def measure(task: Task, copies: int, threads: int, steps: int, *, turns: int, kept: bool) -> None:
    """Print one task's rows."""
    actions = drawn(task, copies, steps)
    with Mujoco(threads=threads).open(task, copies) as sim:
        begin(task, sim)
        bare = {"bare": beside(sim, threads, persistent=False)}
        if kept:
            bare["persistent"] = beside(sim, threads, persistent=True)
        rates: dict[str, list[float]] = {name: [] for name in ("ours", *bare)}
        for turn in range(turns + 1):
            started = sim.batch.state.copy()
            found = {"ours": ours(sim, actions)}
            for name, batch in bare.items():
                batch.state[:] = started
                found[name] = raw(sim, batch, actions)
            if turn > 0:  # the first warms up
                for name, rate in found.items():
                    rates[name].append(rate)
            if turn % 5 == 4:
                begin(task, sim)
    for name in bare:
        pairs = sorted(rate / beside for rate, beside in zip(rates["ours"], rates[name], strict=True))
        shown = task.name if name == "bare" else f"  {name}"
        mine, other = (statistics.median(rates[which]) for which in ("ours", name))
        spread = f"{statistics.median(pairs):>6.3f} {pairs[0]:>6.3f} {pairs[-1]:>6.3f}"
        print(f"{shown:<16} {mine:>11,.0f} {other:>11,.0f} {spread}")


def drawn(task: Task, copies: int, steps: int) -> Array:
    """Random actions about the centre."""
    centre, scale = centre_and_scale(task)
    noise = np.random.default_rng(0).uniform(-1, 1, (steps, copies, task.action.size))
    return (centre + SPREAD * scale * noise).astype(np.float32)


def begin(task: Task, sim: MujocoSim) -> None:
    """Put every copy at the start of an episode, each at its own params."""
    seeds = chance.seeds(0, np.arange(sim.n))
    draw = Draw(task.belief.sample(seeds), seeds, np.zeros(sim.n, np.int64))
    sim.reset(np.arange(sim.n), draw.params, task.initial(draw))


def beside(sim: MujocoSim, threads: int, *, persistent: bool) -> Batched:
    """A bare batch of the same model, that refreshes the same derived fields, with each copy's own params."""
    batch = Batch(sim.batch.model, sim.n, threads, persistent)
    for name in sim.batch._bound:  # noqa: SLF001  # pyright: ignore  # the fields our sim asked for
        batch.bind(name)
    for name, rows in sim.batch._expanded.items():  # noqa: SLF001  # pyright: ignore
        batch.expand(name)[:] = rows
    if sim.batch._expanded:  # noqa: SLF001  # pyright: ignore
        batch.set_const()
    return batch


def ours(sim: MujocoSim, actions: Array) -> float:
    """Control steps/s of our step and read."""
    began = time.perf_counter()
    for action in actions:
        sim.step(action)
        sim.read()
    return actions.shape[0] * actions.shape[1] / (time.perf_counter() - began)


def raw(sim: MujocoSim, batch: Batched, actions: Array) -> float:
    """Control steps/s of the bare batch."""
    ctrl, columns = batch.bind("ctrl"), sim._actuators  # noqa: SLF001  # pyright: ignore
    substeps, stage = sim._substeps, sim._stage  # noqa: SLF001  # pyright: ignore
    began = time.perf_counter()
    for action in actions:
        ctrl[:, columns] = action
        batch.step(None, substeps, stage)
    return actions.shape[0] * actions.shape[1] / (time.perf_counter() - began)


if __name__ == "__main__":
    main()
