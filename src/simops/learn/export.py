# pyright: basic
# onnx describes its messages to nobody who reads types; this file and its neighbours quantise and prune talk to it.
"""A trained network as ONNX: two graphs, free of names of this machine, and what the network answers.

The same weights give the same bytes. Widths behind an ELU are filled up to whole vectors of the processor,
because its exponential is computed otherwise in what is left over at the end of an array, and then the bytes
of a row would depend on the rows beside it.
"""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import onnx
import torch
from onnx import numpy_helper

from simops.core.contract import Contract
from simops.core.errors import DataError
from simops.core.signal import Array
from simops.learn.actor import Actor

OPSET = 17
VECTOR = 16
"""Floats in the widest vector of today's processors."""
REPLY = "next_"


class Graphs(NamedTuple):
    """One network twice: for any number of rows, and for one."""

    batched: bytes
    single: bytes


def graphs(actor: Actor, contract: Contract) -> Graphs:
    """Write the network as ONNX; raises if it does not fit the contract or uses what ONNX does not have."""
    if actor.slots != contract.memory:
        raise DataError("the network remembers other things than its contract says", fault="EXP-007")
    return Graphs(_written(actor, contract, rows=2, named=True), _written(actor, contract, rows=1, named=False))


def answers(actor: Actor, observation: Array, memory: Sequence[Array]) -> list[Array]:
    """What the trained network itself says to rows: the action, then what it remembers."""
    with _at_rest(actor):
        arrays = [torch.from_numpy(np.ascontiguousarray(a, np.float32)) for a in (observation, *memory)]
        return [out.contiguous().numpy().copy() for out in actor(*arrays)]


def rounding(actor: Actor, observation: Array, memory: Sequence[Array]) -> float:
    """How far the network's own actions lie from those that it would give with twice the digits."""
    exact = copy.deepcopy(actor).double()
    arrays = [np.ascontiguousarray(a, np.float32) for a in (observation, *memory)]
    with _at_rest(exact):
        want = exact(*(torch.from_numpy(a.astype(np.float64)) for a in arrays))[0].numpy()
    ours = answers(actor, observation, memory)[0]
    sound = np.isfinite(ours) & np.isfinite(want)  # far enough off, a network comes to no number
    return float(np.abs(ours[sound] - want[sound]).max(initial=0.0))


def golden(actor: Actor, observation: Array) -> dict[str, Array]:
    """What the network answers to sequences (steps, rows, size) from an empty memory."""
    steps, rows = observation.shape[:2]
    memory = [slot.zeros(rows) for slot in actor.slots]
    names = ("action", *(f"after_{slot.name}" for slot in actor.slots))
    found: dict[str, list[Array]] = {name: [] for name in names}
    for step in range(steps):
        action, *memory = answers(actor, observation[step], memory)
        for name, array in zip(names, (action, *memory), strict=True):
            found[name].append(array)
    return {"observation": observation, **{name: np.stack(arrays) for name, arrays in found.items()}}


def parse(data: bytes) -> onnx.ModelProto:
    """Read a graph."""
    return onnx.load_from_string(data)


def plain(model: onnx.ModelProto) -> bytes:
    """Write a graph without anything that does not compute: producer, comments, shapes that can be worked out."""
    model.producer_name = model.producer_version = model.domain = model.doc_string = ""
    model.model_version = 0
    model.graph.name = "policy"
    del model.metadata_props[:]
    del model.graph.value_info[:]
    for node in model.graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString(deterministic=True)


def tensor(model: onnx.ModelProto, name: str) -> onnx.TensorProto | None:
    """The constant of that name."""
    return next((each for each in model.graph.initializer if each.name == name), None)


def put(model: onnx.ModelProto, name: str, value: Array) -> None:
    """Set the constant of that name."""
    made = numpy_helper.from_array(np.ascontiguousarray(value), name)
    there = tensor(model, name)
    if there is None:
        model.graph.initializer.append(made)
    else:
        there.CopyFrom(made)


def transposed(node: onnx.NodeProto) -> bool:
    """Whether a Gemm's weights have one row an output."""
    return any(a.name == "transB" and a.i == 1 for a in node.attribute)


def _written(actor: Actor, contract: Contract, *, rows: int, named: bool) -> bytes:
    names = ["observation", *(slot.name for slot in actor.slots)]
    replies = ["action", *(f"{REPLY}{slot.name}" for slot in actor.slots)]
    example = tuple(torch.zeros(rows, *shape) for shape in ((contract.observation.size,), *_shapes(actor)))
    buffer = io.BytesIO()
    try:
        with warnings.catch_warnings(), _at_rest(actor):
            warnings.simplefilter("ignore")  # that of two exporters this is the older: it is also the quicker by far
            torch.onnx.export(
                actor,
                example,
                buffer,  # type: ignore[reportArgumentType]
                dynamo=False,
                opset_version=OPSET,
                input_names=names,
                output_names=replies,
                dynamic_axes={name: {0: "rows"} for name in (*names, *replies)} if named else None,
            )
    except Exception as error:  # torch has no common class for what it raises here
        first = (str(error).splitlines() or [""])[0]
        raise DataError(f"the network cannot be written as ONNX: {first}", fault="EXP-010") from error
    model = parse(buffer.getvalue())
    _shape_outputs(model, {"action": (contract.action.size,), **dict(zip(replies[1:], _shapes(actor), strict=True))})
    fill_up(model)
    return plain(model)


def _shapes(actor: Actor) -> tuple[tuple[int, ...], ...]:
    return tuple(slot.shape for slot in actor.slots)


def _shape_outputs(model: onnx.ModelProto, shapes: dict[str, tuple[int, ...]]) -> None:
    """Say the sizes of outputs where the exporter was not sure."""
    for out in model.graph.output:
        dims = out.type.tensor_type.shape.dim
        for dim, size in zip(list(dims)[1:], shapes[out.name], strict=True):
            dim.dim_value = size


def fill_up(model: onnx.ModelProto) -> None:
    """Widen what goes through an ELU to whole vectors: neurons that say nothing and that nobody hears."""
    nodes = list(model.graph.node)
    makers = {out: node for node in nodes for out in node.output}
    for node in nodes:
        before = makers.get(node.input[0]) if node.op_type == "Elu" else None
        if before is None or before.op_type != "Gemm" or not transposed(before):
            continue
        after = [each for each in nodes if node.output[0] in each.input]
        if any(each.op_type != "Gemm" or not transposed(each) for each in after):
            continue
        weight, bias = (tensor(model, name) for name in before.input[1:3])
        if weight is None or bias is None:
            continue
        missing = -weight.dims[0] % VECTOR
        _pad(model, before.input[1], (missing, 0))
        _pad(model, before.input[2], (missing,))
        for each in after:
            _pad(model, each.input[1], (0, missing))


def _pad(model: onnx.ModelProto, name: str, more: tuple[int, ...]) -> None:
    value = tensor(model, name)
    if value is not None and any(more):
        put(model, name, np.pad(numpy_helper.to_array(value), [(0, n) for n in more]))


@contextmanager
def _at_rest(actor: Actor) -> Iterator[None]:
    """For a while the network is not being trained, and torch computes on one thread, on which its bytes depend."""
    training, threads = actor.training, torch.get_num_threads()
    actor.eval()
    torch.set_num_threads(1)
    try:
        with torch.inference_mode():
            yield
    finally:
        torch.set_num_threads(threads)
        actor.train(training)
