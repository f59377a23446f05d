"""A scenario: one point of the belief, where it begins, what disturbs it, and the seed of all the rest.

Its hash is over what it is, not over what it is called: the same hash is the same episode, anywhere.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, cast, final, get_args

import numpy as np

from simops.core.errors import DataError, SignalError, nearest
from simops.core.params import Params
from simops.core.signal import Signal
from simops.core.task import Task

FORMAT = 1
"""Version of a scenario's text."""
Category: TypeAlias = Literal["nominal", "edge", "adversarial", "shift", "disturbance", "regression"]
CATEGORIES: tuple[Category, ...] = get_args(Category)


@final
@dataclass(frozen=True)
class Push:
    """A force and a torque on a body for a while."""

    body: str
    force_n: tuple[float, ...] = (0.0, 0.0, 0.0)
    """At the body's centre of mass, in world axes."""
    torque_nm: tuple[float, ...] = (0.0, 0.0, 0.0)
    at_s: float = 0.0
    for_s: float = 0.1


@final
@dataclass(frozen=True)
class Latency:
    """Commands arrive late for a while.

    What reaches the engine was asked for this many control steps ago, and is the first that was asked for where the
    episode is not as old as that.
    """

    steps: int
    at_s: float = 0.0
    for_s: float = 0.5


@final
@dataclass(frozen=True)
class Dropout:
    """A signal of the state stops being measured for a while; what the policy is shown instead."""

    signal: str
    at_s: float = 0.0
    for_s: float = 0.2
    shows: Literal["last", "zero"] = "last"
    """The last reading that came, or zeros."""


@final
@dataclass(frozen=True)
class Payload:
    """Mass added to a body, from the start."""

    body: str
    mass_kg: float


Disturbance: TypeAlias = Push | Latency | Dropout | Payload
_KINDS: dict[str, type[Push] | type[Latency] | type[Dropout] | type[Payload]] = {
    "push": Push,
    "latency": Latency,
    "dropout": Dropout,
    "payload": Payload,
}


@final
@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One episode, before anybody acts in it."""

    name: str
    category: Category
    task: str
    """Name of the task."""
    params: Mapping[str, float] = field(default_factory=dict[str, float])
    """A point of the belief; what is left out is nominal."""
    initial: Mapping[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]])
    """Signals of the state to begin with, or of the goal to hold, instead of what the task draws from the seed."""
    disturbances: tuple[Disturbance, ...] = ()
    seed: int = 0
    """The episode's own, of 64 bits: what `chance.seeds` gives, not the root."""

    def __post_init__(self) -> None:
        if self.category not in CATEGORIES:
            raise SignalError(
                f"{self.name}: no category is called {self.category!r}", attempt=nearest(self.category, CATEGORIES)
            )
        if not 0 <= self.seed < 2**64:
            raise SignalError(f"{self.name}: {self.seed} is no seed", attempt="a whole number of 64 bits")
        odd = [name for name, value in _numbers(self) if not math.isfinite(value)]
        if odd:
            raise SignalError(f"{self.name}: {odd[0]} is not a finite number", where=odd[0])
        for one in self.disturbances:
            _sound(self.name, one)

    @cached_property
    def hash(self) -> str:
        """SHA-256 over everything but name and category, which say nothing about what happens."""
        body = {key: value for key, value in self.body().items() if key not in {"name", "category"}}
        plain = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(plain.encode()).hexdigest()

    def body(self) -> dict[str, Any]:
        """Say everything in JSON's own types, each number in one way only."""
        kinds = {kind: name for name, kind in _KINDS.items()}
        return {
            "format": FORMAT,
            "name": self.name,
            "category": self.category,
            "task": self.task,
            "params": {name: _one_way(self.params[name]) for name in sorted(self.params)},
            "initial": {name: [_one_way(v) for v in self.initial[name]] for name in sorted(self.initial)},
            "disturbances": [{"kind": kinds[type(one)], **_plain(one)} for one in self.disturbances],
            "seed": int(self.seed),
        }

    @classmethod
    def of(cls, body: Mapping[str, Any], where: str = "") -> Scenario:
        """Read what `body` said; refuse what a newer simops wrote, and what nobody wrote."""
        found = body.get("format")
        if found != FORMAT:
            newer = isinstance(found, int) and found > FORMAT
            raise DataError(
                f"a scenario of format {found} is not known here, only {FORMAT}",
                where=where,
                attempt="a newer simops" if newer else f'"format": {FORMAT}',
                fault="DAT-012",
            )
        given = {key: value for key, value in body.items() if key != "format"}
        known = ("name", "category", "task", "params", "initial", "disturbances", "seed")
        _known(given, known, "a scenario", where)
        try:
            given["params"] = {name: float(value) for name, value in given.get("params", {}).items()}
            initial: Mapping[str, Sequence[float]] = given.get("initial", {})
            given["initial"] = {name: tuple(float(v) for v in values) for name, values in initial.items()}
            given["disturbances"] = tuple(_disturbance(one, where) for one in given.get("disturbances", ()))
            return cls(**given)
        except (TypeError, ValueError, AttributeError) as error:
            raise DataError(f"this is no scenario: {error}", where=where) from None


