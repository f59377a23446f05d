"""How often does a crank promote what is no better? Many cranks in which nothing was improved, by the ratchet's code.

Every turn of every crank trains a "candidate" that acts as its champion does: both push at random, each with a chance
of its own, so they succeed equally often and seldom on the same trials. The robot is the simulator as it is believed,
so there is nothing to learn either, and every learned simulator that is kept is kept by chance. Trials, comparisons,
how long trials go on, learning and the gate of what was learned are the crank's own; trainings are not run.

Learning takes the longest, so only every `--every`th crank learns; the others go on believing what they believed.

    python -m benchmarks.crank_false [--cranks 200] [--turns 3] [--every 4] [--full]
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np

from benchmarks.small_crank import AS_BELIEVED, SPEC, project
from simops.core import chance
from simops.core.protocols import Act, Memory
from simops.core.robot import Reading, Robot
from simops.core.signal import Array, Columns
from simops.core.task import Task
from simops.core.trajectory import OUTCOMES
from simops.core.trial import attempt
from simops.gate import rate
from simops.ops import logbook, steps
from simops.ops.crank import ALPHA
from simops.ops.learn import judged
from simops.ops.sealed import Sealed
from simops.ops.stages import LOG, Bench, shape, untouched
from simops.ops.steps import Done, Step, Steps
from simops.ops.turn import Standing, turn
from simops.spec.crank import load_crank

PUSH_NM = 3.0
HOLD_STEPS = 10
TRIALS = SPEC.replace("trials: {episodes: 16, explore: 4, held_out: 0.5}", "trials: {episodes: 40, most: 640}")


@final
@dataclass(frozen=True)
class Shaky:
    """Pushes at random, with a chance of its own; any two of them are equally good."""

    which: str

    @property
    def digest(self) -> str:
        """Its recipe."""
        return repr(self)

    def start(self, task: Task, seeds: Array) -> Memory:
        """Remember the seeds."""
        del task
        return {"seed": seeds, "step": np.zeros(len(seeds), np.int64)}

    def act(self, observation: Array, memory: Memory) -> Act:
        """A push, held for a while."""
        del observation
        drawn = chance.uniform(memory["seed"], self.which, (1,), step=memory["step"] // HOLD_STEPS)
        return Act(PUSH_NM * (2 * drawn - 1), {**memory, "step": memory["step"] + 1})


@final
class Held:
    """A robot that stays open, in the trials of one crank: no other crank has any of them."""

    def __init__(self, robot: Robot, crank: int) -> None:
        self._robot, self._first = robot, 10_000_000 * crank
        self.n, self.identity, self.origin = robot.n, robot.identity, robot.origin

    @property
    def trials(self) -> int:
        """As the robot counts them."""
        return self._robot.trials

    def ready(self, numbers: Array, goal: Columns) -> Reading:
        """Begin trials that only this crank has."""
        return self._robot.ready(numbers + self._first, goal)

    def act(self, action: Array, goal: Columns) -> Reading:
        """As the robot does."""
        return self._robot.act(action, goal)

    def stop(self, places: Array) -> None:
        """As the robot does."""
        self._robot.stop(places)

    @contextmanager
    def open(self, task: Task, places: int) -> Generator[Held]:
        """It is open."""
        del task, places
        yield self


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cranks", type=int, default=200)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--every", type=int, default=4, help="one crank in so many learns simulators too")
    parser.add_argument("--full", action="store_true", help="a thousand cranks, all of which learn")
    args = parser.parse_args()
    cranks, every = (1000, 1) if args.full else (args.cranks, args.every)
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        spec = project(Path(folder), spec=TRIALS, reality=AS_BELIEVED)
        with Sealed(spec.parent / "reality.yaml").open(load_crank(spec).value.task, 64) as robot:
            for number in range(cranks):
                home, learns = Path(folder) / str(number), number % every == 0
                found.update(cranked(spec, Held(robot, number), number, args.turns, home, learns=learns))
                if (number + 1) % 20 == 0:
                    print(f"{number + 1:>5} cranks: {dict(found)}", flush=True)
    share = found["good"] / found["trials"]
    print(f"each policy succeeds in {share:.1%} of {found['trials']:,} trials; {found['longer']} comparisons went on")
    for what, of in (("policy", cranks), ("simulator", found["learning"])):
        count = found[what]
        within = rate.interval(count, of - count, 0.05)
        print(f"{what}: promoted in {count} of {of} cranks of {args.turns} turns, {count / of:.1%}", end=" ")
        print(f"[{within.low:.1%}, {within.high:.1%}]; bar {ALPHA:.0%}")


def cranked(spec: Path, robot: Held, crank: int, turns: int, home: Path, *, learns: bool) -> Counter[str]:
    """One crank; what was promoted in it that should not have been."""
    found: Counter[str] = Counter(learning=learns)
    bench = Bench(
        text=spec.read_text(), loaded=load_crank(spec), reality=robot, identity=robot.identity, watch=lambda _: None
    )
    standing = Standing(simulator=untouched(bench.spec), text=bench.text)
    for number in range(turns + 1):
        walk = turn(bench, replace(standing, text=bench.text), number, root=spec.parent, alpha=ALPHA / turns)
        standing = walked(walk, lambda step: came(bench, robot, step, crank, home, found, learns=learns))
        one = standing.turns[-1]
        found["longer"] += one.beside is not None and len(one.beside["outcomes"]) > bench.spec.trials.episodes
        if number:
            found["policies"] += one.ending == "promoted"
            found["simulators"] += one.kept_simulator
    found["policy"], found["simulator"] = int(found["policies"] > 0), int(found["simulators"] > 0)
    return found


def walked(walk: Steps[Standing], came: Callable[[Step], Done]) -> Standing:
    """Answer the steps of a turn one after the other."""
    try:
        step = next(walk)
        while True:
            step = walk.send(came(step))
    except StopIteration as end:
        return end.value


def came(bench: Bench, robot: Held, step: Step, crank: int, home: Path, found: Counter[str], *, learns: bool) -> Done:
    """What comes of a step: the crank's own work, but where a policy is trained or asked what it can."""
    match step.stage:
        case "train" | "export":
            said: Mapping[str, Any] = {"checkpoint": f"{step.turn}", "shape": shape(bench), "bundle": f"{step.turn}"}
        case "validate":
            said = {"status": "pass", "success": 0.9}
        case "diagnose":
            said = {"patches": [], "clusters": [], "cause": "unknown", "why": ""}
        case "learn" if not learns:
            verdict = judged(np.ones(8), np.ones(8), about="", suite="", alpha=0.05)
            said = {"verdict": verdict.text(), "before": 1.0, "after": 1.0}
        case "trials":
            return steps.do(home, replace(step, work=lambda folder: tried(bench, robot, step, crank, folder, found)))
        case _:
            return steps.do(home, step)
    return Done(step, home, said, fresh=True, took_s=0.0)


def tried(bench: Bench, robot: Held, step: Step, crank: int, folder: Path, found: Counter[str]) -> Mapping[str, Any]:
    """Trials of a policy that is as good as any other."""
    low, high = (int(number) for number in step.inputs["numbers"].split(" to "))
    numbers: Sequence[int] = range(low, high + 1)
    block = attempt(Shaky(f"{crank} {step.inputs['policy']}"), bench.spec.task, robot, numbers)
    outcomes = [OUTCOMES[code] for code in block.outcomes.tolist()]
    found["trials"] += len(outcomes)
    found["good"] += outcomes.count("success")
    log = logbook.keep(block, bench.spec.task, folder / LOG)
    return {"log": log, "numbers": list(numbers), "outcomes": outcomes}


if __name__ == "__main__":
    main()
