"""Faults between a policy and its robot, planted for real, each with what must be said about it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import final

import numpy as np

from simops.core.contract import Contract
from simops.core.plugin import Registry
from simops.core.policy import centre_and_scale
from simops.core.protocols import Engine
from simops.core.signal import Array, Columns, Schema, Signal
from simops.core.task import Task
from simops.ops import probe
from simops.ops.adapter import Adapter, examine, faithful
from simops.ops.border import compare
from simops.ops.mismatch import Kind, Mismatch
from simops.sim.mujoco import Mujoco
from simops.testing.miswired import Miswired, Wiring

ENGINE = Mujoco(threads=1)
Look = Callable[[], list[Mismatch]]


@final
@dataclass(frozen=True)
class Plant:
    """A fault, and what must be said about it."""

    family: str
    what: str
    kind: Kind
    look: Look
    names: tuple[str, ...] = ()
    """What must be named."""

    def found(self) -> list[Mismatch]:
        """What is said about it."""
        return self.look()

    def named(self, found: Sequence[Mismatch]) -> bool:
        """Whether the right thing is."""
        about = {name for each in found if each.kind == self.kind for name in each.where}
        return any(each.kind == self.kind for each in found) and all(
            any(name in one for one in about) for name in self.names
        )


@cache
def task_of(name: str) -> Task:
    return Registry[Task]("task").load(name)()


@cache
def right(name: str) -> probe.Response:
    return probe.respond(ENGINE, task_of(name))


def wired(name: str, engine: Engine, *, seed: int = 0, reference: Engine = ENGINE) -> list[Mismatch]:
    """What `simops doctor --tested` looks at, with the reference's answers remembered."""
    task = task_of(name)
    wrong, found = probe.readings(task, engine, reference, seed=seed)
    good = right(name) if reference is ENGINE else probe.respond(reference, task)
    seen = probe.undone(probe.respond(engine, task), found)
    late = probe.pace(task, seen, good)
    return [*wrong, *late, *([] if late else probe.commands(task, engine, seen, good, found))]


def pairs(size: int) -> Iterator[tuple[int, int]]:
    return itertools.combinations(range(size), 2)


# --- what both sides say ---------------------------------------------------------------------------------------------


def changed(name: str, signal: str, **fields: object) -> Look:
    """A policy whose contract has `signal` otherwise."""
    task = task_of(name)
    truth = Contract.of(task)
    if signal == task.action.name:
        mine = replace(truth, action=replace(truth.action, **fields))
    else:
        schema = Schema(tuple(replace(s, **fields) if s.name == signal else s for s in truth.observation.signals))
        mine = replace(truth, observation=schema)
    return lambda: compare(mine, truth)


def swapped(items: Sequence[str], a: int, b: int) -> tuple[str, ...]:
    out = list(items)
    out[a], out[b] = out[b], out[a]
    return tuple(out)


def contracts() -> Iterator[Plant]:
    task = task_of("velocity")
    truth, action = Contract.of(task), task.action
    for a, b in pairs(12):
        names = (action.labels[a], action.labels[b])
        look = changed("velocity", action.name, labels=swapped(action.labels, a, b))
        yield Plant("contract: joint order", f"{names}", "permutation", look, names)
    for i, label in enumerate(action.labels):
        high = tuple(h - 0.1 * (i == k) for k, h in enumerate(action.high))
        yield Plant("contract: stale limits", label, "limits", changed("velocity", action.name, high=high), (label,))
    for signal in ("joint_offset", "joint_velocity", "gyro"):
        unit = task.observation[signal].unit.replace("rad", "deg")
        yield Plant("contract: units", signal, "units", changed("velocity", signal, unit=unit), (signal,))
    for frame in ("imu", "world"):
        yield Plant("contract: frame", frame, "frame", changed("velocity", "gyro", frame=frame), ("gyro",))
    order = ("x", "y", "z", "w")
    look = changed("pick_and_place", "cube_quaternion", labels=order)
    yield Plant("contract: quaternion", "xyzw", "quaternion", look)
    for dt in (0.01, 0.04, 1 / 30):
        mine = replace(truth, control_dt_s=dt)
        yield Plant("contract: rate", f"{dt:.3g} s", "rate", lambda mine=mine: compare(mine, truth))
    signals = truth.observation.signals
    for a, b in pairs(len(signals)):
        moved = list(signals)
        moved[a], moved[b] = moved[b], moved[a]
        mine = replace(truth, observation=Schema(tuple(moved)))
        names = (signals[a].name, signals[b].name)
        yield Plant("contract: signals swapped", f"{names}", "signals", lambda mine=mine: compare(mine, truth), names)
    past = Signal("past", (4, 12), "rad")
    longer = replace(truth, observation=Schema((*signals, past)))
    shorter = replace(truth, observation=Schema((*signals, replace(past, shape=(6, 12)))))
    yield Plant("contract: history", "4 for 6", "history", lambda: compare(longer, shorter), ("past",))


