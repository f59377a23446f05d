"""Physics with known answers: what an engine gives, what is true, and how far off it may be.

Everything runs through the engine's own protocol on scenes of this package, so that a table of
one engine can stand beside that of another.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from simops.core.belief import Box
from simops.core.errors import EngineError
from simops.core.params import Change, Param, Params
from simops.core.protocols import Engine
from simops.core.signal import Array, Columns, Schema, Signal
from simops.core.task import Body, Joint, Reading, Scene, Task

GRAVITY_M_S2 = 9.81
FRICTION = 0.5
DT_S = 0.01
"""Time between looks at the engine; its own steps are as the scene says."""
GENTLE_RAD, STEEP_RAD = np.deg2rad(20.0), np.deg2rad(35.0)
PUSH_M_S = 1.0
PUSH_N, TWIST_NM, PUSHED_S = (2.0, -1.0, 3.0), (1e-3, 2e-3, -1e-3), 0.1
DROP_M = 1.0
BALL_M = 0.05
HELD_NM, SERVO_NM_RAD = 0.5 * GRAVITY_M_S2, 100.0
GRIP_N = 10.0


@final
@dataclass(frozen=True)
class Truth:
    """One known answer, and what an engine gives."""

    name: str
    value: float | None
    """What the engine gives; None where the scene is none that it can run."""
    expected: float
    bound: float
    """How far off it may be, in the same unit."""
    unit: str = ""

    @property
    def error(self) -> float | None:
        """How far off it is; None where the engine cannot say."""
        return None if self.value is None else abs(self.value - self.expected)

    @property
    def holds(self) -> bool:
        """Whether the engine is near enough to the truth, or has nothing to say of it."""
        return self.error is None or self.error <= self.bound


@final
@dataclass(frozen=True)
class Pushed:
    """A wrench on a body from the start, for a while."""

    body: str
    wrench: Array
    for_s: float


def truths(engine: Engine) -> tuple[Truth, ...]:
    """Ask `engine` everything that has a known answer."""
    return tuple(truth for ask in _QUESTIONS for truth in ask(engine))


def _free_fall(engine: Engine) -> tuple[Truth, ...]:
    fallen_m = GRAVITY_M_S2 / 2
    seen = _watch(engine, _bodies("free_fall", "ball"), {}, seconds=1.0)
    value = None if seen is None else float(seen["ball_position"][0, 2] - seen["ball_position"][-1, 2])
    return (Truth("free fall in 1 s", value, fallen_m, 0.002 * fallen_m, "m"),)


def _pendulum(engine: Engine) -> tuple[Truth, ...]:
    small, large = (_swing(engine, np.deg2rad(degrees)) for degrees in (5.0, 120.0))
    drift, worst = None, None
    if large is not None:
        energy = 0.5 * large["rate"] ** 2 + GRAVITY_M_S2 * (1.0 - np.cos(large["angle"]))
        swing = round(_period_s(np.deg2rad(120.0)) / DT_S)
        drift = float(energy[-swing:].mean() / energy[:swing].mean() - 1.0)
        worst = float(np.max(np.abs(energy / energy[0] - 1.0)))
    return (
        _period("pendulum period at 5 degrees", small, np.deg2rad(5.0)),
        _period("pendulum period at 120 degrees", large, np.deg2rad(120.0)),
        Truth("share of pendulum energy gained from the first swing to the last in 10 s", drift, 0.0, 1e-3),
        Truth("share of pendulum energy missing at the worst instant in 10 s", worst, 0.0, 5e-3),
    )


def _slide(engine: Engine) -> tuple[Truth, ...]:
    way_m = PUSH_M_S**2 / (2.0 * FRICTION * GRAVITY_M_S2)
    push = {"block_velocity": np.array([[PUSH_M_S, 0.0, 0.0]])}
    seen = _watch(engine, _bodies("slide", "block"), push, seconds=0.5)
    value = None if seen is None else float(seen["block_position"][-1, 0])
    return (Truth("way until a sliding block stops", value, way_m, 0.01 * way_m, "m"),)


def _incline(engine: Engine) -> tuple[Truth, ...]:
    expected = GRAVITY_M_S2 * float(np.sin(STEEP_RAD) - FRICTION * np.cos(STEEP_RAD))
    seen = _watch(engine, _bodies("incline", "held", "sliding"), {}, seconds=1.2)
    creep, slid = None, None
    if seen is not None:
        since = round(0.2 / DT_S)
        held, sliding = (seen[f"{name}_position"][since:] for name in ("held", "sliding"))
        time_s = np.arange(len(held)) * DT_S
        creep = float(np.linalg.norm(held[-1] - held[0]) / time_s[-1])
        # a parabola through the whole way: the box may rattle on its corners, and one speed says little
        downhill = sliding @ np.array([np.cos(STEEP_RAD), 0.0, -np.sin(STEEP_RAD)])
        slid = 2.0 * float(np.polyfit(time_s, downhill, 2)[0])
    return (
        Truth("creep on an incline of 20 degrees", creep, 0.0, 1e-4, "m/s"),
        Truth("acceleration on an incline of 35 degrees", slid, expected, 0.01 * expected, "m/s^2"),
    )


def _impact(engine: Engine) -> tuple[Truth, ...]:
    seen = _watch(engine, _bodies("impact", "elastic", "dead"), {}, seconds=1.2)
    rebound, rest = None, None
    if seen is not None:
        struck = round(float(np.sqrt(2.0 * DROP_M / GRAVITY_M_S2)) / DT_S) + 5
        elastic, dead = (seen[f"{name}_position"][struck:, 2] - seen["elastic_position"][0, 2] for name in _BALLS)
        rebound, rest = float(DROP_M + elastic.max()), float(DROP_M + dead.max())
    return (
        Truth("height after an elastic bounce from 1 m", rebound, DROP_M, 0.02 * DROP_M, "m"),
        Truth("height after an inelastic impact from 1 m", rest, 0.0, 0.005 * DROP_M, "m"),
    )


def _collision(engine: Engine) -> tuple[Truth, ...]:
    push = {"light_velocity": np.array([[PUSH_M_S, 0.0, 0.0]])}
    seen = _watch(engine, _bodies("collision", "light", "heavy", spins=True), push, seconds=0.5)
    linear, angular = None, None
    if seen is not None:
        momentum, spin = np.zeros((2, len(seen["light_position"]), 3))
        for name, mass_kg in (("light", 1.0), ("heavy", 2.0)):
            along = mass_kg * seen[f"{name}_velocity"]
            inertia = 0.4 * mass_kg * BALL_M**2
            momentum += along
            spin += np.cross(seen[f"{name}_position"], along)
            spin += inertia * _turned(seen[f"{name}_quaternion"], seen[f"{name}_angular_velocity"])
        met = np.linalg.norm(seen["heavy_velocity"][-1]) > 0.1 * PUSH_M_S
        linear, angular = (_wandered(values) if met else float("nan") for values in (momentum, spin))
    return (
        Truth("momentum gained in a collision", linear, 0.0, 1e-6, "kg m/s"),
        Truth("angular momentum gained in a collision", angular, 0.0, 1e-6, "kg m^2/s"),
    )


def _push(engine: Engine) -> tuple[Truth, ...]:
    pushed = Pushed("ball", np.array([[*PUSH_N, *TWIST_NM]]), PUSHED_S)
    seen = _watch(engine, _bodies("free_fall", "ball", spins=True), {}, seconds=0.3, pushed=pushed)
    linear, angular = None, None
    if seen is not None:
        fallen = np.array([0.0, 0.0, -GRAVITY_M_S2 * (len(seen["ball_velocity"]) - 1) * DT_S])
        spin = 0.4 * BALL_M**2 * _turned(seen["ball_quaternion"], seen["ball_angular_velocity"])[-1]
        linear = float(np.linalg.norm(seen["ball_velocity"][-1] - fallen - np.array(PUSH_N) * PUSHED_S))
        angular = float(np.linalg.norm(spin - np.array(TWIST_NM) * PUSHED_S))
    momentum, twist = (float(np.linalg.norm(part)) * PUSHED_S for part in (PUSH_N, TWIST_NM))
    return (
        Truth("momentum that a push on a ball does not account for", linear, 0.0, 2e-3 * momentum, "kg m/s"),
        Truth("angular momentum that a twist of it does not account for", angular, 0.0, 2e-3 * twist, "kg m^2/s"),
    )


def _servo(engine: Engine) -> tuple[Truth, ...]:
    state = (
        Reading(Signal("angle", unit="rad"), Joint(("shoulder",))),
        Reading(Signal("height", unit="m"), Joint(("lift",))),
    )
    seen = _watch(engine, _task("servo", state, _targets("shoulder", "lift")), {}, seconds=4.0)
    sag_rad = 0.0
    for _ in range(100):
        sag_rad = HELD_NM / SERVO_NM_RAD * float(np.cos(sag_rad))
    sunk_m = 0.5 * (GRAVITY_M_S2 - 5.0) / 1.25 * 0.4**2
    sag = None if seen is None else float(seen["angle"][-1])
    sunk = None if seen is None else float(seen["height"][0] - seen["height"][round(0.4 / DT_S)])
    return (
        Truth("how far a servo gives way under a weight", sag, sag_rad, 1e-3 * sag_rad, "rad"),
        Truth("way in 0.4 s against a motor at its limit", sunk, sunk_m, 5e-3 * sunk_m, "m"),
    )


def _grip(engine: Engine) -> tuple[Truth, ...]:
    expected = GRAVITY_M_S2 - 2.0 * FRICTION * GRIP_N / 1.2
    hands = _targets(*(f"{cube}_{side}" for cube in ("kept", "lost") for side in ("hand", "left", "right")))
    seen = _watch(engine, _bodies("grip", "kept", "lost", action=hands), {}, seconds=1.0)
    slip, fall = None, None
    if seen is not None:
        height = seen["kept_position"][:, 2]
        half = len(height) // 2
        slip = abs(float(height[-1] - height[half])) / ((len(height) - 1 - half) * DT_S)
        falling = seen["lost_position"][round(0.05 / DT_S) : round(0.19 / DT_S), 2]
        fall = -2.0 * float(np.polyfit(np.arange(len(falling)) * DT_S, falling, 2)[0])
    return (
        Truth("slip of a cube of 0.8 kg in a hand that holds 1.02 kg", slip, 0.0, 2e-4, "m/s"),
        Truth("acceleration of a cube of 1.2 kg that it cannot hold", fall, expected, 0.05 * expected, "m/s^2"),
    )


def _targets(*drives: str) -> Signal:
    """Servo targets, which are left at 0."""
    return Signal("target", (len(drives),), labels=drives, low=(-9.0,) * len(drives), high=(9.0,) * len(drives))


def _wandered(values: Array) -> float:
    return float(np.max(np.linalg.norm(values - values[0], axis=1)))


def _turned(quaternion: Array, vector: Array) -> Array:
    """Vectors of bodies' own frames in the world."""
    w, axis = quaternion[:, :1], quaternion[:, 1:]
    across = 2.0 * np.cross(axis, vector)
    return vector + w * across + np.cross(axis, across)


