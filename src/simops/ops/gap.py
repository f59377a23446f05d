"""The doctor's second half: a policy works in one world and fails in another; swap one thing at a time.

A world is an engine with its motor and solver, sensors, params, a delay, where episodes begin, and the wires between
it and the policy. Mixtures of two worlds run the same scenarios, so that what a swap changes is the swap's doing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import combinations
from typing import Any, NamedTuple, final

import numpy as np

from simops.core import chance
from simops.core.belief import Belief
from simops.core.errors import EngineError
from simops.core.params import Param, Params
from simops.core.perform import run as performed
from simops.core.protocols import Act, Engine, Memory, Motor, Policy, Sensor, Variable
from simops.core.rollout import Recipe
from simops.core.scenario import Latency, Scenario
from simops.core.signal import Array
from simops.core.task import Task
from simops.core.trajectory import OUTCOMES
from simops.gate.culprit import Diagnosis, Swapped, diagnose, gap_of, unexplained, worst
from simops.ops.build import expert_of
from simops.spec.gap import Gap, Wires
from simops.spec.gap import World as Told
from simops.spec.run import EXPERT

REALM = "doctor"
"""Namespace of the seeds: nothing that trains or judges shares one."""
FACTORS = ("contract", "motor", "delay", "friction", "contact", "body", "sensor", "initial state", "engine")
MISSING = 0.3
"""Share of the gap that single factors may leave unexplained before pairs are tried."""
PAIRED = 4
"""Factors of which pairs are tried."""
_FACTOR_OF: Mapping[str, str] = {
    "friction": "friction",
    "frictionloss": "friction",
    "contact_stiffness": "contact",
    "contact_damping": "contact",
    "mass": "body",
    "com_x": "body",
    "com_y": "body",
    "com_z": "body",
    "gravity": "body",
    "damping": "motor",
    "armature": "motor",
    "kp": "motor",
    "kd": "motor",
    "strength": "motor",
    "delay": "delay",
}


@final
@dataclass(frozen=True, kw_only=True)
class World:
    """One of the two, part by part."""

    engine: Engine
    """With its motor and its solver's choices; what stands around it, as wires, is part of the contract."""
    sensors: tuple[Sensor, ...] = ()
    belief: Belief
    initial: Mapping[str, tuple[float, ...]]
    delay_steps: int = 0
    wires: Wires

    @classmethod
    def told(cls, world: Told, belief: Belief) -> World:
        """As a spec says."""
        return cls(
            engine=world.engine,
            sensors=world.sensors,
            belief=belief,
            initial=world.initial,
            delay_steps=world.delay_steps,
            wires=world.wires,
        )


@final
@dataclass(frozen=True)
class Rewired:
    """A policy behind wires."""

    policy: Policy
    wires: Wires

    @property
    def digest(self) -> str:
        """The policy's, and the wires."""
        return f"{self.policy.digest} {self.wires!r}"

    def start(self, task: Task, seeds: Array) -> Memory:
        """As the policy does."""
        return self.policy.start(task, seeds)

    def act(self, observation: Array, memory: Memory) -> Act:
        """What comes out of the wires when the policy sees what comes through them."""
        wires = self.wires
        act = self.policy.act(_through(observation, wires.observation_order, wires.observation_gain), memory)
        sent = _through(act.action, wires.action_order, wires.action_gain)
        if wires.action_offset:
            sent = sent + np.array(wires.action_offset, sent.dtype).reshape(sent.shape[1:])
        return Act(sent, act.memory)


@final
@dataclass(frozen=True)
class Case:
    """What is to be explained."""

    policy: Policy
    task: Task
    works: World
    fails: World
    episodes: int = 64
    seed: int = 0

    @classmethod
    def of(cls, spec: Gap, policy: Policy | None = None) -> Case:
        """As a spec says, or with another policy."""
        task = spec.scene.task
        named = expert_of(task.expert) if spec.policy == EXPERT else spec.policy
        works, fails = (World.told(world, spec.belief(world)) for world in (spec.works, spec.fails))
        return cls(policy or named, task, works, fails, spec.episodes, spec.seed)


Watch = Callable[[str], None]


