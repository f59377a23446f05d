"""Learned parts alone: a network in the physics that makes up for wrong numbers, in place of better ones.

It learns, from what a robot did, the torque that the nominal pendulum's equation leaves unexplained: of the command,
the one before, the angle and the rate. Three members are taught on different trials; their mean is added, cut at what
was seen. It is a motor as any engine takes one.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np
import torch

from simops.core.protocols import Memory, Torque
from simops.core.signal import Array
from simops.core.trajectory import Trajectory
from simops.tasks.pendulum.task import TORQUE_LIMIT_NM

DT_S = 0.02
MEMBERS, WIDTH, STEPS, BATCH = 3, 32, 1500, 1024


@final
@dataclass(frozen=True, eq=False)
class Parts:
    """Torque as commanded, and what was learned beside it."""

    weights: tuple[tuple[Array, Array], ...] = field(repr=False)
    """(members, in, out) and (members, 1, out), layer by layer."""
    bound_nm: float

    @classmethod
    def taught(cls, log: Sequence[Trajectory]) -> Parts:
        """From trials of a robot: what was asked for, and how it moved."""
        shown, wanted = zip(*(_rows(one) for one in log), strict=True)
        rng, bound = np.random.default_rng(0), float(np.quantile(np.abs(np.concatenate(wanted)), 0.999))
        drawn = [rng.integers(0, len(log), len(log)) for _ in range(MEMBERS)]
        weights = _fitted([np.concatenate([shown[i] for i in some]) for some in drawn],
                          [np.concatenate([wanted[i] for i in some]) for some in drawn])  # fmt: skip
        return cls(weights, bound)

    def start(self, n: int, joints: int) -> Memory:
        """Nothing commanded yet."""
        return {"now": np.zeros((n, joints)), "before": np.zeros((n, joints)), "age": np.zeros((n, 1), np.int64)}

    def torque(self, command: Array, position: Array, velocity: Array, memory: Memory, *, dt_s: float) -> Torque:
        """The command and its correction; the command before is the one of the last control period."""
        fresh = memory["age"] % max(1, round(DT_S / dt_s)) == 0
        before = np.where(fresh, memory["now"], memory["before"])
        now = np.where(fresh, command, memory["now"])
        seen = _seen(now[:, 0], before[:, 0], position[:, 0], velocity[:, 0])
        said = np.clip(_said(self.weights, seen), -self.bound_nm, self.bound_nm)
        return Torque(command + said[:, None], {"now": now, "before": before, "age": memory["age"] + 1})


def _rows(one: Trajectory) -> tuple[Array, Array]:
    """What a network sees of every control step but the first, and the torque that is missing there."""
    n = len(one)
    command = one["executed"][:n].reshape(n, -1)[:, 0].astype(float)
    angle, rate = one["angle"].astype(float), one["rate"].astype(float)
    middle_angle, middle_rate = (angle[1:] + angle[:-1]) / 2, (rate[1:] + rate[:-1]) / 2
    needed = np.diff(rate) / DT_S + 0.05 * middle_rate + 9.81 * np.sin(middle_angle)  # of the nominal pendulum
    seen = _seen(command[1:], command[:-1], middle_angle[1:n], middle_rate[1:n])
    return seen, (needed[:n] - command)[1:]


def _seen(now: Array, before: Array, angle: Array, rate: Array) -> Array:
    limit = TORQUE_LIMIT_NM
    return np.stack([now / limit, before / limit, np.sin(angle), np.cos(angle), rate / 5.0], axis=1)


def _said(weights: tuple[tuple[Array, Array], ...], seen: Array) -> Array:
    hidden = np.broadcast_to(seen, (MEMBERS, *seen.shape))
    for i, (weight, offset) in enumerate(weights):
        hidden = hidden @ weight + offset
        hidden = np.tanh(hidden) if i + 1 < len(weights) else hidden
    return hidden[..., 0].mean(axis=0)


def _fitted(shown: Sequence[Array], wanted: Sequence[Array]) -> tuple[tuple[Array, Array], ...]:
    generator = torch.Generator().manual_seed(0)
    sizes = [shown[0].shape[1], WIDTH, WIDTH, 1]
    layers: list[tuple[torch.Tensor, torch.Tensor]] = []
    for ahead, after in itertools.pairwise(sizes):
        weight = torch.randn((MEMBERS, ahead, after), generator=generator) / ahead**0.5
        layers.append((weight.requires_grad_(), torch.zeros((MEMBERS, 1, after)).requires_grad_()))
    inward = [torch.as_tensor(rows, dtype=torch.float32) for rows in shown]
    asked = [torch.as_tensor(rows, dtype=torch.float32) for rows in wanted]
    optimiser = torch.optim.Adam([tensor for layer in layers for tensor in layer], lr=3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, STEPS)
    for _ in range(STEPS):
        some = [torch.randint(len(rows), (BATCH,), generator=generator) for rows in inward]
        hidden = torch.stack([rows[ids] for rows, ids in zip(inward, some, strict=True)])
        for i, (weight, offset) in enumerate(layers):
            hidden = hidden @ weight + offset
            hidden = torch.tanh(hidden) if i + 1 < len(layers) else hidden
        target = torch.stack([rows[ids] for rows, ids in zip(asked, some, strict=True)])
        loss = torch.nn.functional.huber_loss(hidden[..., 0], target)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return tuple(
        (weight.detach().numpy().astype(float), offset.detach().numpy().astype(float)) for weight, offset in layers
    )
