"""What is wrong with recordings, before anything is fitted to them: wiring, units, time, and sensors at their ends.

Everything is judged by how signals change together, so that an arm that sags or a servo that lags is no fault. What
cannot be told, as from joints that all did the same, is not claimed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, final

import numpy as np

from simops.core.errors import DataError, SignalError
from simops.core.recording import Recording, Series, Stream, role_of
from simops.core.signal import Array
from simops.data.align import changes, clock, delay

Kind: TypeAlias = Literal[
    "not numbers", "empty", "constant", "swapped", "sign", "unit", "wrapped", "time", "dropped", "saturated", "stuck",
    "late", "clock",
]  # fmt: skip
GRAVE: frozenset[Kind] = frozenset({"not numbers", "swapped", "sign", "unit", "wrapped", "time"})
"""What a fit would take for physics."""
WIRED: frozenset[Kind] = frozenset({"swapped", "sign", "unit"})
"""What is wrong between signals, however sound each is by itself."""
ALIKE, UNLIKE = 0.75, 0.45
"""Correlation from which two signals are one motion, and up to which they are not."""
LATE_S = 0.1
"""Lags up to this are searched for the pairs that belong together."""
SMOOTH_S = 0.03
"""Positions are told apart over this long to get a velocity of them."""
RATIOS = {
    180 / np.pi: "degrees", np.pi / 180: "radians beside degrees", 1e3: "thousandths", 1e-3: "thousands",
    100.0: "hundredths", 0.01: "hundreds", 30 / np.pi: "turns a minute", np.pi / 30: "radians beside turns a minute",
    1 / (2 * np.pi): "turns",
}  # fmt: skip
NEAR = 0.12
"""Relative distance up to which a ratio is one of these."""


@final
@dataclass(frozen=True, order=True)
class Suspicion:
    """One thing that looks wrong."""

    kind: Kind
    where: str
    """Signal, and label of the element."""
    what: str
    fix: str = ""
    """What to write into the map, or to do on the robot."""
    recordings: int = 1
    """In how many recordings."""

    @property
    def grave(self) -> bool:
        """Whether a fit would take it for physics."""
        return self.kind in GRAVE

    def __str__(self) -> str:
        many = f", in {self.recordings} recordings" if self.recordings > 1 else ""
        return f"{self.where}: {self.what}{many}" + (f"\n  try: {self.fix}" if self.fix else "")


def examine(recordings: Iterable[Recording]) -> tuple[Suspicion, ...]:
    """What looks wrong, the grave first; what concerns wiring only where most recordings that can tell agree."""
    seen: dict[tuple[Kind, str], list[Suspicion]] = {}
    told: dict[tuple[str, str], int] = {}
    count = 0
    for one in recordings:
        count += 1
        for found in _streams(one):
            seen.setdefault((found.kind, found.where), []).append(found)
        for found, testable in _pairs(one):
            for where in testable:
                told[where] = told.get(where, 0) + 1
            for each in found:
                seen.setdefault((each.kind, each.where), []).append(each)
    if not count:
        raise DataError("there is no recording to look at", fault="DAT-004")
    kept: list[Suspicion] = []
    for (kind, where), found in seen.items():
        if kind in WIRED and len(found) <= 0.5 * max(told.get(("pair", where), len(found)), 1):
            continue
        if kind in {"constant", "empty"} and len(found) < count:  # it told something elsewhere
            continue
        first = found[0]
        kept.append(Suspicion(kind, where, first.what, first.fix, len(found)))
    return tuple(sorted(_gathered(kept), key=lambda s: (not s.grave, s.kind, s.where)))


def require(recordings: Iterable[Recording], kinds: frozenset[Kind] = GRAVE) -> tuple[Suspicion, ...]:
    """Raise for what is of these kinds; give the rest."""
    found = examine(recordings)
    grave = [one for one in found if one.kind in kinds]
    if grave:
        more = f", and {len(grave) - 1} more" if len(grave) > 1 else ""
        raise DataError(
            f"{grave[0].kind}: {grave[0].where}: {grave[0].what}{more}",
            where=grave[0].where,
            attempt=grave[0].fix or "`simops data doctor` on the recordings",
            fault="LRN-007",
        )
    return found


def _streams(recording: Recording) -> Iterator[Suspicion]:
    """Each stream by itself: times and cells."""
    for stream in recording.streams:
        yield from _times(stream)
        for signal in stream.schema.signals:
            rows = np.asarray(stream.columns[signal.name], np.float64).reshape(len(stream), -1)
            labels = signal.labels or tuple(str(i) for i in range(rows.shape[1]))
            for i in range(rows.shape[1]):
                where = f"{signal.name} {labels[i]}".strip() if rows.shape[1] > 1 else signal.name
                measured = role_of(signal) not in {"command", ""}
                yield from _cells(where, rows[:, i], angle=signal.unit == "rad", measured=measured)


def _times(stream: Stream) -> Iterator[Suspicion]:
    steps = np.diff(stream.time_s)
    if len(steps) < 8:
        return
    back = int((steps <= 0).sum())
    if back:
        words = f"time stands or goes back in {back} of {len(steps)} rows"
        yield Suspicion(
            "time", stream.name, words, "the column of measurement, not of writing; or leave those rows out"
        )
    usual = float(np.median(steps[steps > 0])) if np.any(steps > 0) else 0.0
    gaps = steps[steps > 2.5 * usual]
    if usual > 0 and len(gaps) > max(2, 0.002 * len(steps)):
        lost = int(np.round(gaps / usual - 1).sum())
        words = f"about {lost} rows are missing in {len(gaps)} gaps, the longest of {gaps.max():.3g} s"
        yield Suspicion("dropped", stream.name, words, "nothing: gaps are honoured; mend the logger")
    if stream.received_s is not None and len(stream) >= 64:
        try:
            found = clock(stream.time_s, stream.received_s)
        except DataError:
            return
        if abs(found.drift) > 2e-4:
            words = f"its clock gains {found.drift * 1e6:+.0f} parts in a million on the writer's"
            yield Suspicion("clock", stream.name, words, "times as measured, aligned stream by stream")


def _cells(where: str, cells: Array, *, angle: bool, measured: bool) -> Iterator[Suspicion]:
    bad = int((~np.isfinite(cells)).sum())
    if bad == len(cells):
        yield Suspicion("empty", where, "it never holds a number", "leave it out")
        return
    if bad:
        words = f"{bad} of {len(cells)} values are no numbers"
        yield Suspicion("not numbers", where, words, "leave those rows out, or the signal")
    sound = cells[np.isfinite(cells)]
    if len(sound) < 16:
        return
    span = float(np.ptp(sound))
    if span == 0:
        yield Suspicion("constant", where, f"always {sound[0]:.6g}", "leave it out: nothing can be learned from it")
        return
    steps = np.abs(np.diff(sound))
    if angle and np.any(np.abs(steps - 2 * np.pi) < 0.2) and float(np.median(steps)) < 0.5:
        yield Suspicion("wrapped", where, "it jumps by a whole turn", "an angle that goes on, not one within a turn")
    if measured:
        yield from _ends(where, sound)


def _ends(where: str, cells: Array) -> Iterator[Suspicion]:
    """A range that was too small: readings run into one value at speed, stay there, and leave it at speed."""
    usual = float(np.sqrt(np.mean(np.diff(cells) ** 2)))
    for name, end in (("largest", float(cells.max())), ("smallest", float(cells.min()))):
        at_end = np.abs(cells - end) <= 1e-9 * max(1.0, abs(end))
        edges = np.diff(np.concatenate([[0], at_end.astype(np.int8), [0]]))
        first, last = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
        inner = (first > 1) & (last < len(cells) - 2) & (last - first >= 4)
        before = np.abs(cells[first[inner] - 1] - cells[first[inner] - 2])
        after = np.abs(cells[last[inner] + 2] - cells[last[inner] + 1])
        hit = int(((before > usual) & (after > usual)).sum())
        if hit >= 2 and end != 0.0 and at_end.mean() > 0.01:
            words = f"it runs into its {name} value {end:.5g} at speed {hit} times, {at_end.mean():.0%} of the rows"
            yield Suspicion("saturated", where, words, "a wider range of the sensor, or those stretches left out")


def _gathered(found: Sequence[Suspicion]) -> list[Suspicion]:
    """One line for what several elements of a signal have in common."""
    kept: list[Suspicion] = []
    groups: dict[tuple[Kind, str], None] = dict.fromkeys((one.kind, one.where.partition(" ")[0]) for one in found)
    for kind, signal in groups:
        same = [one for one in found if one.kind == kind and one.where.partition(" ")[0] == signal]
        if len(same) < 3 or kind in {"swapped", "sign", "unit"}:
            kept += same
            continue
        names = [one.where.partition(" ")[2] for one in same]
        where = f"{signal} {', '.join(names[:4])}{', ...' if len(names) > 4 else ''}"
        kept.append(Suspicion(kind, where, same[0].what, same[0].fix, max(one.recordings for one in same)))
    return kept


def _pairs(recording: Recording) -> Iterator[tuple[list[Suspicion], list[tuple[str, str]]]]:
    """Signals that are to move together: commands and positions, velocities and the change of positions."""
    position = _held(recording, "position")
    if position is None or len(position) < 64:
        return
    command = next(iter(recording.every("command", of="position")), None)
    if command is not None and len(command) >= 64 and command.signal.size == position.signal.size:
        yield _wired(command, position, "command", like=changes)
        yield _stuck(command, position), []
    velocity = _held(recording, "velocity")
    if velocity is not None and len(velocity) >= 64 and velocity.signal.size == position.signal.size:
        yield _wired(_slope(position), velocity, "change of position", like=_levels)


def _held(recording: Recording, role: Literal["position", "velocity"]) -> Series | None:
    found = recording.every(role)
    return next((one for one in found if one.signal.name == role), found[0] if found else None)


def _slope(position: Series) -> Series:
    """The change of a position about each of its times, over a while that is long beside its noise."""
    ordered = position.ordered()
    half_s = max(0.5 * SMOOTH_S, 1.5 * float(np.median(np.diff(ordered.time_s))))
    rise = ordered.at(ordered.time_s + half_s) - ordered.at(ordered.time_s - half_s)
    inside = np.isfinite(rise).all(axis=1)
    return Series(position.signal, ordered.time_s[inside], rise[inside] / (2 * half_s), position.stream)


def _levels(series: Series, times_s: Array) -> Array:
    """A signal about its mean, each element to unit size."""
    rows = series.ordered().at(times_s)
    rows = rows - np.nanmean(np.where(np.isfinite(rows), rows, np.nan), axis=0)
    rows = np.where(np.isfinite(rows), rows, 0.0)
    size = np.sqrt(np.mean(rows**2, axis=0))
    return rows / np.where(size > 0, size, np.inf)


def _wired(
    cause: Series, effect: Series, called: str, *, like: Callable[[Series, Array], Array]
) -> tuple[list[Suspicion], list[tuple[str, str]]]:
    """Which element of the effect follows which of the cause, with what sign, and by how much."""
    grid = _grid(cause, effect)
    if grid is None:
        return [], []
    times_s, dt_s = grid
    best, worst = _likeness(like(cause, times_s), like(effect, times_s), max(1, round(LATE_S / dt_s)))
    labels, name = effect.labels, effect.signal.name
    found: list[Suspicion] = []
    testable: list[tuple[str, str]] = []
    strength = np.maximum(best, -worst)
    for i, label in enumerate(labels):
        where = f"{name} {label}" if len(labels) > 1 else name
        mine = float(strength[i, i])
        other = int(strength[:, i].argmax())
        if max(mine, strength[other, i]) < ALIKE:
            continue
        testable.append(("pair", where))
        if other != i and mine < UNLIKE and strength[other, other] < max(UNLIKE, strength[other, i] - 0.2):
            words = f"follows the {called} of {labels[other]} ({strength[other, i]:.2f}), not its own ({mine:.2f})"
            found.append(Suspicion("swapped", where, words, f"this column as {labels[other]} in the map"))
            continue
        if -worst[i, i] > ALIKE and best[i, i] < UNLIKE:
            words = f"goes against its {called} ({worst[i, i]:.2f})"
            found.append(Suspicion("sign", where, words, "sign: -1 for this element in the map"))
        found += _unit(where, cause, effect, i, times_s, called)
    late = _late(cause, effect, called) if called == "command" and not found else None
    return found + ([late] if late else []), testable


def _grid(one: Series, other: Series) -> tuple[Array, float] | None:
    start = max(float(one.time_s.min()), float(other.time_s.min()))
    end = min(float(one.time_s.max()), float(other.time_s.max()))
    dt_s = max(float(np.median(np.diff(other.ordered().time_s))), (end - start) / 2e4)
    if end - start < 64 * dt_s:
        return None
    return np.arange(start, end, dt_s), dt_s


def _likeness(one: Array, other: Array, reach: int) -> tuple[Array, Array]:
    """Largest and smallest correlation of every two columns over lags that a drive may have."""
    best, worst = np.full((one.shape[1], other.shape[1]), -1.0), np.ones((one.shape[1], other.shape[1]))
    for lag in range(-1, reach + 1):
        count = len(one) - abs(lag)
        ahead = one[:count] if lag >= 0 else one[-lag:]
        found = ahead.T @ (other[lag:] if lag >= 0 else other[:count]) / count
        best, worst = np.maximum(best, found), np.minimum(worst, found)
    return best, worst


def _unit(where: str, cause: Series, effect: Series, i: int, times_s: Array, called: str) -> list[Suspicion]:
    one, other = cause.ordered().at(times_s)[:, i], effect.ordered().at(times_s)[:, i]
    sound = np.isfinite(one) & np.isfinite(other)
    spread = float(np.std(one[sound])), float(np.std(other[sound]))
    if min(spread) <= 0:
        return []
    ratio = spread[1] / spread[0]
    for factor, words in RATIOS.items():
        if abs(ratio / factor - 1) < NEAR:
            what = f"{ratio:.3g} times its {called}: {words}"
            return [Suspicion("unit", where, what, "the unit of the file in the map, as unit: deg")]
    return []


def _late(command: Series, position: Series, called: str) -> Suspicion | None:
    try:
        found = delay(command, position)
    except (DataError, SignalError):
        return None
    sure = found.likeness > ALIKE and found.spread_s < 0.25 * abs(found.seconds)
    if not sure or abs(found.seconds) <= LATE_S:
        return None
    words = f"{found.seconds * 1e3:.0f} ± {found.spread_s * 1e3:.0f} ms behind its {called}"
    return Suspicion("late", position.signal.name, words, "a delay in what is learned, or streams aligned first")


def _stuck(command: Series, position: Series) -> list[Suspicion]:
    """Elements that stand while what they are asked for goes far."""
    asked, got = np.ptp(command.values, axis=0), np.ptp(position.values, axis=0)
    driven = asked > 0.05
    typical = float(np.median(got[driven] / asked[driven])) if driven.any() else 1.0
    found: list[Suspicion] = []
    for label, far, moved in zip(position.labels, asked.tolist(), got.tolist(), strict=True):
        if far > 0.2 and moved < 0.02 * typical * far:
            words = f"moves by {moved:.3g} while it is asked for {far:.3g}"
            found.append(Suspicion("stuck", f"{position.signal.name} {label}", words, "is the joint driven at all?"))
    return found


def listed(found: Sequence[Suspicion]) -> str:
    """All of them, one below the other."""
    return "\n".join(f"{'!' if one.grave else '-'} {one.kind}: {one}" for one in found)
