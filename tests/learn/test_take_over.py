"""A training that begins with another's networks: acts as that one did, and is a training of its own from there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simops.core.errors import DataError
from simops.learn.network import Network
from tests.learn.small import COURSE, PPO, bytes_after

OTHER = replace(COURSE, seed=9)


def test_it_begins_as_the_other_ended_and_goes_on_to_the_same_bytes() -> None:
    before = bytes_after(PPO)
    course = replace(OTHER, begun=before)
    rows = np.random.default_rng(0).normal(size=(5, COURSE.task.observation.size)).astype(np.float32)
    with PPO.open(COURSE, checkpoint=before) as ended, PPO.open(course) as begun, PPO.open(OTHER) as fresh:
        want, got, other = (t.policy.act(rows, {}).action for t in (ended, begun, fresh))
        np.testing.assert_array_equal(want, got)
        assert np.abs(want - other).max() > 1e-6
        assert begun.done == 0
        for _ in range(PPO.checkpoint_every):
            begun.advance()
        kept = begun.checkpoint()
        while begun.done < begun.laps:
            begun.advance()
        whole = begun.checkpoint()
    with PPO.open(course, checkpoint=kept) as again:
        while again.done < again.laps:
            again.advance()
        assert again.checkpoint() == whole
    with pytest.raises(DataError), PPO.open(OTHER, checkpoint=kept):
        pass


def test_other_networks_are_refused() -> None:
    wider = replace(PPO, actor=Network(hidden=(9, 9)))
    with pytest.raises(DataError, match="other networks"), wider.open(replace(OTHER, begun=bytes_after(PPO))):
        pass
