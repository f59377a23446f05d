"""A gate on paper: one HTML file that works anywhere, JUnit XML for CI, and a few lines of Markdown."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, final
from xml.etree import ElementTree

from simops.core.errors import SimOpsError
from simops.core.scenario import Scenario
from simops.core.trajectory import OUTCOMES
from simops.core.verdict import Finding
from simops.data.files import publish
from simops.data.store import Dataset
from simops.gate.judge import Standing
from simops.ops.page import Cell, Page, tag
from simops.ops.plot import Axis, Mark, bars, forest
from simops.ops.validate import CANDIDATE, Gate, Order
from simops.sim.film import sheet
from simops.sim.render import FAST, Camera

REPORT, JUNIT, SUMMARY = "report.html", "junit.xml", "summary.md"
FILMED = 3
"""Failures of which the report shows pictures."""


@final
class Row(NamedTuple):
    """One scenario that ran."""

    scenario: Scenario
    outcome: str
    why: str
    """What the audit found, or why it never ended."""


def write(order: Order, gate: Gate, *, pictures: bool = True) -> tuple[Path, ...]:
    """Put report, JUnit file and summary down beside the verdict."""
    page = _page(order, gate, pictures=pictures)
    made = (page.write(gate.out / REPORT), gate.out / JUNIT, gate.out / SUMMARY)
    publish(made[1], junit(order, gate))
    publish(made[2], markdown(order, gate).encode())
    return made


def rows(order: Order, gate: Gate) -> list[Row]:
    """Every scenario that ran, in the suite's order."""
    return [
        Row(each, gate.outcomes[each.hash], "; ".join(gate.suspicions.get(each.hash, ())))
        for each in order.suite.scenarios
        if each.hash in gate.outcomes
    ]


def junit(order: Order, gate: Gate) -> bytes:
    """A test suite for each kind of scenario, a test for its rate; and one for what the gate found besides."""
    root = ElementTree.Element("testsuites", name=f"simops validate {order.task.name}")
    kinds = [finding.category for finding in gate.verdict.findings if finding.check == "success rate"]
    ran = rows(order, gate)
    for kind in kinds:
        cases = [row for row in ran if row.scenario.category == kind]
        checks = [f for f in gate.verdict.findings if f.category == kind]
        suite = _suite(root, kind, checks)
        for row in cases:  # one failing scenario does not fail a kind: what is asked is a rate
            case = ElementTree.SubElement(suite, "testcase", classname=kind, name=f"{row.scenario.name} {row.outcome}")
            said = ElementTree.SubElement(case, "system-out")
            said.text = f"simops replay {row.scenario.hash[:16]} --in {gate.out}  {row.why}".rstrip()
        suite.set("tests", str(len(cases) + len(checks)))
    others = [finding for finding in gate.verdict.findings if finding.category not in kinds]
    _suite(root, "gate", others)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)


def markdown(order: Order, gate: Gate) -> str:
    """A summary for a pull request."""
    lines = [
        f"## {gate.verdict.status}: {order.task.name}",
        "",
        f"policy `{gate.verdict.policy[:16]}`, suite `{gate.verdict.suite[:16]}`, alpha {gate.verdict.alpha:.4g}, "
        f"{len(gate.outcomes)} episodes",
        "",
        "| scenarios | succeeded | interval | asked | |",
        "|---|---|---|---|---|",
    ]
    for s in gate.standings:
        ends = f"[{s.interval.low:.3f}, {s.interval.high:.3f}]"
        lines.append(f"| {s.category} | {s.successes} of {s.counted} | {ends} | {s.asked:g} | {s.status} |")
    against = [finding for finding in gate.verdict.against() if finding.check != "success rate"]
    if against:
        lines += ["", *(f"- {finding}" for finding in against)]
    apart = [finding for finding in gate.gap if finding.status != "pass"]
    if gate.gap:
        lines += ["", f"Gap to the training engine: {len(gate.gap) - len(apart)} of {len(gate.gap)} figures in bounds."]
        lines += [f"- {finding}" for finding in apart]
    failed = [row for row in rows(order, gate) if row.outcome != "success"][:5]
    if failed:
        lines += ["", "Failures to replay:", ""]
        lines += [f"    simops replay {row.scenario.hash[:16]} --in {gate.out}" for row in failed]
    return "\n".join(lines) + "\n"


