"""The workflow that gates a pull request: it is a workflow, and its own commands do what its README says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch
from ruamel.yaml import YAML

from simops.core.verdict import Verdict
from simops.ops.export import export
from tests.bundles import fitted
from tests.house.tree import ROOT

EXAMPLE = ROOT / "examples" / "github_gate"
HERE = ("simops ", "cat ", "python base/")
"""Commands that need no GitHub."""


@pytest.fixture(scope="module")
def workflow() -> dict[str, Any]:
    return YAML(typ="safe", pure=True).load((EXAMPLE / "workflow.yaml").read_text())  # pyright: ignore[reportUnknownMemberType]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("policy") / "bundle"
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # a network this small only waits for more
    export(fitted(), folder, provenance={"seed": 0})
    torch.set_num_threads(threads)
    return folder


def steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return workflow["jobs"]["gate"]["steps"]


def ran(workflow: dict[str, Any], folder: Path) -> dict[str, subprocess.CompletedProcess[str]]:
    """Every command that can run here, in order; after a failure only those that always run, as GitHub does it."""
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "GITHUB_STEP_SUMMARY": str(folder / "step-summary.md"),
    }
    done: dict[str, subprocess.CompletedProcess[str]] = {}
    for step in steps(workflow):
        said = str(step.get("run", ""))
        failed = any(one.returncode for one in done.values())
        if said.startswith(HERE) and (not failed or "always()" in str(step.get("if", ""))):
            done[step["name"]] = subprocess.run(
                ["/bin/bash", "-e", "-c", said],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
    return done


def repository(folder: Path, bundle: Path, rules: str) -> Path:
    """A pull request as it is checked out: the bundle, and the base's rules beside it."""
    shutil.copytree(bundle, folder / "bundle")
    (folder / "base").mkdir()
    shutil.copy(EXAMPLE / "annotate.py", folder / "base")
    (folder / "base" / "gate.yaml").write_text(rules)
    return folder


def test_it_is_a_workflow_that_asks_for_little(workflow: dict[str, Any]) -> None:
    assert set(workflow["on"]) == {"pull_request"}  # never pull_request_target, whose token writes
    assert workflow["permissions"] == {"contents": "read", "pull-requests": "write"}
    for step in steps(workflow):
        assert ("uses" in step) != ("run" in step)
        assert str(step.get("uses", "actions/")).startswith("actions/")
        assert "${{" not in step.get("run", "")  # what a branch is called is never a command


def test_it_installs_what_there_is_and_names_files_that_a_gate_leaves(workflow: dict[str, Any]) -> None:
    [install] = [step["run"] for step in steps(workflow) if "pip install" in step.get("run", "")]
    extras = re.findall(r"\[([\w,]+)\]", install)[0].split(",")
    offered = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(extras) <= set(offered)
    text = (EXAMPLE / "workflow.yaml").read_text()
    for name in ("report.html", "junit.xml", "summary.md", "verdict.json", "suite.json", "spec.lock", "candidate"):
        assert f"out/gate/{name}" in text


def test_a_policy_that_holds_is_let_through(workflow: dict[str, Any], bundle: Path, tmp_path: Path) -> None:
    rules = re.sub(r"rate: [\d.]+", "rate: 0.5", (EXAMPLE / "gate.yaml").read_text())
    folder = repository(tmp_path, bundle, rules)
    done = ran(workflow, folder)
    assert {name: one.returncode for name, one in done.items()} == {"judge": 0, "summary": 0, "annotations": 0}, done
    assert done["annotations"].stdout == ""
    assert (folder / "step-summary.md").read_text().startswith("## pass: pendulum")
    assert Verdict.parse((folder / "out/gate/verdict.json").read_text()).status == "pass"
    kept = [each.strip() for each in steps(workflow)[-1]["with"]["path"].split()]
    assert [one for one in kept if not (folder / one).exists()] == []


def test_a_policy_that_does_not_is_red_and_says_why(workflow: dict[str, Any], bundle: Path, tmp_path: Path) -> None:
    rules = re.sub(r"scenarios: \d+, rate: [\d.]+", "scenarios: 8, rate: 0.99", (EXAMPLE / "gate.yaml").read_text())
    folder = repository(tmp_path, bundle, rules)
    done = ran(workflow, folder)
    assert done["judge"].returncode == 3
    assert done["summary"].returncode == 0
    assert not (folder / "step-summary.md").read_text().startswith("## pass")
    said = done["annotations"].stdout.splitlines()
    assert said
    assert all(line.startswith("::error title=") for line in said)
    failures = ElementTree.parse(folder / "out/gate/junit.xml").getroot().findall(".//failure")  # noqa: S314
    assert len(said) == len(failures)
