"""The crank: what a turn leaves, that it goes on after any stop to the same bytes, and what it says before it runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from simops.cli.main import main
from simops.core.errors import DataError, SpecError
from simops.data.files import unseal
from simops.ops import logbook
from simops.ops.crank import SUMMARY, Run, crank, load_order
from simops.ops.kept import runs, turns
from simops.ops.planned import plan
from simops.ops.registry import Registry
from simops.ops.sealed import Sealed
from simops.ops.stages import LOG, Bench, shape, untouched
from simops.ops.steps import RECORD, Done, Step
from simops.ops.turn import Standing, Turn, improved, promising, turn
from simops.spec.crank import load_crank
from tests.ops.cranked import SPEC, cranked, order, project


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A crank that nobody disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    return cranked(folder / "project", folder / "out")


def test_a_turn_learns_trains_validates_tries_and_diagnoses(whole: Run) -> None:
    assert whole.standing is not None
    first, second = whole.standing.turns[:2]
    assert [done.step.stage for done in first.steps][:5] == ["train", "export", "explore", "validate", "trials"]
    assert first.ending == "promoted"
    assert second.steps[0].step.stage == "learn"
    assert second.learned is not None
    assert second.kept_simulator
    assert second.learned["after"] < 0.5 * second.learned["before"]
    told = {name: mean for name, _, mean, *_ in second.learned["told"]}
    assert 2.5 < told["bob_mass"] < 3.1  # 2.55 behind a motor that lost a tenth


def test_what_was_held_out_was_never_learned_from(whole: Run) -> None:
    assert whole.standing is not None
    for log in whole.standing.logs:
        trials = logbook.read(log.folder / LOG)
        halves = logbook.apart(trials, 0.5)
        numbers = [{one.episode for one in half} for half in halves]
        assert numbers[0] & numbers[1] == set()
        assert len(numbers[0] | numbers[1]) == len(trials)


def test_the_logs_are_sealed_and_tell_no_params(whole: Run) -> None:
    assert whole.standing is not None
    for log in whole.standing.logs:
        for one in logbook.read(log.folder / LOG):
            assert one.provenance.origin == "sealed"
            assert one.params == {}


@pytest.mark.parametrize("at", [3, 8])
def test_a_crank_that_is_stopped_goes_on_to_the_same_bytes(whole: Run, tmp_path: Path, at: int) -> None:
    seen: list[str] = []

    def impatient(run: Run) -> None:
        if run.about and (not seen or seen[-1] != f"{run.turn} {run.about}"):
            seen.append(f"{run.turn} {run.about}")
        if len(seen) == at:
            raise KeyboardInterrupt

    one = order(tmp_path / "project", tmp_path / "out")
    with pytest.raises(KeyboardInterrupt):
        crank(one, impatient)
    assert not (one.out / SUMMARY).exists()
    again = crank(one, lambda _: None)
    assert (one.out / SUMMARY).read_bytes() == (whole.order.out / SUMMARY).read_bytes()
    assert sum(not done.fresh for done in again.done) >= at - 2


def test_the_same_again_does_nothing_and_a_plan_says_so(whole: Run) -> None:
    before = (whole.order.out / SUMMARY).read_bytes()
    again = crank(whole.order, lambda _: None)
    assert not any(done.fresh for done in again.done)
    assert (whole.order.out / SUMMARY).read_bytes() == before
    assert {row.will for row in plan(whole.order)} == {"done"}


def test_a_plan_of_nothing_done_names_what_runs_first_and_touches_nothing(tmp_path: Path) -> None:
    one = order(tmp_path / "project", tmp_path / "out")
    rows = plan(one)
    assert [(row.stage, row.will) for row in rows[:2]] == [("train", "runs"), ("export", "then")]
    assert "was never done" in rows[0].why
    assert not one.out.exists()


def test_a_plan_names_what_changed(whole: Run, tmp_path: Path) -> None:
    other = load_order(project(tmp_path), turns=1, out=whole.order.out, overrides=["trainer.laps=3"])
    [row] = [row for row in plan(other) if row.will == "runs"]
    assert (row.stage, "spec changed" in row.why) == ("train", True)
    with pytest.raises(DataError, match="another spec"):
        crank(other, lambda _: None)


def test_what_a_step_left_is_verified(tmp_path: Path) -> None:
    run = cranked(tmp_path / "project", tmp_path / "out", turns=0)
    bundle = next(run.order.home.glob("export-*/bundle/policy_1.onnx"))
    bundle.write_bytes(bundle.read_bytes()[:-1] + b"?")
    with pytest.raises(DataError, match="not what the step left") as caught:
        crank(run.order, lambda _: None)
    assert caught.value.fault == "CRK-003"


def test_without_a_reality_there_are_candidates_and_nothing_is_tried(tmp_path: Path) -> None:
    spec = SPEC.replace("reality: {path: reality.yaml}", "# nobody:")
    run = cranked(tmp_path / "project", tmp_path / "out", spec=spec)
    assert run.standing is not None
    assert [turn.ending for turn in run.standing.turns][:1] == ["candidate"]
    assert run.standing.logs == ()
    assert run.standing.champion is None


def test_a_gate_that_refuses_keeps_the_robot_from_it(tmp_path: Path) -> None:
    spec = SPEC.replace("rate: 0.2", "rate: 0.99")
    run = cranked(tmp_path / "project", tmp_path / "out", spec=spec, turns=0)
    assert run.standing is not None
    [turn] = run.standing.turns
    assert (turn.ending, turn.tried) == ("refused", None)
    assert [log.step.stage for log in run.standing.logs] == ["explore"]


def test_the_registry_knows_what_is_live_and_why_and_takes_it_back(whole: Run) -> None:
    with Registry(whole.order.out / "registry") as registry:
        [live] = [one for one in registry.versions("easy") if "live" in one.tags]
        assert "turn 0: it passed its gate" in registry.history("easy", tag="live")[0].why
        assert registry.graph(f"easy@{live.version}")[0] == live.key
        simulators = registry.versions("easy", kind="simulator")
        assert [one.tags for one in simulators][-1] == ("live",)
        text = (registry.fetch("easy@live", kind="simulator") / "belief.json").read_text()
        assert "bob_mass" in text


def test_equal_policies_are_not_promoted() -> None:
    said = {"numbers": list(range(200)), "outcomes": ["success", "failure"] * 100}
    turned = {"numbers": list(range(200)), "outcomes": ["failure", "success"] * 100}
    assert improved(said, said, 0.05).status == "marginal"
    assert improved(said, turned, 0.05).status == "marginal"
    better = {"numbers": list(range(200)), "outcomes": ["success"] * 200}
    assert improved(better, said, 0.05).status == "pass"


def test_equal_policies_are_seldom_promoted_however_long_they_go_on() -> None:
    rng, promoted, most = np.random.default_rng(0), 0, 120
    for _ in range(300):
        ends = np.where(rng.random((2, most)) < 0.8, "success", "failure").tolist()
        count = 24
        while True:
            mine, theirs = ({"numbers": list(range(count)), "outcomes": one[:count]} for one in ends)
            shown = improved(mine, theirs, 0.05).status == "pass"
            if shown or not promising(mine, theirs, 0.05, most=most):
                break
            count += 24
        assert count <= most
        promoted += shown
    assert promoted <= 0.05 * 300


def _came(step: Step, every: int) -> dict[str, object]:
    """What comes of a step where the candidate never fails, and the champion does at one of so many trials."""
    if step.stage == "validate":
        return {"status": "pass", "success": 1.0}
    if step.stage != "trials":
        return {"checkpoint": "c", "shape": "", "bundle": "candidate"}
    low, high = (int(number) for number in step.inputs["numbers"].split(" to "))
    fails = every if step.inputs["policy"] == "champion" else 10**9
    numbers = list(range(low, high + 1))
    return {"numbers": numbers, "outcomes": ["failure" if n % fails == 1 else "success" for n in numbers]}


@pytest.mark.parametrize(("every", "ending", "lots"), [(2, "promoted", 1), (5, "promoted", 2), (100, "kept", 1)])
def test_trials_go_on_while_more_of_them_may_show_a_candidate_better(
    tmp_path: Path, every: int, ending: str, lots: int
) -> None:
    spec = load_crank(project(tmp_path, SPEC.replace("episodes: 16,", "episodes: 16, most: 80,")))
    text = (tmp_path / "crank.yaml").read_text()
    bench = Bench(
        text=text, loaded=spec, reality=Sealed(tmp_path / "reality.yaml"), identity="it", watch=lambda _: None
    )
    first = Step(stage="export", turn=0, inputs={}, work=lambda _: {})
    live = Done(first, tmp_path, {"bundle": "champion"}, fresh=True, took_s=0.0)
    walk = turn(
        bench, Standing(simulator=untouched(spec.value), text=text, champion=live), 1, root=tmp_path, alpha=0.05
    )
    asked: list[tuple[str, str]] = []
    step, after = next(walk), None
    while after is None:
        if step.stage == "trials":
            asked.append((step.inputs["policy"], step.inputs["numbers"]))
        try:
            step = walk.send(Done(step, tmp_path, _came(step, every), fresh=True, took_s=0.0))
        except StopIteration as end:
            after = end.value
    assert after.turns[-1].ending == ending
    assert [who for who, _ in asked] == ["candidate", "champion"] * lots
    numbers = [numbers for who, numbers in asked if who == "candidate"]
    assert numbers == [numbers for who, numbers in asked if who == "champion"]
    assert len(set(numbers)) == lots
    assert after.turns[-1].tried is not None
    assert len(after.turns[-1].tried["outcomes"]) == 16 * lots


@pytest.mark.parametrize(("success", "stage"), [(0.5, "train"), (1.0, "")])
def test_a_turn_with_nothing_new_trains_on_while_the_policy_falls_short(
    tmp_path: Path, success: float, stage: str
) -> None:
    spec = load_crank(project(tmp_path))
    text, reality = (tmp_path / "crank.yaml").read_text(), Sealed(tmp_path / "reality.yaml")
    bench = Bench(text=text, loaded=spec, reality=reality, identity="it", watch=lambda _: None)
    came: dict[str, object] = {"checkpoint": "before", "shape": shape(bench)}
    before = Done(Step(stage="train", turn=0, inputs={}, work=lambda _: {}), tmp_path, came, fresh=True, took_s=0.0)
    last = Turn(
        number=0, steps=(before,), ending="kept", why="", spec=text, validated={"success": success, "status": "pass"}
    )
    standing = Standing(simulator=untouched(spec.value), text=text, turns=(last,))
    walk = turn(bench, standing, 1, root=tmp_path, alpha=0.05)
    if stage:
        step = next(walk)
        assert (step.stage, step.inputs["begun"]) == (stage, "before")
    else:
        with pytest.raises(StopIteration) as end:
            next(walk)
        assert end.value.value.turns[-1].ending == "unchanged"


def test_a_person_sees_runs_turns_plans_and_patches(whole: Run, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(whole.order.out)
    assert main(["runs", str(whole.order.out.parent)]) == 0
    assert main(["show", out]) == 0
    said = capsys.readouterr().out
    assert "promoted" in said
    assert len(runs(whole.order.out.parent)) == 1
    assert len(turns(whole.order.out)) == len(list(whole.order.out.glob("turn-*.json")))
    assert main(["diagnose", out]) == 0
    assert main(["patch", "show", out]) == 0
    assert main(["plan", str(whole.order.root / "crank.yaml"), "--turns", "2", "--out", out]) == 0
    assert "nothing was touched" in capsys.readouterr().out


def test_a_command_cranks_and_leaves_a_picture_and_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = project(tmp_path)
    assert main(["crank", str(spec), "--turns", "1", "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "turn 0: train" in said
    assert (tmp_path / "out" / "crank.png").read_bytes().startswith(b"\x89PNG")
    assert "<html" in (tmp_path / "out" / "report.html").read_text()


def test_a_wrong_number_of_turns_is_a_wrong_setting(tmp_path: Path) -> None:
    with pytest.raises(SpecError):
        load_order(project(tmp_path), turns=-1)


def test_a_crank_that_is_killed_within_its_steps_comes_to_the_same(whole: Run, tmp_path: Path) -> None:
    """Killed while it tries and while it learns, with `kill -9`; benchmarks/crank_kills.py kills at any moment."""
    spec, out = project(tmp_path), tmp_path / "out"
    command = [sys.executable, "-m", "simops.cli", "crank", str(spec), "--turns", "2", "--out", str(out)]
    for stage in ("trials", "learn"):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
        while process.poll() is None and not list(out.glob(f"steps/{stage}-*")):
            time.sleep(0.002)
        assert process.poll() is None, "it ended before it could be killed"
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert not (out / SUMMARY).exists()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    assert unseal(out / SUMMARY) == unseal(whole.order.out / SUMMARY)
    assert not list(out.glob(f"steps/*/.{RECORD}*"))
