# pyright: basic
# torch tells only in part what its tensors and optimisers are.
"""A network under instruction: what it learns from, its optimiser, and the average of its weights over time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
import torch
from torch import Tensor, nn

from simops.core.errors import DataError, Problem, SpecError
from simops.learn.actor import Windowed
from simops.learn.lessons import Lessons

FLOOR = 1e-3
"""Added to the spread of everything, in its own unit: what never changed while learning must not shout later."""

_MOMENTS = ("step", "exp_avg", "exp_avg_sq")


@final
@dataclass(frozen=True, kw_only=True)
class Study:
    """How a network learns from rows."""

    batch: int
    learning_rate: float
    weight_decay: float
    huber: float
    """Errors beyond this, in spreads of the action, count linearly."""
    average: float
    """What the average of the weights takes over of the newest at each update."""
    frozen: int = 0
    """First layers that stay as they are."""


class Bench(NamedTuple):
    """Lessons laid out for one network."""

    features: Tensor
    """(rows, features), normalised."""
    target: Tensor
    """(rows, chunk, action size), in spreads of the action; only rows in `usable` mean something."""
    window: Tensor
    """(rows, window) rows that are seen at a row, oldest first."""
    usable: Tensor
    """Rows with something to learn."""


@final
class Pupil:
    """Learns from a bench, update by update; what acts is the average."""

    def __init__(self, actor: Windowed, study: Study, seed: int) -> None:
        """Begin with the actor's weights."""
        self.actor, self.study = actor, study
        stack = [part for part in actor.body.modules() if isinstance(part, nn.Linear)]
        if study.frozen >= len(stack):
            what = f"{study.frozen} layers frozen of {len(stack)}"
            raise SpecError("trainer", [Problem("frozen", what, attempt=f"at most {len(stack) - 1}", fault="CFG-005")])
        for part in stack[: study.frozen]:
            part.requires_grad_(requires_grad=False)
        self._weights = [weight for weight in actor.body.parameters() if weight.requires_grad]
        self._average = [weight.detach().clone() for weight in self._weights]
        self._optimiser = torch.optim.AdamW(
            self._weights, lr=study.learning_rate, weight_decay=study.weight_decay, foreach=True
        )
        self._chance = torch.Generator().manual_seed(seed)
        self.updates = 0

    def bench(self, lessons: Lessons) -> Bench:
        """Lay lessons out for this network."""
        actor, rows = self.actor, np.arange(len(lessons.observation))
        shown = torch.from_numpy(np.ascontiguousarray(lessons.observation))
        back = rows[:, None] - np.arange(actor.window - 1, -1, -1)
        ahead = rows[:, None] + np.arange(actor.chunk)
        ahead = torch.from_numpy(np.minimum(ahead, lessons.last[:, None]))
        with torch.no_grad():
            seen = shown if actor.view is None else actor.view(shown)
            wanted = torch.from_numpy(np.ascontiguousarray(lessons.label))[ahead]
            if actor.origin is not None:
                wanted = wanted - actor.origin(shown).unsqueeze(1)
            target = (wanted - actor.unscale.centre) / actor.unscale.scale
            features = actor.scale(seen)
        usable = torch.isfinite(target).flatten(1).all(dim=1).nonzero().squeeze(1)
        window = torch.from_numpy(np.maximum(back, lessons.first[:, None]))
        return Bench(features, target, window, usable)

    def learn(self, benches: list[tuple[Bench, int]], *, updates: int, of: int) -> float:
        """Make some of `of` updates in all, each from so many rows of every bench; give the mean loss."""
        study, total = self.study, 0.0
        for _ in range(updates):
            share = 0.5 * (1.0 + math.cos(math.pi * min(1.0, self.updates / of)))
            for group in self._optimiser.param_groups:
                group["lr"] = study.learning_rate * (0.01 + 0.99 * share)
            drawn = [(bench, self._draw(bench, count)) for bench, count in benches if count]
            loss = self._loss(drawn)
            self._optimiser.zero_grad()
            loss.backward()  # type: ignore[reportUnknownMemberType]
            self._optimiser.step()  # type: ignore[reportUnknownMemberType]
            self.updates += 1
            blend = max(study.average, 1.0 / self.updates)
            torch._foreach_lerp_(self._average, [w.detach() for w in self._weights], blend)  # type: ignore[reportPrivateUsage]
            total += float(loss.detach())
        if not math.isfinite(total):
            what = "the loss came to no number"
            raise SpecError("trainer", [Problem("learning_rate", what, attempt="a lower one", fault="TRN-003")])
        return total / max(1, updates)

    def error(self, bench: Bench) -> float:
        """Mean loss of the average over all of a bench."""
        with torch.inference_mode(), self.averaged():
            parts = bench.usable.split(8192)
            losses = [float(self._loss([(bench, rows)])) * len(rows) for rows in parts]
        return sum(losses) / max(1, len(bench.usable))

    def averaged(self) -> _Swapped:
        """For a while the network has the average of its weights."""
        return _Swapped(self._weights, self._average)

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Everything that further updates depend on, and what acts; by name."""
        with self.averaged():
            yield from ((f"actor.{name}", value.clone()) for name, value in self.actor.state_dict().items())
        for i, weight in enumerate(self._weights):
            yield f"newest.{i}", weight.detach()
            for name, value in self._optimiser.state.get(weight, {}).items():
                yield f"optimizer.{i}.{name}", value
        yield "random.batches", self._chance.get_state()

    def restore(self, tensors: Mapping[str, Tensor], updates: int) -> None:
        """Go on from what `tensors` gave."""
        try:
            self.actor.load_state_dict(_under(tensors, "actor."))
            self._average = [weight.detach().clone() for weight in self._weights]
            with torch.no_grad():
                for i, weight in enumerate(self._weights):
                    weight.copy_(tensors[f"newest.{i}"])
                    kept = _under(tensors, f"optimizer.{i}.")
                    if updates:
                        self._optimiser.state[weight] = {name: kept[name].clone() for name in _MOMENTS}
            self._chance.set_state(tensors["random.batches"])
        except (KeyError, RuntimeError, TypeError) as error:
            what = f"the checkpoint is not complete: {str(error).splitlines()[0]}"
            raise DataError(what, attempt="an earlier checkpoint, or training anew", fault="TRN-012") from error
        self.updates = updates

    def _draw(self, bench: Bench, count: int) -> Tensor:
        return bench.usable[torch.randint(len(bench.usable), (count,), generator=self._chance)]

    def _loss(self, drawn: list[tuple[Bench, Tensor]]) -> Tensor:
        features = torch.cat([bench.features[bench.window[rows]] for bench, rows in drawn]).flatten(1)
        target = torch.cat([bench.target[rows] for bench, rows in drawn]).flatten(1)
        return nn.functional.smooth_l1_loss(self.actor.body(features), target, beta=self.study.huber)


@final
class _Swapped:
    """The values of two lists of tensors change places, and back."""

    def __init__(self, one: list[nn.Parameter], other: list[Tensor]) -> None:
        self._one, self._other = one, other

    def __enter__(self) -> None:
        self._swap()

    def __exit__(self, *_: object) -> None:
        self._swap()

    def _swap(self) -> None:
        for mine, theirs in zip(self._one, self._other, strict=True):
            mine.data, theirs.data = theirs.data, mine.data


def fitted(actor: Windowed, lessons: Lessons) -> None:
    """Set the normaliser and the action scaling from what is to be learned."""
    shown = torch.from_numpy(np.ascontiguousarray(lessons.observation))
    with torch.no_grad():
        seen = (shown if actor.view is None else actor.view(shown)).double()
        actor.scale.mean.copy_(seen.mean(dim=0))
        actor.scale.std.copy_(seen.std(dim=0, correction=0) + FLOOR)
        rows, origin = np.arange(len(lessons.label)), actor.origin
        for step in range(actor.chunk):
            at = np.minimum(rows + step, lessons.last)
            wanted = torch.from_numpy(lessons.label[at])
            if origin is not None:
                wanted = wanted - origin(shown)
            wanted = wanted[torch.isfinite(wanted).all(dim=1)].double()
            actor.unscale.centre[step] = wanted.mean(dim=0)
            actor.unscale.scale[step] = wanted.std(dim=0, correction=0) + FLOOR


def _under(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
