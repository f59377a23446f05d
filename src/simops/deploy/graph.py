# pyright: basic
# onnxruntime comes without types; this is the only file that talks to it.
"""An exported network in onnxruntime: one thread, arrays in and out, nothing kept between two calls.

One row goes through the graph of fixed batch 1 and through arrays that each thread binds once, which costs
less than handing them over anew. More rows go through the batched graph, `CHUNK` at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
import onnxruntime as ort

from simops.core.errors import DataError, SignalError
from simops.core.signal import Array

CHUNK = 256
"""Rows at a time: beyond, a row gets no cheaper."""
_FLOAT = "tensor(float)"


@final
class Graph:
    """One exported network."""

    def __init__(self, data: bytes, name: str) -> None:
        """Make it run on this machine, or raise saying what it lacks."""
        if b"location" in data:  # the key without which no tensor can lie outside the file
            raise DataError("the graph asks for data outside of the bundle", where=name, fault="EXP-011")
        options = ort.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1  # bytes depend on it
        options.log_severity_level = 4
        try:
            self._session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime has no common class for what it raises here
            first = (str(error).splitlines() or [""])[0]
            raise DataError(
                f"onnxruntime {ort.__version__} cannot run this graph: {first}",
                where=name,
                attempt="the onnxruntime that the bundle's provenance names",
                fault="EXP-010",
            ) from error
        self.inputs: dict[str, tuple[Any, ...]] = {each.name: tuple(each.shape) for each in self._session.get_inputs()}
        """Shapes by name; a size that is not fixed has a name instead of a number."""
        self.outputs: dict[str, tuple[Any, ...]] = {e.name: tuple(e.shape) for e in self._session.get_outputs()}
        self.floats = all(e.type == _FLOAT for e in (*self._session.get_inputs(), *self._session.get_outputs()))
        """Whether everything that goes in and comes out is float32."""
        self._bound = threading.local()

    def run(self, arrays: Sequence[Array]) -> list[Array]:
        """All outputs for rows of all inputs, both in the graph's order."""
        feed = {name: a.astype(np.float32, copy=False) for name, a in zip(self.inputs, arrays, strict=True)}
        return list(self._session.run(None, feed))  # type: ignore[reportReturnType]

    def run_row(self, arrays: Sequence[Array]) -> list[Array]:
        """The same for the one row of a graph of fixed batch 1."""
        try:
            into, out, binding = self._bound.arrays
        except AttributeError:
            into, out, binding = self._bind()
        for here, given in zip(into, arrays, strict=True):
            if given.shape != here.shape:  # a shape that fits by broadcasting would be somebody's mistake
                raise SignalError(f"one row has shape {given.shape}, want {here.shape}")
            here[...] = given
        self._session.run_with_iobinding(binding)
        return [each.copy() for each in out]

    def _bind(self) -> tuple[list[Array], list[Array], Any]:
        binding = self._session.io_binding()
        into = [np.zeros(shape, np.float32) for shape in self.inputs.values()]
        out = [np.zeros(shape, np.float32) for shape in self.outputs.values()]
        values = [ort.OrtValue.ortvalue_from_numpy(each) for each in (*into, *out)]  # they share the arrays' memory
        for name, value in zip(self.inputs, values, strict=False):
            binding.bind_ortvalue_input(name, value)
        for name, value in zip(self.outputs, values[len(into) :], strict=True):
            binding.bind_ortvalue_output(name, value)
        self._bound.arrays = into, out, binding
        return into, out, binding


@final
class Network:
    """The two graphs of a policy as one function of rows."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        """Without a batched graph rows go one by one."""
        self.single = Graph(files["policy_1.onnx"], "policy_1.onnx")
        self.batched = Graph(files["policy.onnx"], "policy.onnx") if "policy.onnx" in files else None
        self.together = self.batched is not None
        """Whether rows go side by side: only where their bytes do not depend on it."""

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        """All outputs for rows of all inputs; float32."""
        n = len(arrays[0])
        if n == 1:
            return self.single.run_row(arrays)
        if n == 0:
            return [np.zeros((0, *shape[1:]), np.float32) for shape in self.single.outputs.values()]
        if self.batched is not None and self.together:
            if n <= CHUNK:
                return self.batched.run(arrays)
            parts = [self.batched.run([a[i : i + CHUNK] for a in arrays]) for i in range(0, n, CHUNK)]
        else:
            parts = [self.single.run_row([a[i : i + 1] for a in arrays]) for i in range(n)]
        return [np.concatenate(column) for column in zip(*parts, strict=True)]
