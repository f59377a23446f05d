"""A training of a second: a pendulum in closed form, and networks of a few units."""

from __future__ import annotations

from dataclasses import replace

from simops.core.training import Course
from simops.learn.network import Network
from simops.learn.ppo import Ppo
from simops.sim.pendulum import Pendulum
from simops.tasks.pendulum.task import pendulum

TINY = Network(hidden=(8, 8))
ENGINE = Pendulum(step_s=0.02)
TASK = replace(pendulum(), horizon_s=0.3)
COURSE = Course(task=TASK, engine=ENGINE, seed=3)
PPO = Ppo(laps=6, copies=8, steps=6, epochs=2, minibatches=2, actor=TINY, critic=TINY, checkpoint_every=2)
REMEMBERS = replace(PPO, actor=replace(TINY, memory=5))


def bytes_after(ppo: Ppo, course: Course = COURSE, *, checkpoint: bytes = b"") -> bytes:
    """The last checkpoint of a training that nobody disturbs."""
    with ppo.open(course, checkpoint=checkpoint) as training:
        while training.done < training.laps:
            training.advance()
        return training.checkpoint()
