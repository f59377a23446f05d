# pyright: basic
# onnx and onnxruntime's quantiser come without types.
"""An exported network in fewer bits: weights of 16, or weights and activations of 8.

What fewer bits cost in accuracy and gain in time is measured by whoever asks for them; nothing here promises either.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    CalibrationMethod,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)

from simops.core.errors import DataError
from simops.core.signal import Array
from simops.learn.export import parse, plain, put, tensor

DENSE = ["Gemm", "MatMul"]
RECURRENT = ["LSTM"]


class Gap(NamedTuple):
    """One tensor of a variant minus that of its parent."""

    worst: float
    rms: float


def float16(data: bytes) -> bytes:
    """Keep weight matrices in 16 bits; the arithmetic stays in 32, and so do normaliser, biases and limits."""
    model = parse(data)
    made: list[onnx.NodeProto] = []
    for weight in list(model.graph.initializer):
        value = numpy_helper.to_array(weight)
        if value.dtype != np.float32 or value.ndim < 2 or value.size < 64:
            continue
        if np.abs(value).max() > np.finfo(np.float16).max:
            raise DataError(f"{weight.name} has weights that 16 bits cannot hold", fault="EXP-005")
        name = weight.name
        model.graph.initializer.remove(weight)
        put(model, f"{name}_half", value.astype(np.float16))
        made.append(helper.make_node("Cast", [f"{name}_half"], [name], name=f"{name}_cast", to=TensorProto.FLOAT))
    _first(model, made)
    return plain(model)


def static(data: bytes, feeds: Mapping[str, Array], *, rows: int) -> bytes:
    """Quantise layers and what flows between them, to the ranges seen on `feeds`, handed over `rows` at a time."""

    def make(source: Path, target: Path) -> None:
        quantize_static(
            str(source),
            str(target),
            _Feeds(feeds, rows),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=DENSE,
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            calibrate_method=CalibrationMethod.MinMax,
        )

    return _converted(data, make)


def dynamic(data: bytes) -> bytes:
    """Quantise layers, the recurrent ones included; the range of what flows in is found at every step anew.

    It is found over all rows together, so the bytes of a row depend on the rows it is asked with.
    """
    model = parse(data)
    unrolled(model)

    def make(source: Path, target: Path) -> None:
        quantize_dynamic(
            str(source), str(target), op_types_to_quantize=[*DENSE, *RECURRENT], weight_type=QuantType.QInt8
        )

    return _converted(plain(model), make)


def gaps(parent: bytes, variant: bytes) -> dict[str, Gap]:
    """How far each weight matrix of a variant lies from its parent's; those that are not of one shape are left out."""
    model, other = parse(parent), parse(variant)
    found: dict[str, Gap] = {}
    for weight in model.graph.initializer:
        value = numpy_helper.to_array(weight)
        if value.dtype != np.float32 or value.ndim < 2:
            continue
        theirs = _restored(other, weight.name)
        if theirs is not None and theirs.size == value.size:  # an unrolled step has lost the axis of directions
            off = theirs.reshape(value.shape).astype(np.float64) - value
            found[weight.name] = Gap(float(np.abs(off).max()), float(np.sqrt(np.mean(off**2))))
    return found


def unrolled(model: onnx.ModelProto) -> None:
    """Write each single step of gated recurrent units as two layers and a few sums, which can be quantised."""
    for node in [each for each in model.graph.node if each.op_type == "GRU"]:
        flags = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        weight, state, bias = (tensor(model, name) for name in node.input[1:4])
        if weight is None or state is None or bias is None or weight.dims[0] != 1:
            continue  # computed weights, or both directions: the original stays
        if flags.get("linear_before_reset", 0) != 1 or node.input[4]:
            continue
        made = _steps(model, node, *(numpy_helper.to_array(t)[0] for t in (weight, state, bias)))
        at = list(model.graph.node).index(node)
        after = list(model.graph.node)[at + 1 :]
        del model.graph.node[at:]
        model.graph.node.extend([*made, *after])


