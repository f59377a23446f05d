"""What a bundle costs on the machine at hand: time of one act, memory, loading; measured in a process of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from simops.core.errors import DataError
from simops.deploy.bundle import load

_ALONE = "import sys; from simops.deploy.cost import here; sys.stdout.write(here(sys.argv[1], int(sys.argv[2])))"


@final
@dataclass(frozen=True)
class Cost:
    """Of a policy that acts for one robot, on one thread."""

    p50_us: float
    p99_us: float
    load_s: float
    """Verification and self-test included."""
    peak_bytes: int
    """Memory of a process that does nothing else."""


def cost(folder: Path, *, calls: int = 4000) -> Cost:
    """Measure in a fresh process, so that nothing loaded before counts."""
    words = [sys.executable, "-c", _ALONE, str(folder), str(calls)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603 - ourselves
    if done.returncode != 0:
        raise DataError(
            f"the bundle cannot be measured: {(done.stderr.splitlines() or ['it ended'])[-1]}", where=str(folder)
        )
    return Cost(**json.loads(done.stdout))


def here(folder: str, calls: int) -> str:
    """Measure in this process, and say it in JSON."""
    began = time.perf_counter()
    bundle = load(folder)
    load_s = time.perf_counter() - began
    observation = np.zeros((1, bundle.contract.observation.size), np.float32)
    memory = {slot.name: slot.zeros(1) for slot in bundle.contract.memory}
    took = np.empty(calls)
    for i in range(calls):
        start = time.perf_counter()
        action, memory = bundle.act(observation, memory)
        took[i] = time.perf_counter() - start
        observation[0, :] = action.reshape(-1)[0]  # something else each time
    p50, p99 = (float(each) for each in np.percentile(took[calls // 4 :], (50, 99)) * 1e6)
    status = Path("/proc/self/status").read_text()  # getrusage would count what the caller had before it forked
    peak = int(re.findall(r"^VmHWM:\s+(\d+) kB$", status, re.M)[0]) * 1024
    return json.dumps({"p50_us": p50, "p99_us": p99, "load_s": load_s, "peak_bytes": peak})
