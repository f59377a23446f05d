"""Poke a robot in simulation: put it somewhere known and read it, move one joint at a time and see what moves.

Two engines are asked the same: one that is as the task says, and one that may not be. No wire of the second
is trusted, so what moves is compared with what ought to move, and how far, and which way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, final

import numpy as np

from simops.core import chance
from simops.core.errors import SimOpsError
from simops.core.params import Params
from simops.core.policy import centre_and_scale
from simops.core.protocols import Engine
from simops.core.signal import Array, Columns, Schema
from simops.core.task import Body, Draw, Joint, Marker, Sensor, Task
from simops.ops.explain import Link, links, name
from simops.ops.mismatch import Mismatch

ROWS = 48
STEPS = 8
NUDGE = 0.4
"""Of what a raw output of 1 means."""
SWEEP = 17
LIFT_M = 3.0
"""High enough to touch nothing while it falls."""
GAIN = (0.5, 2.0)
"""A command's effect may be weaker or stronger than believed by this much: motors and masses vary."""
DEAD = 0.04
"""A command with less of its effect than this does nothing."""
DOUBTFUL = 0.3
"""One with less than this may be at a limit, or far from where it arrives: it is tried elsewhere."""
UNEXPLAINED = 0.7
"""A motion of which a larger share is not explained tells nothing."""
SHIFT = 0.25
"""Of the nudge: an offset below this may be gravity's work."""
PACE = 1.15
"""Time may seem to pass by this factor faster or slower: speeds are only read once a step."""
POSES = np.array([[1, 0, 0, 0], [0.5**0.5, 0.5**0.5, 0, 0], [0.5**0.5, 0, 0.5**0.5, 0], [0.5**0.5, 0, 0, 0.5**0.5]])
"""Upright, and a quarter turn about each axis: gravity tells them apart."""


@final
@dataclass(frozen=True)
class Response:
    """What a robot did when nothing, and then each command alone, was nudged up and down."""

    rest: Array
    """(steps, scalars) with every command at its centre."""
    moved: Array
    """(commands, steps, scalars) half the difference between up and down."""
    nudge: Array
    """(commands,) in the unit of each."""


def kinematic(task: Task) -> Schema:
    """The readings that say where things are and how fast they move."""
    kept = [r.signal for r in task.state if not isinstance(r.source, Sensor) and not _torque(r.source)]
    return Schema(tuple(kept))


def nominal(task: Task, n: int) -> Params:
    """The params as the task believes them without doubt."""
    params = task.belief.params
    return Params(tuple(p.name for p in params), np.tile([float(p.nominal) for p in params], (n, 1)))


def scattered(task: Task, engine: Engine, *, rows: int = ROWS, seed: int = 0) -> dict[str, Array]:
    """States all over the place, to begin with: known poses first, then chance; only what can be set in `engine`."""
    seeds = chance.seeds(seed, np.arange(rows), realm="probe")
    begun = task.initial(Draw(nominal(task, rows), seeds, np.zeros(rows, np.int64)))
    settable = _settable(task, engine)
    found: dict[str, Array] = {}
    for reading in task.state:
        signal, source = reading.signal, reading.source
        if signal.name not in settable:
            continue
        spread = 0.02 if signal.unit == "m" and isinstance(source, Joint) else 0.3
        noise = chance.normal(seeds, f"probe/{signal.name}", (signal.size,)).reshape(rows, *signal.shape)
        middle = begun.get(signal.name, np.zeros((rows, *signal.shape)))
        found[signal.name] = middle.reshape(noise.shape) + spread * noise
        if isinstance(source, Body) and source.what == "quaternion":
            turns = noise / np.linalg.norm(noise, axis=1, keepdims=True)
            turns[: len(POSES)] = POSES
            found[signal.name] = turns
    return found


def read(engine: Engine, task: Task, initial: Columns, params: Params | None = None) -> dict[str, Array]:
    """What `engine` reads where it was put, before any time has passed."""
    rows = len(next(iter(initial.values()))) if initial else 1
    with engine.open(task, rows) as sim:
        sim.reset(np.arange(rows), params or nominal(task, rows), initial)
        return {key: np.array(column, np.float64) for key, column in sim.read().items()}