def _steps(model: onnx.ModelProto, node: onnx.NodeProto, weight: Array, state: Array, bias: Array) -> list[Any]:
    """The nodes of one step; weights (3 width, inputs) and (3 width, width) in ONNX's order: update, reset, new."""
    tag, width = node.output[1] or node.output[0], state.shape[1]

    def name(part: str) -> str:
        return f"{tag}_{part}"

    put(model, node.input[1], weight)
    put(model, name("in_bias"), bias[: 3 * width])
    put(model, node.input[2], state)
    put(model, name("state_bias"), bias[3 * width :])
    put(model, name("zero"), np.zeros(1, np.int64))
    put(model, name("one"), np.ones(1, np.float32))
    made: list[Any] = []

    def do(kind: str, inputs: list[str], *outputs: str, **attributes: int) -> None:
        node = helper.make_node(kind, inputs, list(outputs), name=outputs[0])
        node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
        made.append(node)

    do("Squeeze", [node.input[0], name("zero")], name("seen"))
    do("Squeeze", [node.input[5], name("zero")], name("before"))
    do("Gemm", [name("seen"), node.input[1], name("in_bias")], name("from_seen"), transB=1)
    do("Gemm", [name("before"), node.input[2], name("state_bias")], name("from_before"), transB=1)
    do("Split", [name("from_seen")], name("sz"), name("sr"), name("sn"), axis=1)
    do("Split", [name("from_before")], name("bz"), name("br"), name("bn"), axis=1)
    for gate in ("z", "r"):
        do("Add", [name(f"s{gate}"), name(f"b{gate}")], name(f"{gate}_sum"))
        do("Sigmoid", [name(f"{gate}_sum")], name(gate))
    do("Mul", [name("r"), name("bn")], name("reset"))
    do("Add", [name("sn"), name("reset")], name("n_sum"))
    do("Tanh", [name("n_sum")], name("n"))
    do("Sub", [name("one"), name("z")], name("kept"))
    do("Mul", [name("kept"), name("n")], name("fresh"))
    do("Mul", [name("z"), name("before")], name("old"))
    do("Add", [name("fresh"), name("old")], name("after"))
    if node.output[1]:
        do("Unsqueeze", [name("after"), name("zero")], node.output[1])
    if node.output[0]:
        put(model, name("axes"), np.array([0, 1], np.int64))
        do("Unsqueeze", [name("after"), name("axes")], node.output[0])
    return made


@final
class _Feeds(CalibrationDataReader):
    """Rows of all inputs, some at a time."""

    def __init__(self, feeds: Mapping[str, Array], rows: int) -> None:
        total = len(next(iter(feeds.values())))
        self._batches = iter(
            [{name: a[i : i + rows] for name, a in feeds.items()} for i in range(0, total - rows + 1, rows)]
        )

    def get_next(self) -> dict[str, Array] | None:  # type: ignore[override]
        """The next batch, or None after the last."""
        return next(self._batches, None)


def _converted(data: bytes, make: Callable[[Path, Path], None]) -> bytes:
    """Give the quantiser the files it wants."""
    with tempfile.TemporaryDirectory() as folder, _quiet():
        source, target = Path(folder) / "from.onnx", Path(folder) / "to.onnx"
        source.write_bytes(data)
        make(source, target)
        model = parse(target.read_bytes())
    order = {out: i for i, out in enumerate(o.name for o in parse(data).graph.output)}
    outputs = sorted(model.graph.output, key=lambda out: order[out.name])
    del model.graph.output[:]
    model.graph.output.extend(outputs)
    return plain(model)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the quantiser's advice, which it gives to the root logger, from the user."""
    log = logging.getLogger()
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


def _first(model: onnx.ModelProto, made: list[onnx.NodeProto]) -> None:
    after = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend([*made, *after])


def _restored(model: onnx.ModelProto, name: str) -> Array | None:
    """The tensor of that name in float32, whichever way it is kept."""
    there = tensor(model, name) or tensor(model, f"{name}_half")
    if there is not None:
        return numpy_helper.to_array(there).astype(np.float32)
    parts = [tensor(model, f"{name}_{part}") for part in ("quantized", "scale", "zero_point")]
    if any(part is None for part in parts):
        return None
    turned = any(n.op_type == "MatMulInteger" and f"{name}_quantized" in n.input for n in model.graph.node)
    value, scale, zero = (numpy_helper.to_array(part).astype(np.float32) for part in parts if part is not None)
    if scale.ndim == 1 and scale.size > 1:  # one a channel, which is the first axis of a Gemm's weights
        axis = 0 if value.shape[0] == scale.size else 1
        scale, zero = (np.expand_dims(part, 1 - axis) for part in (scale, zero))
    restored = (value - zero) * scale
    return restored.T if turned else restored
