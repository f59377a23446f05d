"""Did the Go2's crank help, or would more training have done? What is live, beside what went on without learning.

Reads the folder of a crank of examples/crank_go2. The other policy goes on from the networks of its first turn, for as
many laps as the crank trained after that, in the world as it was believed at first; or it is a checkpoint from
elsewhere. Both are tried on the same fresh trials of the same sealed Go2, which nothing has seen.

    python -m benchmarks.crank_go2 out/crank [--trials 60] [--checkpoint FILE] [--seed N]
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np  # noqa: TC002 (annotations are read where they stand)

from simops.core.protocols import Policy
from simops.core.trial import attempt
from simops.data.files import unseal
from simops.deploy.bundle import load as load_bundle
from simops.gate import compare, rate
from simops.learn.checkpoint import actor_of, unpack
from simops.learn.policy import Learned
from simops.learn.ppo import Ppo
from simops.ops.sealed import Sealed
from simops.ops.stages import BUNDLE, course_of, untouched
from simops.ops.train import CHECKPOINT
from simops.spec.crank import Crank, load_crank

SPEC = Path(__file__).parents[1] / "examples" / "crank_go2" / "crank.yaml"
FRESH = 5_000_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="folder of the crank")
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--checkpoint", type=Path, help="try this one instead of training")
    parser.add_argument("--seed", type=int, help="another Go2 of the family than the crank's own")
    args = parser.parse_args()
    spec = load_crank(SPEC).value
    turns = [unseal(path) for path in sorted(args.run.glob("turn-*.json"))]
    live = load_bundle(folder(args.run, [one for one in turns if one["ending"] == "promoted"][-1], "export") / BUNDLE)
    first = folder(args.run, turns[0], "train") / CHECKPOINT
    more = sum(step[0] == "train" for one in turns[1:] for step in one["steps"])
    other = checkpoint(args.checkpoint.read_bytes()) if args.checkpoint else longer(spec, first.read_bytes(), more)
    ended = {"crank": tried(spec, live, args.trials, args.seed), "longer": tried(spec, other, args.trials, args.seed)}
    for name, good in ended.items():
        count = int(good.sum())
        within = rate.interval(count, len(good) - count, 0.05)
        print(f"{name:<7} {count} of {len(good)} [{within.low:.1%}, {within.high:.1%}]", flush=True)
    mine, theirs = ended.values()
    pairs = compare.Pairs(int((mine & ~theirs).sum()), int((mine == theirs).sum()), int((theirs & ~mine).sum()))
    within = compare.interval(pairs, 0.05)
    print(f"crank less longer: {pairs.difference:+.1%} [{within.low:+.1%}, {within.high:+.1%}]")


def folder(run: Path, turn: dict[str, list[list[str]]], stage: str) -> Path:
    """Of a step of a turn."""
    return run / "steps" / next(name for what, name, _ in turn["steps"] if what == stage)


def checkpoint(data: bytes) -> Policy:
    """The policy of a checkpoint."""
    return Learned(actor_of(unpack(data)))


def longer(spec: Crank, begun: bytes, trainings: int) -> Policy:
    """More of the same training, in the world as it was believed at first."""
    if not isinstance(spec.trainer, Ppo):
        raise SystemExit("this benchmark counts laps of ppo")
    course = replace(course_of(spec, untouched(spec)), begun=begun)
    with replace(spec.trainer, laps=trainings * spec.trainer.laps).open(course) as training:
        while training.done < training.laps:
            lap = training.advance()
            if training.done % 20 == 0:
                print(f"longer: lap {training.done} of {training.laps}, reward {lap.figures['reward']:.0f}", flush=True)
        return training.policy


def tried(spec: Crank, policy: Policy, trials: int, seed: int | None) -> np.ndarray:
    """(trials,) whether each fresh trial succeeded."""
    if spec.reality is None:
        raise SystemExit("this benchmark wants a reality")
    with Sealed(SPEC.parent / spec.reality.path, seed).open(spec.task, spec.trials.places) as robot:
        block = attempt(policy, spec.task, robot, range(FRESH, FRESH + trials), guard=spec.guard.guard)
    return block.outcomes == 0


if __name__ == "__main__":
    main()