def respond(engine: Engine, task: Task, *, params: Params | None = None, steps: int = STEPS) -> Response:
    """Nudge each command alone, every nudge in a copy of its own, side by side."""
    centre, scale = centre_and_scale(task)
    size = task.action.size
    nudge = NUDGE * scale
    actions = np.tile(centre, (2 * size + 1, 1))
    actions[1 : size + 1] += np.diag(nudge)
    actions[size + 1 :] -= np.diag(nudge)
    seen = _held(engine, task, actions, params, steps)
    moved = (seen[1 : size + 1] - seen[size + 1 :]) / 2
    return Response(seen[0], moved, nudge)


def sweep(engine: Engine, task: Task, command: int, *, steps: int = STEPS) -> Response:
    """Move one command all the way, into the limits of all others and of either sign; a row for each interval."""
    centre, scale = centre_and_scale(task)
    ends = np.concatenate([task.action.low, task.action.high, centre - scale, centre + scale])
    span = float(np.abs(ends).max())
    actions = np.tile(centre, (SWEEP, 1))
    actions[:, command] = np.linspace(-span, span, SWEEP)
    seen = _held(engine, task, actions, None, steps)
    return Response(seen[0], np.diff(seen, axis=0) / 2, np.diff(actions[:, command]) / 2)


def readings(task: Task, tested: Engine, reference: Engine, *, seed: int = 0) -> tuple[list[Mismatch], list[Link]]:
    """Whether what is read is what is there: both engines are put in the same places."""
    initial = scattered(task, reference, seed=seed)
    schema = kinematic(task)
    want, got = (schema.pack(read(e, task, initial), dtype="float64") for e in (reference, tested))
    found = links(want, got)
    return name(found, schema, "readings", want=want, got=got), found


def undone(response: Response, found: list[Link]) -> Response:
    """What was read, put right by what `readings` found; what cannot be put right is NaN."""
    size = response.rest.shape[-1]
    gain, offset, place = np.full(size, np.nan), np.full(size, np.nan), np.zeros(size, int)
    for link in found:
        if link.source >= 0 and link.gain != 0.0:
            place[link.source], gain[link.source], offset[link.source] = link.place, link.gain, link.offset
    rest, moved = (response.rest[..., place] - offset) / gain, response.moved[..., place] / gain
    return Response(rest, moved, response.nudge)


class Fit(NamedTuple):
    """How commands arrive: row j says what commanding j did, in terms of what ought to be commanded."""

    gains: Array
    """(commands, commands); the identity when all is well."""
    shifts: Array
    """(commands,) constant added to each, in nudges."""
    left: Array
    """(commands,) share of each one's effect that no command explains."""


def fit(tested: Response, reference: Response) -> Fit:
    """Explain what moved by what ought to move: small nudges add up, so this is linear."""
    weight = _weights(reference)
    known = np.isfinite(tested.rest).all(axis=0) & (weight > 0)
    want = (reference.moved * weight)[..., known].reshape(len(reference.nudge), -1)
    got = (tested.moved * weight)[..., known].reshape(len(tested.nudge), -1)
    base = ((tested.rest - reference.rest) * weight)[..., known].reshape(1, -1)
    inverse = np.linalg.pinv(want, rcond=1e-6)
    gains, shifts = got @ inverse, (base @ inverse)[0]
    left = np.linalg.norm(got - gains @ want, axis=1) / np.maximum(np.linalg.norm(got, axis=1), 1e-12)
    return Fit(gains * reference.nudge[None, :] / tested.nudge[:, None], shifts, left)