def _period(name: str, seen: Mapping[str, Array] | None, begun_rad: float) -> Truth:
    """Time between the first and the last pass downwards through the bottom, for one swing."""
    expected = _period_s(begun_rad)
    value = None
    if seen is not None:
        angle = seen["angle"]
        at = np.flatnonzero((angle[:-1] > 0.0) & (angle[1:] <= 0.0))
        times = (at + angle[at] / (angle[at] - angle[at + 1])) * DT_S
        value = float(times[-1] - times[0]) / (len(times) - 1) if len(times) > 1 else float("nan")
    return Truth(name, value, expected, 1e-3 * expected, "s")


def _period_s(begun_rad: float) -> float:
    """The exact period at a metre: 4 sqrt(l/g) K(sin(a/2)), where K(k) = pi / (2 AGM(1, sqrt(1 - k^2)))."""
    return float(2.0 * np.pi / np.sqrt(GRAVITY_M_S2) / _mean(1.0, float(np.cos(begun_rad / 2.0))))


def _mean(one: float, other: float) -> float:
    """Arithmetic-geometric mean."""
    while abs(one - other) > 1e-15:
        one, other = (one + other) / 2.0, float(np.sqrt(one * other))
    return one


def _swing(engine: Engine, begun_rad: float) -> Mapping[str, Array] | None:
    state = (
        Reading(Signal("angle", unit="rad"), Joint(("hinge",))),
        Reading(Signal("rate", unit="rad/s"), Joint(("hinge",), "velocity")),
    )
    torque = Signal("torque", (1,), "N m", labels=("motor",), low=(-4.0,), high=(4.0,))
    return _watch(engine, _task("pendulum", state, torque), {"angle": np.array([begun_rad])}, seconds=10.0)