def explain(case: Case, watch: Watch | None = None) -> Diagnosis:
    """Run both worlds, every mixture that is needed, and say which factor is to blame for how much."""
    told = watch or _nobody
    told("both worlds")
    works, fails = succeeded(case, frozenset()), succeeded(case, frozenset(FACTORS))
    if gap_of(works, fails).low <= 0.0:
        return diagnose(works, fails, ())
    swapped = [_swap(case, (factor,), told) for factor in differing(case)]
    found = diagnose(works, fails, swapped)
    if unexplained(found) > MISSING and len(swapped) > 1:
        likely = worst({share.factors[0]: share.share for share in found.shares}, PAIRED)
        swapped += [_swap(case, pair, told) for pair in combinations(likely, 2)]
    return diagnose(works, fails, swapped)


def differing(case: Case) -> tuple[str, ...]:
    """The factors in which the two worlds are not the same."""
    one, other = _parts(case, case.works), _parts(case, case.fails)
    return tuple(factor for factor in FACTORS if one[factor] != other[factor])


def succeeded(case: Case, swapped: frozenset[str]) -> Array:
    """Run the world that works with some factors of the one that fails; whether each scenario succeeded."""
    recipe, scenarios = mixed(case, swapped)
    outcomes = np.concatenate([block.outcomes for block in performed(recipe, scenarios)])
    return outcomes == OUTCOMES.index("success")


def mixed(case: Case, swapped: frozenset[str]) -> tuple[Recipe, list[Scenario]]:
    """The recipe and the scenarios of a mixture."""

    def world(factor: str) -> World:
        return case.fails if factor in swapped else case.works

    contract, sensing = world("contract").wires, world("sensor").sensors
    policy = case.policy if contract == Wires() else Rewired(case.policy, contract)
    engine = _engine(case, swapped)
    recipe = Recipe(policy=policy, task=case.task, engine=engine, sensors=sensing, seed=case.seed, realm=REALM)
    seeds = chance.seeds(case.seed, np.arange(case.episodes), realm=REALM)
    points = _points(case, seeds, world)
    late = world("delay").delay_steps
    disturbed = (Latency(late, 0.0, case.task.horizon_s),) if late else ()
    return recipe, [
        Scenario(
            name=f"mixture {i}",
            category="regression",
            task=case.task.name,
            params=points.at(i),
            initial=world("initial state").initial,
            disturbances=disturbed,
            seed=int(seeds[i]),
        )
        for i in range(case.episodes)
    ]


def factor_of(param: Param, sensors: Sequence[Sensor]) -> str:
    """What a param belongs to."""
    for change in param.changes:
        return _FACTOR_OF.get(change.field, "")
    sensed = {own.name for sensor in sensors if isinstance(sensor, Variable) for own in sensor.params}
    scaled = {getattr(sensor, "scale_param", "") for sensor in sensors}
    return "sensor" if param.name in sensed | scaled else "initial state"


def _swap(case: Case, factors: tuple[str, ...], told: Watch) -> Swapped:
    told(" and ".join(factors))
    taken = frozenset(factors)
    return Swapped(factors, succeeded(case, taken), succeeded(case, frozenset(FACTORS) - taken))


def _points(case: Case, seeds: Array, world: Callable[[str], World]) -> Params:
    """Each param as the world that its factor is from draws it."""
    one, other = (each.belief.sample(seeds) for each in (case.works, case.fails))
    sensors = (*case.works.sensors, *case.fails.sensors)
    columns: list[Array] = []
    for param in case.task.belief.params:
        chosen = other if world(factor_of(param, sensors)) is case.fails else one
        columns.append(chosen[param.name])
    return Params(tuple(p.name for p in case.task.belief.params), np.stack(columns, axis=1))


def _parts(case: Case, world: World) -> dict[str, object]:
    """What each factor of a world is, to compare."""
    seeds = chance.seeds(case.seed, np.arange(case.episodes), realm=REALM)
    points = world.belief.sample(seeds)
    sensors = (*case.works.sensors, *case.fails.sensors)
    numbers: dict[str, list[tuple[str, bytes]]] = {factor: [] for factor in (*FACTORS, "")}
    for param in case.task.belief.params:
        numbers[factor_of(param, sensors)].append((param.name, points[param.name].tobytes()))
    around, engine, whole = _peeled(world.engine)
    motor, late = _apart(whole)
    same = _same(case)
    own: dict[str, object] = {
        "contract": (world.wires, around),
        "motor": motor,
        "delay": (world.delay_steps, late),
        "contact": engine if same else None,
        "sensor": world.sensors,
        "initial state": world.initial,
        "engine": None if same else engine,
    }
    return {factor: (own.get(factor), numbers[factor]) for factor in FACTORS}


