"""Laws of verdicts: what follows from findings, and that text keeps it."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simops.core.errors import DataError, GateRefused
from simops.core.verdict import STATUSES, Finding, Interval, Status, Verdict

SOUND = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def findings(draw: st.DrawFn) -> Finding:
    status: Status = draw(st.sampled_from(STATUSES))
    number = SOUND if status == "pass" else st.floats()
    return Finding(
        check=draw(st.text(min_size=1, max_size=8)),
        category=draw(st.sampled_from(["", "nominal", "edge"])),
        value=draw(st.none() | number),
        bound=draw(st.none() | number),
        interval=draw(st.none() | st.builds(Interval, number, number)),
        count=draw(st.integers(1, 10**6)),
        status=status,
        note=draw(st.text(max_size=8)),
        voids=draw(st.booleans()),
    )


def verdict(*found: Finding) -> Verdict:
    return Verdict(policy="a" * 64, suite="b" * 64, realm="gate", alpha=0.05, findings=found)


def said(status: Status, *, voids: bool = False) -> Finding:
    return Finding(check="success rate", value=0.99, bound=0.95, count=150, status=status, voids=voids)


@given(st.lists(findings(), max_size=4))
def test_text_keeps_every_verdict(found: list[Finding]) -> None:
    before = verdict(*found)
    after = Verdict.parse(before.text())
    assert after.text() == before.text()
    assert after.digest == before.digest
    assert after.status == before.status
    json.loads(before.text(), parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


@given(st.lists(findings(), max_size=4))
def test_only_passes_make_a_pass(found: list[Finding]) -> None:
    passes = bool(found) and all(each.status == "pass" and not each.voids for each in found)
    assert (verdict(*found).status == "pass") == passes


def test_nothing_is_no_pass() -> None:
    assert verdict().status == "not enough evidence"
    with pytest.raises(DataError, match="passes on 0"):
        Finding(check="success rate", value=1.0, status="pass")
    with pytest.raises(DataError, match="passes on 9"):
        Finding(check="success rate", value=math.nan, count=9, status="pass")


def test_the_worst_counts_and_a_broken_gate_says_nothing() -> None:
    good, marginal, bad, missing = (said(status) for status in STATUSES)
    assert verdict(good, marginal).status == "marginal"
    assert verdict(good, marginal, missing).status == "not enough evidence"
    assert verdict(good, missing, bad).status == "fail"
    broken = said("fail", voids=True)
    assert verdict(good, bad, broken).status == "not enough evidence"
    assert verdict(good, bad, broken).against()[0] is broken


def test_a_refusal_says_what_stands_against_it_and_for_what_to_try() -> None:
    with pytest.raises(GateRefused) as caught:
        verdict(said("pass"), replace(said("marginal"), category="edge", interval=Interval(0.93, 0.97))).require()
    text = "the gate says marginal: success rate of edge: marginal; 0.99 [0.93, 0.97], asked 0.95, on 150"
    assert str(caught.value).splitlines()[0] == text
    assert caught.value.exit_code == 3
    assert verdict(said("pass")).require("a" * 64).status == "pass"


def test_a_verdict_lets_no_other_bytes_through() -> None:
    with pytest.raises(GateRefused) as caught:
        verdict(said("pass")).require("c" * 64)
    assert caught.value.fault == "GAT-009"


@pytest.mark.parametrize("edit", [('"status": "fail"', '"status": "pass"'), ('"format": 1', '"format": 2')])
def test_an_edited_verdict_is_refused(edit: tuple[str, str]) -> None:
    text = verdict(said("fail")).text()
    assert edit[0] in text
    with pytest.raises(DataError):
        Verdict.parse(text.replace(*edit, 1))
    with pytest.raises(DataError, match="this is no verdict"):
        Verdict.parse(text[:-9])
