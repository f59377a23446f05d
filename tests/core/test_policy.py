"""Policies that need nothing learned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simops.core import chance
from simops.core.errors import SignalError
from simops.core.policy import Random, Tape, Zero, centre_and_scale
from simops.core.signal import Array, Signal
from simops.tasks.pendulum.task import pendulum

TASK = replace(pendulum(), action=Signal("pair", (2,), low=(-1.0, 0.0), high=(1.0, 10.0)))
SEEDS = chance.seeds(0, np.arange(6))
NOTHING = np.empty((6, 0), np.float32)


def acted(policy: Tape | Zero | Random, steps: int, seeds: Array = SEEDS) -> Array:
    """(steps, n, 2)."""
    memory, found = policy.start(TASK, seeds), list[Array]()
    for _ in range(steps):
        action, memory = policy.act(NOTHING[: len(seeds)], memory)
        found.append(np.array(action))
    return np.stack(found)


@given(st.integers(1, 5))
def test_a_tape_plays_and_then_holds_the_last(steps: int) -> None:
    actions = np.arange(2.0 * steps).reshape(steps, 2)
    found = acted(Tape(actions), steps + 3)
    np.testing.assert_array_equal(found[:steps, 4], actions)
    np.testing.assert_array_equal(found[steps:], np.broadcast_to(actions[-1], (3, 6, 2)))


def test_each_copy_may_have_its_own_tape() -> None:
    actions = np.arange(6.0 * 3 * 2).reshape(6, 3, 2)
    tape = Tape(actions, per_copy=True)
    np.testing.assert_array_equal(acted(tape, 3), actions.transpose(1, 0, 2))
    memory = {name: rows[[1, 4]] for name, rows in tape.start(TASK, SEEDS).items()}
    np.testing.assert_array_equal(tape.act(NOTHING[:2], memory).action, actions[[1, 4], 0])


@pytest.mark.parametrize("shape", [(5, 3), (5,), (0, 2), (5, 2, 1)])
def test_a_tape_of_something_else_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(SignalError) as caught:
        Tape(np.zeros(shape)).start(TASK, SEEDS)
    assert str(caught.value) == f"a tape of shape {shape} does not drive pair\n  try: rows of shape (2,)"
    with pytest.raises(SignalError, match="4 recordings for 6 copies"):
        Tape(np.zeros((4, 3, 2)), per_copy=True).start(TASK, SEEDS)


def test_a_tapes_digest_is_of_what_it_plays() -> None:
    actions = np.zeros((6, 3, 2))
    other = actions.copy()
    other[1, 1, 1] = 1e-300
    digests = {
        Tape(actions).digest,
        Tape(other).digest,
        Tape(actions, per_copy=True).digest,
        Tape(actions.reshape(3, 6, 2)).digest,
        Tape(actions.astype(np.float32)).digest,
    }
    assert len(digests) == 5
    assert Tape(np.asfortranarray(actions)).digest == Tape(actions).digest


def test_zero_is_the_centre() -> None:
    np.testing.assert_array_equal(acted(Zero(), 2)[:, 3], [[0.0, 5.0], [0.0, 5.0]])
    centre, scale = centre_and_scale(replace(TASK, action_centre=(0.5, 1.0), action_scale=(2.0, 3.0)))
    assert (centre.tolist(), scale.tolist()) == ([0.5, 1.0], [2.0, 3.0])


def test_random_fills_the_limits_and_depends_on_seed_and_step_alone() -> None:
    found = acted(Random(), 500)
    low, high = np.array(TASK.action.low), np.array(TASK.action.high)
    assert np.all((found >= low) & (found < high))
    np.testing.assert_allclose(found.mean(axis=(0, 1)), (low + high) / 2, atol=0.02 * (high - low).max())
    np.testing.assert_array_equal(acted(Random(), 500, SEEDS[2:4]), found[:, 2:4])
    assert len(np.unique(found[:, 0, 0])) == 500


def test_random_holds() -> None:
    found = acted(Random(hold_steps=4), 12)
    np.testing.assert_array_equal(found[0:4], np.broadcast_to(found[:1], (4, 6, 2)))
    assert np.all(found[3] != found[4])
    assert Random(hold_steps=4).digest != Random().digest
