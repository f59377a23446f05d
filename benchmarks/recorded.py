"""How well do simulators learned from recordings predict recordings that were held out? One row a figure.

`python -m benchmarks.recorded --data PATH [--only NAME ...] [--full]` wants the recordings in PATH/emps,
PATH/double_pendulum and so on; a set that is not there is left out, and its row says so. Without --full there are
fewer rows, folds, robots and tosses, and searches are shorter.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks import recorded_contact, recorded_double_pendulum, recorded_emps, recorded_motors


class Row(NamedTuple):
    """One figure of the table."""

    data: str
    what: str
    measured: str
    bar: str
    reached: bool | None
    """`None` where there is no bar."""


Rows = Callable[[Path, bool], Iterator[tuple[str, str, str, bool | None]]]
SETS: tuple[tuple[str, Rows], ...] = (
    ("emps", recorded_emps.rows),
    ("double_pendulum", recorded_double_pendulum.rows),
    ("xl330_servo", recorded_motors.servo),
    ("so101_arm", recorded_motors.arm),
    ("joint_chirps", recorded_motors.robots),
    ("cube_tosses", recorded_contact.rows),
)
"""Folder of a data set, and what gives its rows: what, measured, bar, whether it is reached."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder that holds the recordings, a folder a data set")
    parser.add_argument("--full", action="store_true", help="everything, at length: an hour and more")
    parser.add_argument("--only", nargs="+", default=[], choices=[name for name, _ in SETS], help="some of the sets")
    args = parser.parse_args()
    print(f"{'data':<16} {'what, on what was held out':<58} {'measured':>22} {'bar':>20}  reached")
    for name, rows in SETS:
        if args.only and name not in args.only:
            continue
        if args.data is None or not (args.data / name).is_dir():
            print(f"{name:<16} skipped: there is no {name} in {args.data or 'a folder named by --data'}")
            continue
        began = time.perf_counter()
        for row in (Row(name, *row) for row in rows(args.data / name, args.full)):
            said = "" if row.reached is None else "yes" if row.reached else "no"
            print(f"{row.data:<16} {row.what:<58} {row.measured:>22} {row.bar:>20}  {said}", flush=True)
        print(f"{name:<16} {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
