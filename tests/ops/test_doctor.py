"""What lies between a policy and its robot is found by name, and nothing is found where nothing lies."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import doctor as bench
from benchmarks import planted, planted_graphs
from benchmarks.planted import ENGINE, Plant
from simops.cli.main import main
from simops.core.contract import Contract
from simops.core.signal import Array, Columns, Schema
from simops.deploy import manifest
from simops.ops import probe
from simops.ops.adapter import examine, faithful
from simops.ops.border import compare
from simops.ops.doctor import examine_wires
from simops.ops.explain import links, name
from simops.ops.mismatch import FAULT, FIX
from simops.testing.miswired import Miswired, Wiring

torch.set_num_threads(1)
WIRED = (
    planted.contracts,
    planted.read_wires,
    planted.command_wires,
    planted.names_only,
    planted.paces,
    planted.adapters,
)
LAST = {plant.family: plant for family in WIRED for plant in family()}


@pytest.mark.parametrize("family", sorted(LAST))
def test_one_fault_of_every_family_is_named(family: str) -> None:
    plant = LAST[family]
    found = plant.found()
    assert plant.named(found), f"{plant.what}: {[(each.kind, each.where) for each in found]}"
    assert {each.kind for each in found} == {plant.kind}


GRAPHS = {f"{plant.family}, {plant.kind}": plant for plant in planted_graphs.graphs() if "pick" not in plant.what}


@pytest.mark.parametrize("which", sorted(GRAPHS))
def test_a_graph_that_was_exported_wrong_is_named(which: str) -> None:
    found = GRAPHS[which].found()
    assert [each.kind for each in found] == [GRAPHS[which].kind]


@pytest.mark.parametrize("number", range(5))
def test_nothing_is_found_where_nothing_is_wrong(number: int) -> None:
    assert bench.clean(number) == []


@pytest.mark.slow
def test_every_planted_fault_is_refused_and_named_and_no_clean_pair_is() -> None:
    def missed(plant: Plant) -> bool:
        return not plant.named(plant.found())

    assert [f"{plant.family} {plant.what}" for plant in bench.plants() if missed(plant)] == []
    assert [number for number in range(50) if bench.clean(number)] == []


def test_every_kind_has_a_code_and_a_way_out() -> None:
    assert FAULT.keys() == FIX.keys()
    assert all(FIX.values())


@given(st.permutations(range(12)), st.sampled_from(["low", "labels", "unit", "frame", "none"]))
def test_contracts_differ_here_when_and_only_when_they_differ(order: list[int], what: str) -> None:
    truth = Contract.of(planted.task_of("velocity"))
    action = truth.action
    changed = {
        "low": replace(action, low=tuple(action.low[i] for i in order)),
        "labels": replace(action, labels=tuple(action.labels[i] for i in order)),
        "unit": replace(action, unit="deg"),
        "frame": replace(action, frame="base"),
        "none": action,
    }[what]
    other = replace(truth, action=changed)
    assert bool(compare(other, truth)) == bool(other.differences(truth))


@given(st.permutations(range(6)), st.lists(st.sampled_from([1.0, -1.0]), min_size=6, max_size=6))
def test_any_order_and_signs_are_read_back(order: list[int], signs: list[float]) -> None:
    rows = np.random.default_rng(0).normal(size=(32, 6))
    found = links(rows, rows[:, order] * np.array(signs))
    assert [(link.source, link.gain) for link in found] == list(zip(order, signs, strict=True))


@given(st.permutations(range(5)), st.lists(st.floats(0.5, 3.0), min_size=5, max_size=5))
def test_wires_lead_back(order: list[int], gain: list[float]) -> None:
    wiring = Wiring(tuple(order), tuple(gain), (0.1, 0.2, 0.3, 0.4, 0.5))
    rows = np.random.default_rng(1).normal(size=(4, 5))
    np.testing.assert_allclose(wiring.back(wiring.through(rows)), rows, atol=1e-12)


def test_what_is_said_names_the_elements_and_the_way_out() -> None:
    task = planted.task_of("velocity")
    engine = Miswired(ENGINE, readings={"base_quaternion": Wiring((1, 2, 3, 0))})
    [found] = examine_wires(task, engine, ENGINE).mismatches
    assert str(found) == (
        "EXP-004 quaternion: base_quaternion should hold w, x, y, z, and holds x, y, z, w\n"
        "  fix: reorder: quaternions are w, x, y, z here"
    )
    rows = np.random.default_rng(0).normal(size=(16, 3))
    schema = Schema((task.observation["gyro"],))
    [found] = name(links(rows, rows * [1, 1, -1]), schema, "readings", want=rows, got=rows * [1, 1, -1])
    assert (found.kind, found.where) == ("sign", ("gyro_z",))


def test_an_observation_of_another_size_is_said_so() -> None:
    task = planted.task_of("pendulum")
    good = faithful(task)

    def two(columns: Columns) -> Array:
        return good.observe(columns)[:, :2]

    [found] = examine(replace(good, observe=two), task, ENGINE)
    assert found.kind == "shape"


def test_several_faults_at_once_are_all_named() -> None:
    task = planted.task_of("velocity")
    swap = Wiring.swap(12, 0, 3)
    engine = Miswired(ENGINE, command=Wiring.flip(12, 7), readings={"joint_position": swap, "joint_velocity": swap})
    found = examine_wires(task, engine, ENGINE).mismatches
    assert {each.kind for each in found} == {"permutation", "sign"}
    assert [each.where for each in found if each.level == "commands"] == [("joint_target_RL_thigh",)]


def test_probing_gives_the_same_bytes_again() -> None:
    task = planted.task_of("velocity")
    one, two = probe.respond(ENGINE, task), probe.respond(ENGINE, task)
    assert one.moved.tobytes() == two.moved.tobytes()


def written(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir()
    for file, data in files.items():
        (folder / file).write_bytes(data)
    return folder


def test_the_command_says_clean_and_exits_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written(
        tmp_path / "b", planted_graphs.bundle("pendulum", planted_graphs.trained("pendulum", "feedforward"))
    )
    assert main(["doctor", str(folder), "pendulum"]) == 0
    assert "everything agrees" in capsys.readouterr().out
    assert main(["doctor", str(folder), "pendulum", "--tested", "pendulum"]) == 0
    assert "pace:" in capsys.readouterr().out


def test_the_command_names_the_fault_and_the_fix_and_exits_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = planted_graphs.bundle("pendulum", planted_graphs.trained("pendulum", "feedforward"))
    body = json.loads(files["contract.json"])
    body["control_dt_s"] = 0.01
    changed = {**files, "contract.json": json.dumps(body).encode()}
    del changed["manifest.json"]
    folder = written(tmp_path / "b", {**changed, "manifest.json": manifest.manifest(changed)})
    assert main(["doctor", str(folder), "pendulum", "--static"]) == 2
    said = capsys.readouterr().out
    assert "EXP-009 rate: trained to act every 0.01 s (100 Hz), asked every 0.02 s (50 Hz)" in said
    assert "fix: control_dt_s = 0.01" in said
    (folder / "policy.onnx").write_bytes(files["policy.onnx"][:-1])
    assert main(["doctor", str(folder), "pendulum", "--static"]) == 2
    assert "EXP-011 damage" in capsys.readouterr().out
    assert main(["doctor", str(tmp_path / "nothing"), "pendulum", "--static"]) == 2
