"""Networks that act: an observation and what is remembered go in, an action in physical units comes out.

Normalisation and action scaling are inside, and so is the memory's bookkeeping, so that what is
exported needs nothing around it. Memory begins as zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import final

import torch
from torch import Tensor, nn

from simops.core.contract import Slot

ACTIVATIONS: dict[str, type[nn.Module]] = {"elu": nn.ELU, "relu": nn.ReLU, "tanh": nn.Tanh, "silu": nn.SiLU}


class Actor(nn.Module):
    """What every acting network offers; `forward(observation, *memory) -> (action, *memory)`, one row a copy."""

    slots: tuple[Slot, ...] = ()
    """What is remembered, in the order of the arguments."""


@final
class Scale(nn.Module):
    """Observations to zero mean and unit spread, cut at `limit`."""

    mean: Tensor
    std: Tensor

    def __init__(self, size: int, *, limit: float = 10.0) -> None:
        """Begin as the identity, but for the cut."""
        super().__init__()  # type: ignore[reportUnknownMemberType]
        self.limit = limit
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("std", torch.ones(size))

    def forward(self, rows: Tensor) -> Tensor:
        """Normalise."""
        return torch.clamp((rows - self.mean) / self.std, -self.limit, self.limit)


@final
class Unscale(nn.Module):
    """Raw outputs to actions: centre plus scale, within the limits."""

    centre: Tensor
    scale: Tensor
    low: Tensor
    high: Tensor

    def __init__(self, centre: Tensor, scale: Tensor, low: Tensor, high: Tensor) -> None:
        """All (action size,); infinite limits for none."""
        super().__init__()  # type: ignore[reportUnknownMemberType]
        for name, value in (("centre", centre), ("scale", scale), ("low", low), ("high", high)):
            self.register_buffer(name, value.to(torch.float32))

    def forward(self, raw: Tensor, origin: Tensor | None = None) -> Tensor:
        """Give actions in physical units, counted from `origin` if there is one."""
        action = self.centre + self.scale * raw
        action = action if origin is None else origin + action
        return torch.minimum(torch.maximum(action, self.low), self.high)


def layers(inputs: int, hidden: Sequence[int], outputs: int, activation: str = "elu") -> nn.Sequential:
    """A plain multi-layer perceptron."""
    sizes = [inputs, *hidden]
    parts: list[nn.Module] = []
    for size, following in pairwise(sizes):
        parts += [nn.Linear(size, following), ACTIVATIONS[activation]()]
    return nn.Sequential(*parts, nn.Linear(sizes[-1], outputs))


@final
class Feedforward(Actor):
    """Acts on what it sees now."""

    def __init__(self, scale: Scale, body: nn.Module, unscale: Unscale) -> None:
        """Join the three parts."""
        super().__init__()  # type: ignore[reportUnknownMemberType]
        self.scale, self.body, self.unscale = scale, body, unscale

    def forward(self, observation: Tensor) -> tuple[Tensor]:
        """Act."""
        return (self.unscale(self.body(self.scale(observation))),)


@final
class Recurrent(Actor):
    """Acts on what it sees and has seen, through gated recurrent units."""

    def __init__(self, scale: Scale, cell: nn.GRU, body: nn.Module, unscale: Unscale) -> None:
        """Join the parts; the cell's layers and width give the memory its shape."""
        super().__init__()  # type: ignore[reportUnknownMemberType]
        self.scale, self.cell, self.body, self.unscale = scale, cell, body, unscale
        self.slots = (Slot("hidden", (cell.num_layers, cell.hidden_size)),)

    def forward(self, observation: Tensor, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Act, and remember; `hidden` has the copies first."""
        seen = self.scale(observation).unsqueeze(0)
        out, after = self.cell(seen, hidden.transpose(0, 1).contiguous())
        return self.unscale(self.body(out.squeeze(0))), after.transpose(0, 1).contiguous()


@final
class View(nn.Module):
    """What a network looks at: some elements of an observation, differences of some, and quaternions as rotations."""

    kept: Tensor
    plus: Tensor
    minus: Tensor
    quaternions: Tensor

    def __init__(
        self, kept: Sequence[int], plus: Sequence[int], minus: Sequence[int], quaternions: Sequence[int]
    ) -> None:
        """All are places in an observation; a quaternion is the place of its w, with x, y, z behind it."""
        super().__init__()  # type: ignore[reportUnknownMemberType]
        for name, value in (("kept", kept), ("plus", plus), ("minus", minus), ("quaternions", quaternions)):
            self.register_buffer(name, torch.tensor(value, dtype=torch.int64))

    @property
    def size(self) -> int:
        """Numbers that the network gets."""
        return int(self.kept.numel() + self.plus.numel() + 6 * self.quaternions.numel())

    def forward(self, rows: Tensor) -> Tensor:
        """Look; the last axis is the observation's."""
        parts = [rows.index_select(-1, self.kept)]
        if self.plus.numel():
            parts.append(rows.index_select(-1, self.plus) - rows.index_select(-1, self.minus))
        if self.quaternions.numel():
            w, x, y, z = (rows.index_select(-1, self.quaternions + i).clamp(-2.0, 2.0) for i in range(4))
            parts += [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)]
            parts += [2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)]
        return torch.cat(parts, dim=-1)