def _engine(case: Case, swapped: frozenset[str]) -> Engine:
    """The engine of a mixture: another kind of engine is swapped whole, its solver's choices as contact."""

    def peeled(factor: str) -> _Peeled:
        return _peeled((case.fails if factor in swapped else case.works).engine)

    engine = peeled("contact" if _same(case) else "engine").engine
    motor, late = peeled("motor").motor, _apart(peeled("delay").motor)[1]
    if motor is not None and late is not None and _apart(motor)[1] is not None:
        motor = _with(motor, delay_steps=late)
    engine = engine if motor is None else _with(engine, motor=motor)
    for shell in reversed(peeled("contract").around):
        engine = _with(shell, engine=engine)
    return engine


class _Peeled(NamedTuple):
    """An engine taken apart."""

    around: tuple[Any, ...]
    """What stands around it, the outermost first, each around no engine."""
    engine: Engine
    """Without a motor."""
    motor: Motor | None


def _peeled(engine: Engine) -> _Peeled:
    around: list[Any] = []
    inner: Any = engine
    while getattr(inner, "engine", None) is not None:
        around.append(_with(inner, engine=None))
        inner = inner.engine
    motor: Motor | None = getattr(inner, "motor", None)
    return _Peeled(tuple(around), inner if motor is None else _with(inner, motor=None), motor)


def _same(case: Case) -> bool:
    """Whether both worlds run in one kind of engine."""
    return type(_peeled(case.works.engine).engine) is type(_peeled(case.fails.engine).engine)


def _apart(motor: Motor | None) -> tuple[object, int | None]:
    """A motor without its delay, and the delay."""
    late: int | None = getattr(motor, "delay_steps", None)
    return (motor if late is None else _with(motor, delay_steps=0)), late


def _with(recipe: Any, **changes: object) -> Any:  # noqa: ANN401 (a plugin of any kind)
    """A plugin with other settings; raises where it has none of that name."""
    known = {one.name for one in fields(recipe)}
    for name in changes:
        if name not in known:
            raise EngineError(f"{type(recipe).__name__} has no {name}", attempt="the same engine in both worlds")
    return replace(recipe, **changes)


def _through(rows: Array, order: tuple[int, ...], gain: tuple[float, ...]) -> Array:
    flat = rows.reshape(len(rows), -1)
    flat = flat[:, order] if order else flat
    return (flat * np.array(gain, flat.dtype) if gain else flat).reshape(rows.shape)


def _nobody(_: str) -> None:
    """Nobody looks on."""


def lines(found: Diagnosis) -> Iterator[str]:
    """What is found, in sentences, the culprit first."""
    yield f"success {found.works:.1%} where it works, {found.fails:.1%} where it fails"
    low, high = found.interval
    yield f"the gap is {found.works - found.fails:.1%} [{low:.1%}, {high:.1%}]"
    if not found.gap:
        yield "no gap beyond doubt: nothing to explain"
        return
    for share in found.culprits:
        ends = f"[{share.interval.low:.0%}, {share.interval.high:.0%}]"
        what = " with ".join(share.factors)
        alone = f"alone it breaks {share.breaks:.0%} where it works, and mends {share.mends:.0%} where it fails"
        yield f"culprit: {what}, {share.share:.0%} of the gap {ends}; {alone}"
    if not found.culprits:
        yield "no factor, alone or with another, explains it: the worlds differ in something that is no factor here"
    if any("engine" in share.factors for share in found.culprits):
        yield "two kinds of engine are swapped whole: `simops doctor BUNDLE TASK --tested` says whether it is a wire"
    for share in found.shares:
        if not share.certain:
            yield f"not: {share.factors[0]}, {share.share:.0%} [{share.interval.low:.0%}, {share.interval.high:.0%}]"