def commands(task: Task, engine: Engine, seen: Response, reference: Response, mended: list[Link]) -> list[Mismatch]:
    """Whether commands arrive where they are meant to: which joint moved, which way, how far.

    Args:
        task: What both engines run.
        engine: The one under test.
        seen: What it did, put right by `undone`.
        reference: What it ought to have done.
        mended: What `readings` found, to put right what more is asked.
    """
    if task.action.size == 0:
        return []
    gains, shifts, left = fit(seen, reference)
    found: list[Link] = []
    for j, row in enumerate(gains):
        k, gain = _strongest(row, reference)
        elsewhere = False
        if abs(gain) < DOUBTFUL or left[j] > UNEXPLAINED:
            wide = undone(sweep(engine, task, j), mended)
            tried = fit(wide, reference)
            sound = np.flatnonzero(tried.left < UNEXPLAINED)
            nudges = np.abs(tried.gains[sound]) * wide.nudge[sound, None] / reference.nudge
            if nudges.max(initial=0.0) >= DOUBTFUL:
                k, gain = _strongest(tried.gains[sound[int(np.argmax(nudges.max(axis=1)))]], reference)
                elsewhere = True
        if abs(gain) < DEAD and not elsewhere:
            found.append(Link(j, j, 0.0))
            continue
        told = k != j or elsewhere or GAIN[0] <= abs(gain) <= GAIN[1]  # how far says little about another joint
        found.append(Link(j, k, float(np.sign(gain)) if told else gain))
    if all(link.straight for link in found):  # otherwise the middle of a command is elsewhere, and all is shifted
        for k, shift in enumerate(shifts):
            if abs(shift) > SHIFT:
                found[k] = Link(k, k, 1.0, float(shift * reference.nudge[k]))
    blank = np.zeros((1, task.action.size))
    return name(found, Schema((task.action,)), "commands", want=blank, got=blank)


def labelled(task: Task, engine: Engine, seen: Response) -> list[Mismatch]:
    """Whether the joint that is named moves the way it is told: needs no second engine."""
    size, angles, columns = task.action.size, _angles(task), kinematic(task).scalars
    shown = [columns.index(angles[label]) if label in angles else -1 for label in task.action.labels]
    tellable = [j for j in range(size) if shown and shown[j] >= 0]
    if len(tellable) < 2:
        return []
    places = [shown[j] for j in tellable]
    found = [Link(j, j) for j in range(size)]
    for j in tellable:
        moved = seen.moved[j, -1, places] / seen.nudge[j]
        elsewhere = np.abs(moved).max() < DOUBTFUL / 2
        if elsewhere:
            wide = sweep(engine, task, j)
            tried = wide.moved[:, -1, places] / wide.nudge[:, None]
            moved = tried[int(np.argmax(np.abs(tried).max(axis=1)))]
        best = int(np.argmax(np.abs(moved)))
        gain = float(moved[best])
        if abs(gain) < DEAD:
            found[j] = Link(j, j, 0.0)
        else:
            told = tellable[best] != j or elsewhere or 0.15 < abs(gain) < 3.0  # a slow joint is on its way
            found[j] = Link(j, tellable[best], float(np.sign(gain)) if told else gain)
    blank = np.zeros((1, size))
    return name(found, Schema((task.action,)), "commands", want=blank, got=blank)


def _strongest(row: Array, reference: Response) -> tuple[int, float]:
    """The command that explains most of what moved, and its gain."""
    k = int(np.argmax(np.abs(row) / reference.nudge))
    return k, float(row[k])


def pace(task: Task, tested: Response, reference: Response) -> list[Mismatch]:
    """Whether as much time passes in one step as the task says: what moves must get as far as its speed takes it."""
    took, want = _elapsed(task, tested), _elapsed(task, reference)
    if took is None or want is None or abs(np.log(took / want)) < np.log(PACE):
        return []
    ratio = took / want
    what = f"one step takes about {ratio * task.control_dt_s:.3g} s, and the task says {task.control_dt_s:g} s"
    return [Mismatch("rate", "pace", ("control_dt_s",), what)]


def _elapsed(task: Task, response: Response) -> float | None:
    """Control periods that a step takes, by what falls or else by what was nudged; None where nothing tells."""
    spans = kinematic(task).slices
    by_thing = {
        (getattr(r.source, "name", None) or getattr(r.source, "names", None), _what(r.source)): r for r in task.state
    }
    for kind, rows in ((Body, response.rest[None]), (Joint, response.moved)):
        travelled, due = [0.0], [0.0]
        for (thing, what), place in by_thing.items():
            speed = by_thing.get((thing, "velocity"))
            if what != "position" or speed is None or not isinstance(place.source, kind):
                continue
            at, fast = rows[..., spans[place.signal.name]], rows[..., spans[speed.signal.name]]
            if np.isfinite(at).all() and np.isfinite(fast).all():
                way = (fast[:, 1:] + fast[:, :-1]) / 2 * task.control_dt_s
                travelled.append(float((np.diff(at, axis=1) * way).sum()))
                due.append(float((way * way).sum()))
        if sum(due) > 1e-12 and sum(travelled) > 0:
            return sum(travelled) / sum(due)
    return None


