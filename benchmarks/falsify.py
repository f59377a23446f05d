"""How many failures does a search find in 1,000 episodes, beside drawing them evenly from the same space?

Pick and place and the Go2 with their scripted experts, pushed, with late commands, over all that their tasks believe;
every episode that does not succeed is a failure, each in a scenario of its own. Cells that fail are those of a map of
16 by 16 over two axes that failures do not come down to alone: how different the failures are.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from simops.core.rollout import Recipe
from simops.core.task import Task
from simops.gate.space import Space
from simops.ops import falsify
from simops.ops.build import expert_of
from simops.sim.mujoco import Mujoco
from simops.spec.around import Around, Latencies, Pushes
from simops.spec.ranges import Range
from simops.tasks.pick_and_place.task import pick_and_place
from simops.tasks.velocity.task import velocity

PICK = Around(
    pushes=(Pushes(body="cube", force_n=Range(0.0, 3.0), for_s=0.2),), latencies=(Latencies(steps=Range(0.0, 4.0)),)
)
GO2 = Around(
    initial={"command": (Range(-1.0, 1.0), Range(-0.5, 0.5), Range(-1.0, 1.0))},
    pushes=(Pushes(body="base", force_n=Range(0.0, 60.0), for_s=0.2),),
)
CASES: tuple[tuple[Task, Around, tuple[str, str]], ...] = (
    (pick_and_place(), PICK, ("object_mass", "friction_coefficient")),
    (velocity(), GO2, ("payload_mass_kg", "friction_coefficient")),
)
BAR = 3.0


def order(task: Task, around: Around, axes: tuple[str, str], *, seed: int, episodes: int, out: Path) -> falsify.Order:
    space = Space(task, task.belief, around, seed)
    return falsify.Order(
        recipe=Recipe(policy=expert_of(task.expert), task=task, engine=Mujoco(), seed=seed),
        space=space,
        episodes=episodes,
        together=50,
        map=tuple(space.axis(name) for name in axes),
        cells=16,
        out=out,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="five seeds instead of one")
    args = parser.parse_args()
    for task, around, axes in CASES:
        ratios: list[float] = []
        for seed in range(5 if args.full else 1):
            rates: dict[str, float] = {}
            for how in ("evenly", "searched"):
                with tempfile.TemporaryDirectory() as folder:
                    asked = order(task, around, axes, seed=seed, episodes=1000, out=Path(folder) / "out")
                    asked = replace(asked, evenly=how == "evenly")
                    began = time.perf_counter()
                    found = falsify.run(asked, lambda _: None)
                took = time.perf_counter() - began
                progress = found.progress
                rates[how] = 1000 * progress.failures / len(progress.tried)
                worst = min(one.margin for one in progress.tried)
                print(
                    f"{task.name:<15} seed {seed} {how:<9} {rates[how]:4.0f} failures in 1,000, "
                    f"{len(found.map.failing):3d} cells fail, worst {worst:.2f}, {took:.0f} s",
                    flush=True,
                )
            ratios.append(rates["searched"] / max(rates["evenly"], 1.0))
        print(f"{task.name}: {np.mean(ratios):.1f} times as many, least {min(ratios):.1f} (bar {BAR:g})")


if __name__ == "__main__":
    main()
