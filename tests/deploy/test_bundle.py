"""A bundle acts as what was trained, or not at all."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from simops.core.contract import Contract
from simops.core.errors import DataError, SignalError
from simops.core.signal import Array, Schema, Signal
from simops.deploy.bundle import Bundle, assemble, load
from simops.tasks.pendulum.task import pendulum
from simops.testing.policy import check_policy
from tests.bundles import JOINTS, KINDS, contract, files_of, put_down, rows

GRAPHS = ("policy.onnx", "policy_1.onnx")


def changed(signal: str, **fields: Any) -> Contract:  # noqa: ANN401
    """Our contract, with one signal otherwise."""
    ours = contract()
    signals = tuple(replace(s, **fields) if s.name == signal else s for s in ours.observation.signals)
    action = replace(ours.action, **fields) if ours.action.name == signal else ours.action
    return replace(ours, observation=Schema(signals), action=action)


def reordered() -> Contract:
    ours = contract()
    return replace(ours, observation=Schema(ours.observation.signals[::-1]))


WRONG: dict[str, tuple[Contract, str, str]] = {
    "joints in another order": (changed("joint_position", labels=("hip", "calf", "thigh")), "EXP-003", "hip, calf"),
    "targets in another order": (changed("joint_target", labels=JOINTS[::-1]), "EXP-003", "joint_target.labels"),
    "signals in another order": (reordered(), "EXP-003", "observation"),
    "degrees": (changed("joint_position", unit="deg"), "EXP-002", "joint_position.unit"),
    "another frame": (changed("gyro", frame="torso"), "EXP-004", "gyro.frame"),
    "another history": (changed("gyro", shape=(2, 3)), "EXP-008", "gyro.shape"),
    "other limits": (changed("joint_target", high=(9.0, 9.0, 9.0)), "EXP-003", "joint_target.high"),
    "another rate": (replace(contract(), control_dt_s=0.01), "EXP-009", "control_dt_s"),
    "another robot": (replace(contract(), robot="cat"), "EXP-003", "robot"),
    "another task": (replace(contract(), task="run"), "EXP-003", "task"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_bundle_keeps_every_promise_of_a_policy(kind: str) -> None:
    check_policy(assemble(files_of(kind, of_pendulum=True)), pendulum())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 7, 64, 1000])
def test_a_row_has_the_same_bytes_in_any_company(kind: str, n: int) -> None:
    bundle = assemble(files_of(kind))
    assert bundle.network.together
    seen = [rows(1000, 7, seed=step) for step in range(4)]
    found: list[list[Array]] = []
    for size in (1000, n):
        kept: list[list[Array]] = []
        for start in range(0, 1000, size):
            memory = {slot.name: slot.zeros(size) for slot in bundle.contract.memory}
            actions: list[Array] = []
            for observation in seen:
                action, memory = bundle.act(observation[start : start + size][:size], memory)
                actions.append(action)
            kept.append(actions)
            if start + 2 * size > 1000:
                break
        found.append([np.concatenate(column) for column in zip(*kept, strict=True)])
    for whole, parts in zip(*found, strict=True):
        assert whole[: len(parts)].tobytes() == parts.tobytes()


@pytest.mark.parametrize("what", WRONG)
def test_another_contract_is_refused_by_name(tmp_path: Path, what: str) -> None:
    folder = put_down(files_of(), tmp_path / "bundle")
    theirs, fault, named = WRONG[what]
    with pytest.raises(SignalError, match=named.replace(".", r"\.")) as caught:
        load(folder, contract=theirs)
    assert caught.value.fault == fault
    assert str(folder) in caught.value.where


def test_its_own_contract_and_rate_are_welcome(tmp_path: Path) -> None:
    folder = put_down(files_of(), tmp_path / "bundle")
    assert load(folder, contract=contract(), control_dt_s=0.02).contract.digest == contract().digest


def test_another_rate_is_refused(tmp_path: Path) -> None:
    folder = put_down(files_of(), tmp_path / "bundle")
    with pytest.raises(SignalError, match=r"trained to act every 0.02 s, asked every 0.033 s") as caught:
        load(folder, control_dt_s=0.033)
    assert caught.value.fault == "EXP-009"


def test_another_task_is_refused_before_the_first_step() -> None:
    with pytest.raises(SignalError, match="robot: the policy has dog, here it is pendulum"):
        assemble(files_of()).start(pendulum(), np.zeros(1, np.uint64))


Change = Callable[[onnx.ModelProto], None]


def constant(model: onnx.ModelProto, name: str, change: Callable[[Array], Array]) -> None:
    """Change one constant of a graph."""
    [found] = [each for each in model.graph.initializer if each.name == name]
    found.CopyFrom(numpy_helper.from_array(change(numpy_helper.to_array(found)).astype(np.float32), name))


def mutated(files: dict[str, bytes], change: Change) -> dict[str, bytes]:
    """The same bundle with changed graphs, and a manifest that will not tell."""
    out = dict(files)
    for name in GRAPHS:
        model = onnx.load_from_string(files[name])
        change(model)
        out[name] = model.SerializeToString()
    return out


def no_normaliser(model: onnx.ModelProto) -> None:
    constant(model, "scale.mean", np.zeros_like)
    constant(model, "scale.std", np.ones_like)


def doubled(model: onnx.ModelProto) -> None:
    constant(model, "unscale.scale", lambda scale: 2 * scale)


def shifted(model: onnx.ModelProto) -> None:
    constant(model, "unscale.centre", lambda centre: centre + np.array([0.0, 0.1, 0.0]))


def flipped(model: onnx.ModelProto) -> None:
    constant(model, "unscale.scale", lambda scale: scale * np.array([1, 1, -1]))
    constant(model, "unscale.centre", lambda centre: centre * np.array([1, 1, 1]))


def swapped(model: onnx.ModelProto) -> None:
    order = helper.make_tensor("order", onnx.TensorProto.INT64, [3], [1, 0, 2])
    model.graph.initializer.append(order)
    for node in model.graph.node:
        for i, out in enumerate(node.output):
            if out == "action":
                node.output[i] = "unordered"
    model.graph.node.append(helper.make_node("Gather", ["unordered", "order"], ["action"], axis=1))


def drifted(model: onnx.ModelProto) -> None:
    constant(model, "unscale.centre", lambda centre: centre)
    weight = [each.name for each in model.graph.initializer if each.name.startswith("body.0") and len(each.dims) == 2]
    constant(model, weight[0], lambda w: w + 1e-4 * np.sign(w))


DEFECTS: dict[str, tuple[Change, str, str]] = {
    "no normaliser": (no_normaliser, "EXP-001", "not normalised"),
    "action scale twice": (doubled, "EXP-002", "hip is 2 times"),
    "an offset": (shifted, "EXP-002", "thigh is 1 times what it should be, plus 0.1 rad"),
    "a flipped sign": (flipped, "EXP-002", "calf is -1 times"),
    "two joints swapped": (swapped, "EXP-003", "hip gets what is meant for thigh, thigh gets what is meant for hip"),
    "other numbers": (drifted, "EXP-005", "drifted"),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_the_golden_vectors_name_the_defect(tmp_path: Path, defect: str) -> None:
    change, fault, named = DEFECTS[defect]
    folder = put_down(mutated(files_of(), change), tmp_path / "bundle")
    with pytest.raises(DataError, match=named) as caught:
        load(folder)
    assert caught.value.fault == fault


@pytest.mark.parametrize("kind", ["recurrent", "windowed"])
def test_a_memory_that_is_not_carried_on_is_seen(kind: str) -> None:
    def forget(model: onnx.ModelProto) -> None:
        lost = [out.name for out in model.graph.output if out.name != "action"]
        for node in model.graph.node:
            for names in (node.input, node.output):
                for i, name in enumerate(names):
                    if name in lost:
                        names[i] = f"{name}_lost"
        for name in lost:
            model.graph.node.append(helper.make_node("Identity", [name.removeprefix("next_")], [name]))

    with pytest.raises(DataError, match="memory is lost") as caught:
        assemble(mutated(files_of(kind), forget))
    assert caught.value.fault == "EXP-007"


def test_a_graph_without_its_memory_is_refused() -> None:
    def drop(model: onnx.ModelProto) -> None:
        del model.graph.output[1:]

    with pytest.raises(DataError, match=r"action where the contract has action, next_hidden") as caught:
        assemble(mutated(files_of("recurrent"), drop))
    assert caught.value.fault == "EXP-007"


def test_a_reset_forgets_everything() -> None:
    bundle = assemble(files_of("recurrent", of_pendulum=True))
    task, observation = pendulum(), rows(3, 3)
    fresh = bundle.start(task, np.zeros(3, np.uint64))
    first = bundle.act(observation, fresh)
    later = bundle.act(observation, first.memory)
    assert first.action.tobytes() != later.action.tobytes()
    again = bundle.act(observation, bundle.start(task, np.zeros(3, np.uint64)))
    assert first.action.tobytes() == again.action.tobytes()


def test_a_graph_that_differs_from_its_batched_twin_is_refused() -> None:
    files = files_of()
    other = mutated(files, shifted)
    with pytest.raises(DataError, match="side by side") as caught:
        assemble({**files, "policy.onnx": other["policy.onnx"]})
    assert caught.value.fault == "EXP-006"


def test_weights_outside_of_the_bundle_are_refused() -> None:
    def outside(model: onnx.ModelProto) -> None:
        weight = model.graph.initializer[0]
        weight.ClearField("raw_data")
        weight.data_location = onnx.TensorProto.EXTERNAL
        weight.external_data.add(key="location", value="/etc/passwd")

    with pytest.raises(DataError, match="outside of the bundle") as caught:
        assemble(mutated(files_of(), outside))
    assert caught.value.fault == "EXP-011"


def test_an_operator_that_this_machine_lacks_is_said() -> None:
    def exotic(model: onnx.ModelProto) -> None:
        model.graph.node[0].op_type = "Frobnicate"

    with pytest.raises(DataError, match="cannot run this graph") as caught:
        assemble(mutated(files_of(), exotic))
    assert caught.value.fault == "EXP-010"


@pytest.mark.parametrize("name", ["contract.json", "checks.json", "golden.action.npy", "policy_1.onnx"])
def test_a_part_that_is_missing_or_foreign_is_refused(tmp_path: Path, name: str) -> None:
    files = files_of()
    with pytest.raises((DataError, SignalError)):
        load(put_down({**files, name: b"{}"}, tmp_path / "foreign"))
    del files[name]
    with pytest.raises((DataError, SignalError)):
        load(put_down(files, tmp_path / "missing"))


def test_a_pickle_is_not_opened(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "sprung",))

    np.save(tmp_path / "trap.npy", np.array([Trap()], object), allow_pickle=True)
    with pytest.raises(DataError):
        assemble({**files_of(), "golden.action.npy": (tmp_path / "trap.npy").read_bytes()})
    assert not (tmp_path / "sprung").exists()


def test_rows_of_another_shape_are_refused_and_not_stretched() -> None:
    bundle = assemble(files_of())
    for shape in ((1, 1), (1, 8)):
        with pytest.raises(SignalError, match="one row has shape"):
            bundle.act(np.zeros(shape, np.float32), {})


def test_what_was_given_back_stays_as_it_was() -> None:
    bundle = assemble(files_of("recurrent"))
    memory = {"hidden": bundle.contract.memory[0].zeros(1)}
    action, after = bundle.act(rows(1, 7), memory)
    kept = action.copy(), after["hidden"].copy()
    bundle.act(5 * rows(1, 7), after)
    assert (action.tobytes(), after["hidden"].tobytes()) == tuple(each.tobytes() for each in kept)


def test_no_rows_are_no_actions() -> None:
    bundle = assemble(files_of("recurrent"))
    action, memory = bundle.act(np.zeros((0, 7), np.float32), {"hidden": np.zeros((0, 1, 12), np.float32)})
    assert action.shape == (0, 3)
    assert memory["hidden"].shape == (0, 1, 12)


def test_one_row_that_is_no_number_spoils_no_other() -> None:
    bundle = assemble(files_of())
    seen = rows(40, 7)
    clean = bundle.act(seen, {}).action
    seen[11] = np.nan
    spoiled = bundle.act(seen, {}).action
    assert np.delete(clean, 11, 0).tobytes() == np.delete(spoiled, 11, 0).tobytes()


def test_threads_do_not_meet_in_each_others_rows() -> None:
    bundle = assemble(files_of())
    seen = rows(200, 7)
    want = [bundle.act(row[None], {}).action.tobytes() for row in seen]
    wrong: list[int] = []

    def ask(order: Array) -> None:
        wrong.extend(i for i in order.tolist() if bundle.act(seen[i][None], {}).action.tobytes() != want[i])

    orders = [np.random.default_rng(k).permutation(np.tile(np.arange(200), 5)) for k in range(4)]
    threads = [threading.Thread(target=ask, args=(order,)) for order in orders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_robot_needs_neither_torch_nor_a_simulator(tmp_path: Path) -> None:
    folder = put_down(files_of("recurrent"), tmp_path / "bundle")
    code = (
        "import sys\n"
        "for name in ('torch', 'onnx', 'mujoco', 'pyarrow', 'ruamel'): sys.modules[name] = None\n"
        "import numpy as np\n"
        "from simops.deploy.bundle import load\n"
        f"bundle = load({str(folder)!r})\n"
        "action, _ = bundle.act(np.zeros((1, 7), np.float32), {'hidden': np.zeros((1, 1, 12), np.float32)})\n"
        "ours = {name for name in sys.modules if name.startswith('simops.')}\n"
        "print(action.shape, sorted({name.split('.')[1] for name in ours}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(1, 3) ['core', 'deploy']"


def test_what_a_bundle_says_of_itself_is_what_was_written(tmp_path: Path) -> None:
    bundle: Bundle = load(put_down(files_of(), tmp_path / "bundle"))
    assert bundle.provenance["trainer"] == "chance"
    assert set(bundle.provenance["packages"]) >= {"simops", "numpy", "onnxruntime"}
    assert bundle.golden["observation"].shape[0] >= 20
    assert json.loads(files_of()["contract.json"])["action"]["labels"] == list(JOINTS)
    assert isinstance(bundle.contract.action, Signal)
