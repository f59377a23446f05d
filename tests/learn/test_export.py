"""What leaves as ONNX is the network that was trained, and the same network leaves as the same bytes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from simops.core.contract import Contract, Slot
from simops.core.errors import DataError
from simops.core.signal import Array
from simops.deploy.graph import Graph
from simops.learn.actor import Actor
from simops.learn.export import VECTOR, answers, golden, graphs, parse, rounding
from tests.bundles import KINDS, rows, taught


def alone(graph: Graph, arrays: list[Array]) -> list[Array]:
    outs = [graph.run_row([a[i : i + 1] for a in arrays]) for i in range(len(arrays[0]))]
    return [np.concatenate(column) for column in zip(*outs, strict=True)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_weights_give_the_same_bytes(kind: str) -> None:
    one, two = (graphs(made.actor, made.contract) for made in (taught(kind), taught(kind)))
    assert one == two
    other = taught(kind, seed=1)
    assert graphs(other.actor, other.contract).single != one.single


@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_tells_nothing_of_where_it_was_made(kind: str) -> None:
    made = taught(kind)
    for data in graphs(made.actor, made.contract):
        model = parse(data)
        assert (model.producer_name, model.doc_string, len(model.metadata_props)) == ("", "", 0)
        assert b".py" not in data


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("activation", ["elu", "relu", "tanh", "silu"])
@pytest.mark.parametrize("hidden", [(1,), (16,), (33, 17, 5)])
def test_a_row_has_the_networks_answer_and_the_same_bytes_beside_others(
    kind: str, activation: str, hidden: tuple[int, ...]
) -> None:
    made = taught(kind, hidden=hidden, activation=activation)
    written = graphs(made.actor, made.contract)
    batched, single = Graph(written.batched, "n"), Graph(written.single, "1")
    n = 131
    arrays = [rows(n, 7), *(np.abs(rows(n, slot.zeros(1).size)).reshape(n, *slot.shape) for slot in made.actor.slots)]
    arrays[0][:3] = np.array([0.0, -0.0, 1e-42])[:, None]
    want = answers(made.actor, arrays[0], arrays[1:])
    one = alone(single, arrays)
    for got, ours in zip(one, want, strict=True):
        assert np.abs(got - ours).max() <= 1e-5
    for size in (2, 7, 64, n):
        parts = [batched.run([a[i : i + size] for a in arrays]) for i in range(0, n, size)]
        for got, ours in zip([np.concatenate(c) for c in zip(*parts, strict=True)], one, strict=True):
            assert got.tobytes() == ours.tobytes()


def test_layers_before_an_elu_are_filled_up_and_others_are_not() -> None:
    for activation, width in (("elu", VECTOR), ("tanh", 5)):
        made = taught(hidden=(5,), activation=activation)
        model = parse(graphs(made.actor, made.contract).single)
        shapes = {tuple(w.dims) for w in model.graph.initializer if len(w.dims) == 2}
        assert shapes == {(width, 7), (3, width)}


def test_golden_vectors_are_the_networks_own_from_an_empty_memory() -> None:
    made = taught("recurrent")
    sequence = rows(20 * 3, 7).reshape(20, 3, 7)
    found = golden(made.actor, sequence)
    memory = [made.actor.slots[0].zeros(3)]
    for step in range(20):
        action, *memory = answers(made.actor, sequence[step], memory)
        assert found["action"][step].tobytes() == action.tobytes()
        assert found["after_hidden"][step].tobytes() == memory[0].tobytes()


def test_rounding_is_that_of_float32() -> None:
    made = taught()
    assert 0 < rounding(made.actor, rows(100, 7), []) < 1e-5
    assert all(weight.dtype == torch.float32 for weight in made.actor.parameters())


def test_exporting_leaves_the_network_as_it_was() -> None:
    made = taught()
    made.actor.train()
    threads = torch.get_num_threads()
    graphs(made.actor, made.contract)
    assert made.actor.training
    assert torch.get_num_threads() == threads


def test_a_memory_that_the_contract_does_not_know_is_refused() -> None:
    made = taught("recurrent")
    with pytest.raises(DataError, match="remembers other things") as caught:
        graphs(made.actor, replace(made.contract, memory=(Slot("hidden", (1, 13)),)))
    assert caught.value.fault == "EXP-007"


def test_what_onnx_cannot_say_is_refused() -> None:
    class Odd(Actor):
        def __init__(self) -> None:
            super().__init__()  # type: ignore[reportUnknownMemberType]
            self.weight = nn.Parameter(torch.zeros(1))

        def forward(self, observation: Tensor) -> tuple[Tensor]:
            return (torch.special.bessel_j0(observation[:, :3]) + self.weight,)  # type: ignore[reportUnknownMemberType]

    contract: Contract = taught().contract
    with pytest.raises(DataError, match="cannot be written as ONNX") as caught:
        graphs(Odd(), contract)
    assert caught.value.fault == "EXP-010"
