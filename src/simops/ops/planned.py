"""What a crank would do next, and why, from digests alone: nothing is done, and no robot is moved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

from simops.ops import stages, steps
from simops.ops.crank import ALPHA, Order, at, bench_of
from simops.ops.hardening import ended
from simops.ops.steps import Step
from simops.ops.turn import Standing, turn

LATER = {
    "learn": ("train", "export", "validate", "trials", "diagnose"),
    "train": ("export", "validate", "trials", "diagnose"),
    "export": ("validate", "trials", "diagnose"),
    "explore": ("validate", "trials", "diagnose"),
    "validate": ("trials", "diagnose"),
    "trials": ("diagnose",),
}
"""What follows a step whose outcome is not known yet."""


@final
@dataclass(frozen=True)
class Row:
    """One line of a plan."""

    turn: int
    stage: str
    will: Literal["done", "runs", "then"]
    """Done before; runs next; depends on what comes out of what runs."""
    why: str
    folder: str = ""


def plan(order: Order) -> list[Row]:
    """Every step as far as it can be known, and the first that would run."""
    rows: list[Row] = []
    bench = bench_of(order, lambda _: None)
    standing = Standing(simulator=stages.untouched(bench.spec), text=order.text)
    for number in range(order.turns + 1):
        bench = at(bench, order, standing.text)
        walk = turn(bench, standing, number, root=order.root, alpha=ALPHA / max(1, order.turns))
        try:
            step = next(walk)
            while True:
                found = steps.look(order.home, step)
                if found is None:
                    return [*rows, *_ahead(order, step)]
                rows.append(Row(number, step.stage, "done", f"came to {found.digest[:12]}", step.name))
                step = walk.send(found)
        except StopIteration as end:
            standing = end.value
        if why := ended(standing.turns, bench.spec.hardened):
            return [*rows, Row(number, "end", "done", why)]
    return rows


def _ahead(order: Order, step: Step) -> list[Row]:
    rows = [Row(step.turn, step.stage, "runs", f"{step.about}; it {steps.changed(order.home, step)}", step.name)]
    rows += [Row(step.turn, stage, "then", f"after {step.stage}") for stage in LATER.get(step.stage, ())]
    return rows + [
        Row(number, "turn", "then", f"after turn {number - 1}") for number in range(step.turn + 1, order.turns + 1)
    ]