def _what(source: object) -> str:
    return str(getattr(source, "what", ""))


def _held(engine: Engine, task: Task, actions: Array, params: Params | None, steps: int) -> Array:
    """What is read after each step, (copies, steps, scalars), when each copy holds one row of `actions`."""
    schema, n = kinematic(task), len(actions)
    with engine.open(task, n) as sim:
        world = params or nominal(task, n)
        sim.reset(np.arange(n), replace(world, values=np.tile(world.values[:1], (n, 1))), _at_rest(task, engine, n))
        rows: list[Array] = []
        for _ in range(steps):
            sim.step(actions.reshape(n, *task.action.shape).astype(np.float32))
            rows.append(schema.pack(sim.read(), dtype="float64"))
    return np.stack(rows, axis=1)


def _settable(task: Task, engine: Engine) -> set[str]:
    """Signals that an episode can begin with in `engine`: it is asked, one by one."""
    found: set[str] = set()
    with engine.open(task, 1) as sim:
        for reading in task.state:
            if not isinstance(reading.source, Joint | Body | Marker) or _torque(reading.source):
                continue
            try:
                whole = {reading.signal.name: np.array(sim.read()[reading.signal.name])}
                sim.reset(np.arange(1), nominal(task, 1), whole)
                found.add(reading.signal.name)
            except SimOpsError:
                continue
    return found


def _at_rest(task: Task, engine: Engine, n: int) -> dict[str, Array]:
    """Joints where the middle of the commands wants them, bodies up in the air, everything still."""
    settable = _settable(task, engine)
    centre, _ = centre_and_scale(task)
    wanted = dict(zip(task.action.labels, centre, strict=False))
    begun = task.initial(Draw(nominal(task, 1), chance.seeds(0, np.arange(1), realm="probe"), np.zeros(1, np.int64)))
    found: dict[str, Array] = {}
    for reading in task.state:
        signal, source = reading.signal, reading.source
        if signal.name not in settable:
            continue
        if isinstance(source, Joint) and source.what == "position":
            first = np.array(begun.get(signal.name, np.zeros((1, *signal.shape))), np.float64).reshape(1, -1)
            labels = signal.labels or ("",) * signal.size
            if set(labels) & set(wanted):
                row = [wanted.get(label, old) for label, old in zip(labels, first[0], strict=True)]
                found[signal.name] = np.tile(row, (n, 1)).reshape(n, *signal.shape)
        elif isinstance(source, Body) and source.what == "position":
            base = np.array(begun.get(signal.name, np.zeros((1, 3))), np.float64).reshape(1, 3)
            found[signal.name] = np.tile(base + np.array([0.0, 0.0, LIFT_M]), (n, 1))
    return found


def _angles(task: Task) -> Mapping[str, str]:
    """The column that shows the position of each labelled joint."""
    found: dict[str, str] = {}
    for reading in task.state:
        if isinstance(reading.source, Joint) and reading.source.what == "position" and reading.signal.labels:
            found |= dict(zip(reading.signal.labels, reading.signal.scalars, strict=True))
    return found


def _weights(reference: Response) -> Array:
    """Make signals of different units weigh alike; nothing that a nudge does not move weighs at all."""
    size = (
        np.abs(reference.moved).max(axis=(0, 1), initial=0.0)
        if len(reference.moved)
        else np.abs(reference.rest).max(axis=0)
    )
    floor = 1e-3 * float(size.max(initial=0.0))
    return np.where(size > floor, 1.0 / np.maximum(size, 1e-12), 0.0)


def _torque(source: object) -> bool:
    return isinstance(source, Joint) and source.what == "torque"
