"""What bends bends, stays whole, comes out the same twice, and is refused by engines that have nothing soft."""

from __future__ import annotations

import numpy as np
import pytest

from simops.core.errors import EngineError
from simops.core.policy import Zero
from simops.core.protocols import Engine, Policy
from simops.core.rollout import rollout
from simops.core.task import Task
from simops.core.trajectory import Trajectory
from simops.sim.dart import Dart
from simops.sim.mujoco import Mujoco
from simops.sim.mujoco_fine import MujocoFine
from simops.tasks.deformable.task import BALL_TOP_M, CORNERS, cable_in_the_way, cloth, soft_cube
from simops.tasks.pick_and_place.expert import Expert
from simops.tasks.pick_and_place.scores import CUBE_HALF_M
from simops.tasks.pick_and_place.task import pick_and_place


def played(task: Task, policy: Policy, engine: Engine | None = None) -> Trajectory:
    """One episode, twice: the same bytes, and every number a number."""
    runs = [rollout(policy, task, engine or Mujoco(threads=1), n=1, seed=5)[0] for _ in range(2)]
    for name in task.sources:
        assert np.isfinite(runs[0][name]).all()
        np.testing.assert_array_equal(runs[0][name], runs[1][name])
    return runs[0]


def carried_between_m(run: Trajectory) -> float:
    """How far apart the pads are while they carry."""
    lifted = run["cube_position"][:, 2] > 2.5 * CUBE_HALF_M
    return float(np.median(run["finger_position"].sum(axis=1)[lifted]))


def test_foam_is_squeezed_and_put_down_by_an_expert_that_knows_only_hard_cubes() -> None:
    run = played(soft_cube(), Expert())
    assert run.outcome == "success"
    hard = rollout(Expert(), pick_and_place(), Mujoco(threads=1), n=1, seed=5)[0]
    assert carried_between_m(hard) > 1.7 * CUBE_HALF_M > 1.2 * carried_between_m(run)


def test_a_cable_is_dragged_along_by_what_is_carried_past_it() -> None:
    run = played(cable_in_the_way(), Expert())
    assert run.outcome == "success"
    moved = np.linalg.norm(run["cable_position"] - run["cable_position"][5], axis=1)
    assert moved[:5].max() < 0.06  # hanging down
    assert moved.max() > 0.08


def test_a_cloth_falls_over_a_ball_and_comes_to_rest() -> None:
    run = played(cloth(), Zero())
    assert run.outcome == "success"
    corners = np.stack([run[f"corner_{name}"][:, 2] for name in CORNERS])
    assert np.ptp(corners[:, 0]) < 1e-6  # it begins flat
    assert run["fold_position"][-1, 2] - corners[:, -1].max() > BALL_TOP_M / 2
    assert run["fold_position"][-1, 2] == pytest.approx(BALL_TOP_M, abs=0.02)


def test_engines_without_anything_soft_say_so() -> None:
    with pytest.raises(EngineError, match="deformables, which only MuJoCo has"), Dart(workers=1).open(cloth(), 1):
        pass


@pytest.mark.slow
def test_foam_holds_at_fine_steps() -> None:
    assert played(soft_cube(), Expert(), MujocoFine(threads=1)).outcome == "success"