def text(scenario: Scenario) -> str:
    """Write a scenario as JSON that `parse` reads back to an equal one."""
    return json.dumps(scenario.body(), indent=1, allow_nan=False)


def parse(source: str, where: str = "") -> Scenario:
    """Read what `text` wrote."""
    try:
        body: object = json.loads(source)
    except json.JSONDecodeError as error:
        raise DataError(f"not JSON: {error}", where=where) from None
    if not isinstance(body, dict):
        raise DataError("a scenario is a JSON object", where=where)
    return Scenario.of(cast("Mapping[str, Any]", body), where)


def check(scenario: Scenario, task: Task) -> None:
    """Raise unless the scenario is one of this task: every name known, every number physical."""
    where = f"scenario {scenario.name}"
    if scenario.task != task.name:
        raise SignalError(f"{where} is of {scenario.task}, not of {task.name}", where=where)
    params = {param.name: param for param in task.belief.params}
    for name, value in scenario.params.items():
        if name not in params:
            raise SignalError(f"{task.name} has no param {name!r}", where=where, attempt=nearest(name, params))
        if not params[name].low <= value <= params[name].high:
            low, high = params[name].low, params[name].high
            raise SignalError(f"{name} is {value:g}, outside [{low:g}, {high:g}]", where=where, fault="CFG-005")
    for name, values in scenario.initial.items():
        signal = _signal(task, name, where)
        if len(values) != signal.size:
            raise SignalError(f"{name} has {signal.size} elements, not {len(values)}", where=where)
    for one in scenario.disturbances:
        if isinstance(one, Dropout):
            _ = _signal(task, one.signal, where)


def points(scenarios: Sequence[Scenario], task: Task) -> Params:
    """The params of each scenario, a row each, in the order of the task's belief; checked."""
    for scenario in scenarios:
        check(scenario, task)
    nominal = {param.name: param.nominal for param in task.belief.params}
    rows = [[scenario.params.get(name, value) for name, value in nominal.items()] for scenario in scenarios]
    return Params(tuple(nominal), np.array(rows, float).reshape(len(scenarios), len(nominal)) + 0.0)


def called(scenario: Scenario, *, name: str = "", category: Category | None = None) -> Scenario:
    """The same scenario, with the same hash, under another name or in another category."""
    return replace(scenario, name=name or scenario.name, category=category or scenario.category)


def _signal(task: Task, name: str, where: str) -> Signal:
    if name not in task.state_schema:
        attempt = nearest(name, task.state_schema.names)
        raise SignalError(f"{task.name} has no state or goal {name!r}", where=where, attempt=attempt)
    return task.state_schema[name]


def _numbers(scenario: Scenario) -> Iterator[tuple[str, float]]:
    yield from scenario.params.items()
    for name, values in scenario.initial.items():
        yield from ((name, value) for value in values)
    for one in scenario.disturbances:
        for name, value in _plain(one).items():
            numbers = cast("list[object]", value if isinstance(value, list) else [value])
            yield from ((name, float(number)) for number in numbers if isinstance(number, int | float))


def _sound(name: str, one: Disturbance) -> None:
    """Raise for a disturbance that cannot be."""
    wrong = ""
    if not isinstance(one, Payload) and (one.at_s < 0 or one.for_s <= 0):
        wrong = f"lasts {one.for_s} s from {one.at_s} s"
    elif isinstance(one, Push) and not len(one.force_n) == len(one.torque_nm) == 3:
        wrong = "has no three components"
    elif isinstance(one, Latency) and one.steps < 1:
        wrong = f"is of {one.steps} steps"
    elif isinstance(one, Dropout) and one.shows not in {"last", "zero"}:
        wrong = f"shows {one.shows!r}"
    if wrong:
        raise SignalError(f"{name}: a {type(one).__name__.lower()} {wrong}", where=name)


def _one_way(value: float) -> float:
    """The number, in the one way it is written: whole ones with their point, no zero with a sign."""
    return float(value) + 0.0


def _plain(one: Disturbance) -> dict[str, Any]:
    """A disturbance in JSON's own types; whole numbers stay whole only where the field is."""
    found: dict[str, Any] = {}
    for key, value in asdict(one).items():
        if isinstance(value, tuple):
            found[key] = [_one_way(v) for v in cast("tuple[float, ...]", value)]
        else:
            found[key] = int(value) if key == "steps" else _one_way(value) if isinstance(value, int | float) else value
    return found


def _disturbance(body: Mapping[str, Any], where: str) -> Disturbance:
    kind = body.get("kind", "")
    if kind not in _KINDS:
        raise DataError(f"no disturbance is called {kind!r}", where=where, attempt=nearest(str(kind), _KINDS))
    given: dict[str, Any] = {
        key: tuple(cast("list[float]", value)) if isinstance(value, list) else value
        for key, value in body.items()
        if key != "kind"
    }
    _known(given, tuple(_KINDS[kind].__dataclass_fields__), f"a {kind}", where)
    return _KINDS[kind](**given)


def _known(given: Mapping[str, Any], known: Sequence[str], what: str, where: str) -> None:
    for key in given:
        if key not in known:
            raise DataError(f"{what} has no {key!r}", where=where, attempt=nearest(key, known))
