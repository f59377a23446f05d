"""Symmetric networks: mirrored inputs give mirrored outputs, before and after learning, and the task must say how."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from simops.core.errors import SpecError
from simops.core.mirror import swap
from simops.core.task import Task
from simops.learn.checkpoint import actor_of, unpack
from simops.learn.ppo import Ppo
from simops.learn.rsl import Inputs, Learner
from simops.learn.symmetry import Symmetry
from tests.learn.small import COURSE, PPO, TASK, bytes_after

ODD = {"heading": (-1, 2), "rate": (-1,), "angle": (-1,), "torque": (-1,)}
BOTH_WAYS = replace(TASK, mirror=ODD)
SYMMETRIC = replace(PPO, symmetric=True, critic_rate=1e-3)
COURSE_BOTH_WAYS = replace(COURSE, task=BOTH_WAYS)


def acts_mirrored(data: bytes) -> bool:
    """Whether the policy in a checkpoint does on the left what it does on the right."""
    actor = actor_of(unpack(data)).actor
    rows = np.random.default_rng(0).normal(size=(50, TASK.observation.size)).astype(np.float32)
    image = swap(TASK.observation.signals, ODD).rows(rows)
    there, back = (actor(torch.tensor(side))[0].detach().numpy() for side in (rows, image))
    assert np.abs(there).max() > 1e-4
    return bool(np.abs(there + back).max() < 1e-6)


def test_what_was_learned_on_one_side_is_known_on_the_other() -> None:
    assert acts_mirrored(bytes_after(SYMMETRIC, COURSE_BOTH_WAYS))
    assert not acts_mirrored(bytes_after(replace(SYMMETRIC, symmetric=False), COURSE_BOTH_WAYS))


def test_a_symmetric_training_goes_on_to_the_same_bytes() -> None:
    whole = bytes_after(SYMMETRIC, COURSE_BOTH_WAYS)
    with SYMMETRIC.open(COURSE_BOTH_WAYS) as training:
        while training.done < 4:
            training.advance()
        held = training.checkpoint()
    assert bytes_after(SYMMETRIC, COURSE_BOTH_WAYS, checkpoint=held) == whole


def test_an_evened_gradient_is_that_of_the_data_and_its_mirror_image() -> None:
    torch.manual_seed(0)  # type: ignore[reportUnknownMemberType]
    body = nn.Sequential(nn.Linear(3, 4), nn.ELU(), nn.Linear(4, 6), nn.ELU(), nn.Linear(6, 1))
    seen, done = swap(TASK.observation.signals, ODD), swap((TASK.action,), ODD)
    symmetry = Symmetry()
    symmetry.hold(body, seen, done)
    rows, wanted = torch.randn(20, 3), torch.randn(20, 1)

    def gradients(rows: torch.Tensor, wanted: torch.Tensor) -> list[torch.Tensor]:
        body.zero_grad()
        (body(rows) - wanted).square().mean().backward()
        symmetry.even_out()
        return [parameter.grad.clone() for parameter in body.parameters() if parameter.grad is not None]

    image = torch.tensor(seen.rows(rows.numpy()))
    alone, both = gradients(rows, wanted), gradients(torch.cat([rows, image]), torch.cat([wanted, -wanted]))
    for one, other in zip(alone, both, strict=True):
        assert torch.allclose(one, other, atol=1e-6)
    assert float(alone[0].abs().max()) > 1e-3


def test_the_critic_judges_both_sides_alike() -> None:
    learner = Learner(BOTH_WAYS, (4, 2), (PPO.actor, PPO.critic), SYMMETRIC.options())
    rng = np.random.default_rng(1)
    seen, known = swap(TASK.observation.signals, ODD), swap(TASK.state_schema.signals, ODD, plain=len(TASK.reward))
    shown = rng.normal(size=(4, len(seen.sign))).astype(np.float32)
    state = rng.normal(size=(4, len(known.sign))).astype(np.float32)
    here = learner.value(Inputs(shown, state), np.arange(4))
    there = learner.value(Inputs(seen.rows(shown), known.rows(state)), np.arange(4))
    np.testing.assert_allclose(here, there, atol=1e-6)
    assert here.std() > 1e-3


def test_the_critic_keeps_its_own_learning_rate() -> None:
    def moved(ppo: Ppo, part: str) -> float:
        with ppo.open(COURSE_BOTH_WAYS) as training:
            before = {name: tensor.clone() for name, tensor in training.learner.tensors().items()}
            for _ in range(3):
                training.advance()
            after = training.learner.tensors()
        return max(float((after[name] - before[name]).abs().max()) for name in before if name.startswith(f"{part}.mlp"))

    still = replace(SYMMETRIC, target_kl=0.0, learning_rate=1e-9, critic_rate=1e-2)
    assert moved(still, "actor") < 1e-6
    assert moved(still, "critic") > 1e-3


@pytest.mark.parametrize(
    ("ppo", "task", "words"),
    [
        (SYMMETRIC, TASK, "does not say what a mirror"),
        (replace(SYMMETRIC, actor=replace(PPO.actor, hidden=(8, 7))), BOTH_WAYS, "cannot all be halved"),
        (replace(SYMMETRIC, actor=replace(PPO.actor, memory=4)), BOTH_WAYS, "that remember are not mirrored"),
    ],
)
def test_what_cannot_be_mirrored_is_refused(ppo: Ppo, task: Task, words: str) -> None:
    with pytest.raises(SpecError, match=words), ppo.open(replace(COURSE, task=task)):
        pass
