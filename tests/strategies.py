"""One set of hypothesis strategies for the nouns: signals, schemas, params, beliefs, blocks and trajectories."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import strategies as st

from simops.core.belief import Belief, Box, Gaussian, Joint, Particles
from simops.core.params import Change, Field, Param, Params
from simops.core.scenario import CATEGORIES, Disturbance, Dropout, Latency, Payload, Push, Scenario
from simops.core.signal import Schema, Signal
from simops.core.trajectory import OUTCOMES, Block, Provenance, Trajectory, shown

if TYPE_CHECKING:
    from simops.core.signal import Array

FIELDS: tuple[Field, ...] = ("mass", "friction", "damping", "kp", "kd", "delay", "gravity", "light")

seeds = st.integers(0, 2**64 - 1)
names = st.from_regex(r"[a-z][a-z_]{0,7}", fullmatch=True)
units = st.sampled_from(["", "m", "rad", "rad/s", "N m", "m/s^2"])
numbers = st.floats(-1e3, 1e3, allow_nan=False, width=32)
# what a float32 column may hold, signed zeros, subnormals, infinities and not-a-number included
cells = st.floats(width=32, allow_nan=True, allow_infinity=True)


def seed_rows(count: int) -> st.SearchStrategy[Array]:
    """`count` seeds as an array."""
    return st.lists(seeds, min_size=count, max_size=count).map(lambda values: np.array(values, np.uint64))


@st.composite
def signals(draw: st.DrawFn, name: str | None = None) -> Signal:
    """A signal of up to two axes, with or without labels and limits."""
    shape = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    size = int(np.prod(shape, dtype=int))
    labels = tuple(f"e{i}" for i in range(size)) if draw(st.booleans()) else ()
    low = tuple(draw(st.lists(numbers, min_size=size, max_size=size))) if draw(st.booleans()) else ()
    high = tuple(value + 1.0 for value in low)
    frame = draw(st.sampled_from(["", "world", "base"]))
    return Signal(name or draw(names), shape, draw(units), frame, labels=labels if shape else (), low=low, high=high)


@st.composite
def schemas(draw: st.DrawFn, *, least: int = 1, most: int = 4) -> Schema:
    """Some signals of different names."""
    chosen = draw(st.lists(names, min_size=least, max_size=most, unique=True))
    # an index in the name keeps `a_0` of one signal apart from the signal `a_0`
    return Schema(tuple(draw(signals(f"s{i}_{name}")) for i, name in enumerate(chosen)))


@st.composite
def columns(draw: st.DrawFn, schema: Schema, rows: int) -> dict[str, Array]:
    """`rows` rows of each signal; the first rows hold the odd values, the rest is arithmetic."""
    packed = (np.arange(rows * schema.size, dtype=np.float32).reshape(rows, schema.size) * np.float32(0.37)) % 11
    odd = draw(st.lists(cells, max_size=min(packed.size, 12)))
    packed.ravel()[: len(odd)] = odd
    return {name: np.ascontiguousarray(part) for name, part in schema.unpack(packed).items()}


@st.composite
def changes(draw: st.DrawFn) -> Change:
    """What a param may do to a scene."""
    how = draw(st.sampled_from(("set", "scale", "add")))
    return Change(draw(st.sampled_from(FIELDS)), tuple(draw(st.lists(names, max_size=2))), how)


@st.composite
def params(draw: st.DrawFn, name: str | None = None) -> Param:
    """A param, bounded or not."""
    nominal = draw(st.floats(-100, 100))
    low = nominal - draw(st.floats(0.1, 100)) if draw(st.booleans()) else -np.inf
    high = nominal + draw(st.floats(0.1, 100)) if draw(st.booleans()) else np.inf
    does = tuple(draw(st.lists(changes(), max_size=2)))
    return Param(name or draw(names), nominal, draw(units), low, high, does, about=draw(st.text(max_size=12)))


@st.composite
def param_sets(draw: st.DrawFn, *, least: int = 1, most: int = 3, prefix: str = "p") -> tuple[Param, ...]:
    """Some params of different names."""
    count = draw(st.integers(least, most))
    return tuple(draw(params(f"{prefix}{i}")) for i in range(count))


@st.composite
def boxes(draw: st.DrawFn, prefix: str = "box") -> Box:
    """Ranges inside the params' bounds; some of no width."""
    chosen = draw(param_sets(prefix=prefix))
    low = [max(p.low, p.nominal - draw(st.floats(0, 10))) for p in chosen]
    high = [min(p.high, p.nominal + draw(st.floats(0, 10))) for p in chosen]
    return Box(chosen, tuple(low), tuple(high))


@st.composite
def gaussians(draw: st.DrawFn, prefix: str = "gauss") -> Gaussian:
    """Any positive definite covariance, made from a lower triangle."""
    chosen = draw(param_sets(prefix=prefix))
    size = len(chosen)
    lower = np.zeros((size, size))
    for i in range(size):
        lower[i, i] = draw(st.floats(0.1, 3))
        for j in range(i):
            lower[i, j] = draw(st.floats(-1, 1))
    covariance = tuple(tuple(row) for row in (lower @ lower.T).tolist())
    return Gaussian(chosen, tuple(p.nominal for p in chosen), covariance)


