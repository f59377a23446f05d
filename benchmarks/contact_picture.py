"""Draw what was learned of contact: held-out tosses beside their recordings, the law of friction, the rounded corner.

python benchmarks/contact_picture.py --data PATH --out docs/pictures/contact.png [--tosses 16]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
from matplotlib import pyplot as plt

from benchmarks.recorded_contact import BELIEVED, HELD, as_throws, percent, shown_lengths
from simops.core.throwing import Throws, missed
from simops.learn.contact import LAG, LAW, SPIN, How, learn_law, predict
from simops.sim.impact import Impact
from simops.tasks.cube_toss.recorded import recorded
from simops.tasks.cube_toss.task import RATE_HZ, SIDE_M, cube_toss

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BASE = 0.18
"""Friction of the scene, which `grip` multiplies."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("contact.png"))
    parser.add_argument("--tosses", type=int, default=16)
    parser.add_argument("--generations", type=int, default=20)
    args = parser.parse_args()
    if args.data is None or not args.data.exists():
        print("skipped: it needs recorded tosses, --data PATH; docs/contact.md says where they come from")
        return
    tosses, task, engine = recorded(args.data), cube_toss(), Impact(step_s=1 / (5 * RATE_HZ))
    order = np.random.default_rng(0).permutation(len(tosses))
    train, held = ([tosses[i] for i in part] for part in (order[: args.tosses], order[-HELD:]))
    lengths = shown_lengths(train)
    how = How(generations=args.generations, lengths=lengths)
    law = learn_law(engine, task, as_throws(train), (*LAW, LAG.name, SPIN.name), how=how, start=BELIEVED).values
    throws = as_throws(held)
    seen = predict(engine, task, throws, law, lengths=lengths)
    off = percent(missed(seen["position"], seen["quaternion"], throws))
    print(law, off.mean(axis=0))
    figure, axes = plt.subplots(2, 3, figsize=(13, 7), constrained_layout=True)
    ranks = np.argsort(off[:, 0] / 10 + off[:, 1] / 14)
    for axis, share in zip(axes.flat, (0.25, 0.5, 0.75, 0.95), strict=False):
        toss(axis, throws, seen, int(ranks[int(share * len(ranks))]), off)
    friction(axes[1, 1], law)
    errors(axes[1, 2], off)
    figure.suptitle(f"A law of contact learned from {args.tosses} tosses, on tosses it has not seen")
    figure.savefig(args.out, dpi=90)


def toss(axis: Axes, throws: Throws, seen: dict[str, np.ndarray], i: int, off: np.ndarray) -> None:
    """Where one cube went, and where it was said to go."""
    rows = int(throws.rows[i])
    time_s = np.arange(rows) / RATE_HZ
    for column, (letter, colour) in enumerate(zip("xyz", ("tab:blue", "tab:green", "tab:red"), strict=True)):
        axis.plot(time_s, 100 * throws.columns["position"][i, :rows, column], color=colour, lw=3, alpha=0.35)
        axis.plot(time_s, 100 * seen["position"][i, :rows, column], color=colour, lw=1.2, label=letter)
    axis.set_title(f"toss {throws.names[i]}: {off[i, 0]:.1f} % of side, {off[i, 1]:.0f} deg", fontsize=10)
    axis.set_xlabel("s (wide: recorded, thin: predicted from the first row)", fontsize=8)
    axis.set_ylabel("cm")
    axis.legend(fontsize=8)


def friction(axis: Axes, law: dict[str, float]) -> None:
    """The coefficient over slip, at loads from rest to a hard impact."""
    slip = np.linspace(0, 1.5, 200)
    for load, words in ((0.25, "resting on a face"), (5.0, "5 weights"), (30.0, "30 weights, an impact")):
        slow = 1 + law["slow"] * np.exp(-slip / law["slow_speed_m_s"])
        axis.plot(slip, BASE * law["grip"] * slow * max(load, 0.05) ** -law["load"], label=words)
    axis.set_ylim(0, 0.35)
    axis.set_title(f"friction learned; corners round by {1e3 * law['rounding_m']:.1f} mm", fontsize=10)
    axis.set_xlabel("slip [m/s]")
    axis.legend(fontsize=8)


def errors(axis: Axes, off: np.ndarray) -> None:
    """All held-out tosses."""
    axis.scatter(off[:, 0], off[:, 1], s=14)
    axis.axvline(off[:, 0].mean(), ls=":", color="k")
    axis.axhline(off[:, 1].mean(), ls=":", color="k")
    axis.set_title(
        f"{len(off)} held-out tosses; mean {off[:, 0].mean():.1f} %, {off[:, 1].mean():.1f} deg", fontsize=10
    )
    axis.set_xlabel(f"position error [% of {1e3 * SIDE_M:.0f} mm]")
    axis.set_ylabel("rotation error [deg]")


if __name__ == "__main__":
    main()
