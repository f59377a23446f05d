"""The network of imitation: what it looks at, what its actions are counted from, and how large it is."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, final

import torch
from torch import Tensor

from simops.core.contract import Contract
from simops.core.errors import Problem, SpecError, nearest
from simops.core.signal import Schema, Signal
from simops.learn.actor import Origin, Scale, Unscale, View, Windowed, layers
from simops.spec.bounds import AtLeast, AtMost


@final
@dataclass(frozen=True, kw_only=True)
class Student:
    """How large the network is, what it looks at and how far it plans."""

    hidden: tuple[int, ...] = (256, 256, 256)
    """Widths of the layers."""
    activation: Literal["elu", "relu", "tanh", "silu"] = "relu"
    window: Annotated[int, AtLeast(1), AtMost(256)] = 1
    """Observations looked at, the present one included. More is often worse: what the expert just did tells well what
    it does next, and nothing about what to do after a mistake."""
    chunk: Annotated[int, AtLeast(1), AtMost(256)] = 1
    """Actions planned at once."""
    carry: Annotated[int, AtLeast(1), AtMost(256)] = 1
    """Actions of a plan that are carried out before the next one is made."""
    ignore: tuple[str, ...] = ()
    """Observed signals it does not look at, as speeds, from which a copycat reads what the expert just did."""
    relative: str = ""
    """An observed signal, as `joint_position`: actions of its labels are counted from it."""
    relations: bool = True
    """Whether it also sees differences between positions in one frame, and quaternions as rotations."""

    def problems(self, observation: Schema, action: Signal) -> Iterator[Problem]:
        """What does not fit a task."""
        for field, names in (("ignore", self.ignore), ("relative", (self.relative,) if self.relative else ())):
            for name in names:
                if name not in observation:
                    near = nearest(name, observation.names) or ", ".join(observation.names)
                    yield Problem(f"student.{field}", f"{name!r} is not observed", attempt=near, fault="CFG-001")
        if self.relative in observation and not set(observation[self.relative].labels) & set(action.labels):
            what = f"no label of {self.relative!r} is one of the action's"
            yield Problem("student.relative", what, attempt="a signal of what the action drives", fault="CFG-001")
        if set(observation.names) <= set(self.ignore):
            yield Problem("student.ignore", "nothing is left to look at", attempt="fewer", fault="CFG-005")
        if self.carry > self.chunk:
            what = f"{self.carry} actions carried out of a plan of {self.chunk}"
            yield Problem("student.carry", what, attempt=f"at most {self.chunk}", fault="CFG-005")

    def require_fit(self, observation: Schema, action: Signal) -> None:
        """Raise if it does not fit a task."""
        found = list(self.problems(observation, action))
        if found:
            raise SpecError("trainer", found)

    def view(self, observation: Schema) -> View:
        """What it sees of an observation."""
        seen = [signal for signal in observation.signals if signal.name not in self.ignore]
        at = observation.slices
        kept = [i for signal in seen for i in range(at[signal.name].start, at[signal.name].stop)]
        plus, minus, quaternions = list[int](), list[int](), list[int]()
        if self.relations:
            positions = [signal for signal in seen if signal.shape == (3,) and signal.unit == "m" and signal.frame]
            for one, other in itertools.combinations(positions, 2):
                if one.frame == other.frame:
                    plus += range(at[one.name].start, at[one.name].stop)
                    minus += range(at[other.name].start, at[other.name].stop)
            quaternions = [at[signal.name].start for signal in seen if signal.labels == ("w", "x", "y", "z")]
        return View(kept, plus, minus, quaternions)

    def origin(self, observation: Schema, action: Signal) -> Origin | None:
        """What its actions are counted from."""
        if not self.relative:
            return None
        start, labels = observation.slices[self.relative].start, observation[self.relative].labels
        return Origin([start + labels.index(tag) if tag in labels else -1 for tag in action.labels])

    def actor(self, observation: Schema, action: Signal) -> Windowed:
        """A network with weights of chance, whose normaliser and action scaling are yet to be set."""
        view, size = self.view(observation), action.size
        low = torch.tensor(action.low or (-torch.inf,) * size)
        high = torch.tensor(action.high or (torch.inf,) * size)
        return Windowed(
            Scale(view.size),
            layers(self.window * view.size, self.hidden, self.chunk * size, self.activation),
            Unscale(torch.zeros(self.chunk, size), torch.ones(self.chunk, size), low, high),
            window=self.window,
            chunk=self.chunk,
            carry=self.carry,
            view=view,
            origin=self.origin(observation, action),
        )

    def body(self) -> dict[str, Any]:
        """Say everything in JSON's own types."""
        return {"kind": "windowed", **asdict(self)}


def student_of(body: Mapping[str, Any]) -> Student:
    """Read what `Student.body` said."""
    said: dict[str, Any] = {name: value for name, value in body.items() if name != "kind"}
    said |= {name: tuple(said[name]) for name in ("hidden", "ignore")}
    return Student(**said)


def taught(body: Mapping[str, Any], tensors: Mapping[str, Tensor], contract: Contract) -> Windowed:
    """The network that `Student.body` described, with these weights."""
    actor = student_of(body).actor(contract.observation, contract.action)
    actor.load_state_dict(dict(tensors))
    return actor.eval()


def remembering(contract: Contract, actor: Windowed) -> Contract:
    """The same contract, with what the network remembers."""
    slots = [{"name": slot.name, "shape": list(slot.shape), "dtype": slot.dtype} for slot in actor.slots]
    return Contract.parse({**contract.body(), "memory": slots})
