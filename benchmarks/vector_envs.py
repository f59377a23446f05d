"""Is our environment as fast as what a user would pick instead: EnvPool, or gymnasium's vector environments?

All run Ant from gymnasium's own file with five physics steps an action and random actions; observation,
reward, end and the next beginning are included. First every setting is timed in turn, then the best
setting of each is timed against ours, turn by turn, and the ratio is the median over those turns. On a busy
machine whoever has more processes gets more of it: the load is printed, and the processor time a step.
Before that, every peer's own copies are put into our engine and take one step there: the states must agree.

    python -m venv PEERS && PEERS/bin/pip install 'gymnasium[mujoco]' envpool
    python benchmarks/vector_envs.py --peers PEERS/bin/python [--full]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from peers.ant import ant, columns, engine
from peers.vector import PLANS, THREADS, Tally

from simops.core.env import Env
from simops.core.params import Params

OURS = "simops"
SETTINGS = {
    OURS: ("64", "256", "1024"),
    "envpool": ("64", "256", "1024", "256 64", "1024 256"),
    "async": ("2", "4", "8", "16"),
    "sync": ("1", "4"),
}
"""Copies, and after a blank how many of them are stepped at a time."""
TITLES = {OURS: "simops Env", "envpool": "EnvPool", "async": "AsyncVectorEnv", "sync": "SyncVectorEnv"}
HEAD = f"{'copies':<20} {'steps/s':>9} {'cost':>7} {'reward':>7} {'length':>7}"
BARS = {"envpool": 1.0, "async": 3.0}
SAME = 1e-4
"""Two versions of one solver end their iterations this near each other [rad, m, rad/s, m/s]."""


class Timed(NamedTuple):
    """What was done in one turn."""

    seconds: float
    cpu: float
    """Processor seconds, on all cores."""
    steps: int
    ended: int
    reward: float

    @property
    def rate(self) -> float:
        """Steps a second."""
        return self.steps / self.seconds

    @property
    def cost(self) -> float:
        """Processor seconds a step."""
        return self.cpu / self.steps


class Runner(Protocol):
    """A vector environment that can be asked to step for a while."""

    def run(self, seconds: float) -> Timed:
        """Step for about that time."""
        ...


class Ours:
    """Our environment, driven by the same actions."""

    def __init__(self, env: Env, copies: int) -> None:
        self._env, self._at = env, 0
        self._plans = np.random.default_rng(0).uniform(-1, 1, (PLANS, copies, 8)).astype(np.float32)

    def run(self, seconds: float) -> Timed:
        """Step for about that time."""
        tally = Tally()
        while tally.seconds < seconds:
            self._at = (self._at + 1) % PLANS
            step = self._env.step(self._plans[self._at])
            tally.add((step.observation, step.reward, step.terminated, step.truncated, {}))
        return Timed(**tally.result(0))


class Theirs:
    """A peer in a process of its own, idle unless asked."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, seconds: float) -> Timed:
        """Let it step for about that time."""
        return Timed(**self.ask(str(seconds)))

    def ask(self, what: str) -> dict[str, Any]:
        """Give one line, take one line."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(what, file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, help="a Python that has gymnasium[mujoco] and envpool")
    parser.add_argument("--seconds", type=float, default=0.7, help="of each turn")
    parser.add_argument("--full", action="store_true", help="more turns, for the nightly proof")
    args = parser.parse_args()
    missing = _missing(args.peers)
    for kind, why in missing.items():
        print(f"{TITLES[kind]:<15} skipped: {why}")
    if "async" in missing:
        print("simops Env      skipped: the scene is gymnasium's own file")
        return
    print(f"load: {os.getloadavg()[0]:.2f} processes on {os.cpu_count()} cores before anything is timed")
    kinds = [kind for kind in SETTINGS if kind not in missing]
    with ExitStack() as held:
        path = _compare(args.peers, kinds)
        runners = {
            (kind, setting): held.enter_context(
                _ours(path, setting) if kind == OURS else _theirs(args.peers, kind, setting)
            )
            for kind in kinds
            for setting in SETTINGS[kind]
        }
        survey = _turns(runners, 6 if args.full else 2, args.seconds)
        best = {
            kind: max(SETTINGS[kind], key=lambda setting, kind=kind: _rate(survey[kind, setting])) for kind in kinds
        }
        _show_survey(survey, best)
        finalists = {(kind, best[kind]): runners[kind, best[kind]] for kind in kinds}
        _show_final(_turns(finalists, 30 if args.full else 9, args.seconds))


def _missing(peers: Path | None) -> dict[str, str]:
    needs = {"envpool": "envpool", "async": "gymnasium.envs.mujoco", "sync": "gymnasium.envs.mujoco"}
    if peers is None:
        return dict.fromkeys(needs, "no --peers PYTHON was named")
    out: dict[str, str] = {}
    for kind, module in needs.items():
        try:
            done = subprocess.run([peers, "-c", f"import {module}"], capture_output=True, text=True, check=False)
        except OSError as error:
            out[kind] = str(error)
            continue
        if done.returncode:
            out[kind] = f"{peers} does not import {module}: {done.stderr.strip().splitlines()[-1]}"
    return out


@contextmanager
def _ours(path: str, setting: str) -> Generator[Runner]:
    task, copies = ant(path), int(setting)
    with engine(THREADS).open(task, copies) as sim:
        yield Ours(Env(task, sim), copies)


@contextmanager
def _theirs(peers: Path, kind: str, setting: str) -> Generator[Theirs]:
    command = [str(peers), str(Path(__file__).parent / "peers" / "vector.py"), kind, *setting.split()]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield Theirs(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()


def _compare(peers: Path, kinds: Sequence[str]) -> str:
    """Check that all run the same model; gives the path of its file."""
    facts: dict[str, dict[str, Any]] = {}
    for kind in kinds:
        if kind in ("envpool", "sync"):
            with _theirs(peers, kind, "16") as peer:
                facts[kind] = peer.ask("facts")
    theirs = facts["sync"]
    path: str = theirs["path"]
    with engine(THREADS).open(ant(path), 16) as sim:
        model = sim.batch.model
        for name in ("nq", "nv", "nu", "ngeom"):
            assert getattr(model, name) == theirs[name], name
        for name in ("timestep", "integrator", "cone", "impratio", "solver", "iterations", "tolerance"):
            assert getattr(model.opt, name) == theirs[name], name
        assert round(0.05 / model.opt.timestep) == theirs["frame_skip"]
        print(
            f"model: {model.nv} degrees of freedom, integrator {model.opt.integrator}, "
            f"{theirs['frame_skip']} steps of {model.opt.timestep} s an action"
        )
        for kind, found in facts.items():
            before, after = (np.array(found[name]) for name in ("before", "after"))
            qpos = np.concatenate([np.zeros((16, 2)), before[:, :13]], axis=1)
            nothing = Params((), np.empty((16, 0)))
            sim.reset(np.arange(16), nothing, columns(qpos, before[:, 13:]))
            sim.step(np.array(found["action"]))
            seen = sim.read()
            ours = np.concatenate([np.reshape(seen[name], (16, -1)) for name in columns(qpos, qpos)], axis=1)[:, 2:]
            gap = np.abs(ours - after).max()
            assert gap < SAME, f"{kind}: a step from the same states ends {gap} apart"
            print(f"{TITLES[kind]}, {found['version']}: one step from its 16 states ends {gap:.1e} from ours")
    return path


def _turns(runners: Mapping[Any, Runner], turns: int, seconds: float) -> dict[Any, list[Timed]]:
    """Time all in turn, forwards and backwards by turns; the first turn only warms up."""
    out: dict[Any, list[Timed]] = {key: [] for key in runners}
    for turn in range(turns + 1):
        order = list(runners) if turn % 2 else list(runners)[::-1]
        for key in order:
            timed = runners[key].run(seconds)
            time.sleep(0.02)  # until threads that wait by spinning have gone to sleep
            if turn:
                out[key].append(timed)
    return out


def _rate(turns: Sequence[Timed]) -> float:
    return statistics.median(timed.rate for timed in turns)


def _row(kind: str, setting: str, turns: Sequence[Timed]) -> str:
    steps, ended = sum(t.steps for t in turns), sum(t.ended for t in turns)
    copies, *batch = setting.split()
    copies += f", {batch[0]} at a time" if batch else ""
    reward, length = sum(t.reward for t in turns) / steps, f"{steps / ended:.0f}" if ended else "-"
    cost_us = 1e6 * statistics.median(t.cost for t in turns)
    return f"{TITLES[kind]:<15} {copies:<20} {_rate(turns):>9,.0f} {cost_us:>7.0f} {reward:>7.2f} {length:>7}"


def _show_survey(survey: Mapping[tuple[str, str], Sequence[Timed]], best: Mapping[str, str]) -> None:
    print(f"\n{'every setting':<15} {HEAD}")
    for (kind, setting), turns in survey.items():
        print(_row(kind, setting, turns) + ("   best" if best[kind] == setting else ""))


def _show_final(final: Mapping[tuple[str, str], Sequence[Timed]]) -> None:
    ours = next(turns for (kind, _), turns in final.items() if kind == OURS)
    print(f"\n{'best settings':<15} {HEAD} {'simops is':>10} {'quartiles':>14} {'at a cost of':>13}")
    for (kind, setting), turns in final.items():
        if kind == OURS:
            print(_row(kind, setting, turns))
            continue
        ratios = [mine.rate / other.rate for mine, other in zip(ours, turns, strict=True)]
        low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75])
        verdict = ""
        if kind in BARS:
            verdict = f"   bar {BARS[kind]:.1f} x: {'met' if middle >= BARS[kind] else 'MISSED'}"
        cost = statistics.median(mine.cost / other.cost for mine, other in zip(ours, turns, strict=True))
        print(f"{_row(kind, setting, turns)} {middle:>8.2f} x {low:>7.2f}, {high:.2f} {cost:>11.2f} x{verdict}")
    print(f"medians of {len(ours)} turns, {THREADS} threads each; cost in processor µs a step; resets are no steps")


if __name__ == "__main__":
    main()