def _bodies(scene: str, *names: str, spins: bool = False, action: Signal | None = None) -> Task:
    """A scene of free bodies, and where they are and how fast."""
    state: list[Reading] = []
    for name in names:
        state.append(Reading(Signal(f"{name}_position", (3,), "m", "world"), Body(name)))
        state.append(Reading(Signal(f"{name}_velocity", (3,), "m/s", "world"), Body(name, "velocity")))
        if spins:
            turn = Signal(f"{name}_angular_velocity", (3,), "rad/s", name)
            state.append(Reading(turn, Body(name, "angular_velocity")))
            state.append(Reading(Signal(f"{name}_quaternion", (4,), "", "world"), Body(name, "quaternion")))
    return _task(scene, state, action or Signal("nothing", (0,)))


def _task(scene: str, state: Sequence[Reading], action: Signal) -> Task:
    return Task(
        name=f"truth_{scene}",
        scene=Scene(str(Path(__file__).parent / "scenes" / f"{scene}.xml")),
        state=tuple(state),
        action=action,
        observation=Schema(tuple(reading.signal for reading in state)),
        control_dt_s=DT_S,
        horizon_s=10.0,
        belief=Box((_FREE,), (0.0,), (0.0,)) if scene == "pendulum" else Box((), (), ()),
        initial=lambda _: {},
        failure=lambda c: np.zeros(len(c["time_s"]), bool),
        success=lambda c: np.zeros(len(c["time_s"]), bool),
    )


