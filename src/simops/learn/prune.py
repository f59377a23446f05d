# pyright: basic
# onnx comes without types.
"""A smaller network inside an exported one: neurons left out by importance, or a student in place of the layers.

Either learns to answer as the layers that it replaces did, on what these were given in episodes; normaliser,
memory and action scaling around them stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, final

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper
from torch import nn

from simops.core.errors import DataError, Problem, SpecError
from simops.core.signal import Array
from simops.learn.export import Graphs, fill_up, parse, plain, put, tensor, transposed

ACTIVATIONS: dict[str, type[nn.Module]] = {"Elu": nn.ELU, "Relu": nn.ReLU, "Tanh": nn.Tanh, "Silu": nn.SiLU}
INPUT, OUTPUT = "layers_input", "layers_output"
"""What a tapped graph gives besides its answers."""


class Dense(NamedTuple):
    """One layer."""

    weight: Array
    bias: Array


@final
@dataclass(frozen=True)
class Lesson:
    """How a smaller network learns."""

    steps: int = 3000
    batch: int = 512
    rate: float = 2e-3
    seed: int = 0


@final
@dataclass(frozen=True)
class Chain:
    """The longest run of layers in a graph, with one activation between each two."""

    layers: tuple[Dense, ...]
    activation: str
    input: str
    output: str
    nodes: tuple[str, ...]
    """Outputs of the nodes it is made of."""


def tapped(data: bytes) -> bytes:
    """The same graph, which also gives what goes into its layers and what comes out of them."""
    model = parse(data)
    chain = chain_of(model)
    for name, out in ((chain.input, INPUT), (chain.output, OUTPUT)):
        model.graph.node.append(helper.make_node("Identity", [name], [out], name=out))
        model.graph.output.append(helper.make_tensor_value_info(out, onnx.TensorProto.FLOAT, None))
    return model.SerializeToString()


def pruned(graphs: Graphs, inputs: Array, outputs: Array, *, keep: float, lesson: Lesson) -> Graphs:
    """Keep the share `keep` of the neurons of every hidden layer, those that say most, and let them learn again."""
    if not 0.0 < keep < 1.0:
        what = f"keep is {keep}"
        raise SpecError("pruning", [Problem("keep", what, attempt="a share between 0 and 1", fault="CFG-005")])
    chain = chain_of(parse(graphs.batched))
    if len(chain.layers) < 2:
        raise DataError("there is no hidden layer to take neurons from")
    layers = list(chain.layers)
    seen = torch.from_numpy(inputs)
    act = ACTIVATIONS[chain.activation]()
    for i in range(len(layers) - 1):
        here, after = layers[i], layers[i + 1]
        with torch.inference_mode():
            said = act(_applied(here, seen))
        importance = said.std(dim=0).numpy() * np.linalg.norm(after.weight, axis=0)
        real = int(np.any(here.weight != 0, axis=1).sum())  # the others only fill up a vector
        count = max(1, round(keep * real))
        kept = np.sort(np.argsort(-importance, kind="stable")[:count])
        silent = np.setdiff1d(np.arange(len(importance)), kept)
        shift = after.weight[:, silent] @ said.numpy().mean(axis=0)[silent]  # what goes missing was, on average, this
        layers[i] = Dense(here.weight[kept], here.bias[kept])
        layers[i + 1] = Dense(after.weight[:, kept], after.bias + shift.astype(np.float32))
        seen = said[:, torch.from_numpy(kept)]
    return _replaced(graphs, _taught(layers, chain.activation, inputs, outputs, lesson), chain.activation)


def student(graphs: Graphs, inputs: Array, outputs: Array, *, hidden: Sequence[int], lesson: Lesson) -> Graphs:
    """Put new layers of the widths `hidden` in place of the old ones, and let them learn from these."""
    if not hidden or min(hidden) < 1:
        what = f"hidden widths are {tuple(hidden)}"
        raise SpecError("student", [Problem("hidden", what, attempt="as 64 64", fault="CFG-005")])
    chain = chain_of(parse(graphs.batched))
    rng = np.random.default_rng(lesson.seed)
    sizes = [inputs.shape[1], *hidden, outputs.shape[1]]
    layers = [
        Dense((rng.normal(size=(b, a)) / np.sqrt(a)).astype(np.float32), np.zeros(b, np.float32))
        for a, b in pairwise(sizes)
    ]
    return _replaced(graphs, _taught(layers, chain.activation, inputs, outputs, lesson), chain.activation)


def chain_of(model: onnx.ModelProto) -> Chain:
    """Find the layers; raises if there are none."""
    nodes = list(model.graph.node)
    users: dict[str, list[onnx.NodeProto]] = {}
    for node in nodes:
        for name in node.input:
            users.setdefault(name, []).append(node)
    chains = [_from(model, node, users) for node in nodes if _dense(model, node) is not None]
    if not chains:
        raise DataError("there are no layers in this graph that could be made smaller")
    return max(chains, key=lambda chain: len(chain.layers))


def _from(model: onnx.ModelProto, node: onnx.NodeProto, users: dict[str, list[onnx.NodeProto]]) -> Chain:
    """The run of layers that begins with `node`."""
    layer = _dense(model, node)
    assert layer is not None  # noqa: S101 - by the caller
    layers, names, kind = [layer], [node.output[0]], ""
    last = node
    while True:
        after = users.get(last.output[0], [])
        found = _activation(after)
        if found is None or (kind and found[0] != kind):
            break
        following = users.get(found[1], [])
        if len(following) != 1 or (layer := _dense(model, following[0])) is None:
            break
        kind, last = found[0], following[0]
        layers.append(layer)
        names += [*(each.output[0] for each in after), last.output[0]]
    return Chain(tuple(layers), kind or "Elu", node.input[0], last.output[0], tuple(names))


def _activation(after: list[onnx.NodeProto]) -> tuple[str, str] | None:
    """Kind and output of the activation made of these nodes."""
    kinds = sorted(node.op_type for node in after)
    if len(after) == 1 and kinds[0] in ACTIVATIONS:
        return kinds[0], after[0].output[0]
    if kinds == ["Mul", "Sigmoid"]:  # x times sigmoid(x)
        gate, product = sorted(after, key=lambda node: node.op_type == "Mul")
        if gate.output[0] in product.input:
            return "Silu", product.output[0]
    return None


def _dense(model: onnx.ModelProto, node: onnx.NodeProto) -> Dense | None:
    if node.op_type != "Gemm" or len(node.input) != 3 or not transposed(node):
        return None
    weight, bias = (tensor(model, name) for name in node.input[1:])
    return None if weight is None or bias is None else Dense(numpy_helper.to_array(weight), numpy_helper.to_array(bias))


def _applied(layer: Dense, rows: torch.Tensor) -> torch.Tensor:
    return nn.functional.linear(rows, torch.from_numpy(layer.weight.copy()), torch.from_numpy(layer.bias.copy()))


def _taught(layers: Sequence[Dense], kind: str, inputs: Array, outputs: Array, lesson: Lesson) -> list[Dense]:
    """Let `layers` learn to give `outputs` for `inputs`; the same bytes every time, on one thread."""
    parts: list[nn.Module] = []
    for layer in layers:
        linear = nn.Linear(layer.weight.shape[1], layer.weight.shape[0])
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(layer.weight))
            linear.bias.copy_(torch.from_numpy(layer.bias))
        parts += [linear, ACTIVATIONS[kind]()]
    network = nn.Sequential(*parts[:-1])
    given, wanted = torch.from_numpy(inputs.copy()), torch.from_numpy(outputs.copy())
    optimiser = torch.optim.Adam(network.parameters(), lr=lesson.rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, max(1, lesson.steps))
    generator = torch.Generator().manual_seed(lesson.seed)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for _ in range(lesson.steps):
            chosen = torch.randint(len(given), (lesson.batch,), generator=generator)
            optimiser.zero_grad()
            nn.functional.mse_loss(network(given[chosen]), wanted[chosen]).backward()
            optimiser.step()
            schedule.step()
    finally:
        torch.set_num_threads(threads)
    linears = [part for part in network if isinstance(part, nn.Linear)]
    return [Dense(each.weight.detach().numpy(), each.bias.detach().numpy()) for each in linears]


def _replaced(graphs: Graphs, layers: Sequence[Dense], kind: str) -> Graphs:
    return Graphs(*(_with(data, layers, kind) for data in graphs))


def _with(data: bytes, layers: Sequence[Dense], kind: str) -> bytes:
    """The same graph with other layers."""
    model = parse(data)
    chain = chain_of(model)
    nodes = list(model.graph.node)
    gone = [node for node in nodes if node.output[0] in chain.nodes]
    at = nodes.index(gone[0])
    made: list[onnx.NodeProto] = []
    flowing = chain.input
    for i, layer in enumerate(layers):
        weight, bias = f"layer_{i}_weight", f"layer_{i}_bias"
        put(model, weight, layer.weight)
        put(model, bias, layer.bias)
        last = i == len(layers) - 1
        out = chain.output if last else f"layer_{i}"
        made.append(helper.make_node("Gemm", [flowing, weight, bias], [out], name=f"layer_{i}", transB=1))
        if not last:
            flowing = f"layer_{i}_said"
            made += _said(kind, out, flowing)
    kept = [node for node in nodes if node.output[0] not in chain.nodes]
    del model.graph.node[:]
    model.graph.node.extend([*kept[:at], *made, *kept[at:]])
    used = {name for node in model.graph.node for name in node.input}
    for each in [each for each in model.graph.initializer if each.name not in used]:
        model.graph.initializer.remove(each)
    fill_up(model)
    return plain(model)


def _said(kind: str, given: str, out: str) -> list[onnx.NodeProto]:
    if kind != "Silu":
        return [helper.make_node(kind, [given], [out], name=out)]
    gate = helper.make_node("Sigmoid", [given], [f"{out}_gate"], name=f"{out}_gate")
    return [gate, helper.make_node("Mul", [given, f"{out}_gate"], [out], name=out)]
