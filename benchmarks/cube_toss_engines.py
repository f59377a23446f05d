"""How well does each physics engine predict a real cube that is thrown onto a real table?

Splits the recorded tosses by toss, tunes friction, stiffness and damping of the contact for every installed engine on
one part, and prints the error on the other by the measure of the literature: mean distance between the centres in
percent of the side, mean angle between the orientations. Engines whose contacts are hard have no stiffness; of the
damping they take what it lets bounce. What the recordings show of a metre is measured on the training part as well.

    python benchmarks/cube_toss_engines.py --data PATH [--engines mujoco dart] [--full]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from simops.core.errors import ExtraError
from simops.core.protocols import Engine
from simops.core.signal import Array
from simops.core.split import split
from simops.sim.bullet import Bullet
from simops.sim.dart import Dart
from simops.sim.drake import Drake
from simops.sim.mujoco import Mujoco
from simops.sim.mujoco_fine import MujocoFine
from simops.sim.physx import Physx
from simops.tasks.cube_toss.recorded import Off, Toss, recorded, thrown, tuned
from simops.tasks.cube_toss.task import SIDE_M

PERCENT, DEGREES = 7.0, 21.0
"""What one error is worth of the other where both are tuned together: among tosses, angles scatter twice as much."""
HARD = {"friction": (0.12, 0.26), "ratio": (0.3, 0.999)}
SOFT = {"friction": (0.12, 0.26), "stiffness": (1_000.0, 40_000.0), "ratio": (0.8, 5.0)}
BOUNCING = {"friction": (0.15, 0.22), "stiffness": (2_000.0, 40_000.0), "ratio": (0.5, 0.999)}
RATIO_TO_STIFFNESS = 5_000.0
"""At which hard contacts are told their ratio; it changes nothing."""


@dataclass(frozen=True)
class Row:
    """An engine, what is tuned, and the bars it is held to."""

    engine: Engine
    knobs: Mapping[str, tuple[float, float]]
    bar: tuple[float, float] | None = None


# in one process: a worker takes longer to start than its share of a trial
ROWS: Mapping[str, Row] = {
    "mujoco": Row(Mujoco(), SOFT, (14.0, 21.0)),
    "mujoco_fine": Row(MujocoFine(), SOFT),
    "drake_point": Row(Drake(contact="point", workers=1), BOUNCING, (14.0, 22.0)),
    "drake_hydroelastic": Row(Drake(workers=1), BOUNCING, (15.0, 21.0)),
    "bullet": Row(Bullet(workers=1), HARD),
    "dart": Row(Dart(workers=1), HARD),
    "dart_fcl": Row(Dart(collision="fcl", workers=1), HARD),
    "physx": Row(Physx(workers=1), HARD),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the table of tosses, or a folder of such tables")
    parser.add_argument("--engines", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--seed", type=int, default=0, help="of the split and of the search")
    parser.add_argument("--tosses", type=int, default=24, help="of the training part, to tune on")
    parser.add_argument("--trials", type=int, default=16, help="of the search")
    parser.add_argument("--both", action="store_true", help="tune on each half and judge on the other: on all tosses")
    parser.add_argument("--full", action="store_true", help="tune on the whole training part, in 48 trials")
    args = parser.parse_args()
    if args.data is None or not args.data.exists():
        print("skipped: it needs recorded tosses, --data PATH; docs/cube_tosses.md says where they come from")
        return
    tosses = recorded(args.data)
    parts = split(tosses, held=0.5, by="name", salt=str(args.seed))
    halves = [[tosses[i] for i in side] for side in parts]
    ways = [(halves[0], halves[1]), (halves[1], halves[0])][: 2 if args.both else 1]
    most, trials = (len(tosses), 48) if args.full else (args.tosses, args.trials)
    folds = [(train[:most], held, resting(train)) for train, held in ways]
    for used, held, lengths in folds:
        print(
            f"tuned on {len(used)} tosses in {trials} trials, judged on {len(held)}; a metre is seen as {lengths:.4f} m"
        )
    print(f"{'engine':<19} {'position [%]':>14} {'rotation [deg]':>15} {'bar':>9} {'':>4} {'tosses/s':>8}  tuned")
    for name in args.engines:
        try:
            compare(name, folds, trials, args.seed)
        except ExtraError as error:
            print(f"{name:<19} not installed: {error.attempt}")


def resting(train: Sequence[Toss]) -> float:
    """What the recording shows of a metre, by the height of cubes that have come to rest."""
    return float(np.mean([toss.position[-1, 2] for toss in train]) / (SIDE_M / 2))


def compare(name: str, folds: Sequence[tuple[Sequence[Toss], Sequence[Toss], float]], trials: int, seed: int) -> None:
    """Tune one engine and print its row."""
    row, offs, busy_s, point = ROWS[name], list[Off](), 0.0, dict[str, float]()
    for train, held, lengths in folds:
        point = tune(row, train, lengths, trials, seed)
        started = time.perf_counter()
        offs += throw(row, point, held, lengths)
        busy_s += time.perf_counter() - started
    found, rate = tuned(offs), len(offs) / busy_s
    bar, said = "", ""
    if row.bar is not None:
        bar = f"{row.bar[0]:g} {row.bar[1]:g}"
        said = "ok" if found.position_percent <= row.bar[0] and found.rotation_deg <= row.bar[1] else "NO"
    position = f"{found.position_percent:.1f} +- {found.position_spread:.1f}"
    rotation = f"{found.rotation_deg:.1f} +- {found.rotation_spread:.1f}"
    values = ", ".join(f"{knob} {value:.4g}" for knob, value in point.items())
    print(f"{name:<19} {position:>14} {rotation:>15} {bar:>9} {said:>4} {rate:>8.1f}  {values}", flush=True)


def tune(row: Row, train: Sequence[Toss], lengths: float, trials: int, seed: int) -> dict[str, float]:
    """The best point: half of the trials spread evenly, the rest ever nearer to the best so far."""
    rng = np.random.default_rng(seed)
    names = list(row.knobs)
    low, high = (np.log([row.knobs[name][end] for name in names]) for end in (0, 1))
    spread = trials // 2
    even = np.stack([(rng.permutation(spread) + rng.random(spread)) / spread for _ in names], axis=1)
    best, least = even[0], np.inf
    for trial in range(trials):
        if trial < spread:
            unit: Array = even[trial]
        else:
            width = 0.2 * 0.1 ** ((trial - spread) / (trials - spread))
            unit = np.clip(best + width * rng.normal(size=len(names)), 0.0, 1.0)
        point = dict(zip(names, np.exp(low + unit * (high - low)).tolist(), strict=True))
        error = cost(throw(row, point, train, lengths))
        if error < least:
            best, least = unit, error
    return dict(zip(names, np.exp(low + best * (high - low)).tolist(), strict=True))


def throw(row: Row, point: Mapping[str, float], tosses: Sequence[Toss], lengths: float) -> tuple[Off, ...]:
    """Throw all of them with the contact at this point."""
    stiffness = point.get("stiffness", RATIO_TO_STIFFNESS)
    values = {
        "friction_coefficient": point["friction"],
        "contact_stiffness": stiffness,
        "contact_damping": 2.0 * point["ratio"] * stiffness**0.5,
    }
    return thrown(row.engine, tosses, values, lengths=lengths)


def cost(offs: Sequence[Off]) -> float:
    """Both errors in one number."""
    found = tuned(offs)
    return found.position_percent / PERCENT + found.rotation_deg / DEGREES


if __name__ == "__main__":
    main()
