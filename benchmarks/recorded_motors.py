"""How well are recorded joints predicted from their commands alone, on recordings that were held out?

A servo on a pendulum and an arm are held out in folds, by log or by motion; robots held in the air by time: learned
from the first part of a chirp, judged on the rest. Beside what was identified stand the command itself, the best delay
with a first-order lag, the scene as it comes, and the numbers that the authors published, run in the same physics.

    python -m benchmarks.recorded_motors --data PATH [--only servo arm robots] [--full]

PATH holds xl330_servo/, so101_arm/ and joint_chirps/; what is not there is skipped, and said. Without --full the servo
and the arm are held out in one fold of four, and of the robots the last is taken; a fold takes minutes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from simops.core.recording import Recording
from simops.core.signal import Array
from simops.ops import chirp, identify, joints
from simops.spec.load import load

EXAMPLES = Path(__file__).parent.parent / "examples"
FOLDS = 4
UNTIL = 0.6
PUBLISHED = "published fit"
Row = tuple[str, str, str, bool | None]
BARS = {"servo": 0.035, "arm": 0.009, "robots": 0.5}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the recordings")
    parser.add_argument("--only", nargs="+", choices=tuple(BARS), default=list(BARS))
    parser.add_argument("--full", action="store_true", help="every fold")
    args = parser.parse_args()
    if args.data is None or not args.data.is_dir():
        print("skipped: no recordings; --data PATH names the folder that holds them")
        return
    for name, folder, rows in (
        ("servo", "xl330_servo", servo),
        ("arm", "so101_arm", arm),
        ("robots", "joint_chirps", robots),
    ):
        if name in args.only:
            for what, measured, bar, _ in rows(args.data / folder, args.full):
                print(f"{name:<8} {what:<58} {measured:>14} {bar:>14}", flush=True)


def servo(folder: Path, full: bool) -> Iterator[Row]:  # noqa: FBT001 (a flag of the command)
    """A servo that swings a pendulum, held out by log."""
    return servos(folder / "logs.parquet", "xl330_servo", "identify_servo", "mean", FOLDS if full else 1)


def arm(folder: Path, full: bool) -> Iterator[Row]:  # noqa: FBT001 (a flag of the command)
    """An arm, held out by motion."""
    return servos(folder / "motions.parquet", "so101_arm", "identify_arm", "rms", FOLDS if full else 1)


def servos(source: Path, how: str, example: str, what: str, folds: int) -> Iterator[Row]:
    """A row for each way of predicting, over the folds."""
    if not source.is_file():
        yield f"skipped: there is no {source.name}", "", "", None
        return
    recordings = identify.read(source, how)
    rig = load(EXAMPLES / example / "rig.yaml", joints.Rig).value
    names = [one.name for one in recordings]
    scores: list[identify.Score] = []
    for fold in range(folds):
        held = names[fold::FOLDS]
        found = identify.servos(recordings, rig, held)
        scores += [one for one in found.scores if one.held]
    many = len({one.recording for one in scores})
    word = "mean absolute error" if what == "mean" else "rms"
    bar = BARS["servo" if what == "mean" else "arm"]
    for way in scores[0].rms_rad:
        values = np.array([s.mean_rad[way] if what == "mean" else s.rms_rad[way] for s in scores])
        pooled = float(values.mean()) if what == "mean" else float(np.sqrt(np.mean(values**2)))
        mine = way == identify.FOUND
        yield (
            f"{way}, {word}, {many} held out",
            f"{pooled:.4f} rad",
            f"{bar} rad" if mine else "",
            pooled <= bar if mine else None,
        )


def robots(folder: Path, full: bool) -> Iterator[Row]:  # noqa: FBT001 (a flag of the command)
    """Rows for each robot of the folder: every NAME.parquet with NAME.xml and NAME.json; one robot alone if quick."""
    files = [file for file in sorted(folder.glob("*.parquet")) if file.with_suffix(".xml").is_file()]
    if not files:
        yield f"skipped: no robot in {folder.name}", "", "", None
    for file in files if full else files[-1:]:
        [recording] = identify.read(file)
        gains = identify.gains_of(file.with_suffix(".json"))
        found = chirp.identify(file.with_suffix(".xml"), recording, gains, chirp.How(until=UNTIL))
        ways = {"identified": found.predicted_rad, "scene as it is": found.nominal_rad}
        theirs = file.with_name(f"{file.stem}_published_fit.json")
        if theirs.is_file():
            ways |= published(file, recording, gains, theirs, found.joints)
        for way, values in ways.items():
            learned, held, whole = (
                float(np.sqrt(np.mean(found.rms(values, part) ** 2)))
                for part in (slice(0, found.held.start), found.held, None)
            )
            yield (
                f"{file.stem}, {way}, rms, first {UNTIL:.0%} {learned:.4f}, whole {whole:.4f}",
                f"{held:.4f} rad",
                "",
                None,
            )
        for other, values in ways.items():
            if other == "identified":
                continue
            held, whole = (
                float(np.linalg.norm(found.rms(found.predicted_rad, part)) / np.linalg.norm(found.rms(values, part)))
                for part in (found.held, None)
            )
            judged = other == PUBLISHED or PUBLISHED not in ways
            yield (
                f"{file.stem}, held out, of the error of the {other}; whole {whole:.2f}",
                f"{held:.2f}",
                f"{BARS['robots']}" if judged else "",
                held <= BARS["robots"] if judged else None,
            )


def published(
    file: Path, recording: Recording, gains: chirp.Gains, theirs: Path, names: Sequence[str]
) -> dict[str, Array]:
    """Positions by a published fit in the same physics at the same step, with the delay it names and without.

    The bias it names is left out: with it the error is nine times as large, which would flatter what stands beside it.
    """
    told = json.loads(theirs.read_text(encoding="utf-8"))
    fit = {
        "armature": np.array(told["armature"]),
        "joint_damping": np.array(told["viscous_friction"]),
        "frictionloss": np.array(told["dynamic_friction"]),
    }
    assert recording.position.ordered().values.shape[1] == len(names)
    period_s = float(np.median(np.diff(recording.position.time_s)))
    delays = {PUBLISHED: told["delay"] * period_s, f"{PUBLISHED} without its delay": 0.0}
    return {
        name: chirp.published(file.with_suffix(".xml"), recording, gains, fit | {"late": np.array(late)})
        for name, late in delays.items()
    }


if __name__ == "__main__":
    main()
