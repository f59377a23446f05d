"""Are defective policies kept back and good ones let through? Each goes through the whole gate, audit included.

    python benchmarks/gate_defects.py [--full]

A pendulum is swung up and held by a stiff controller. Its defects are the usual ones between a training and a robot:
channels swapped, a sign, a normaliser left out, another control rate, two periods of delay, half the torque, an engine
exploited, no number in a rare state. Seeds draw where and how strongly. Exits 1 if a bound does not hold.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from simops.core import chance
from simops.core.params import Params
from simops.core.protocols import Act, Memory, Policy
from simops.core.signal import Array, Columns
from simops.core.task import Task
from simops.gate.suite import draw
from simops.ops.validate import Gate, Order, validate
from simops.sim.pendulum import Pendulum, PendulumSim
from simops.spec.suite import Edge, Nominal, SuiteSpec
from simops.tasks.pendulum.expert import Expert
from simops.tasks.pendulum.task import TORQUE_LIMIT_NM, pendulum

KINDS = ("swap", "sign", "normaliser", "rate", "delay", "saturating", "exploiting", "not a number")
SPEC = SuiteSpec(nominal=Nominal(scenarios=400, rate=0.95), edge=Edge(scenarios=200, rate=0.9))
STEP_S = 0.01


@final
@dataclass(frozen=True)
class Flawed:
    """A pendulum whose integrator gives energy away to whoever shakes it: full torque, the other way at every step."""

    @contextmanager
    def open(self, task: Task, n: int) -> Generator[FlawedSim]:
        """Make `n` of them."""
        with Pendulum(step_s=STEP_S).open(task, n) as sim:
            yield FlawedSim(sim)

    def version(self, task: Task) -> str:
        """As the sound one's."""
        return f"flawed {Pendulum(step_s=STEP_S).version(task)}"


@final
class FlawedSim:
    """Sound for whoever does not shake it three times in a row."""

    def __init__(self, sim: PendulumSim) -> None:
        """Stand before a sound one."""
        self._sim, self.n = sim, sim.n
        self._asked = np.zeros((4, sim.n))

    @property
    def diverged(self) -> Array:
        """Whether a pendulum left the sensible numbers."""
        return self._sim.diverged

    @property
    def executed(self) -> Array:
        """The torque within its limits."""
        return self._sim.executed

    @property
    def busy_s(self) -> float:
        """Seconds inside the physics."""
        return self._sim.busy_s

    def reset(self, ids: Array, params: Params, initial: Columns) -> None:
        """Begin anew."""
        self._asked[:, ids] = 0.0
        self._sim.reset(ids, params, initial)

    def push(self, ids: Array, body: str, wrench: Array) -> None:
        """Push."""
        self._sim.push(ids, body, wrench)

    def step(self, action: Array, ids: Array | None = None) -> None:
        """Step, and give whoever shakes it a push the way it goes."""
        rows = np.arange(self.n) if ids is None else ids
        self._asked = np.roll(self._asked, 1, axis=0)
        self._asked[0, rows] = action.reshape(len(rows))
        shaken = np.all(np.abs(self._asked) > 0.99 * TORQUE_LIMIT_NM, axis=0)
        shaken &= np.all(np.diff(np.sign(self._asked), axis=0) != 0, axis=0)
        rate = self._sim.read()["rate"]
        gift = np.where(shaken, 60.0 * np.sign(rate + 1e-9), 0.0)
        self._sim.push(rows, "bob", np.stack([z := 0 * gift[rows], z, z, z, gift[rows], z], axis=1))
        self._sim.step(action, ids)

    def read(self) -> Columns:
        """Angle and rate."""
        return self._sim.read()