def _watch(
    engine: Engine, task: Task, initial: Columns, *, seconds: float, pushed: Pushed | None = None
) -> dict[str, Array] | None:
    """Columns over time of one copy left to itself; None where the engine cannot run the task."""
    still = np.zeros((1, *task.action.shape), np.float32)
    seen: dict[str, list[Array]] = {name: [] for name in task.sources}
    try:
        with engine.open(task, 1) as sim:
            sim.reset(np.arange(1), Params.nominal(task.belief.params, 1), initial)
            for step in range(round(seconds / DT_S) + 1):
                if step > 0:
                    sim.step(still)
                if pushed is not None and step in {0, round(pushed.for_s / DT_S)}:
                    sim.push(np.arange(1), pushed.body, pushed.wrench if step == 0 else 0.0 * pushed.wrench)
                for name, rows in sim.read().items():
                    seen[name].append(np.array(rows[0], np.float64))
    except EngineError:
        return None
    return {name: np.stack(rows) for name, rows in seen.items()}


_FREE = Param("hinge_damping", 0.0, "N m s/rad", 0.0, changes=(Change("damping", ("hinge",)),))
_BALLS = ("elastic", "dead")
_QUESTIONS: tuple[Callable[[Engine], tuple[Truth, ...]], ...] = (
    _free_fall,
    _pendulum,
    _slide,
    _incline,
    _impact,
    _collision,
    _push,
    _servo,
    _grip,
)
