"""Does a Go2 learn to walk as commanded, from nothing, within five minutes on two cores, whatever the seed?

Trains examples/velocity/train.yaml once a seed, then tries the policy, without noise, in fresh episodes over the
whole randomization. The speed error is the distance between asked and actual velocity in the plane, each averaged
over one gait cycle, from a second after the command changed; beside it stands the error of every instant, the
seconds of speeding up included. Prints where the time went. Processor seconds do not depend on who else is on the
machine: a training that takes fewer of them than the bar is in time on one quiet core.

    python benchmarks/train_go2.py [--seeds 1] [--episodes 1000] [--out FILE] [--checkpoint FILE] [--set KEY=VALUE]
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from simops.core.protocols import Policy
from simops.core.rollout import Recipe, wave
from simops.core.training import Lap
from simops.core.trajectory import OUTCOMES, Trajectory, scored
from simops.learn.checkpoint import actor_of, unpack
from simops.learn.policy import Learned
from simops.ops.train import Order, load_order
from simops.tasks.velocity import terms
from simops.tasks.velocity.task import COMMAND_EVERY_S

SPEC = Path(__file__).parents[1] / "examples" / "velocity" / "train.yaml"
SETTLED_S = 1.0
ERROR_BAR_M_S, FALLS_BAR, TRAINING_BAR_S, SHARE_BAR = 0.1, 0.02, 300.0, 0.85


class Walk(NamedTuple):
    """How well it walks."""

    error_m_s: float
    """Averaged over gait cycles, settled."""
    instant_m_s: float
    """Of every instant."""
    yaw_rad_s: float
    """As `error_m_s`, of the turning rate."""
    falls: float
    """Share of the episodes."""
    success: float


class Trained(NamedTuple):
    """A training that is over."""

    laps: Sequence[Lap]
    wall_s: float
    cpu_s: float
    policy: Policy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--checkpoint", type=Path, help="try this one instead of training")
    parser.add_argument("--set", dest="overrides", action="append", default=[])
    parser.add_argument("--full", action="store_true", help="five seeds, for the nightly proof")
    args = parser.parse_args()
    if args.checkpoint:
        policy = Learned(actor_of(unpack(args.checkpoint.read_bytes())))
        print(tried(load_order(SPEC, overrides=args.overrides), policy, args.episodes))
        return
    rows: list[dict[str, object]] = []
    for seed in range(args.first, args.first + (5 if args.full else args.seeds)):
        order = load_order(SPEC, overrides=[*args.overrides, f"seed={seed}"])
        training = trained(order, args.out)
        row = told(seed, training, tried(order, training.policy, args.episodes))
        rows.append(row)
        print(json.dumps(row), flush=True)
        if args.out:
            args.out.parent.mkdir(parents=True, exist_ok=True)
            args.out.write_text(json.dumps(rows, indent=1) + "\n")
    good = sum(bool(row["walks"]) for row in rows)
    print(f"{good} of {len(rows)} seeds walk as asked; bars: {ERROR_BAR_M_S} m/s, {FALLS_BAR:.0%} falls")


def trained(order: Order, out: Path | None) -> Trained:
    """Learn, and give the laps, the seconds they took, and what came out."""
    laps: list[Lap] = []
    with order.trainer.open(order.course) as training:
        began, used = time.perf_counter(), time.process_time()
        while training.done < training.laps:
            laps.append(training.advance())
        wall_s, cpu_s = time.perf_counter() - began, time.process_time() - used
        if out:
            out.with_name(f"{out.stem}-{order.course.seed}.safetensors").write_bytes(training.checkpoint())
        return Trained(laps, wall_s, cpu_s, training.policy)


def told(seed: int, training: Trained, walk: Walk) -> dict[str, object]:
    """One row of the table."""
    laps, wall_s = training.laps, training.wall_s
    spent = {name: sum(lap.figures[f"{name}_s"] for lap in laps) for name in ("physics", "collection", "learning")}
    return {
        "seed": seed,
        **{name: round(value, 4) for name, value in walk._asdict().items()},
        "walks": walk.error_m_s <= ERROR_BAR_M_S and walk.falls <= FALLS_BAR,
        "training_s": round(wall_s, 1),
        "cpu_s": round(training.cpu_s, 1),
        "in_time": wall_s <= TRAINING_BAR_S,
        "steps": laps[-1].figures["steps"],
        "steps_per_s": round(laps[-1].figures["steps"] / wall_s),
        **{f"{name}_share": round(seconds / wall_s, 3) for name, seconds in spent.items()},
        "physics_and_learning": round((spent["physics"] + spent["learning"]) / wall_s, 3),
        "share_bar": SHARE_BAR,
        "load": round(os.getloadavg()[0], 1),
    }


def tried(order: Order, policy: Policy, episodes: int) -> Walk:
    """Try the policy in fresh episodes over the task's own world."""
    course, batch = order.course, 250
    recipe = Recipe(policy=policy, task=course.task, engine=course.engine, seed=course.seed, realm="evaluation")
    errors: list[tuple[float, float, float]] = []
    how: list[int] = []
    with course.engine.open(course.task, min(batch, episodes)) as sim:
        for start in range(0, episodes, batch):
            block = wave(recipe, sim, np.arange(start, min(start + batch, episodes)))
            how += block.outcomes.tolist()
            errors += [found for one in block if (found := _errors(recipe, one)) is not None]
    cycle, instant, yaw = np.mean(errors, axis=0).tolist()
    ended = np.array(how)
    upright = np.isin(ended, [OUTCOMES.index("success"), OUTCOMES.index("timeout")])
    return Walk(cycle, instant, yaw, float((~upright).mean()), float((ended == OUTCOMES.index("success")).mean()))


def _errors(recipe: Recipe, one: Trajectory) -> tuple[float, float, float] | None:
    columns = scored(recipe.task, one)
    asked, moved = columns["command"], np.hstack([terms.velocity(columns)[:, :2], columns["gyro"][:, 2:]])
    dt_s = recipe.task.control_dt_s
    cycle, every = round(1 / terms.GAIT_HZ / dt_s), round(COMMAND_EVERY_S / dt_s)
    if len(moved) < cycle:
        return None
    mean = np.stack([np.convolve(moved[:, i], np.full(cycle, 1 / cycle), "valid") for i in range(3)], axis=1)
    at = np.arange(cycle - 1, len(moved))  # a mean stands at the end of its cycle
    settled = at % every >= round(SETTLED_S / dt_s) + cycle - 1
    off = (asked[at] - mean)[settled]
    if not len(off):
        return None
    instant = float(np.hypot(*(asked - moved)[:, :2].T).mean())
    return float(np.hypot(off[:, 0], off[:, 1]).mean()), instant, float(np.abs(off[:, 2]).mean())


if __name__ == "__main__":
    main()