@final
class Origin(nn.Module):
    """Where each element of an action is counted from: an element of the observation, or zero."""

    places: Tensor
    counted: Tensor

    def __init__(self, places: Sequence[int]) -> None:
        """One place in the observation an element of the action, -1 for zero."""
        super().__init__()  # type: ignore[reportUnknownMemberType]
        at = torch.tensor(places, dtype=torch.int64)
        self.register_buffer("places", at.clamp(min=0))
        self.register_buffer("counted", at >= 0)

    def forward(self, rows: Tensor) -> Tensor:
        """Give the origin of every action; the last axis is the observation's."""
        return torch.where(self.counted, rows.index_select(-1, self.places), torch.zeros(()))


@final
class Windowed(Actor):
    """Acts on a window of observations and plans a chunk of actions, of which it carries out the first few.

    Memory is the window of what was seen, normalised (oldest first), the chunk under way, and a counter:
    0 before the first step, then the number of actions left in the chunk, plus one.
    """

    def __init__(
        self,
        scale: Scale,
        body: nn.Module,
        unscale: Unscale,
        *,
        window: int,
        chunk: int,
        carry: int,
        view: View | None = None,
        origin: Origin | None = None,
    ) -> None:
        """`body` maps what is seen of the window to chunk x action; `carry` of the chunk's actions are carried out.

        Args:
            scale: Of what is seen of one observation.
            body: The layers.
            unscale: Of one action, or of each action of the chunk on its own, (chunk, action size).
            window: Observations.
            chunk: Actions planned.
            carry: Actions of a plan that are carried out before the next.
            view: What is seen of an observation; all of it when left out.
            origin: What the actions of a plan are counted from: the observation at which it was made.
        """
        super().__init__()  # type: ignore[reportUnknownMemberType]
        self.scale, self.body, self.unscale = scale, body, unscale
        self.view, self.origin = view, origin
        self.window, self.chunk, self.carry = window, chunk, carry
        inputs, outputs = int(scale.mean.numel()), int(unscale.low.numel())
        self.slots = (
            Slot("window", (window, inputs)),
            Slot("plan", (chunk, outputs)),
            Slot("counter", (1,)),
        )

    def forward(self, observation: Tensor, window: Tensor, plan: Tensor, counter: Tensor) -> tuple[Tensor, ...]:
        """Act, and remember."""
        fresh = (counter < 0.5).unsqueeze(-1)
        seen = self.scale(observation if self.view is None else self.view(observation)).unsqueeze(1)
        window = torch.where(fresh, seen.expand_as(window), torch.cat([window[:, 1:], seen], dim=1))
        origin = None if self.origin is None else self.origin(observation).unsqueeze(1)
        planned = self.unscale(self.body(window.flatten(1)).unflatten(1, (self.chunk, -1)), origin)
        spent = counter < 1.5
        plan = torch.where(spent.unsqueeze(-1), planned, torch.cat([plan[:, 1:], plan[:, -1:]], dim=1))
        counter = torch.where(spent, torch.full_like(counter, float(self.carry)), counter - 1.0)
        return plan[:, 0], window, plan, counter
