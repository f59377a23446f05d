"""Where tuning begins: a network that was trained before, by imitation or by reinforcement."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import torch

from simops.core.contract import Contract
from simops.core.errors import DataError
from simops.core.task import Task
from simops.learn.actor import Feedforward, Scale, Windowed
from simops.learn.checkpoint import actor_of, unpack
from simops.learn.student import Student, student_of


class Begun(NamedTuple):
    """A network, and what it is like."""

    student: Student
    actor: Windowed


def checkpoint_at(path: Path) -> Path:
    """The checkpoint itself, or the one in a run's folder; raises if there is none."""
    file = path / "checkpoint.safetensors" if path.is_dir() else path
    if not file.is_file():
        raise DataError("there is no checkpoint", where=str(path), attempt="a .safetensors file, or a run's folder")
    return file


def begun_from(path: Path, task: Task) -> Begun:
    """The network of a checkpoint, ready to learn on; raises if it is for another task, or cannot be tuned."""
    file = checkpoint_at(path)
    saved = unpack(file.read_bytes(), where=str(file))
    found_there = actor_of(saved)
    network, contract = found_there.actor, found_there.contract
    found = Contract.of(task).differences(contract)
    if found:
        said = "; ".join(f"{d.what} is {d.theirs} there and {d.mine} here" for d in found[:6])
        what = f"the checkpoint is not for {task.name} as it is here: {said}"
        raise DataError(what, where=str(file), attempt=f"a checkpoint of {task.name}", fault="CFG-012")
    if isinstance(network, Windowed):
        return Begun(student_of(saved.said("actor")), network)
    if isinstance(network, Feedforward) and network.scale.limit == Scale(1).limit:
        return _widened(network, saved.said("actor"), contract)
    what = "a network with recurrent units, or without a normaliser, cannot be tuned by imitation"
    raise DataError(what, where=str(file), attempt="trainer distil, with this one as the teacher")


def _widened(network: Feedforward, said: dict[str, object], contract: Contract) -> Begun:
    """The same network, as one that plans a single action from a single observation."""
    fields = {"hidden": tuple(said["hidden"]), "activation": said["activation"]}  # type: ignore[reportArgumentType]
    student = Student(**fields, relations=False)  # type: ignore[reportArgumentType]
    actor = student.actor(contract.observation, contract.action)
    with torch.no_grad():
        actor.scale.load_state_dict(network.scale.state_dict())
        actor.body.load_state_dict(network.body.state_dict())
        for name in ("centre", "scale"):
            getattr(actor.unscale, name).copy_(getattr(network.unscale, name))
    return Begun(student, actor.eval())
