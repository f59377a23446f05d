"""A checkpoint is whole or refused."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from simops.core.errors import DataError
from simops.learn.checkpoint import actor_of, pack, unpack
from tests.learn.small import COURSE, PPO, bytes_after

TENSORS = {"a.weight": torch.arange(6.0).reshape(2, 3), "b.count": torch.tensor(7, dtype=torch.int64)}
DATA = pack(TENSORS, {"lap": 3, "name": "naïve"})


def test_what_is_read_is_what_was_written() -> None:
    saved = unpack(DATA)
    assert saved.said("lap") == 3
    assert saved.said("name") == "naïve"
    for name, tensor in TENSORS.items():
        assert torch.equal(saved.tensors[name], tensor)
    assert pack(saved.tensors, {"lap": 3, "name": "naïve"}) == DATA


@given(st.integers(0, len(DATA) - 1), st.integers(0, 7))
@settings(max_examples=300, deadline=None)
def test_a_flipped_bit_is_refused_or_changes_nothing(at: int, bit: int) -> None:
    flipped = bytearray(DATA)
    flipped[at] ^= 1 << bit
    try:
        found = unpack(bytes(flipped))
    except DataError as error:
        assert error.fault in {"TRN-011", "DAT-012"}  # noqa: PT017 (either is right)
        return
    assert found.body == unpack(DATA).body
    assert all(torch.equal(found.tensors[name], tensor) for name, tensor in TENSORS.items())


@given(st.integers(0, len(DATA) - 1))
@settings(max_examples=100, deadline=None)
def test_a_file_cut_short_is_refused(length: int) -> None:
    with pytest.raises(DataError, match="no checkpoint") as caught:
        unpack(DATA[:length], where="checkpoint.safetensors")
    assert caught.value.fault == "TRN-011"
    assert caught.value.where == "checkpoint.safetensors"


@pytest.mark.parametrize("part", ["actor.obs_normalizer", "actor.mlp", "critic", "optimizer", "random", "pay"])
def test_a_checkpoint_without_one_of_its_parts_is_refused(part: str) -> None:
    saved = unpack(bytes_after(PPO))
    rest = {name: tensor for name, tensor in saved.tensors.items() if not name.startswith(part)}
    assert len(rest) < len(saved.tensors)
    with pytest.raises(DataError) as caught, PPO.open(COURSE, checkpoint=pack(rest, saved.body)):
        pass
    assert caught.value.fault == "TRN-012"


@pytest.mark.parametrize("name", ["lap", "learning_rate", "level", "recipe"])
def test_a_checkpoint_that_does_not_say_all_is_refused(name: str) -> None:
    saved = unpack(bytes_after(PPO))
    body = {key: value for key, value in saved.body.items() if key != name}
    with pytest.raises(DataError, match=name) as caught, PPO.open(COURSE, checkpoint=pack(saved.tensors, body)):
        pass
    assert caught.value.fault == "TRN-012"


def test_a_network_that_does_not_fit_its_description_is_refused() -> None:
    saved = unpack(bytes_after(PPO))
    body = {**saved.body, "actor": {**saved.said("actor"), "hidden": [4]}}
    with pytest.raises(DataError, match="does not fit"):
        actor_of(unpack(pack(saved.tensors, body)))
