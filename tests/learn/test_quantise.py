"""Fewer bits and fewer neurons: what stays the same, and by how much the rest moves."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from simops.core.errors import DataError, SpecError
from simops.core.signal import Array
from simops.deploy.graph import Graph
from simops.learn.export import Graphs, graphs, parse, plain
from simops.learn.prune import Lesson, chain_of, pruned, student, tapped
from simops.learn.quantise import dynamic, float16, gaps, static, unrolled
from tests.bundles import KINDS, rows, taught


def written(kind: str = "feedforward", activation: str = "elu") -> Graphs:
    made = taught(kind, activation=activation, hidden=(32, 32))
    return graphs(made.actor, made.contract)


def feeds(data: bytes, n: int = 64) -> dict[str, Array]:
    shapes = Graph(data, "x").inputs
    found = {
        name: np.abs(rows(n, int(np.prod(shape[1:])), seed=i)).reshape(n, *shape[1:])
        for i, (name, shape) in enumerate(shapes.items())
    }
    if "counter" in found:
        found["counter"][:] = 1.0  # the plan is spent, so the layers are asked
    return found


def asked(data: bytes, given: dict[str, Array]) -> list[Array]:
    return Graph(data, "x").run([each[:1] for each in given.values()])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["float16", "int8", "int8-dynamic"])
def test_a_variant_keeps_the_border_and_stays_near(kind: str, how: str) -> None:
    data = written(kind).single
    given = feeds(data)
    made = {"float16": float16, "int8": partial(static, feeds=given, rows=1), "int8-dynamic": dynamic}[how](data)
    one, two = Graph(data, "x"), Graph(made, "x")
    assert (one.inputs, one.outputs, two.floats) == (two.inputs, two.outputs, True)
    bound = {"float16": 5e-3, "int8": 0.3, "int8-dynamic": 0.3}[how]
    off = np.abs(asked(data, given)[0] - asked(made, given)[0]).max()
    assert 0 < off < bound


def test_sixteen_bits_spare_normaliser_biases_and_limits() -> None:
    model = parse(float16(written().single))
    kinds = {w.name: w.data_type for w in model.graph.initializer}
    halves = {name for name, kind in kinds.items() if kind == 10}
    assert halves == {"body.0.weight_half", "body.2.weight_half", "body.4.weight_half"}


def test_weights_beyond_sixteen_bits_are_refused() -> None:
    made = taught(hidden=(32, 32))
    made.actor.state_dict()["body.0.weight"][0, 0] = 1e5
    with pytest.raises(DataError, match="16 bits cannot hold"):
        float16(graphs(made.actor, made.contract).single)


def test_gaps_are_those_of_rounding_whatever_the_layout() -> None:
    data = written().single
    spread = max(float(np.abs(rows(1, 1)).max()), 1.0)
    for made in (float16(data), static(data, feeds(data), rows=1), dynamic(data)):
        found = gaps(data, made)
        assert set(found) == {"body.0.weight", "body.2.weight", "body.4.weight"}
        assert all(0 < gap.rms <= gap.worst < 0.02 * spread for gap in found.values())
    assert all(gap.worst == 0.0 for gap in gaps(data, data).values())


def test_an_unrolled_step_gives_what_the_recurrent_unit_gave() -> None:
    data = written("recurrent").single
    model = parse(data)
    unrolled(model)
    assert "GRU" not in {node.op_type for node in model.graph.node}
    given = feeds(data)
    for before, after in zip(asked(data, given), asked(plain(model), given), strict=True):
        np.testing.assert_allclose(after, before, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("activation", ["elu", "silu"])
def test_layers_are_found_in_every_kind_of_network(kind: str, activation: str) -> None:
    chain = chain_of(parse(written(kind, activation).batched))
    assert [layer.weight.shape[0] for layer in chain.layers][:2] == [32, 32]
    assert len(chain.layers) == 3
    assert chain.activation == {"elu": "Elu", "silu": "Silu"}[activation]


def lesson_of(pair: Graphs, n: int = 600) -> tuple[Array, Array]:
    given = feeds(pair.single, n)
    graph = Graph(tapped(pair.single), "x")
    found = [graph.run([a[i : i + 1] for a in given.values()])[-2:] for i in range(n)]
    inputs, outputs = (np.concatenate(column) for column in zip(*found, strict=True))
    return inputs, outputs


@pytest.mark.parametrize("activation", ["elu", "silu", "tanh", "relu"])
def test_neurons_that_say_nothing_are_the_first_to_go(activation: str) -> None:
    made = taught(hidden=(32, 32), activation=activation)
    weights = made.actor.state_dict()
    for layer, following in ((0, 2), (2, 4)):
        weights[f"body.{layer}.weight"][16:] *= 1e-4  # half of them hardly move, and are hardly heard
        weights[f"body.{following}.weight"][:, 16:] *= 1e-4
    pair = graphs(made.actor, made.contract)
    small = pruned(pair, *lesson_of(pair), keep=0.5, lesson=Lesson(steps=0))
    given = feeds(pair.single)
    np.testing.assert_allclose(asked(small.single, given)[0], asked(pair.single, given)[0], atol=1e-4)
    assert [layer.weight.shape for layer in chain_of(parse(small.single)).layers] == [(16, 7), (16, 16), (3, 16)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_student_learns_and_fits_where_the_layers_were(kind: str) -> None:
    pair = written(kind)
    inputs, outputs = lesson_of(pair)
    lessons = (Lesson(steps=0), Lesson(steps=300))
    new, taught_ = (student(pair, inputs, outputs, hidden=(16,), lesson=each) for each in lessons)
    given = feeds(pair.single, 200)
    want, before, after = (
        np.concatenate([Graph(g.single, "x").run([a[i : i + 1] for a in given.values()])[0] for i in range(200)])
        for g in (pair, new, taught_)
    )
    assert np.abs(after - want).mean() < 0.5 * np.abs(before - want).mean()
    assert taught_ == student(pair, inputs, outputs, hidden=(16,), lesson=lessons[1])


def test_impossible_sizes_are_refused() -> None:
    pair = written()
    inputs, outputs = lesson_of(pair, 4)
    for keep in (0.0, 1.0, -1.0, float("nan")):
        with pytest.raises(SpecError, match="keep is"):
            pruned(pair, inputs, outputs, keep=keep, lesson=Lesson())
    with pytest.raises(SpecError, match="hidden widths"):
        student(pair, inputs, outputs, hidden=(0,), lesson=Lesson())
