"""`simops validate`, `simops replay` and the registry, as a user meets them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from simops.cli.main import main
from simops.core.errors import GateRefused
from simops.core.verdict import Finding, Verdict
from simops.ops.adopt import adopt
from simops.ops.registry import Registry
from tests.bundles import files_of, put_down

SPEC = """\
scene: {task: pendulum}
policy: expert
engine: {use: pendulum, step_s: 0.01}
trained_in: {use: pendulum, step_s: 0.02}
gap_episodes: 4
canary_episodes: 8
suite:
  nominal: {scenarios: 20, rate: 0.6}
  edge: {scenarios: 0}
remember: failures.json
"""


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "spec.yaml"
    path.write_text(SPEC)
    return path


def test_a_gate_from_a_spec_to_a_report_and_any_scenario_again(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(spec), "--out", "gate"]) == 0
    said = capsys.readouterr().out
    assert "verdict: pass" in said
    folder = spec.parent / "gate"
    verdict = Verdict.parse((folder / "verdict.json").read_text())
    assert verdict.status == "pass"
    page = (folder / "report.html").read_text()
    assert "http" not in page.replace("http://www.w3.org", "")  # nothing is fetched
    assert ElementTree.parse(folder / "junit.xml").getroot().findall("testsuite")[0].get("failures") == "0"  # noqa: S314
    assert "| nominal |" in (folder / "summary.md").read_text()
    one = json.loads((folder / "suite.json").read_text())["scenarios"][1]
    assert one["name"] == "nominal-0001"
    found = next(line for line in page.splitlines() if "nominal-0001" in line)
    hash_ = found.split("nominal-0001")[1].split("<td>")[4].split("<")[0]
    assert main(["replay", hash_, "--in", "gate"]) == 0
    assert "every byte is the one the gate recorded" in capsys.readouterr().out
    assert main(["replay", "ffffffffffff", "--in", "gate"]) == 2


def test_a_refusal_is_exit_3_and_its_failures_are_remembered(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec.write_text(SPEC.replace("policy: expert", "policy: random"))
    assert main(["validate", str(spec), "--out", "gate", "--no-pictures"]) == 3
    assert "verdict: fail" in capsys.readouterr().out
    kept = json.loads(Path("failures.json").read_text())
    assert kept["scenarios"]
    assert {one["category"] for one in kept["scenarios"]} == {"regression"}
    listed = "  regression: {file: failures.json, rate: 0.5}\nseed: 1\nremember:"
    spec.write_text(SPEC.replace("remember:", listed))
    assert main(["validate", str(spec), "--out", "next", "--no-pictures"]) == 0
    assert "regression" in capsys.readouterr().out


def test_a_plan_runs_nothing(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["validate", str(spec), "--plan", "--rate", "0.95"]) == 0
    assert "nominal" in capsys.readouterr().out
    assert not (spec.parent / "out").exists()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("policy: expert\n", "", "want either a bundle or a policy"),
        ("rate: 0.6", "rate: 1.0", "line 8: suite.nominal.rate"),
        ("edge: {scenarios: 0}", "egde: {scenarios: 0}", "line 9: suite.egde: unknown key; try 'edge'"),
        ("use: pendulum, step_s: 0.01", "use: drakes", "no engine is called 'drakes'"),
        ("scenarios: 20", "scenarios: 0", "no kind of scenario has any"),
    ],
    ids=["nobody", "certain", "misspelt", "engine", "nothing"],
)
def test_what_is_wrong_is_said(spec: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, said: str) -> None:
    spec.write_text(SPEC.replace(old, new))
    assert main(["validate", str(spec), "--out", "gate"]) == 2
    assert said in capsys.readouterr().err
    assert not (spec.parent / "gate").exists()


def test_only_a_passing_verdict_about_the_very_bytes_makes_a_champion(tmp_path: Path) -> None:
    folder, other = (
        put_down(files_of(kind, of_pendulum=True), tmp_path / kind) for kind in ("feedforward", "windowed")
    )
    with Registry(tmp_path / "registry", create=True) as registry:
        one, two = (adopt(registry, "p", each) for each in (folder, other))
        digest = dict(one.lineage.facts)["identity"]
        passing = Finding(check="success rate", value=1.0, bound=0.95, count=100, status="pass")
        verdict = Verdict(policy=digest, suite="s", realm="gate", alpha=0.05, findings=(passing,))
        failing = replace(verdict, findings=(replace(passing, status="fail"),))
        for fault, given in (("REG-002", None), ("GAT-009", replace(verdict, policy="0" * 64)), ("", failing)):
            with pytest.raises(GateRefused) as caught:
                registry.tag(one.ref, "champion", why="?", verdict=given)
            assert caught.value.fault == fault
        assert registry.tag(one.ref, "champion", why="passed", verdict=verdict).tags == ("champion",)
        with pytest.raises(GateRefused, match="GAT-009"):
            registry.tag(two.ref, "champion", why="sneaks in", verdict=verdict)
        registry.untag("p", "champion", why="fell")
        assert registry.tag(one.ref, "champion", why="back").tags == ("champion",)  # it has been let through before
        assert "verdict" in registry.history("p", tag="champion")[0].why
