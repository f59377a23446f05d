"""How long does `simops --help` take, beside Python alone and beside importing numpy?

Prints medians of one run on one machine, the three commands in turn.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

COMMANDS = {
    "python -c pass": ("-c", "pass"),
    "simops --help": ("-m", "simops.cli", "--help"),
    "simops plugins": ("-m", "simops.cli", "plugins"),
    "import numpy": ("-c", "import numpy"),
}


def seconds(words: tuple[str, ...]) -> float:
    """Wall time of one process."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    """Print one row a command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="100 turns instead of 15")
    turns = 100 if parser.parse_args().full else 15
    times: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(turns):
        for name, words in COMMANDS.items():
            times[name].append(seconds(words))
    alone = statistics.median(times["python -c pass"])
    print(f"{'command':<16} {'median [ms]':>12} {'worst [ms]':>11} {'× python':>9}")
    for name, all_s in times.items():
        median_s = statistics.median(all_s)
        print(f"{name:<16} {median_s * 1e3:>12.1f} {max(all_s) * 1e3:>11.1f} {median_s / alone:>9.2f}")


if __name__ == "__main__":
    main()
