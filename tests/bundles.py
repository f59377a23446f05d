# pyright: basic
# torch's functions say little of their types.
"""Small networks under made-up contracts, and bundles of them: of chance, so made in a moment."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from simops.core.contract import Contract
from simops.core.rollout import rollout
from simops.core.signal import Array, Schema, Signal
from simops.deploy.manifest import MANIFEST, manifest
from simops.learn.actor import Actor, Feedforward, Recurrent, Scale, Unscale, Windowed, layers
from simops.learn.checkpoint import Taught
from simops.ops.asked import Watched
from simops.ops.export import packed
from simops.sim.pendulum import Pendulum
from simops.tasks.pendulum.expert import Expert
from simops.tasks.pendulum.task import pendulum

KINDS = ("feedforward", "recurrent", "windowed")
JOINTS = ("hip", "thigh", "calf")


def contract() -> Contract:
    """Three joints, a gyro and a command."""
    return Contract(
        task="walk",
        robot="dog",
        observation=Schema(
            (
                Signal("joint_position", (3,), "rad", labels=JOINTS, low=(-1.0, -2.0, -3.0), high=(1.0, 2.0, 3.0)),
                Signal("gyro", (3,), "rad/s", frame="imu"),
                Signal("command", unit="m/s"),
            )
        ),
        action=Signal("joint_target", (3,), "rad", labels=JOINTS, low=(-1.0, -0.8, -2.5), high=(1.0, 1.5, 0.5)),
        control_dt_s=0.02,
    )


def taught(
    kind: str = "feedforward",
    *,
    of: Contract | None = None,
    hidden: tuple[int, ...] = (24, 17),
    activation: str = "elu",
    seed: int = 0,
) -> Taught:
    """A network of chance, normaliser included."""
    of = of or contract()
    torch.manual_seed(seed)
    inputs, outputs = of.observation.size, of.action.size
    scale = Scale(inputs)
    scale.mean.copy_(0.3 * torch.randn(inputs))
    scale.std.copy_(0.5 + torch.rand(inputs))
    low, high = torch.tensor(of.action.low), torch.tensor(of.action.high)
    unscale = Unscale((low + high) / 2, (high - low) / 2, low, high)
    actor: Actor
    if kind == "recurrent":
        actor = Recurrent(scale, nn.GRU(inputs, 12), layers(12, hidden, outputs, activation), unscale)
    elif kind == "windowed":
        body = layers(4 * inputs, hidden, 3 * outputs, activation)
        actor = Windowed(scale, body, unscale, window=4, chunk=3, carry=2)
    else:
        actor = Feedforward(scale, layers(inputs, hidden, outputs, activation), unscale)
    with torch.no_grad():
        for name, weight in actor.named_parameters():
            if name.startswith("body") and weight.ndim == 2:
                weight.mul_(1.5)
    actor.eval()
    return Taught(actor, Contract.parse({**of.body(), "memory": [_slot(slot) for slot in actor.slots]}))


@lru_cache(maxsize=16)
def _files(kind: str, of_pendulum: bool) -> dict[str, bytes]:  # noqa: FBT001
    made = taught(kind, of=Contract.of(pendulum()) if of_pendulum else None)
    files, _ = packed(made, provenance={"seed": 0, "trainer": "chance"})
    return files


def files_of(kind: str = "feedforward", *, of_pendulum: bool = False) -> dict[str, bytes]:
    """All files of a bundle but its manifest."""
    return dict(_files(kind, of_pendulum))


def put_down(files: dict[str, bytes], folder: Path) -> Path:
    """Write them under a manifest that is right."""
    folder.mkdir(parents=True)
    for name, data in {**files, MANIFEST: manifest(files)}.items():
        (folder / name).write_bytes(data)
    return folder


@lru_cache(maxsize=1)
def fitted() -> Taught:
    """A network that does as the pendulum's expert does, more or less."""
    watched = Watched(Expert(), [])
    rollout(watched, pendulum(), Pendulum(), n=64, batch=64)
    seen = np.concatenate([observation for observation, _ in watched.seen])
    wanted = torch.from_numpy(Expert().act(seen, {}).action.astype(np.float32))
    made = taught(of=Contract.of(pendulum()), hidden=(64, 64))
    weights = made.actor.state_dict()
    weights["scale.mean"].copy_(torch.from_numpy(seen.mean(axis=0)))
    weights["scale.std"].copy_(torch.from_numpy(seen.std(axis=0)))
    given = torch.from_numpy(seen)
    optimiser = torch.optim.Adam(made.actor.parameters(), lr=3e-3)
    generator = torch.Generator().manual_seed(0)
    for _ in range(1000):
        chosen = torch.randint(len(given), (256,), generator=generator)
        optimiser.zero_grad()
        nn.functional.mse_loss(made.actor(given[chosen])[0], wanted[chosen]).backward()
        optimiser.step()
    return made


def rows(n: int, size: int, *, seed: int = 0) -> Array:
    """Observations of chance."""
    return np.random.default_rng(seed).normal(size=(n, size)).astype(np.float32)


def _slot(slot: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"name": slot.name, "shape": list(slot.shape), "dtype": slot.dtype}
