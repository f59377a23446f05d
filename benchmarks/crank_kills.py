"""Does a crank that is killed at any moment come to what an undisturbed one comes to?

A small crank is run once, undisturbed. Then it is run in fresh folders and killed (`kill -9`)
at moments drawn evenly over the time it takes, some of them one after the other in the same folder, and then left to
end. Its summary, its turns, everything its steps left but the times its laps took, and what is live in its registry
have to be the same. Moments that came too late, when it had ended already, are not counted.

    python -m benchmarks.crank_kills [--kills 50] [--seed 0] [--full]
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.small_crank import project
from simops.cli.main import main
from simops.data.files import unseal
from simops.ops.crank import SUMMARY
from simops.ops.ratchet import HOME
from simops.ops.registry import Registry
from simops.ops.steps import RECORD
from simops.ops.train import METRICS

TURNS = 2
HEAVY = ("torch", "matplotlib.pyplot", "simops.learn.ppo", "simops.ops.crank_page", "simops.ops.export")
"""What a crank imports as it goes, and takes seconds."""


def measure() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--full", action="store_true", help="two hundred kills")
    args = parser.parse_args()
    kills = 200 if args.full else args.kills
    for module in HEAVY:
        importlib.import_module(module)
    rng = np.random.default_rng(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        spec = project(home / "project")
        began = time.perf_counter()
        crank(spec, home / "whole")
        took_s = time.perf_counter() - began
        asked = digest(home / "whole")
        print(f"undisturbed: {took_s:.1f} s, {asked[:16]}", flush=True)
        landed = cranks = same = 0
        while landed < kills:
            out, cranks = home / f"{cranks}", cranks + 1
            moments = [crank(spec, out, after_s=after_s) for after_s in rng.uniform(0.0, took_s, rng.integers(1, 6))]
            landed += sum(moments)
            crank(spec, out)
            same += (good := digest(out) == asked)
            said = "the same" if good else f"ANOTHER: {', '.join(other(out, home / 'whole'))}"
            print(f"{landed:>4} kills, {done_before(out)} steps: {said}", flush=True)
    print(f"{landed} kills in {cranks} cranks; {same} of {cranks} came to the same")
    sys.exit(0 if same == cranks else 1)


def crank(spec: Path, out: Path, *, after_s: float | None = None) -> bool:
    """Run it in a process of its own and kill that after a while; whether it was still at work.

    The process is a fork of this one, which has imported everything: what is killed is work, not the start of Python.
    """
    child = os.fork()
    if child == 0:
        os.setsid()
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os._exit(main(["crank", str(spec), "--turns", str(TURNS), "--out", str(out)]))
    until = time.monotonic() + (3600.0 if after_s is None else after_s)
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            if status:
                raise SystemExit(f"a crank ended with {os.waitstatus_to_exitcode(status)}")
            return False
        time.sleep(0.002)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def done_before(out: Path) -> int:
    """Steps that were done."""
    return len(list(out.glob(f"steps/*/{RECORD}")))


def digest(out: Path) -> str:
    """SHA-256 of everything that a crank comes to."""
    sha = hashlib.sha256()
    for name, content in sorted(contents(out).items()):
        sha.update(f"{name} {content}\n".encode())
    return sha.hexdigest()


def contents(out: Path) -> dict[str, str]:
    """What a crank comes to, name by name: its summary, turns and steps as bytes, and what is live."""
    paths = [out / SUMMARY, *out.glob("turn-*"), *out.glob("patches/*")]
    found = {str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    for path in out.glob(f"steps/*/{RECORD}"):
        body = unseal(path)
        body["files"].pop(METRICS, None)  # which tells how long every lap took
        found[str(path.relative_to(out))] = json.dumps(body, sort_keys=True)
    with Registry(out / HOME) as registry:
        for kind in ("policy", "simulator"):
            for one in registry.versions("easy", kind=kind):
                found[f"{kind} {one.version}"] = f"{one.digest} {sorted(one.tags)}"
            history = [event.why for event in registry.history("easy", kind=kind)]
            found[f"history of the {kind}"] = "; ".join(history)
    return found


def other(out: Path, whole: Path) -> list[str]:
    """What is not the same."""
    mine, theirs = contents(out), contents(whole)
    return sorted(name for name in {*mine, *theirs} if mine.get(name) != theirs.get(name))


if __name__ == "__main__":
    measure()
