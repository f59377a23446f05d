"""A trained network as a policy."""

from __future__ import annotations

import hashlib
from typing import final

import numpy as np
import torch

from simops.core.contract import Contract
from simops.core.errors import SignalError
from simops.core.protocols import Act, Memory
from simops.core.signal import Array
from simops.core.task import Task
from simops.learn.actor import Actor
from simops.learn.checkpoint import Taught, tensor_of


@final
class Learned:
    """Acts as a network does, without noise."""

    def __init__(self, taught: Taught) -> None:
        """Take a network; it must not learn on."""
        self.actor: Actor = taught.actor
        self.contract: Contract = taught.contract
        found = hashlib.sha256(f"{self.contract.digest}{self.actor}".encode())
        for name, tensor in self.actor.state_dict().items():
            found.update(name.encode())
            found.update(tensor.contiguous().numpy().tobytes())
        self._digest = found.hexdigest()

    @property
    def digest(self) -> str:
        """SHA-256 over the contract, the layers and every weight."""
        return self._digest

    def start(self, task: Task, seeds: Array) -> Memory:
        """Remember nothing yet; raises if it was trained for something else."""
        for found in Contract.of(task).differences(self.contract):
            what = f"the policy was trained for another {found.what}: {found.theirs}, not {found.mine}"
            raise SignalError(what, attempt=f"the task {self.contract.task!r} as it was then")
        return {slot.name: slot.zeros(len(seeds)) for slot in self.actor.slots}

    def act(self, observation: Array, memory: Memory) -> Act:
        """One action a row."""
        shown = tensor_of(np.ascontiguousarray(observation, np.float32))
        with torch.inference_mode():
            action, *after = self.actor(shown, *(tensor_of(memory[slot.name]) for slot in self.actor.slots))
        remembered = {slot.name: rows.numpy() for slot, rows in zip(self.actor.slots, after, strict=True)}
        return Act(action.numpy().reshape(len(observation), *self.contract.action.shape), remembered)