# --- what is read and what moves, behind wires -----------------------------------------------------------------------


def read_wires() -> Iterator[Plant]:
    labels = task_of("velocity").action.labels

    def behind(**wires: Wiring) -> Look:
        return lambda: wired("velocity", Miswired(ENGINE, readings=wires))

    for a, b in pairs(12):
        swap = Wiring.swap(12, a, b)
        look = behind(joint_position=swap, joint_velocity=swap)
        yield Plant("readings: joint order", f"{a} {b}", "permutation", look, (labels[a], labels[b]))
    for i, label in enumerate(labels):
        flip = Wiring.flip(12, i)
        yield Plant("readings: sign", label, "sign", behind(joint_position=flip, joint_velocity=flip), (label,))
        shift = Wiring.shift(12, i, 0.05)
        yield Plant("readings: offset", label, "offset", behind(joint_position=shift), (label,))
    degrees = 180 / np.pi
    for name, size in (("joint_position", 12), ("joint_velocity", 12), ("gyro", 3)):
        look = behind(**{name: Wiring.scale(size, degrees)})
        yield Plant("readings: degrees", name, "units", look, (name,))
        yield Plant("readings: scale", name, "scale", behind(**{name: Wiring.scale(size, 1.2)}), (name,))
    quaternions = {"x, y, z, w": Wiring((1, 2, 3, 0)), "w last first": Wiring((3, 0, 1, 2))}
    quaternions["inverse"] = Wiring.flip(4, 1, 2, 3)
    for what, wiring in quaternions.items():
        yield Plant("readings: quaternion", what, "quaternion", behind(base_quaternion=wiring))
    look = lambda: wired("pick_and_place", Miswired(ENGINE, readings={"cube_quaternion": Wiring((1, 2, 3, 0))}))  # noqa: E731
    yield Plant("readings: quaternion", "of the cube", "quaternion", look)
    turns = {
        "z by 90": Wiring((1, 0, 2), (1.0, -1.0, 1.0)),
        "x by 180": Wiring.flip(3, 1, 2),
        "axes": Wiring((1, 2, 0)),
    }
    for what, wiring in turns.items():
        yield Plant("readings: sensor frame", what, "frame", behind(gyro=wiring))
    for a, b in (("gyro", "base_velocity"), ("gyro", "base_position"), ("joint_position", "joint_velocity")):
        look = lambda a=a, b=b: wired("velocity", Miswired(ENGINE, exchanged=((a, b),)))  # noqa: E731
        yield Plant("readings: signals swapped", f"{a} {b}", "signals", look, (a, b))


def command_wires() -> Iterator[Plant]:
    for name in ("velocity", "pick_and_place"):
        task = task_of(name)
        labels, size = task.action.labels, task.action.size
        _, scale = centre_and_scale(task)

        def behind(wiring: Wiring, name: str = name) -> Look:
            return lambda: wired(name, Miswired(ENGINE, command=wiring))

        for a, b in pairs(size):
            look, names = behind(Wiring.swap(size, a, b)), (labels[a], labels[b])
            yield Plant("commands: joint order", f"{names}", "permutation", look, names)
        for i, label in enumerate(labels):
            if label == "gripper":  # its limits are 0 and open: no negative command arrives
                continue
            yield Plant("commands: sign", label, "sign", behind(Wiring.flip(size, i)), (label,))
            shift = Wiring.shift(size, i, 0.3 * float(scale[i]))
            yield Plant("commands: offset", label, "offset", behind(shift), (label,))
            cut = Wiring(gain=tuple(0.0 if i == k else 1.0 for k in range(size)))
            yield Plant("commands: dead", label, "dead", behind(cut), (label,))
    small = lambda: wired("pendulum", Miswired(ENGINE, command=Wiring.scale(1, 0.2)))  # noqa: E731
    yield Plant("commands: scale", "pendulum", "scale", small)
    back = lambda: wired("pendulum", Miswired(ENGINE, command=Wiring.flip(1, 0)))  # noqa: E731
    yield Plant("commands: sign", "pendulum", "sign", back)
    radians = lambda: wired("pendulum", Miswired(ENGINE, command=Wiring.scale(1, np.pi / 180)))  # noqa: E731
    yield Plant("commands: dead", "pendulum, a 57th", "dead", radians)


def names_only() -> Iterator[Plant]:
    task = task_of("velocity")
    labels = task.action.labels

    def behind(wiring: Wiring) -> Look:
        engine = Miswired(ENGINE, command=wiring)
        return lambda: probe.labelled(task, engine, probe.respond(engine, task))

    for a, b in pairs(12):
        names = (labels[a], labels[b])
        yield Plant("names: joint order", f"{names}", "permutation", behind(Wiring.swap(12, a, b)), names)
    for i, label in enumerate(labels):
        yield Plant("names: sign", label, "sign", behind(Wiring.flip(12, i)), (label,))