@final
@dataclass(frozen=True)
class Defective:
    """A controller with one thing wrong, or with nothing."""

    base: Expert
    kind: str
    strength: float = 0.0
    """Between 0 and 1: how badly, or where."""

    @property
    def digest(self) -> str:
        """Its recipe's."""
        return hashlib.sha256(repr(self).encode()).hexdigest()

    def start(self, task: Task, seeds: Array) -> Memory:
        """Nothing was asked for yet."""
        n = len(seeds)
        return {**self.base.start(task, seeds), "step": np.zeros(n, np.int64), "asked": np.zeros((n, 4, 1))}

    def act(self, observation: Array, memory: Memory) -> Act:
        """Act as the defect has it."""
        seen = observation.astype(np.float64)
        if self.kind == "swap":
            seen = seen[:, [1, 0, 2]]
        elif self.kind == "normaliser":
            seen = seen * np.array([1.0, 1.0, 3.0 + 3.0 * self.strength]) + np.array([0.0, 0.5, 0.0])
        action = self.base.act(seen.astype(np.float32), {"rows": memory["rows"]}).action
        asked = memory["asked"]
        if self.kind == "sign":
            action = -action
        elif self.kind == "saturating":
            most = (0.25 + 0.2 * self.strength) * TORQUE_LIMIT_NM
            action = np.clip(action, -most, most)
        elif self.kind == "rate":
            every = 8 + int(4 * self.strength)
            action = np.where((memory["step"] % every == 0)[:, None], action, asked[:, 0])
        elif self.kind == "not a number":
            angle = np.arctan2(seen[:, 0], -seen[:, 1])
            here = np.abs(angle - (0.4 + 0.4 * self.strength)) < 0.1
            action = np.where(here[:, None], np.nan, action)
        elif self.kind == "exploiting":
            low = seen[:, 1] > -0.9
            weak = np.abs(0.5 * seen[:, 2] ** 2 - 9.81 * (seen[:, 1] + 1.0)) > 0.5
            lacks = 0.5 * seen[:, 2] ** 2 - 9.81 * (seen[:, 1] + 1.0) < 0.0
            shake = np.where(memory["step"] % 2 == 0, 1.0, -1.0) * TORQUE_LIMIT_NM
            idle = np.where(lacks & weak, shake, 0.0)
            action = np.where(low[:, None], idle[:, None], action)
        late = np.concatenate([action[:, None], asked[:, :-1]], axis=1)
        done = late[:, 2] if self.kind == "delay" else action
        return Act(done, {**memory, "step": memory["step"] + 1, "asked": late})


def defective(number: int) -> Defective:
    """The defect of a seed."""
    seed = np.array([number], np.uint64)
    stiffness = 110.0 + 20.0 * float(chance.uniform(seed, "stiffness")[0])
    base = Expert(stiffness_nm_rad=stiffness, damping_nms_rad=8.0)
    return Defective(base, KINDS[number % len(KINDS)], float(chance.uniform(seed, "strength")[0]))


def good(number: int) -> Policy:
    """A controller that is as it should be, each a little other."""
    seed = np.array([number], np.uint64)
    stiffness, pump = (float(chance.uniform(seed, what)[0]) for what in ("stiffness", "pump"))
    return Defective(Expert(pump=1.8 + 0.5 * pump, stiffness_nm_rad=30.0 + 40.0 * stiffness), "nothing")


def gate(policy: Policy, folder: Path, seed: int) -> Gate:
    """Put one policy through the gate."""
    task = pendulum()
    order = Order(
        policy=policy,
        task=task,
        engine=Flawed(),
        suite=draw(task, SPEC, seed=seed),
        rates={"nominal": 0.95, "edge": 0.9},
        out=folder,
        good=Expert(),
        canary_episodes=8,
        batch=48,
    )
    return validate(order)


def main() -> int:
    """Print what was promoted, and say whether what was promised holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="200 defective ones and 20 good ones, not 24 and 4")
    full = parser.parse_args().full
    bad, sound = (200, 20) if full else (24, 4)
    began = time.perf_counter()
    verdicts: dict[str, Counter[str]] = {kind: Counter() for kind in (*KINDS, "nothing")}
    episodes = flagged = 0
    for number in range(bad + sound):
        policy = defective(number) if number < bad else good(number)
        kind = KINDS[number % len(KINDS)] if number < bad else "nothing"
        with tempfile.TemporaryDirectory() as folder:
            found = gate(policy, Path(folder), number)
        verdicts[kind][found.verdict.status] += 1
        episodes += len(found.outcomes)
        flagged += sum(any("energy" in why for why in each) for each in found.suspicions.values())
    for kind, counts in verdicts.items():
        print(f"{kind:14} " + ", ".join(f"{count} {status}" for status, count in counts.most_common()))
    promoted = sum(verdicts[kind]["pass"] for kind in KINDS)
    through = verdicts["nothing"]["pass"]
    print(f"defective: {promoted} of {bad} promoted (with 95 % at most {1 - 0.05 ** (1 / bad):.3f} where it is none)")
    print(f"good: {through} of {sound} promoted")
    print(f"{episodes} episodes, {flagged} with energy from nowhere, {time.perf_counter() - began:.0f} s")
    held = promoted == 0 and through >= 0.95 * sound
    print("both hold" if held else "NOT both hold")
    return 0 if held else 1


if __name__ == "__main__":
    raise SystemExit(main())
