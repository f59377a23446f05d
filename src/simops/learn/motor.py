"""Teach a network to be a motor: what a joint did of late, error and velocity, to the torque that must have been there.

    bytes_ = fit_network(episodes, Teach(members=4))        # kept as a .safetensors file
    motor = Network(weights=Path("motor.safetensors"))      # runs without torch, inside the physics step

Members are taught on different draws of the episodes, so that where they agree something was measured.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, final

import numpy as np
import torch
from safetensors.torch import save

from simops.core.errors import DataError
from simops.core.signal import Array
from simops.learn.fit import finite

LENGTH = 64
"""Instants of a stretch that a network with a memory is taught on."""
SETTLING = 16
"""Of them, those that only fill the memory."""


@final
@dataclass(frozen=True, kw_only=True)
class Driven:
    """One episode of joints under torque, at equal instants."""

    error_rad: Array
    """(instants, joints) command less position."""
    velocity_rad_s: Array
    torque_nm: Array
    """What the network should say: the whole torque, or what a physical motor leaves over."""


@final
@dataclass(frozen=True, kw_only=True)
class Teach:
    """The networks and how to teach them."""

    kind: Literal["mlp", "gru"] = "mlp"
    hidden: tuple[int, ...] = (32, 32)
    """Widths of the layers; for a GRU the first is that of its memory."""
    history: int = 4
    """Instants of error and velocity that an MLP sees."""
    shared: bool = True
    """One network for all joints, or one for each."""
    period_s: float = 0.005
    """Between two instants of the episodes."""
    members: int = 4
    steps: int = 1500
    batch: int = 4096
    rate: float = 3e-3
    decay: float = 1e-4
    seed: int = 0


def fit_network(episodes: Sequence[Driven], teach: Teach | None = None) -> bytes:
    """Networks that give the torque of the episodes, as bytes of a safetensors file."""
    teach = teach or Teach()
    _enough(episodes)
    joints = episodes[0].torque_nm.shape[1]
    scales = _scales(episodes)
    torque = np.maximum(_deviation([e.torque_nm for e in episodes], None if teach.shared else 0), 1e-6)
    generator = torch.Generator().manual_seed(teach.seed)
    net = _Net(teach, 1 if teach.shared else joints, generator)
    drawn = [_drawn(len(episodes), member, teach.seed) for member in range(teach.members)]
    shown = [_shown(e, scales, torque) for e in episodes]
    sample = _windows(shown, drawn, teach) if teach.kind == "mlp" else _stretches(shown, drawn, teach)
    optimiser = torch.optim.AdamW(net.weights, lr=teach.rate, weight_decay=teach.decay)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, teach.steps)
    for _ in range(teach.steps):
        inward, wanted = sample(generator)
        loss = torch.square(net(inward) - wanted).mean()
        optimiser.zero_grad()
        loss.backward()  # pyright: ignore[reportUnknownMemberType]
        optimiser.step()  # pyright: ignore[reportUnknownMemberType]
        schedule.step()
    arrays = net.named | {
        "scales": torch.as_tensor(scales, dtype=torch.float32),
        "torque_nm": torch.as_tensor(np.atleast_1d(torque), dtype=torch.float32),
    }
    said = {"layers": str(net.count), "history": str(teach.history), "period_s": repr(teach.period_s)}
    return save({name: tensor.detach().contiguous() for name, tensor in arrays.items()}, said)


@final
class _Net:
    """Weights of all members and joints, and what they make of (members, joints or 1, columns, …, features)."""

    def __init__(self, teach: Teach, joints: int, generator: torch.Generator) -> None:
        def drawn(*shape: int) -> torch.Tensor:
            made = torch.randn((teach.members, joints, *shape), generator=generator) / shape[-1] ** 0.5
            return made.requires_grad_()

        def zeros(*shape: int) -> torch.Tensor:
            return torch.zeros((teach.members, joints, *shape)).requires_grad_()

        gated = teach.kind == "gru"
        width = teach.hidden[0]
        sizes = [width, *teach.hidden[1:], 1] if gated else [2 * teach.history, *teach.hidden, 1]
        self.named: dict[str, torch.Tensor] = {}
        if gated:
            self.named |= {"gate.weight_in": drawn(3 * width, 2), "gate.weight_memory": drawn(3 * width, width)}
            self.named |= {"gate.bias_in": zeros(3 * width), "gate.bias_memory": zeros(3 * width)}
        self.count = len(sizes) - 1
        for i, (ahead, after) in enumerate(itertools.pairwise(sizes)):
            self.named |= {f"{i}.weight": drawn(after, ahead), f"{i}.bias": zeros(after)}
        self.gated, self.width = gated, width

    @property
    def weights(self) -> list[torch.Tensor]:
        return list(self.named.values())

    def __call__(self, inward: torch.Tensor) -> torch.Tensor:
        rows = self._remembered(inward) if self.gated else inward
        for i in range(self.count):
            weight, bias = self.named[f"{i}.weight"], self.named[f"{i}.bias"]
            if self.gated:
                rows = torch.einsum("mjoi,mjcti->mjcto", weight, rows) + bias[:, :, None, None]
            else:
                rows = torch.einsum("mjoi,mjci->mjco", weight, rows) + bias[:, :, None]
            if i < self.count - 1:
                rows = rows / (1.0 + rows.abs())
        return rows[..., 0]

    def _remembered(self, inward: torch.Tensor) -> torch.Tensor:
        n = self.named
        memory = torch.zeros((*inward.shape[:3], self.width))
        found: list[torch.Tensor] = []
        around = torch.einsum("mjoi,mjcti->mjcto", n["gate.weight_in"], inward) + n["gate.bias_in"][:, :, None, None]
        for instant in range(inward.shape[3]):
            over = torch.einsum("mjoi,mjci->mjco", n["gate.weight_memory"], memory) + n["gate.bias_memory"][:, :, None]
            now = around[:, :, :, instant]
            reset, update, fresh = (slice(k * self.width, (k + 1) * self.width) for k in range(3))
            kept = torch.sigmoid(now[..., update] + over[..., update])
            new = torch.tanh(now[..., fresh] + torch.sigmoid(now[..., reset] + over[..., reset]) * over[..., fresh])
            memory = (1.0 - kept) * new + kept * memory
            found.append(memory)
        return torch.stack(found[SETTLING:], dim=3)


Sample = Callable[[torch.Generator], tuple[torch.Tensor, torch.Tensor]]


def _windows(shown: Sequence[tuple[Array, Array]], drawn: Sequence[Array], teach: Teach) -> Sample:
    """Draws of the last instants and the torque at the last of them."""
    sides = [_shared(_past(inward, teach.history), wanted, teach) for inward, wanted in shown]
    members = [[torch.cat([sides[i][k] for i in picks], dim=1) for k in range(2)] for picks in drawn]

    def sample(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        picked: list[list[torch.Tensor]] = []
        for inward, wanted in members:
            rows = torch.randint(inward.shape[1], (teach.batch,), generator=generator)
            picked.append([inward[:, rows], wanted[:, rows]])
        return torch.stack([p[0] for p in picked]), torch.stack([p[1] for p in picked])

    return sample


def _stretches(shown: Sequence[tuple[Array, Array]], drawn: Sequence[Array], teach: Teach) -> Sample:
    """Draws of stretches, and the torque over all but their beginning."""
    count = max(8, teach.batch // LENGTH)

    def sample(generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        ins: list[torch.Tensor] = []
        outs: list[torch.Tensor] = []
        for picks in drawn:
            parts: list[tuple[torch.Tensor, torch.Tensor]] = []
            for _ in range(count):
                inward, wanted = shown[int(picks[int(torch.randint(len(picks), (1,), generator=generator))])]
                begin = int(torch.randint(len(inward) - LENGTH + 1, (1,), generator=generator))
                part = slice(begin, begin + LENGTH)
                parts.append(
                    (
                        torch.as_tensor(inward[part].transpose(2, 0, 1), dtype=torch.float32),
                        torch.as_tensor(wanted[part].T[:, SETTLING:], dtype=torch.float32),
                    )
                )
            side = 0 if teach.shared else 1
            stack = torch.cat if teach.shared else torch.stack
            ins.append(stack([p[0] for p in parts], side))
            outs.append(stack([p[1] for p in parts], side))
        inward, wanted = torch.stack(ins), torch.stack(outs)
        return (inward[:, None], wanted[:, None]) if teach.shared else (inward, wanted)

    return sample


def _shared(past: Array, wanted: Array, teach: Teach) -> tuple[torch.Tensor, torch.Tensor]:
    """(joints or 1, columns, features) and (joints or 1, columns)."""
    inward = torch.as_tensor(past.transpose(2, 0, 1), dtype=torch.float32)
    torque = torch.as_tensor(wanted.T, dtype=torch.float32)
    return (inward.reshape(1, -1, past.shape[1]), torque.reshape(1, -1)) if teach.shared else (inward, torque)


def _past(inward: Array, history: int) -> Array:
    """(instants, 2 · history, joints) oldest first; the first instant stands for what was before it."""
    at = np.maximum(np.arange(len(inward))[:, None] - np.arange(history - 1, -1, -1), 0)
    return inward[at].reshape(len(inward), 2 * history, inward.shape[2])


def _shown(episode: Driven, scales: Array, torque: Array) -> tuple[Array, Array]:
    """(instants, 2, joints) in units of the scales, and the torque in its own."""
    both = np.stack([episode.error_rad, episode.velocity_rad_s], axis=1) / scales[:, None]
    return both, episode.torque_nm / torque


def _drawn(count: int, member: int, seed: int) -> Array:
    """Which episodes a member learns from: as many as there are, drawn with putting back; the first sees each once."""
    if member == 0 or count == 1:
        return np.arange(count)
    return np.random.default_rng([seed, member]).integers(count, size=count)


def _deviation(parts: Sequence[Array], axis: int | None) -> Array:
    return np.sqrt(np.mean(np.square(np.concatenate(list(parts))), axis=axis))


def _scales(episodes: Sequence[Driven]) -> Array:
    error = _deviation([e.error_rad for e in episodes], None)
    return np.maximum(np.stack([error, _deviation([e.velocity_rad_s for e in episodes], None)]), 1e-9)


def _enough(episodes: Sequence[Driven]) -> None:
    if not episodes or min(len(e.torque_nm) for e in episodes) < 2 * LENGTH:
        raise DataError(f"an episode is shorter than {2 * LENGTH} instants", attempt="longer ones", fault="LRN-004")
    for i, e in enumerate(episodes):
        finite([("error", e.error_rad), ("velocity", e.velocity_rad_s), ("torque", e.torque_nm)], f"episode {i}")
