"""Does a crank that is killed at any moment come to what an undisturbed one comes to?

A small crank is run once, undisturbed. Then it is run in fresh folders and killed (`kill -9`, with all its children)
at moments drawn evenly over the time it takes, some of them one after the other in the same folder, and then left to
end. Its summary, its turns, everything its steps left and what is live in its registry have to be the same. Moments
that came too late, when it had ended already, are not counted.

    python -m benchmarks.crank_kills [--kills 50] [--seed 0] [--full]
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.small_crank import project
from simops.ops.crank import SUMMARY
from simops.ops.ratchet import HOME
from simops.ops.registry import Registry
from simops.ops.steps import RECORD

TURNS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--full", action="store_true", help="two hundred kills")
    args = parser.parse_args()
    kills = 200 if args.full else args.kills
    rng = np.random.default_rng(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        spec = project(home / "project")
        began = time.perf_counter()
        subprocess.run(command(spec, home / "whole"), check=True, stdout=subprocess.DEVNULL)
        took_s = time.perf_counter() - began
        asked = digest(home / "whole")
        print(f"undisturbed: {took_s:.1f} s, {asked[:16]}", flush=True)
        landed = cranks = same = 0
        while landed < kills:
            out, cranks = home / f"{cranks}", cranks + 1
            moments = [killed(spec, out, after_s) for after_s in rng.uniform(0.0, took_s, rng.integers(1, 5))]
            landed += sum(moments)
            subprocess.run(command(spec, out), check=True, stdout=subprocess.DEVNULL)
            same += (good := digest(out) == asked)
            said = "the same" if good else f"ANOTHER: {', '.join(other(out, home / 'whole'))}"
            print(f"{landed:>4} kills, {done_before(out)} steps: {said}", flush=True)
    print(f"{landed} kills in {cranks} cranks; {same} of {cranks} came to the same")
    sys.exit(0 if same == cranks else 1)


def command(spec: Path, out: Path) -> list[str]:
    """One crank, as anybody starts it."""
    return [sys.executable, "-m", "simops.cli", "crank", str(spec), "--turns", str(TURNS), "--out", str(out)]


def killed(spec: Path, out: Path, after_s: float) -> bool:
    """Start it and kill it; whether it was still at work."""
    process = subprocess.Popen(command(spec, out), stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        process.wait(timeout=after_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True
    return False


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
    paths = [out / SUMMARY, *out.glob("turn-*"), *out.glob(f"steps/*/{RECORD}"), *out.glob("patches/*")]
    found = {str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
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
    main()
