"""How well is contact learned from few recorded tosses, and does it beat the best that can be tuned?

Tosses are held out once for each split. From the others 8, 16, 64 and 256 are taken, and each time the law of contact
of the engine `impact` is learned from them: its numbers, and with --shape where its corners truly are. Beside it
stands MuJoCo, its friction, stiffness and damping tuned on the same tosses. Every held-out toss is rolled out from its
first row alone, once, with nothing averaged.

    python benchmarks/recorded_contact.py --data PATH [--splits 2] [--sizes 16 256] [--full]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from simops.core.signal import Array
from simops.core.throwing import Missed, Throws, missed
from simops.learn.contact import LAG, LAW, SHAPE, SPIN, How, learn_law, misses, predict, stretches
from simops.learn.evolve import evolve
from simops.sim.impact import Impact
from simops.sim.mujoco import Mujoco
from simops.tasks.cube_toss.recorded import LENGTHS, Toss, recorded, thrown
from simops.tasks.cube_toss.task import RATE_HZ, SIDE_M, cube_toss

HELD = 74
FIRST = 48
"""Tosses that the search begins with."""
EARLY = 16
"""Rows in which a first flight ends."""
BELIEVED = {
    LAG.name: 0.5 / RATE_HZ,
    "stiffness": 5.0,
    "damping": 1.7,
    "grip": 1.15,
    "slow": -0.25,
    "slow_speed_m_s": 0.15,
    "load": 0.08,
    "creep_m_s": 0.003,
    "rounding_m": 0.005,
    "inertia": 1.1,
}
"""Where every search begins: acrylic grips less where it is pressed and where it creeps, corners are round, and a
recorded velocity is a difference of positions, half a frame old. Chosen with such tosses in sight; the line `search
begins` says what it is worth alone."""
AS_IT_COMES, BEGUN = "as it comes", "search begins"
SHAPED, MUJOCO = "impact and shape", "mujoco, tuned"
CLASSICAL = {"friction": (0.1, 0.3), "stiffness": (1_000.0, 40_000.0), "damping": (30.0, 500.0)}


@dataclass(frozen=True)
class Figure:
    """One learner at one size: every held-out toss of every split."""

    name: str
    size: int
    position_percent: Array
    rotation_deg: Array
    means: Array
    """(splits, 2) of position and rotation."""
    took_s: float

    def line(self) -> str:
        """As it is printed."""
        among = self.means.std(axis=0)
        return (
            f"{self.name:<16} {self.size:>5}"
            f" {self.position_percent.mean():>7.2f} +- {self.position_percent.std():<5.2f} ({among[0]:.2f})"
            f" {self.rotation_deg.mean():>7.2f} +- {self.rotation_deg.std():<5.2f} ({among[1]:.2f})"
            f" {np.median(self.position_percent):>7.2f} {np.median(self.rotation_deg):>7.2f} {self.took_s:>7.0f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the table of tosses, or a folder of such tables")
    parser.add_argument("--splits", type=int, default=1, help="ways to hold tosses out")
    parser.add_argument("--sizes", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--generations", type=int, default=25)
    parser.add_argument("--classical", action="store_true", help="tune MuJoCo on the same tosses as well")
    parser.add_argument("--floor", action="store_true", help="how far a small change of the first row is at the end")
    parser.add_argument("--shape", action="store_true", help="learn the shape of the corners as well")
    parser.add_argument("--full", action="store_true", help="all sizes, three splits, MuJoCo beside")
    args = parser.parse_args()
    if args.data is None or not args.data.exists():
        print("skipped: it needs recorded tosses, --data PATH; docs/contact.md says where they come from")
        return
    splits, sizes = (3, [8, 16, 64, 256]) if args.full else (args.splits, args.sizes)
    tosses = recorded(args.data)
    if args.floor:
        floor(tosses)
        return
    print(f"{len(tosses)} tosses, {HELD} held out in each of {splits} splits; (in brackets: sd of the splits' means)")
    print(f"{'':<16} {'tosses':>6} {'position [% of side]':>21} {'rotation [deg]':>22} {'medians':>15} {'took s':>7}")
    for name in (AS_IT_COMES, BEGUN):
        print(measured(name, 0, tosses, splits, 0).line(), flush=True)
    for size in sizes:
        names = ["impact"] + [SHAPED] * args.shape + [MUJOCO] * (args.classical or args.full)
        for name in names:
            print(measured(name, size, tosses, splits, args.generations).line(), flush=True)


def rows(data: Path, full: bool) -> Iterator[tuple[str, str, str, bool | None]]:  # noqa: FBT001 (a flag of the command)
    """For the table of all recordings; a short search from few tosses where it is to be quick."""
    tosses = recorded(data / "tosses.parquet")
    splits, sizes, generations = (3, (16, 256), 25) if full else (1, (16,), 4)
    beside = measured(MUJOCO, 16, tosses, splits, generations) if full else measured(AS_IT_COMES, 0, tosses, splits, 0)
    for one in (beside, *(measured("impact", size, tosses, splits, generations) for size in sizes)):
        bar = (10.0, 14.0) if one.size == max(sizes) and one.name == "impact" else (np.inf, np.inf)
        for i, (word, unit) in enumerate((("position", "% of side"), ("rotation", "deg"))):
            value = float(one.means[:, i].mean())
            asked = np.isfinite(bar[i])
            yield (
                f"{one.name}, {one.size} tosses, {splits} splits, {word}",
                f"{value:.1f} {unit}",
                f"{bar[i]:g} at 256" if asked else "",
                value <= bar[i] if asked else None,
            )


def measured(name: str, size: int, tosses: Sequence[Toss], splits: int, generations: int) -> Figure:
    """Learn from `size` tosses of each split, and judge on those it holds out."""
    offs: list[Array] = []
    started = time.perf_counter()
    for seed in range(splits):
        order = np.random.default_rng(seed).permutation(len(tosses))
        held, train = ([tosses[i] for i in part] for part in (order[-HELD:], order[: min(size, len(tosses) - HELD)]))
        if size == 0:
            offs.append(at(BELIEVED if name == BEGUN else {}, held))
        elif name == MUJOCO:
            offs.append(classical(train, held, seed))
        else:
            offs.append(learned(train, held, generations, shape=name == SHAPED))
    every = np.concatenate(offs)
    means = np.array([off.mean(axis=0) for off in offs])
    took = (time.perf_counter() - started) / splits
    return Figure(name, size, every[:, 0], every[:, 1], means, took)


def learned(train: Sequence[Toss], held: Sequence[Toss], generations: int, *, shape: bool = False) -> Array:
    """(held, 2) percent of the side and degrees, with what was learned from `train`."""
    task, engine, throws = cube_toss(), Impact(step_s=1 / (5 * RATE_HZ)), as_throws(train)
    lengths = shown_lengths(train)
    how = How(generations=generations, lengths=lengths)
    names, some = (*LAW, LAG.name, SPIN.name), throws.some(np.arange(min(len(throws), FIRST)))
    law = learn_law(engine, task, some, names, how=how, start=BELIEVED)
    if len(throws) > FIRST:  # the rest costs more each time, and has less to say
        rest = replace(how, generations=max(1, generations // 2), width=0.3)
        law = learn_law(engine, task, throws, names, how=rest, start=law.values)
    if shape:
        law = learn_law(engine, task, throws, SHAPE, how=how, start=law.values)
    return percent(misses(engine, task, as_throws(held), law.values, lengths=lengths))


def at(values: dict[str, float], held: Sequence[Toss]) -> Array:
    """(held, 2), with nothing learned."""
    return percent(misses(Impact(step_s=1 / (5 * RATE_HZ)), cube_toss(), as_throws(held), values, lengths=LENGTHS))


def classical(train: Sequence[Toss], held: Sequence[Toss], seed: int) -> Array:
    """(held, 2), with the friction, stiffness and damping of MuJoCo tuned on `train`."""
    low, high = (np.log([ends[i] for ends in CLASSICAL.values()]) for i in (0, 1))
    lengths = shown_lengths(train)
    some = train[:32]  # three numbers need no more, and it is slow

    def offs(point: Array, tosses: Sequence[Toss]) -> Array:
        friction, stiffness, damping = np.exp(low + np.clip(point, 0.0, 1.0) * (high - low)).tolist()
        values = {"friction_coefficient": friction, "contact_stiffness": stiffness, "contact_damping": damping}
        return np.array(thrown(Mujoco(), tosses, values, lengths=lengths))

    def costs(points: Array) -> Array:
        return np.array([(offs(point, some) / [10.0, 14.0]).mean() for point in points])

    start = np.array([0.5, 0.5, 0.7])
    return offs(evolve(costs, start, np.zeros(3), np.ones(3), generations=14, seed=seed), held)


def floor(tosses: Sequence[Toss]) -> None:
    """Print how far apart roll-outs of one law are whose first rows differ by what a first row does not tell."""
    throws, task, engine = as_throws(tosses), cube_toss(), Impact(step_s=1 / (5 * RATE_HZ))
    lengths = shown_lengths(tosses)
    told = predict(engine, task, throws, BELIEVED, lengths=lengths)
    flights = stretches(throws, 8)
    assert flights is not None
    first = {name.split("+")[0]: i for i, name in enumerate(flights.names)
             if int(name.split("+")[1]) < EARLY}  # fmt: skip
    both = [(i, first[name]) for i, name in enumerate(throws.names) if name in first]
    row0, flown = (throws.columns["angular_velocity"][[a for a, _ in both], 0],
                   flights.columns["angular_velocity"][[b for _, b in both], 0])  # fmt: skip
    print(f"the spin of the first row is off that of the flight by {np.std(row0 - flown):.2f} rad/s (sd)")
    for spin in (0.05, 0.1, 0.2):
        columns = dict(throws.columns)
        moved = columns["angular_velocity"].copy()
        moved[:, 0] += spin * np.random.default_rng(0).normal(size=moved[:, 0].shape)
        other = predict(engine, task, replace(throws, columns=columns | {"angular_velocity": moved}), BELIEVED,
                        lengths=lengths)  # fmt: skip
        apart = percent(missed(other["position"], other["quaternion"], replace(throws, columns=columns | told)))
        print(f"a spin off by {spin:.2f} rad/s: {apart[:, 0].mean():.2f} % of side and {apart[:, 1].mean():.2f} deg")


def as_throws(tosses: Sequence[Toss]) -> Throws:
    """What the learner reads."""
    columns = ("position", "quaternion", "velocity", "angular_velocity")
    each = [{name: getattr(toss, name) for name in columns} for toss in tosses]
    return Throws.of([toss.name for toss in tosses], each, 1.0 / RATE_HZ)


def shown_lengths(tosses: Sequence[Toss]) -> float:
    """What the recording shows of a metre, by the height of cubes at rest."""
    return float(np.mean([toss.position[-1, 2] for toss in tosses]) / (SIDE_M / 2.0))


def percent(off: Missed) -> Array:
    """In the measure of the literature."""
    return np.column_stack([100.0 * off.way_m / SIDE_M, np.rad2deg(off.turn_rad)])


if __name__ == "__main__":
    main()
