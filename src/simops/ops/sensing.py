"""Sensors learned from recordings: what each signal gets wrong, and the sensors of a spec that do the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from simops.core.errors import DataError, SignalError
from simops.core.recording import Recording, Series, role_of
from simops.data.align import Delay, delay
from simops.learn.sensing import Sensing, sensing

MEASURED = frozenset({"position", "velocity", "acceleration", "effort"})
AT_REST_ZERO = frozenset({"velocity"})


def sensed(recordings: Sequence[Recording], names: Sequence[str] = ()) -> tuple[Sensing, ...]:
    """What every element of every measured signal gets wrong; of the named signals, if any are named."""
    by_signal: dict[str, list[Series]] = {}
    for recording in recordings:
        for stream in recording.streams:
            for signal in stream.schema.signals:
                role = role_of(signal)
                if signal.name in names or (not names and role in MEASURED):
                    by_signal.setdefault(signal.name, []).append(recording.named(signal.name))
    missing = [name for name in names if name not in by_signal]
    if missing:
        raise DataError(f"no recording has a signal {missing[0]!r}", attempt="`simops data show`", fault="DAT-008")
    found: list[Sensing] = []
    for series in by_signal.values():
        role = role_of(series[0].signal)
        for element in range(series[0].values.shape[1]):
            try:
                found.append(sensing(series, element, zero_at_rest=role in AT_REST_ZERO))
            except DataError:
                continue
    if not found:
        raise DataError("no signal was recorded long enough", attempt="a longer recording", fault="LRN-004")
    return tuple(found)


def late(recordings: Sequence[Recording]) -> Delay | None:
    """How far positions are behind their commands, over all recordings that tell: the drive's lag and the way's."""
    delays: list[Delay] = []
    for one in recordings:
        try:
            delays.append(delay(one.series("command", of="position"), one.position))
        except (DataError, SignalError):
            continue
    sound = [each for each in delays if each.likeness > 0.5 and np.isfinite(each.spread_s)]
    if not sound:
        return None
    times = np.array([each.seconds for each in sound])
    spread = float(times.std(ddof=1) / np.sqrt(len(times))) if len(times) > 1 else sound[0].spread_s
    return Delay(float(np.median(times)), spread, float(np.median([each.likeness for each in sound])))


def written(found: Sequence[Sensing]) -> str:
    """The sensors of a spec that get the same wrong: an encoder a signal, with the middle over its elements."""
    lines = ["sensors:"]
    for name in dict.fromkeys(one.signal for one in found):
        own = [one for one in found if one.signal == name]
        step, noise, lost = (float(np.median([getattr(one, key) for one in own])) for key in ("step", "noise", "lost"))
        rests = [one.bias for one in own if np.isfinite(one.bias)]
        bias = float(np.median(rests)) if rests else 0.0
        fields = [f"use: encoder, name: {name}, signal: {name}", f"step: {step:.6g}", f"noise_std: {noise:.6g}"]
        fields += [f"offset_std: {bias:.6g}"] if bias > 0 else []
        fields += [f"timing: {{dropout: {lost:.4g}}}"] if lost > 0 else []
        lines.append(f"  - {{{', '.join(fields)}}}")
    return "\n".join(lines) + "\n"
