"""What does a network motor on every joint cost? Control steps/s of 1,024 Go2 beside the same with an ideal motor.

Both stand on the same scene and get the same commands in turns of one run on one machine; the ratio is the median over
the turns. The weights are drawn, not taught: what they say does not change what they cost, and they say little.

    python -m benchmarks.motor_speed [--copies 1024] [--threads 2] [--full]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.sim_speed import begin, drawn
from simops.core.belief import Box
from simops.core.protocols import Motor
from simops.core.signal import Array
from simops.learn.motor import Driven, Teach, fit_network
from simops.sim.motor import Pd
from simops.sim.mujoco import Mujoco, MujocoSim
from simops.sim.network import Network
from simops.tasks.velocity.task import velocity

BAR = 0.4
TAKEN = {"kp", "kd", "strength", "delay"}
IDEAL = Pd(kp_nm_rad=35.0, kd_nms_rad=1.0, limit_nm=23.7)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--copies", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--full", action="store_true", help="five times as many turns")
    args = parser.parse_args()
    turns = 25 if args.full else 5
    print(f"{args.copies} Go2, {args.threads} threads, turns of {args.steps} control steps; ratio at least {BAR}")
    print(f"{'motor':<28} {'control steps/s':>16} {'ideal':>12} {'ratio':>6} {'least':>6} {'most':>6}")
    with tempfile.TemporaryDirectory() as folder:
        for name, teach, under in (
            ("mlp on top of ideal", Teach(members=1, steps=1), IDEAL),
            ("mlp, one a joint", Teach(members=1, steps=1, shared=False), IDEAL),
            ("mlp, 4 members", Teach(members=4, steps=1), IDEAL),
            ("gru 16", Teach(kind="gru", hidden=(16,), members=1, steps=1), IDEAL),
        ):
            file = Path(folder) / "motor.safetensors"
            file.write_bytes(fit_network([nothing()], teach))
            motor = Network(weights=file, under=under, bound_nm=1.0)
            rates = measure(motor, args.copies, args.threads, args.steps, turns)
            ratios = sorted(mine / ideal for mine, ideal in rates)
            mine, ideal = (statistics.median(pair[which] for pair in rates) for which in (0, 1))
            spread = f"{statistics.median(ratios):>6.3f} {ratios[0]:>6.3f} {ratios[-1]:>6.3f}"
            print(f"{name:<28} {mine:>16,.0f} {ideal:>12,.0f} {spread}", flush=True)


def nothing() -> Driven:
    """An episode in which little happens."""
    rows = np.random.default_rng(0).normal(size=(256, 12))
    return Driven(error_rad=0.1 * rows, velocity_rad_s=rows, torque_nm=rows)


def measure(motor: Motor, copies: int, threads: int, steps: int, turns: int) -> list[tuple[float, float]]:
    """Control steps/s with the motor and with the ideal one, turn by turn."""
    whole = velocity()
    kept = tuple(p for p in whole.belief.params if not any(c.field in TAKEN for c in p.changes))
    middle = tuple(p.nominal for p in kept)
    task = replace(whole, belief=Box(kept, middle, middle))  # without what a motor takes the place of
    actions = drawn(task, copies, steps)
    rates: list[tuple[float, float]] = []
    with (
        Mujoco(threads=threads, motor=motor).open(task, copies) as mine,
        Mujoco(threads=threads, motor=IDEAL).open(task, copies) as ideal,
    ):
        for turn in range(turns + 1):
            begin(task, mine)
            begin(task, ideal)
            pair = rate(mine, actions), rate(ideal, actions)
            if turn > 0:  # the first warms up
                rates.append(pair)
    return rates


def rate(sim: MujocoSim, actions: Array) -> float:
    """Control steps/s of all copies together."""
    started = time.perf_counter()
    for action in actions:
        sim.step(action)
        _ = sim.read()
    return len(actions) * sim.n / (time.perf_counter() - started)


if __name__ == "__main__":
    main()
