"""How soon does a Go2 walk, beside Stable-Baselines3's PPO with its usual subprocess vector environment?

Ours trains examples/velocity/train.yaml. The other learns the same scene, reward, ends and network (peers/walk.py), in
the nominal world, which is easier, for `--budget` times our processor time; both policies are then tried in the same
fresh episodes of the nominal world. It has lost by that factor if its speed error or its falls are still above the
bar. Processor seconds are compared, since they do not depend on who else is on the machine.

    python -m venv PEERS && PEERS/bin/pip install -e '.[sim,learn]' stable-baselines3
    python benchmarks/train_peers.py --peers PEERS/bin/python [--budget 4] [--full]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from train_go2 import ERROR_BAR_M_S, FALLS_BAR, SPEC, trained, tried

from simops.core.belief import Box
from simops.core.protocols import Act, Memory
from simops.core.task import Task
from simops.ops.train import Order, load_order

PEER = Path(__file__).parent / "peers" / "walk.py"
PROBE = 49_152
"""Steps after which the other's speed is known."""


class Stable:
    """What Stable-Baselines3 learned, without noise."""

    def __init__(self, weights: dict[str, Any], task: Task) -> None:
        self._w, self._centre = weights, np.array(task.action_centre, np.float32)
        self._scale = np.float32(task.action_scale[0])
        self.digest = hashlib.sha256(weights["action_net.weight"].tobytes()).hexdigest()

    def start(self, task: Task, seeds: np.ndarray) -> Memory:
        """Nothing to remember."""
        del task, seeds
        return {}

    def act(self, observation: np.ndarray, memory: Memory) -> Act:
        """One action a row."""
        w = self._w
        x = np.clip((observation - w["mean"]) / w["std"], -10, 10)
        for layer in (0, 2):
            x = x @ w[f"mlp_extractor.policy_net.{layer}.weight"].T + w[f"mlp_extractor.policy_net.{layer}.bias"]
            x = np.where(x > 0, x, np.expm1(np.minimum(x, 0)))
        raw = np.clip(x @ w["action_net.weight"].T + w["action_net.bias"], -8, 8)
        return Act((self._centre + self._scale * raw).astype(np.float32), memory)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", help="a Python that has Stable-Baselines3 and simops")
    parser.add_argument("--budget", type=float, default=4.0, help="times our processor time")
    parser.add_argument("--episodes", type=int, default=250)
    parser.add_argument("--set", dest="overrides", action="append", default=[])
    parser.add_argument("--full", action="store_true", help="1,000 episodes, for the nightly proof")
    args = parser.parse_args()
    if not args.peers:
        print("skipped: --peers names no Python that has Stable-Baselines3 and simops")
        return
    episodes = 1000 if args.full else args.episodes
    order = load_order(SPEC, overrides=args.overrides)
    laps, wall_s, ours_s, policy = trained(order, None)
    world = nominal(order)
    show("simops", laps[-1].figures["steps"], wall_s, ours_s, tried(world, policy, episodes)._asdict())
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "net.npz"
        speed = learned(args.peers, PROBE, out)["steps_per_cpu_s"]
        told = learned(args.peers, int(args.budget * ours_s * speed), out)
        walk = tried(world, Stable(dict(np.load(out)), order.course.task), episodes)
    show("Stable-Baselines3", told["steps"], told["wall_s"], told["cpu_s"], walk._asdict())
    walks = walk.error_m_s <= ERROR_BAR_M_S and walk.falls <= FALLS_BAR
    factor = told["cpu_s"] / ours_s
    print(f"after {factor:.1f} times our processor time it {'walks as asked' if walks else 'does not walk as asked'}")


def nominal(order: Order) -> Order:
    """The order in the nominal world, which both are tried in."""
    params = order.course.task.belief.params
    still = tuple(param.nominal for param in params)
    task = replace(order.course.task, belief=Box(params, still, still))
    return replace(order, course=replace(order.course, task=task))


def learned(python: str, steps: int, out: Path) -> dict[str, float]:
    """Let the other learn for so many steps; what it cost."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [python, str(PEER), str(steps), str(out)], check=True, capture_output=True, text=True, env=environment
    )
    return json.loads(done.stdout.strip().splitlines()[-1])


def show(name: str, steps: float, wall_s: float, cpu_s: float, walk: dict[str, float]) -> None:
    """One row of the table."""
    found = ", ".join(f"{key} {value:.3f}" for key, value in walk.items())
    print(
        f"{name:<18} {steps:>10,.0f} steps {wall_s:>6.0f} s {cpu_s:>6.0f} cpu s {steps / cpu_s:>7,.0f} /cpu s  {found}"
    )


if __name__ == "__main__":
    main()
