"""Variants say what they cost, and none is promoted on likeness alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from simops.core.errors import SignalError, SpecError
from simops.core.task import Task
from simops.deploy.bundle import Bundle, load
from simops.deploy.manifest import read
from simops.learn.prune import Lesson
from simops.ops.export import export
from simops.ops.variants import KINDS, Proof, Recipe, kind_of, optimise, wilson
from simops.sim.pendulum import Pendulum
from simops.tasks.pendulum.task import pendulum
from tests.bundles import contract, files_of, fitted, put_down


def short() -> Task:
    """The swing-up, over as soon as the bob stands."""
    return replace(pendulum(), success_hold_s=0.0)


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundles") / "parent"
    export(fitted(), folder, provenance={"seed": 0})
    return folder


def variant(parent: Path, out: Path, kind: str, **fields: object) -> Bundle:
    recipe = replace(Recipe(kind=kind_of(kind), lesson=Lesson(steps=300)), **fields)  # type: ignore[arg-type]
    return optimise(parent, out, recipe, proof=Proof(task=short(), engine=Pendulum(), episodes=40))


@pytest.mark.parametrize("kind", KINDS)
def test_a_variant_carries_its_whole_report(parent: Path, tmp_path: Path, kind: str) -> None:
    made = variant(parent, tmp_path / "variant", kind)
    report = made.report
    assert load(tmp_path / "variant").report == report
    assert made.provenance["parent"] == load(parent).digest == report["parent"]
    assert made.contract.digest == load(parent).contract.digest
    assert report["one_step"]["worst"] >= report["one_step"]["rms"] > 0
    assert (len(report["tensors"]) == 3) == (kind not in {"prune", "student"})
    loop = report["closed_loop"]
    for who in ("parent", "variant"):
        rate = loop[who]
        assert 0 <= rate["low"] <= rate["rate"] <= rate["high"] <= 1
        assert rate["episodes"] == 40
        cost = report["cost"][who]
        assert 0 < cost["p50_us"] <= cost["p99_us"]
        assert cost["peak_bytes"] > 1e7
        assert cost["graph_bytes"] == len(
            read(parent if who == "parent" else tmp_path / "variant").files["policy_1.onnx"]
        )
    assert report["candidate"] == loop["holds"]
    assert report["verdict"].startswith(f"pays on this machine: {'yes' if report['pays'] else 'no'}; ")


def test_a_likely_looking_variant_that_fails_its_task_is_no_candidate(parent: Path, tmp_path: Path) -> None:
    made = variant(parent, tmp_path / "variant", "student", hidden=(1,), lesson=Lesson(steps=1))
    assert made.report["closed_loop"]["variant"]["rate"] < 0.5 < made.report["closed_loop"]["parent"]["rate"]
    assert not made.report["candidate"]
    assert "no candidate: below its parent" in made.report["verdict"]


def test_without_a_closed_loop_nothing_is_a_candidate(parent: Path, tmp_path: Path) -> None:
    made = optimise(parent, tmp_path / "variant", Recipe(kind="float16"))
    assert made.report["closed_loop"] is None
    assert not made.report["candidate"]
    assert "success was not measured" in made.report["verdict"]


def test_making_it_again_gives_the_same_policy(parent: Path, tmp_path: Path) -> None:
    one, two = (variant(parent, tmp_path / name, "prune") for name in ("one", "two"))
    assert one.digest == two.digest


def test_a_variant_whose_rows_meet_goes_row_by_row(parent: Path, tmp_path: Path) -> None:
    made = variant(parent, tmp_path / "variant", "int8-dynamic")
    assert "policy.onnx" not in made.sizes
    seen = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    alone = [made.act(row[None], {}).action for row in seen]
    assert made.act(seen, {}).action.tobytes() == np.concatenate(alone).tobytes()


def test_a_proof_at_another_task_is_refused(tmp_path: Path) -> None:
    folder = put_down(files_of(), tmp_path / "dog")
    with pytest.raises(SignalError, match="robot"):
        optimise(folder, tmp_path / "out", Recipe(kind="float16"), proof=Proof(task=pendulum(), engine=Pendulum()))
    assert load(folder).contract.digest == contract().digest


def test_an_unknown_kind_names_the_known_ones() -> None:
    with pytest.raises(SpecError, match="float16, int8, int8-dynamic, prune, student"):
        kind_of("int4")


def test_wilson_is_as_published() -> None:
    rate = wilson(8, 10)
    assert (round(rate.low, 4), round(rate.high, 4)) == (0.4902, 0.9433)
    assert wilson(0, 20).low == 0.0
    assert wilson(20, 20).high == 1.0
