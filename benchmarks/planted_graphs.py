"""Networks that were exported otherwise than they were trained, as bundles with honest golden vectors."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import final

import numpy as np
import torch
from torch import nn

from benchmarks.planted import ENGINE, Look, Plant, task_of
from simops.core.contract import Contract
from simops.core.policy import centre_and_scale
from simops.core.signal import Array
from simops.deploy import golden, manifest
from simops.deploy.graph import Network
from simops.learn import export
from simops.learn.actor import Actor, Feedforward, Recurrent, Scale, Unscale, Windowed, layers
from simops.ops import replay
from simops.ops.adapter import faithful, states
from simops.ops.mismatch import Mismatch


@final
class Twice(nn.Module):
    """Two modules where one is meant."""

    def __init__(self, *parts: nn.Module) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """One after the other."""
        for part in self.parts:
            rows = part(rows)
        return rows


def trained(name: str, kind: str, seed: int = 0) -> Actor:
    """A network with a normaliser that fits what it sees, as training leaves it; untrained otherwise."""
    task = task_of(name)
    torch.manual_seed(seed)
    inputs, outputs = task.observation.size, task.action.size
    rows = faithful(task).observe(states(task, ENGINE, rows=512, seed=seed + 100))
    scale = Scale(inputs)
    scale.mean.copy_(torch.from_numpy(rows.mean(axis=0)))
    scale.std.copy_(torch.from_numpy(rows.std(axis=0) + 0.01))
    low, high = (torch.tensor(x or (s * np.inf,) * outputs) for x, s in ((task.action.low, -1), (task.action.high, 1)))
    unscale = Unscale(*(torch.from_numpy(a) for a in centre_and_scale(task)), low, high)
    if kind == "recurrent":
        return Recurrent(scale, nn.GRU(inputs, 32), layers(32, (32,), outputs), unscale)
    if kind == "windowed":
        return Windowed(scale, layers(inputs * 4, (64,), outputs), unscale, window=4, chunk=1, carry=1)
    return Feedforward(scale, layers(inputs, (64, 64), outputs), unscale)


def sequences(name: str, seed: int = 0) -> Array:
    task = task_of(name)
    rows = faithful(task).observe(states(task, ENGINE, rows=20 * 8, seed=seed))
    return rows.reshape(8, 20, -1).transpose(1, 0, 2).copy()


def bundle(name: str, right: Actor, wrong: Actor | None = None, *, seed: int = 0) -> dict[str, bytes]:
    """A bundle's files: golden vectors of the network that was trained, graphs of what was exported."""
    contract = Contract.of(task_of(name), memory=right.slots)
    made = export.graphs(wrong or right, contract)
    files = {
        "policy.onnx": made.batched,
        "policy_1.onnx": made.single,
        "contract.json": json.dumps(contract.body()).encode(),
        "checks.json": b'{"tolerance": 1e-5, "together": true}',
        "provenance.json": b'{"seed": 0}',
        **golden.write(export.golden(right, sequences(name, seed))),
    }
    return {**files, "manifest.json": manifest.manifest(files)}


def answers(name: str, right: Actor, wrong: Actor | None = None, *, forget: bool = False, seed: int = 0) -> Look:
    def look() -> list[Mismatch]:
        files = bundle(name, right, wrong, seed=seed)
        contract = Contract.parse(json.loads(files["contract.json"]))
        network = Network(files)

        def run(arrays: Sequence[Array]) -> Sequence[Array]:
            return network([arrays[0], *(np.zeros_like(a) for a in arrays[1:])] if forget else arrays)

        return replay.diagnose(run, contract, golden.read(files), task_of(name), tolerance=2e-5)

    return look


def graphs() -> Iterator[Plant]:
    for name, kind in itertools.product(("velocity", "pick_and_place", "pendulum"), ("feedforward", "recurrent")):
        good = trained(name, kind)
        assert isinstance(good, Feedforward | Recurrent)
        outputs = task_of(name).action.size

        def broken(
            name: str = name, kind: str = kind, *, scale: nn.Module | None = None, unscale: nn.Module | None = None
        ) -> Actor:
            bad = trained(name, kind)
            assert isinstance(bad, Feedforward | Recurrent)
            bad.scale, bad.unscale = scale or bad.scale, unscale or bad.unscale  # type: ignore[assignment]
            return bad

        about = f"{name} {kind}"
        none, twice = Scale(task_of(name).observation.size), Twice(good.scale, good.scale)
        yield Plant("graph: normaliser", about, "normaliser_missing", answers(name, good, broken(scale=none)))
        yield Plant("graph: normaliser", about, "normaliser_doubled", answers(name, good, broken(scale=twice)))
        raw, again = nn.Identity(), Twice(good.unscale, good.unscale)
        if outputs > 1:
            yield Plant("graph: action scale", about, "action_scale_missing", answers(name, good, broken(unscale=raw)))
            yield Plant(
                "graph: action scale", about, "action_scale_doubled", answers(name, good, broken(unscale=again))
            )
        if kind == "recurrent":
            yield Plant("graph: memory", about, "memory", answers(name, good, forget=True))
    for name in ("velocity", "pendulum"):
        good = trained(name, "windowed")
        yield Plant("graph: history", name, "history", answers(name, good, Newest(good)))


@final
class Newest(Actor):
    """A windowed network that keeps its window the other way round."""

    def __init__(self, inner: Actor) -> None:
        super().__init__()
        self.inner, self.slots = inner, inner.slots

    def forward(
        self, observation: torch.Tensor, window: torch.Tensor, plan: torch.Tensor, counter: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        """Newest first."""
        action, after, *rest = self.inner(observation, window.flip(1), plan, counter)
        return action, after.flip(1), *rest