def paces() -> Iterator[Plant]:
    for name in ("velocity", "pick_and_place", "pendulum", "cube_toss"):
        for pace in (0.5, 2.0, 4.0):
            look = lambda name=name, pace=pace: wired(name, Miswired(ENGINE, pace=pace))  # noqa: E731
            yield Plant("pace: wrong rate", f"{name} x {pace:g}", "rate", look)


# --- what deployment code does ---------------------------------------------------------------------------------------


def shown(change: Callable[[Array], Array]) -> Look:
    """The policy is shown something else."""
    task = task_of("velocity")
    true = faithful(task)
    return lambda: examine(Adapter(lambda c: change(true.observe(c).copy()), true.command), task, ENGINE)


def sent(change: Callable[[Array], Array]) -> Look:
    """Something else is sent than the policy says."""
    task = task_of("velocity")
    return lambda: examine(Adapter(faithful(task).observe, change), task, ENGINE)


def wire(signal: str, wiring: Wiring) -> Look:
    """One observation signal goes through wires."""
    where = task_of("velocity").observation.slices[signal]

    def change(rows: Array) -> Array:
        rows[:, where] = wiring.through(rows[:, where])
        return rows

    return shown(change)


def adapters() -> Iterator[Plant]:
    task = task_of("velocity")
    labels, size = task.action.labels, task.action.size
    for a, b in pairs(12):
        swap, names = Wiring.swap(12, a, b), (labels[a], labels[b])
        yield Plant("adapter: joint order", f"{names}", "permutation", wire("joint_offset", swap), names)
    for i, label in enumerate(labels):
        yield Plant("adapter: sign", label, "sign", sent(Wiring.flip(size, i).through), (label,))
        yield Plant("adapter: offset", label, "offset", sent(Wiring.shift(size, i, 0.05).through), (label,))
    centre, scale = centre_and_scale(task)
    stance = Wiring(offset=tuple(float(angle) for angle in centre))
    yield Plant("adapter: offset", "stance not taken off", "offset", wire("joint_offset", stance))
    for signal in ("joint_offset", "joint_velocity", "gyro"):
        degrees = Wiring.scale(task.observation[signal].size, 180 / np.pi)
        yield Plant("adapter: degrees", signal, "units", wire(signal, degrees), (signal,))
    yield Plant("adapter: degrees", "sent", "units", sent(Wiring.scale(size, 180 / np.pi).through))
    chance = np.random.default_rng(0)
    mean, std = chance.normal(size=task.observation.size), chance.uniform(0.2, 3, task.observation.size)
    yield Plant("adapter: normaliser", "doubled", "normaliser_doubled", shown(lambda rows: (rows - mean) / std))
    yield Plant("adapter: action scale", "doubled", "action_scale_doubled", sent(lambda a: centre + scale * a))
    yield Plant("adapter: action scale", "missing", "action_scale_missing", sent(lambda a: (a - centre) / scale))
    yield from vectors(task)
    yield newest_first()


def vectors(task: Task) -> Iterator[Plant]:
    spans = task.observation.slices
    for what, order in (("x, y, z, w", (1, 2, 3, 0)), ("taken so", (3, 0, 1, 2))):
        yield Plant("adapter: quaternion", what, "quaternion", turned(task, order))
    for a, b in (("gyro", "projected_gravity"), ("gyro", "command"), ("joint_offset", "joint_velocity")):
        yield Plant("adapter: signals swapped", f"{a} {b}", "signals", shown(exchange(spans[a], spans[b])), (a, b))
    for signal in ("gyro", "projected_gravity"):
        turn = Wiring((1, 0, 2), (1.0, -1.0, 1.0))
        yield Plant("adapter: sensor frame", signal, "frame", wire(signal, turn), (signal,))


def exchange(a: slice, b: slice) -> Callable[[Array], Array]:
    def change(rows: Array) -> Array:
        rows[:, a], rows[:, b] = rows[:, b].copy(), rows[:, a].copy()
        return rows

    return change


def turned(task: Task, order: tuple[int, ...]) -> Look:
    true = faithful(task)

    def observe(columns: Columns) -> Array:
        return true.observe({**columns, "base_quaternion": columns["base_quaternion"][:, order]})

    return lambda: examine(Adapter(observe, true.command), task, ENGINE)


def newest_first() -> Plant:
    plain = task_of("pendulum")

    def observe(columns: Columns) -> Columns:
        shifts = np.arange(5)[None, :, None]
        return {"past": (columns["angle"][:, None, None] * (1 + shifts) + columns["rate"][:, None, None] * shifts**2)}

    task = replace(plain, observation=Schema((Signal("past", (5, 1)),)), observe=observe)
    true = faithful(task)
    return Plant(
        "adapter: history",
        "newest first",
        "history",
        lambda: examine(Adapter(lambda c: true.observe(c)[:, ::-1], true.command), task, ENGINE),
    )