def _suite(root: ElementTree.Element, name: str, checks: Sequence[Finding]) -> ElementTree.Element:
    bad = [finding for finding in checks if finding.status != "pass"]
    suite = ElementTree.SubElement(root, "testsuite", name=name, tests=str(len(checks)), failures=str(len(bad)))
    for finding in checks:
        case = ElementTree.SubElement(suite, "testcase", classname=name, name=finding.check)
        if finding.status != "pass":
            failure = ElementTree.SubElement(case, "failure", type=finding.fault or finding.status)
            failure.set("message", str(finding))
    return suite


def _page(order: Order, gate: Gate, *, pictures: bool) -> Page:
    verdict, ran = gate.verdict, rows(order, gate)
    page = Page(
        f"Gate: {order.task.name}", lead="Judged in an engine that did not train it, looked at after every episode."
    )
    page.status(verdict.status, _because(gate))
    page.facts(
        {
            "policy": verdict.policy,
            "suite": verdict.suite,
            "engine": repr(order.engine),
            "trained in": repr(order.trained_in) if order.trained_in else "not said",
            "alpha": verdict.alpha,
            "candidate of its campaign": gate.share.number,
            "episodes": len(ran),
            "scenarios at most": len(order.suite),
        }
    )
    page.section("Success rates", "Every kind of scenario has to pass on its own; the line is what is asked.")
    page.draw(forest([_mark(s) for s in gate.standings], x=Axis("success rate")), "Intervals that hold at any look.")
    page.findings(verdict.findings)
    page.section("How the episodes ended")
    counts = Counter((row.scenario.category, row.outcome) for row in ran)
    kinds = [s.category for s in gate.standings]
    ended = {name: [float(counts[kind, name]) for kind in kinds] for name in OUTCOMES}
    page.draw(bars(kinds, {name: values for name, values in ended.items() if any(values)}, x=Axis("episodes", low=0.0)))
    if gate.gap:
        page.section(
            "The gap",
            "The same scenarios in the engine that trained. Aims, and no part of the verdict.",
        )
        page.findings(gate.gap)
    if pictures:
        _show(page, order, gate, ran)
    page.section("Scenarios", "Any of them runs again, to the last bit, by its hash.")
    page.code(f"simops replay HASH --in {gate.out}")
    page.table(
        ("scenario", "kind", "outcome", "audit", "hash", *sorted({name for r in ran for name in r.scenario.params})),
        [_cells(row, ran) for row in ran],
        sortable=True,
    )
    return page


def _because(gate: Gate) -> str:
    against = gate.verdict.against()
    return str(against[0]) if against else "every kind of scenario passes on its own, and nothing stands against it"


def _mark(standing: Standing) -> Mark:
    value = standing.successes / standing.counted if standing.counted else None
    return Mark(
        label=standing.category,
        value=value,
        low=standing.interval.low,
        high=standing.interval.high,
        bound=standing.asked,
        kind=standing.status,
        note=f"{standing.successes} of {standing.counted}",
    )


def _cells(row: Row, ran: Sequence[Row]) -> list[Cell]:
    names = sorted({name for r in ran for name in r.scenario.params})
    one = row.scenario
    outcome = tag("pass" if row.outcome == "success" else "fail") if not row.why else tag("fail")
    return [one.name, one.category, outcome, row.why, one.hash[:16], *(one.params.get(name) for name in names)]


def _show(page: Page, order: Order, gate: Gate, ran: Sequence[Row]) -> None:
    """Pictures of some failures, where this machine can draw them."""
    failed = [row for row in ran if row.outcome != "success"]
    if not failed:
        return
    page.section("Failures", f"{len(failed)} in all; the first few, from left to right as time goes by.")
    for data, caption in _sheets(order, gate, failed[:FILMED]):
        page.image(data, caption)
    for row in failed[:FILMED]:
        page.code(f"simops replay {row.scenario.hash[:16]} --in {gate.out} --render {row.scenario.name}.mp4")


def _sheets(order: Order, gate: Gate, failed: Sequence[Row]) -> Iterator[tuple[bytes, str]]:
    number = {each.hash: i for i, each in enumerate(order.suite.scenarios)}
    stored = Dataset.open(gate.out / CANDIDATE)
    with tempfile.TemporaryDirectory(prefix="simops-") as folder:
        for row in failed:
            path = Path(folder) / "sheet.png"
            try:
                one = stored.trajectory(number[row.scenario.hash])
                sheet(one, order.task, None, path, camera=Camera("", 240, 180), look=FAST)
                yield path.read_bytes(), f"{row.scenario.name}: {row.outcome}. {row.why}"
            except (SimOpsError, OSError, RuntimeError):  # no way to draw here, or no rows to draw
                continue
