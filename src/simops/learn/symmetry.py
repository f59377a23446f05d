"""Networks that are, and stay, mirror images of themselves: what is learned on the left is known on the right.

The first layers come in two halves that a mirror swaps, and every gradient is averaged with its own mirror image.
That is what learning from each step a second time, mirrored, would do, at no cost and with nothing left to chance:
the networks stay ordinary ones, and give mirrored actions for mirrored observations to the last bit of a weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import final

import numpy as np
import torch
from torch import Tensor, nn

from simops.core.errors import Problem, SpecError
from simops.core.mirror import Swap
from simops.core.signal import Array
from simops.core.task import Task
from simops.learn.checkpoint import tensor_of
from simops.learn.network import Network


def require_symmetric(task: Task, networks: Sequence[Network]) -> None:
    """Raise unless the task says what a mirror does, and the networks can be halved."""
    problems: list[Problem] = []
    if not task.mirror:
        what = f"{task.name} does not say what a mirror makes of its signals"
        problems.append(Problem("symmetric", what, attempt="symmetric: false, or a task with a `mirror`"))
    for network in networks:
        if network.memory:
            problems.append(Problem("symmetric", "networks that remember are not mirrored", attempt="memory: 0"))
        if any(width % 2 for width in network.hidden):
            what = f"layers of {', '.join(map(str, network.hidden))} units cannot all be halved"
            problems.append(Problem("symmetric", what, attempt="even widths"))
    if problems:
        raise SpecError("trainer", problems)


@final
class Symmetry:
    """Parameters, and where the mirror image of each of their numbers is."""

    def __init__(self) -> None:
        """Of nothing yet."""
        self._held: list[tuple[Tensor, Tensor, Tensor]] = []

    @torch.no_grad()
    def hold(self, body: nn.Sequential, seen: Swap, done: Swap) -> None:
        """Make the layers of `body` their own mirror image, and keep them so."""
        linear = [part for part in body if isinstance(part, nn.Linear)]
        swaps = [seen, *(_halves(part.out_features) for part in linear[:-1]), done]
        for part, before, after in zip(linear, swaps[:-1], swaps[1:], strict=True):
            size = part.in_features
            index = after.source[:, None] * size + before.source
            self._hold(part.weight, index.ravel(), np.outer(after.sign, before.sign).ravel())
            self._hold(part.bias, after.source, after.sign)
            part.weight.copy_(self._mirrored(part.weight, -2).mul_(2**0.5))  # as spread out as they were
            part.bias.copy_(self._mirrored(part.bias, -1))

    @torch.no_grad()
    def hold_vector(self, vector: nn.Parameter, swap: Swap) -> None:
        """Keep numbers equal that a mirror swaps; there is no sign to them."""
        self._hold(vector, swap.source, np.ones_like(swap.sign))
        vector.copy_(self._mirrored(vector, -1))

    @torch.no_grad()
    def even_out(self) -> None:
        """Average each gradient with its mirror image."""
        for at, (parameter, _, _) in enumerate(self._held):
            if parameter.grad is not None:
                parameter.grad.copy_(self._mirrored(parameter.grad, at))

    def _hold(self, parameter: Tensor, index: Array, sign: Array) -> None:
        self._held.append((parameter, tensor_of(index), tensor_of(sign.astype(np.float32))))

    def _mirrored(self, numbers: Tensor, at: int) -> Tensor:
        """The mean of `numbers` and their image, as parameter `at` has it."""
        _, index, sign = self._held[at]
        flat = numbers.reshape(-1)
        return ((flat + flat[index] * sign) / 2).reshape(numbers.shape)


def _halves(width: int) -> Swap:
    return Swap(np.roll(np.arange(width), width // 2), np.ones(width, np.float32))
