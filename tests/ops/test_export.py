"""From a trained network to a folder: whole or absent, the same bytes, and the same way through an episode."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
import torch

from simops.core.contract import Contract
from simops.core.errors import DataError, SpaceError
from simops.core.rollout import Recipe, rollout, wave
from simops.data.header import Header
from simops.data.store import Dataset
from simops.data.writer import Writer
from simops.deploy.bundle import load
from simops.learn.actor import Origin, Scale, Unscale, View, Windowed, layers
from simops.learn.checkpoint import Taught, actor_of, unpack
from simops.learn.policy import Learned
from simops.learn.ppo import Ppo
from simops.ops.asked import invented, observed, recorded, sequences, stressed
from simops.ops.beside import beside
from simops.ops.export import checkpoint_in, export, export_checkpoint, gap
from simops.ops.publish import write
from simops.ops.train import CHECKPOINT, SPEC
from simops.sim.pendulum import Pendulum
from simops.tasks.pendulum.task import pendulum
from tests.bundles import KINDS, contract, files_of, put_down, taught
from tests.learn.small import ENGINE, PPO, REMEMBERS, bytes_after


@lru_cache(maxsize=4)
def made(kind: str) -> Taught:
    return taught(kind, of=Contract.of(pendulum()))


def everything(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_network_leaves_as_the_same_folder(tmp_path: Path, kind: str) -> None:
    seen = sequences(observed(Learned(made(kind)), pendulum(), Pendulum(), n=8))
    one, two = (
        export(made(kind), tmp_path / name, provenance={"seed": 3}, observations=seen) for name in ("one", "two")
    )
    assert everything(tmp_path / "one") == everything(tmp_path / "two")
    assert one.bundle.digest == two.bundle.digest == load(tmp_path / "one").digest
    assert one.parity.rows == 10_000
    assert one.parity.action <= 1e-5 * 4.0
    assert one.parity.together


@pytest.mark.parametrize("kind", KINDS)
def test_five_hundred_steps_in_closed_loop_are_the_same(tmp_path: Path, kind: str) -> None:
    bundle = export(made(kind), tmp_path / "bundle", provenance={}).bundle
    task = replace(pendulum(), horizon_s=10.0, ends_on_success=False)
    pairs = zip(*(rollout(p, task, Pendulum(), n=4) for p in (Learned(made(kind)), bundle)), strict=True)
    for trained, exported in pairs:
        assert len(trained) == len(exported) == 500
        for name in ("angle", "rate"):
            assert np.abs(trained[name] - exported[name]).max() <= 1e-6
        assert np.nanmax(np.abs(trained["action"] - exported["action"])) <= 1e-5


def test_exporting_again_to_the_same_place_is_no_error_and_another_policy_is(tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    write(files_of(), out)
    before = everything(out)
    write(files_of(), out)
    with pytest.raises(DataError, match="is there already") as caught:
        write(files_of("recurrent"), out)
    assert caught.value.fault == "DAT-011"
    assert everything(out) == before


@pytest.mark.parametrize("call", ["fsync", "rename", "write"])
def test_a_disk_that_refuses_leaves_nothing(tmp_path: Path, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, "no space left")

    with monkeypatch.context() as patched:
        patched.setattr(os, call, refuse)
        with pytest.raises(SpaceError, match="disk is full"):
            write(files_of(), tmp_path / "bundle")
    assert list(tmp_path.iterdir()) == []


def test_what_fails_its_own_test_is_not_published(tmp_path: Path) -> None:
    files = files_of()
    files["policy_1.onnx"] = files_of("recurrent")["policy_1.onnx"]
    with pytest.raises(DataError):
        write(files, tmp_path / "bundle")
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_that_is_not_there_is_said(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "no.safetensors"):
        with pytest.raises(DataError, match="no checkpoint"):
            checkpoint_in(path)


@pytest.mark.parametrize("ppo", [PPO, REMEMBERS], ids=["feedforward", "recurrent"])
def test_a_training_leaves_as_a_bundle_that_knows_where_it_comes_from(tmp_path: Path, ppo: Ppo) -> None:
    run = tmp_path / "run"
    run.mkdir()
    data = bytes_after(replace(ppo, laps=1))
    (run / CHECKPOINT).write_bytes(data)
    (run / SPEC).write_bytes(b"a spec")
    found = export_checkpoint(run, tmp_path / "bundle", engine=ENGINE)
    assert found.bundle.provenance["checkpoint"] == hashlib.sha256(data).hexdigest()
    assert found.bundle.provenance["spec"] == hashlib.sha256(b"a spec").hexdigest()
    assert found.bundle.provenance["task"] == "pendulum"
    assert found.parity.action <= 1e-5 * 4.0
    learned = actor_of(unpack(data))
    assert [slot.name for slot in found.bundle.contract.memory] == [slot.name for slot in learned.actor.slots]
    again = export_checkpoint(run / CHECKPOINT, tmp_path / "again", engine=ENGINE)
    assert again.bundle.digest == found.bundle.digest


def test_no_number_on_one_side_is_no_agreement() -> None:
    number, none = np.zeros((2, 3), np.float32), np.full((2, 3), np.nan, np.float32)
    assert gap(number, none) == gap(none, number) == np.inf
    assert gap(none, none) == gap(number, number) == 0.0
    assert gap(number + 0.5, number) == 0.5


def test_a_network_that_looks_at_differences_is_compared_where_it_has_an_answer(tmp_path: Path) -> None:
    ours = contract()
    view = View([0, 1, 2, 6], [0, 1], [3, 4], [2])
    unscale = Unscale(
        torch.zeros(3, 3), torch.ones(3, 3), torch.tensor(ours.action.low), torch.tensor(ours.action.high)
    )
    body = layers(2 * view.size, (32, 17), 9)
    actor = Windowed(Scale(view.size), body, unscale, window=2, chunk=3, carry=2, view=view, origin=Origin([0, -1, 2]))
    found = export(Taught(actor.eval(), replace(ours, memory=actor.slots)), tmp_path / "bundle", provenance={})
    assert 0 < found.parity.action <= 1e-5
    assert 0 < found.parity.rounding <= 1e-5
    assert found.parity.together


def test_parity_is_asked_at_limits_zeros_denormals_and_far_off() -> None:
    asked = stressed(contract(), invented(contract()).reshape(-1, 7), 10_000)
    assert asked.shape == (10_000, 7)
    assert np.isfinite(asked).all()
    low = np.array((-1.0, -2.0, -3.0), np.float32)
    assert any((row[:3] == low).all() for row in asked)
    assert any((row == 0).all() and np.signbit(row).all() for row in asked)
    assert any(0 < abs(row[0]) < np.finfo(np.float32).tiny for row in asked)
    assert np.abs(asked).max() >= 3e38


def test_made_up_observations_lie_within_the_limits() -> None:
    asked = invented(contract())
    assert asked.shape[0] >= 20
    assert (np.abs(asked[..., :3]) <= np.array((1.0, 2.0, 3.0))).all()


def test_what_a_dataset_showed_is_found_again(tmp_path: Path) -> None:
    task = replace(pendulum(), horizon_s=0.4)
    policy = Learned(made("feedforward"))
    recipe = Recipe(policy=policy, task=task, engine=Pendulum())
    with Writer.resume(tmp_path / "data", Header.of(recipe, lock="")) as data, Pendulum().open(task, 3) as sim:
        data.append(wave(recipe, sim, np.arange(3)))
    found = recorded(Dataset.open(tmp_path / "data"), policy.contract)
    seen = observed(policy, task, Pendulum(), n=3)
    for episode in range(3):
        want = np.stack([observation[episode] for observation, _ in seen])
        assert found[episode][:, 0].tobytes() == want.tobytes()
    with pytest.raises(DataError, match="no joint_position as the policy reads it"):
        recorded(Dataset.open(tmp_path / "data"), contract())


def test_two_bundles_side_by_side(tmp_path: Path) -> None:
    one = put_down(files_of(), tmp_path / "one")
    shutil.copytree(one, tmp_path / "copy")
    assert beside(one, tmp_path / "copy").same
    other = put_down(files_of("recurrent"), tmp_path / "other")
    found = beside(one, other)
    assert not found.same
    assert [difference.what for difference in found.contract] == ["memory"]
    assert found.answers is not None
    assert found.answers > 0.01
    pendulums = put_down(files_of(of_pendulum=True), tmp_path / "pendulum")
    found = beside(one, pendulums)
    assert found.answers is None
    assert {"robot", "task", "observation"} <= {difference.what for difference in found.contract}
