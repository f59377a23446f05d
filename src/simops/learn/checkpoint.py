"""Checkpoints: named tensors and a few plain values in one safetensors file that knows its own digest.

There is one way to write a checkpoint, so the same training gives the same bytes, and a flipped bit shows.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast, final

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from simops.core.contract import Contract
from simops.core.errors import DataError, SignalError
from simops.core.signal import Array
from simops.learn.actor import Actor, Feedforward, Recurrent, Scale, Unscale, layers
from simops.learn.student import taught

FORMAT = 1
_KEY = "simops"
_AGAIN = "an earlier checkpoint, or training anew"


@final
@dataclass(frozen=True)
class Saved:
    """What a checkpoint holds."""

    tensors: Mapping[str, Tensor]
    body: Mapping[str, Any]
    """Plain values: lap, learning rate, contract, network and more."""

    def under(self, prefix: str) -> dict[str, Tensor]:
        """The tensors of one part, by the names they have there; raises if there are none."""
        found = {
            name.removeprefix(f"{prefix}."): t for name, t in self.tensors.items() if name.startswith(f"{prefix}.")
        }
        if not found:
            raise DataError(f"the checkpoint has no {prefix}", attempt=_AGAIN, fault="TRN-012")
        return found

    def said(self, name: str) -> Any:  # noqa: ANN401 (plain values of any kind)
        """One of the plain values; raises if it is not there."""
        if name not in self.body:
            raise DataError(f"the checkpoint does not say its {name}", attempt=_AGAIN, fault="TRN-012")
        return self.body[name]


def tensor_of(rows: Array) -> Tensor:
    """The same memory as a tensor; a view, not a copy."""
    return torch.from_numpy(rows)  # type: ignore[reportUnknownMemberType]


def pack(tensors: Mapping[str, Tensor], body: Mapping[str, object]) -> bytes:
    """Write a checkpoint."""
    solid = {name: tensor.detach().contiguous().clone() for name, tensor in sorted(tensors.items())}
    text = json.dumps({"format": FORMAT, **body}, sort_keys=True, allow_nan=False)
    return save(solid, metadata={_KEY: json.dumps({"sha256": _digest(solid, text), "body": text}, sort_keys=True)})


def unpack(data: bytes, *, where: str = "") -> Saved:
    """Read what `pack` wrote; raises if a bit is not as it was."""
    try:
        length = int.from_bytes(data[:8], "little")
        said = json.loads(json.loads(data[8 : 8 + length])["__metadata__"][_KEY])
        tensors, text = load(data), cast("str", said["body"])
        sound = said["sha256"] == _digest(tensors, text)
        body = cast("dict[str, Any]", json.loads(text))
    except (SafetensorError, ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
        what = "this is no checkpoint, or not all of one"
        raise DataError(what, where=where, attempt=_AGAIN, fault="TRN-011") from error
    if not sound:
        what = "the checkpoint does not match its own checksum"
        raise DataError(what, where=where, attempt=_AGAIN, fault="TRN-011")
    if body.get("format") != FORMAT:
        what = f"the checkpoint has format {body.get('format')}, this version reads {FORMAT}"
        raise DataError(what, where=where, attempt="the version that wrote it", fault="DAT-012")
    return Saved(tensors, body)


@final
@dataclass(frozen=True)
class Taught:
    """A network that acts, and the contract it acts under: all that leaves a checkpoint."""

    actor: Actor
    contract: Contract


def actor_of(saved: Saved) -> Taught:
    """Take the acting network out of a checkpoint, with normalisation and action scaling inside."""
    try:
        return _actor_of(saved)
    except (RuntimeError, SignalError, KeyError, TypeError) as error:
        what = f"the checkpoint's network does not fit its description: {str(error).splitlines()[0]}"
        raise DataError(what, attempt=_AGAIN, fault="TRN-012") from error


def _actor_of(saved: Saved) -> Taught:
    network, contract = saved.said("actor"), Contract.parse(saved.said("contract"))
    if network.get("kind") == "windowed":
        return Taught(taught(network, saved.under("actor"), contract), contract)
    inputs, outputs, memory = contract.observation.size, contract.action.size, int(network["memory"])
    scale = Scale(inputs, limit=network["limit"] or torch.inf)
    if network["limit"]:
        seen = saved.under("actor.obs_normalizer")
        scale.mean.copy_(seen["mean"])
        scale.std.copy_(torch.sqrt(seen["square"]) + network["eps"])
    low, high = (
        torch.tensor(ends or (sign * torch.inf,) * outputs)
        for ends, sign in ((contract.action.low, -1.0), (contract.action.high, 1.0))
    )
    unscale = Unscale(torch.tensor(network["centre"]), torch.tensor(network["scale"]), low, high)
    body = layers(memory or inputs, network["hidden"], outputs, network["activation"])
    body.load_state_dict(saved.under("actor.mlp"))
    if not memory:
        return Taught(Feedforward(scale, body, unscale).eval(), contract)
    cell = nn.GRU(inputs, memory)
    cell.load_state_dict(saved.under("actor.rnn.rnn"))
    actor = Recurrent(scale, cell, body, unscale).eval()
    return Taught(actor, Contract.parse({**contract.body(), "memory": _slots(actor)}))


def _slots(actor: Actor) -> list[dict[str, object]]:
    return [{"name": slot.name, "shape": list(slot.shape), "dtype": slot.dtype} for slot in actor.slots]


def _digest(tensors: Mapping[str, Tensor], text: str) -> str:
    parts: Iterable[bytes] = (
        part
        for name, tensor in sorted(tensors.items())
        for part in (
            f"{name}|{tensor.dtype}|{list(tensor.shape)}|".encode(),
            tensor.reshape(-1).view(torch.uint8).numpy().tobytes(),
        )
    )
    found = hashlib.sha256(text.encode())
    for part in parts:
        found.update(part)
    return found.hexdigest()
