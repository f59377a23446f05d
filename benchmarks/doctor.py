"""Does the doctor find what lies between a policy and its robot? Faults are planted for real, and each must be named.

n of n is shown with the bound that 95 % confidence allows: a rate of at least 1 - 3/n.
Run it from the project: `python -m benchmarks.doctor`.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import torch

from benchmarks.planted import (
    ENGINE,
    Plant,
    adapters,
    command_wires,
    contracts,
    names_only,
    paces,
    read_wires,
    task_of,
    wired,
)
from benchmarks.planted_graphs import answers, graphs, trained
from simops.core.contract import Contract
from simops.ops import probe
from simops.ops.adapter import examine, faithful
from simops.ops.border import compare
from simops.ops.mismatch import Mismatch
from simops.sim.pendulum import Pendulum
from simops.testing.miswired import Miswired


def clean(number: int) -> list[Mismatch]:
    """One pair in which everything agrees: its own task, seed, world and policy."""
    names = ("velocity", "pick_and_place", "pendulum", "cube_toss", "pendulum")
    name = names[number % len(names)]
    task = task_of(name)
    draw = task.belief.sample(np.array([number], np.uint64))
    world = tuple((key, float(draw.values[0, i])) for i, key in enumerate(draw.names))
    base = Pendulum() if number % len(names) == 4 else ENGINE
    seen = wired(name, Miswired(base, fixed=world), seed=number)
    engine = Miswired(base, fixed=world)
    seen += probe.labelled(task, engine, probe.respond(engine, task))
    seen += examine(faithful(task), task, ENGINE, seed=number)
    seen += compare(Contract.of(task), Contract.of(task_of(name)))
    if task.action.size:
        kind = ("feedforward", "recurrent", "windowed")[number // 5 % 3]
        seen += answers(name, trained(name, kind, seed=number), seed=number)()
    return seen


def plants() -> Iterator[Plant]:
    for family in (contracts, read_wires, command_wires, names_only, paces, adapters, graphs):
        yield from family()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clean", type=int, default=50, help="pairs with nothing wrong")
    parser.add_argument("--every", type=int, default=1, help="plant only every n-th fault")
    args = parser.parse_args()
    torch.set_num_threads(1)
    began, cpu = time.perf_counter(), time.process_time()
    table: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    missed: list[str] = []
    for plant in itertools.islice(plants(), 0, None, args.every):
        found = plant.found()
        row = table[plant.family]
        row[0] += 1
        row[1] += bool(found)
        row[2] += plant.named(found)
        row[3] += {each.kind for each in found} == {plant.kind}
        if not plant.named(found):
            missed.append(f"{plant.family} {plant.what}: {[(each.kind, each.where) for each in found]}")
    print(f"{'planted':<28} {'n':>5} {'refused':>8} {'named':>6} {'and nothing else':>17} {'at least':>9}")
    total = [sum(row[i] for row in table.values()) for i in range(4)]
    for family, row in [*table.items(), ("all", total)]:
        bound = f"{1 - 3 / row[0]:.1%}" if row[0] == row[2] and row[0] > 3 else ""
        print(f"{family:<28} {row[0]:>5} {row[1]:>8} {row[2]:>6} {row[3]:>17} {bound:>9}")
    for line in missed:
        print("missed:", line)
    alarms = [(number, found) for number in range(args.clean) if (found := clean(number))]
    print(
        f"false alarms: {len(alarms)} of {args.clean} clean pairs (at most {3 / args.clean:.1%})" if args.clean else ""
    )
    for number, found in alarms:
        print(f"  pair {number}: {[str(each) for each in found]}")
    print(f"{time.perf_counter() - began:.0f} s, of them {time.process_time() - cpu:.0f} s on the processor")


if __name__ == "__main__":
    main()
