"""How large a network is, and how it sees its inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, final

import torch
from torch import Tensor, nn

from simops.spec.bounds import Above, AtLeast, AtMost

LIMIT, EPS = 10.0, 1e-2
"""Where normalised inputs are cut, and what is added to their spread."""


@final
@dataclass(frozen=True, kw_only=True)
class Network:
    """How large a network is, and whether it remembers."""

    hidden: tuple[int, ...] = (128, 128, 128)
    """Widths of the layers."""
    activation: Literal["elu", "relu", "tanh", "silu"] = "elu"
    memory: Annotated[int, AtLeast(0), AtMost(4096)] = 0
    """Gated recurrent units before the layers; 0 for a network that does not remember."""
    init_std: Annotated[float, Above(0.0)] = 1.0
    """Spread of the first, random actions, in units of the action's scale."""


@final
class Running(nn.Module):
    """Rows to zero mean and unit spread, as seen so far, cut at `limit`: the same sums that `Scale` exports."""

    mean: Tensor
    square: Tensor
    count: Tensor

    def __init__(self, size: int, *, limit: float = LIMIT, eps: float = EPS) -> None:
        """Begin as the identity, but for the cut."""
        super().__init__()  # type: ignore[reportUnknownMemberType]
        self.limit, self.eps = limit, eps
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("square", torch.ones(size))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.swap: tuple[Tensor, Tensor] | None = None
        """Where each number's mirror image comes from, and its sign, if rows count as seen in the mirror too."""

    @property
    def std(self) -> Tensor:
        """Spread to divide by."""
        return torch.sqrt(self.square) + self.eps

    def forward(self, rows: Tensor) -> Tensor:
        """Normalise."""
        return torch.clamp((rows - self.mean) / self.std, -self.limit, self.limit)

    def update(self, rows: Tensor) -> None:
        """Take more rows into account."""
        self.count += len(rows)
        rate = (len(rows) / self.count).to(torch.float32)
        var, mean = torch.var_mean(rows, dim=0, correction=0)
        if self.swap is not None:
            source, sign = self.swap
            image = mean[source] * sign
            var, mean = (var + var[source]) / 2 + ((mean - image) / 2) ** 2, (mean + image) / 2
        off = mean - self.mean
        self.mean += rate * off
        self.square += rate * (var - self.square + off * (mean - self.mean))
