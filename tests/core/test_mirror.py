"""The mirror: looked into twice it changes nothing, and what makes no sense is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simops.core.errors import SignalError
from simops.core.mirror import Mirror, require_mirror, swap
from simops.core.signal import Signal
from simops.tasks.pendulum.task import pendulum
from simops.tasks.velocity.task import MIRROR, velocity

SIGNALS = (Signal("speed", (2,)), Signal("height"), Signal("foot_force", (2,)))
SWAPS: Mirror = {"speed": (1, -2), "foot_force": (2, 1)}


def test_a_row_in_the_mirror_has_its_numbers_where_they_were_said_to_be() -> None:
    rows = np.array([[1, 2, 3, 4, 5, 6, 7]], np.float32)
    np.testing.assert_array_equal(swap(SIGNALS, SWAPS, plain=2).rows(rows), [[1, -2, 3, 5, 4, 6, 7]])


def test_looking_twice_changes_nothing() -> None:
    signals = (*velocity().observation.signals, *velocity().state_schema.signals)
    row = np.random.default_rng(0).normal(size=(3, sum(signal.size for signal in signals))).astype(np.float32)
    whole = swap(signals, MIRROR)
    assert not np.array_equal(whole.rows(row), row)
    np.testing.assert_array_equal(whole.rows(whole.rows(row)), row)


@pytest.mark.parametrize(
    ("mirror", "words"),
    [
        ({"sped": (1, -2)}, "no signal of it"),
        ({"speed": (1, -3)}, "no order of 1 to 2"),
        ({"speed": (1,)}, "no order of 1 to 2"),
        ({"speed": (2, -1)}, "mirrored twice"),
    ],
)
def test_a_mirror_that_makes_no_sense_is_refused(mirror: Mirror, words: str) -> None:
    with pytest.raises(SignalError, match=words):
        require_mirror(mirror, SIGNALS, where="walk")


def test_a_task_checks_its_mirror() -> None:
    with pytest.raises(SignalError, match="rate"):
        replace(pendulum(), mirror={"rate": (2,)})
