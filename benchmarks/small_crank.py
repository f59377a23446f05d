"""A crank that takes seconds: a pendulum that has only to keep hanging about, and a sealed one beside it."""

from __future__ import annotations

from pathlib import Path

TASK = '''\
"""A pendulum that has only to keep hanging about."""

from dataclasses import replace

import numpy as np

from simops.tasks.pendulum.task import pendulum


def easy():
    return replace(
        pendulum(), name="easy", horizon_s=0.8, success_hold_s=0.0, ends_on_success=False,
        success=lambda c: np.abs(c["angle"]) < 0.35,
    )
'''
REALITY = """\
scene: {task: ./easy.py:easy}
engine: {use: pendulum, step_s: 0.01}
seed: 5
hidden: [{name: bob_mass, field: mass, of: [bob], range: [2.5, 2.6]}]
effects: {weakness: [0.1, 0.1], noise: {angle: 0.001}}
"""
AS_BELIEVED = """\
scene: {task: ./easy.py:easy}
engine: {use: pendulum, step_s: 0.02}
seed: 5
hidden:
  - {name: bob_mass, field: mass, of: [bob], range: [1.0, 1.0]}
  - {name: hinge_damping, field: damping, of: [hinge], range: [0.05, 0.05]}
effects: {noise: {angle: 0.001, rate: 0.01}}
trials: 10000000
"""
"""The world as it is believed: nothing can be learned but noise."""
SPEC = """\
scene: {task: ./easy.py:easy}
engine: {use: pendulum, step_s: 0.02}
trainer: {use: ppo, laps: 2, copies: 8, steps: 6, minibatches: 2, checkpoint_every: 1,
          actor: {hidden: [8, 8]}, critic: {hidden: [8, 8]}}
validation: {engine: {use: pendulum, step_s: 0.01}, rate: 0.2, episodes: 64}
learning: {most: 48}
reality: {path: reality.yaml}
trials: {episodes: 16, explore: 4, held_out: 0.5}
patches:
  autonomy: auto
  within: {learning.floor: [0.0, 0.2], trainer.laps: [1, 5]}
hardened: {success: 1.0}
"""


def project(folder: Path, *, spec: str = SPEC, reality: str = REALITY) -> Path:
    """Write the project down and give its spec."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "easy.py").write_text(TASK)
    (folder / "reality.yaml").write_text(reality)
    (folder / "crank.yaml").write_text(spec)
    return folder / "crank.yaml"