@st.composite
def particles(draw: st.DrawFn, prefix: str = "particle") -> Particles:
    """A few points around the nominal one, with or without weights and spread."""
    chosen = draw(param_sets(prefix=prefix))
    count = draw(st.integers(2, 6))
    near = st.floats(-5, 5)
    points = [[float(np.clip(p.nominal + draw(near), p.low, p.high)) for p in chosen] for _ in range(count)]
    weights = tuple(draw(st.lists(st.floats(0.1, 5), min_size=count, max_size=count))) if draw(st.booleans()) else ()
    spread = tuple(draw(st.floats(0.05, 2)) for _ in chosen) if draw(st.booleans()) else ()
    return Particles(chosen, tuple(tuple(point) for point in points), weights, spread)


def beliefs() -> st.SearchStrategy[Belief]:
    """A belief of any kind."""
    whole: st.SearchStrategy[Belief] = st.one_of(boxes(), gaussians(), particles())
    joint: st.SearchStrategy[Belief] = st.tuples(boxes("a"), gaussians("b"), particles("c")).map(Joint)
    return st.one_of(whole, joint)


@st.composite
def provenances(draw: st.DrawFn) -> Provenance:
    """Where something may come from."""
    return Provenance(
        engine=draw(st.sampled_from(["Pendulum(step_s=0.001)", "Mujoco()"])),
        simulator="pendulum equation scene 0f",
        task=draw(names),
        policy=draw(st.text("0123456789abcdef", min_size=8, max_size=8)),
        seed=draw(st.integers(0, 2**31)),
        realm=draw(st.sampled_from(["train", "gate"])),
        sensors=tuple(draw(st.lists(st.sampled_from(["Noise()", "Encoder()"]), max_size=2))),
        origin=draw(st.sampled_from(("sim", "sealed", "robot"))),
        packages=("simops 0", "numpy 2"),
    )


@st.composite
def recorded_schemas(draw: st.DrawFn) -> Schema:
    """A trajectory's schema: state, what was shown, action, executed, reward."""
    state = draw(schemas(most=3))
    action = draw(signals("action"))
    executed = Signal("executed", action.shape, action.unit, labels=action.labels)
    seen = (Signal(shown(state.names[0]), state.signals[0].shape),) if draw(st.booleans()) else ()
    return Schema((*state.signals, *seen, action, executed, Signal("reward")))


@st.composite
def blocks(draw: st.DrawFn, *, most: int = 4, longest: int = 6) -> Block:
    """Some episodes of one schema, as a rollout would hand them over."""
    schema = draw(recorded_schemas())
    count = draw(st.integers(1, most))
    lengths = np.array([draw(st.integers(1, longest)) for _ in range(count)], np.int64)
    total = int((lengths + 1).sum())
    rows = schema.pack(draw(columns(schema, total)))
    ends = np.cumsum(lengths + 1) - 1
    for name in ("action", "executed", "reward"):
        rows[ends, schema.slices[name]] = np.nan
    point = draw(param_sets(prefix="param"))
    values = np.array([p.nominal for p in point]) + np.arange(count)[:, None] * 0.25
    scores = draw(st.lists(st.floats(-1e6, 1e6), min_size=count, max_size=count))
    first = draw(st.integers(0, 10_000))
    ran = draw(st.booleans())
    return Block(
        schema=schema,
        rows=rows,
        episodes=np.arange(first, first + count, dtype=np.int64),
        seeds=draw(seed_rows(count)),
        lengths=lengths,
        outcomes=np.array([draw(st.integers(0, len(OUTCOMES) - 1)) for _ in range(count)], np.int8),
        params=Params(tuple(p.name for p in point), values),
        scores={"reward": np.array(scores), "term": np.array(scores) / 2},
        provenance=draw(provenances()),
        scenarios=tuple(f"{first + i:064x}" for i in range(count)) if ran else (),
    )


def trajectories() -> st.SearchStrategy[Trajectory]:
    """One episode."""
    return blocks(most=1).map(lambda block: block.trajectory(0))


def _triples() -> st.SearchStrategy[tuple[float, float, float]]:
    return st.tuples(numbers, numbers, numbers)


disturbances: st.SearchStrategy[Disturbance] = st.one_of(
    st.builds(Push, names, _triples(), _triples(), st.floats(0, 5), st.floats(0.01, 2)),
    st.builds(Latency, st.integers(1, 9), st.floats(0, 5), st.floats(0.01, 2)),
    st.builds(Dropout, names, st.floats(0, 5), st.floats(0.01, 2), st.sampled_from(("last", "zero"))),
    st.builds(Payload, names, st.floats(0, 10)),
)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """A scenario of no task in particular."""
    return Scenario(
        name=draw(st.text(max_size=12)),
        category=draw(st.sampled_from(CATEGORIES)),
        task=draw(names),
        params=draw(st.dictionaries(names, numbers, max_size=3)),
        initial=draw(st.dictionaries(names, st.lists(numbers, max_size=3).map(tuple), max_size=3)),
        disturbances=tuple(draw(st.lists(disturbances, max_size=4))),
        seed=draw(seeds),
    )
