"""What a crank came to, as sections of a page: its report and the dashboard show the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

from simops.core.errors import SimOpsError
from simops.core.patch import Patch
from simops.core.verdict import Finding
from simops.ops import crank_chart
from simops.ops.axes import Axis, Drawing, short
from simops.ops.failures import cloud, of_turn
from simops.ops.kept import Kept, Told
from simops.ops.page import Cell, Page, ended
from simops.ops.plot import Mark, forest
from simops.spec import patched


class Ways(NamedTuple):
    """To replays, for a page that can show them."""

    trial: Callable[[Kept, int], Drawing]
    """Of one trial of a step."""
    again: Callable[[str], Drawing]
    """Of a scenario of a gate, by its hash."""


SHOWN = 12
"""Kinds of failure of a turn that are listed."""
MOST = 200
"""Failures of a turn that are listed."""


def fill(page: Page, turns: Sequence[Told], *, ways: Ways | None = None) -> None:
    """Everything that is known of these turns."""
    if not turns:
        page.text("No turn is over yet.")
        return
    page.tiles(_tiles(turns))
    _history(page, turns)
    _live(page, turns)
    for one in reversed(turns):
        _turn(page, one, ways)
    page.section("What came out of what", "A row a turn; point at a box for its folder and its digest.")
    page.draw(crank_chart.lineage(turns))
    page.section("Steps")
    rows = [(one.number, each.stage, each.name, each.digest[:12], each.took_s) for one in turns for each in one.steps]
    page.table(("turn", "stage", "folder", "came to", "seconds"), rows, sortable=True)


def _tiles(turns: Sequence[Told]) -> Mapping[str, str]:
    live = next((one for one in reversed(turns) if one.live is not None), None)
    errors = [one.said for one in turns if one.said["error_after"] is not None and one.said["kept_simulator"]]
    trials = sum(len(each.said["outcomes"]) for one in turns for each in one.steps if "outcomes" in each.said)
    took = sum(each.took_s for one in turns for each in one.steps)
    rate = live.live if live is not None else None
    return {
        "sealed success of what is live": "–"
        if rate is None
        else f"{rate.share:.0%} [{100 * rate.low:.0f}, {100 * rate.high:.0f}]",
        "prediction error": "–"
        if not errors
        else f"{float(errors[0]['error_before']):.3g} → {float(errors[-1]['error_after']):.3g}",
        "trials of the robot": f"{trials:,}",
        "in all steps together": f"{took:.0f} s",
    }


def _history(page: Page, turns: Sequence[Told]) -> None:
    page.section("Turn by turn")
    drawn = [(crank_chart.success(turns), "Sealed success of each candidate, and of what was live; whiskers are 95 %.")]
    if (error := crank_chart.error(turns)) is not None:
        drawn.append((error, "How far the simulator was off a window ahead, on trials that nothing learned from."))
    page.pair(drawn)
    rows: list[tuple[Cell, ...]] = []
    for one in turns:
        said = one.said
        changed = [*("simulator" for _ in range(bool(said["kept_simulator"]))), *(p.name for p in one.applied)]
        errors = "" if said["error_after"] is None else f"{said['error_before']:.3g} to {said['error_after']:.3g}"
        gate = "" if said["validated"] is None else f"{said['validated']:.0%}"
        rates = ["" if rate is None else str(rate) for rate in (one.tried, one.beside)]
        became = ended(str(said["ending"]))
        rows.append((one.number, became, errors, gate, *rates, ", ".join(changed)))
    page.table(
        ("turn", "became", "prediction error", "in the gate", "candidate on the robot", "champion beside", "changed"),
        rows,
    )


def _live(page: Page, turns: Sequence[Told]) -> None:
    """Which policy and which simulator were live, since when, and why."""
    rows: list[tuple[Cell, ...]] = []
    for one in turns:
        learn = one.step("learn")
        if one.said["kept_simulator"] and learn is not None:
            why = f"prediction error {one.said['error_before']:.3g} to {one.said['error_after']:.3g}, held out"
            rows.append((one.number, "simulator", learn.digest[:12], why))
        if one.said["ending"] == "promoted":
            rows.append((one.number, "policy", one.bundle[:12], str(one.said["why"])))
    page.section("What was live, and why", "Each stays until the next of its kind.")
    if rows:
        page.table(("since turn", "what", "digest", "why"), rows)
    else:
        page.text("Nothing was let through yet.")


def _turn(page: Page, one: Told, ways: Ways | None) -> None:
    said = one.said
    page.section(f"Turn {one.number}: {said['ending']}", str(said["why"]))
    for fault in one.faults:
        page.text(f"Not shown: {fault}")
    if one.findings:
        page.heading("The gate")
        marks = [_mark(f) for f in one.findings if f.interval is not None]
        if marks:
            page.draw(
                forest(marks, x=Axis("success rate", low=0.0, high=1.0)), "Dashed: what is asked of each category."
            )
        inside = Page("")
        inside.findings(one.findings)
        page.folded("every finding", inside)
    learn = one.step("learn")
    if learn is not None:
        _lesson(page, one, learn)
    if said["diagnosed"] is not None:
        page.heading(f"Failures come from: {said['diagnosed']['cause']}")
        page.text(str(said["diagnosed"]["why"]))
        _failures(page, one, ways)
    for patch, done in [*((p, True) for p in one.applied), *((p, False) for p in one.waiting)]:
        _patch(page, one, patch, done=done)


def _mark(finding: Finding) -> Mark:
    low, high = finding.interval or (0.0, 1.0)
    return Mark(
        label=finding.category or finding.check, value=finding.value, low=low, high=high, bound=finding.bound,
        kind=finding.status, note=f"{finding.status}, {finding.count} episodes",
    )  # fmt: skip


def _lesson(page: Page, one: Told, learn: Kept) -> None:
    kept = "kept" if one.said["kept_simulator"] else "not kept"
    page.heading(f"What the log said of the world ({kept})")
    page.text(f"From {learn.said['learned_from']} trials; judged on {learn.said['held_out']} that were held out.")
    page.table(("param", "thought", "found", "spread", "spread before", "trusted"), learn.said["told"])


def _failures(page: Page, one: Told, ways: Ways | None) -> None:
    gate, found = one.step("validate"), one.step("diagnose")
    if gate is not None and (drawn := cloud(gate.folder)) is not None:
        page.draw(drawn, "Episodes of the gate over the two params that tell failures from successes best.")
    clusters = cast("list[Mapping[str, Any]]", [] if found is None else found.said.get("clusters", []))
    if clusters:
        rows = [(str(c["kind"]), len(c["alike"]) + 1, str(c["scenario"]["name"]), _params(c)) for c in clusters[:SHOWN]]
        page.table(("kind", "alike", "the smallest", "where"), rows)
    _gate_failures(page, one, ways)
    _trial_failures(page, one, ways)


def _gate_failures(page: Page, one: Told, ways: Ways | None) -> None:
    """Each with its hash, by which it runs again."""
    found = of_turn(one)
    if not found:
        return
    inside = Page("")
    rows: list[tuple[Cell, ...]] = [
        (each.name, each.hash[:16], ways.again(each.hash[:16]) if ways is not None else "") for each in found[:MOST]
    ]
    inside.table(("scenario", "hash", "run again" if ways is not None else ""), rows)
    if ways is None:
        inside.code("simops replay HASH --in RUN --render failure.mp4")
    page.folded(f"{len(found)} episodes of the gate that failed", inside)


def _trial_failures(page: Page, one: Told, ways: Ways | None) -> None:
    """Each with what was recorded of it."""
    rows: list[tuple[Cell, ...]] = []
    for each in (step for step in one.steps if step.stage == "trials"):
        who = "candidate" if each.inputs["policy"] == one.bundle else "champion"
        for number, outcome in zip(each.said["numbers"], each.said["outcomes"], strict=True):
            if outcome != "success":
                seen: Cell = ways.trial(each, int(number)) if ways is not None else f"{each.name}/log"
                rows.append((str(number), who, ended(str(outcome)), seen))
    if rows:
        inside = Page("")
        inside.table(("trial", "of the", "ended", "replay" if ways is not None else "recorded in"), rows[:MOST])
        if ways is None:
            inside.code("simops render RUN/steps/FOLDER/log --episode TRIAL --out trial.mp4")
        page.folded(f"{len(rows)} trials on the robot that failed", inside)


def _params(cluster: Mapping[str, Any]) -> str:
    params: Mapping[str, float] = cluster["scenario"]["params"]
    return ", ".join(f"{name} {short(float(value))}" for name, value in params.items())


def _patch(page: Page, one: Told, patch: Patch, *, done: bool) -> None:
    page.heading(f"{'Changed' if done else 'Proposed'}: {patch.name}")
    where = "within" if patch.within else "beyond"
    page.text(f"{patch.level}; {patch.reason}; {where} the bounds declared.")
    page.diff(_change(one.spec, patch))
    inside = Page("")
    inside.table(("evidence", "value"), sorted(patch.evidence.items()))
    page.folded("evidence", inside)


def _change(text: str, patch: Patch) -> str:
    """The patch as a diff of the turn's spec; its values alone where it does not fit that any more."""
    try:
        return patched.diff(text, patched.patched(text, [patch]), name="spec.yaml")
    except SimOpsError:
        return "\n".join(
            f"{sign}{edit.path}: {json.loads(value) if value else 'none'}"
            for edit in patch.edits
            for sign, value in (("-", edit.before), ("+", edit.after))
        )
