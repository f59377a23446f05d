"""The sequential judge, a champion beside a candidate, and the plan: against exact sums and against chance."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

from simops.core.errors import DataError, SignalError
from simops.core.trajectory import Outcome
from simops.gate import rate
from simops.gate.compare import Contest, Pairs, above, interval, no_worse, pairs
from simops.gate.judge import Category, Judge, canary
from simops.gate.plan import arrivals, fixed, plan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

NAMES = tuple(f"s{i}" for i in range(200))
WON = cast("Mapping[str, Outcome]", dict.fromkeys(NAMES, "success"))


def fed(outcomes: Sequence[Outcome], *, asked: float = 0.9, order: Sequence[int] | None = None) -> Judge:
    judge = Judge("p", (Category(name="nominal", scenarios=NAMES, rate=asked),))
    for i in order if order is not None else range(len(outcomes)):
        judge.count(NAMES[i], outcomes[i])
    return judge


def test_a_decision_comes_at_the_boundary_and_stays() -> None:
    enough = int(rate.wanted(0.9, 0.05, 200)[0])
    good: list[Outcome] = ["success"] * enough
    judge = fed(good[:-1])
    assert judge.standings()[0].status == "not enough evidence"
    judge.count(NAMES[enough - 1], "success")
    assert judge.standings()[0].status == "pass"
    for i in range(enough, enough + 40):
        judge.count(NAMES[i], "failure")  # it ran beside the one that decided, or after
    found = judge.standings()[0]
    assert (found.status, found.counted) == ("pass", enough)


def test_what_counts_is_the_order_of_the_list_not_of_arrival() -> None:
    outcomes = cast("list[Outcome]", ["success" if i % 9 else "timeout" for i in range(200)])
    order = np.random.default_rng(0).permutation(200).tolist()
    assert fed(outcomes).findings() == fed(outcomes, order=order).findings()
    one_by_one = fed(outcomes)
    for i in range(3):
        _ = one_by_one.standings()[i:]
    assert one_by_one.findings() == fed(outcomes).findings()


def test_what_was_left_out_voids_and_what_came_twice_is_refused() -> None:
    judge = fed(cast("list[Outcome]", ["success"] * 30), order=[i for i in range(30) if i != 3])
    [_, gap] = judge.findings()
    assert gap.voids
    assert gap.fault == "GAT-005"
    with pytest.raises(DataError, match="counted before"):
        judge.count(NAMES[0], "success")
    with pytest.raises(DataError, match="no category holds"):
        judge.count("other", "success")
    with pytest.raises(DataError, match="twice"):
        Category(name="nominal", scenarios=("a", "a"))
    with pytest.raises(SignalError, match="CFG-005"):
        Category(name="nominal", scenarios=("a",), rate=1.0)


def test_a_list_is_judged_by_its_own_share_and_every_one_of_it_runs() -> None:
    category = Category(name="regression", scenarios=NAMES[:4], rate=1.0, whole=True)
    judge = Judge("p", (category,))
    for name in NAMES[:3]:
        judge.count(name, "success")
    assert judge.wanting(9) == (NAMES[3],)
    judge.count(NAMES[3], "success")
    assert judge.standing(category).status == "pass"
    other = Judge("p", (category,))
    other.count(NAMES[0], "failure")
    assert other.standing(category).status == "fail"


@pytest.mark.parametrize(("asked", "true"), [(0.95, 0.95), (0.9, 0.9), (0.5, 0.5), (0.95, 0.93)])
def test_a_policy_that_is_not_as_asked_passes_no_more_often_than_alpha(asked: float, true: float) -> None:
    assert arrivals(asked, 0.05, true, 600).sum() <= 0.05


def test_the_plan_is_what_happens() -> None:
    found = plan(0.9, 0.05, 0.98, budget=200)
    enough = rate.wanted(0.9, 0.05, 200)
    won = np.cumsum(np.random.default_rng(1).random((4000, 200)) < 0.98, axis=1)
    lost = np.arange(1, 201) - won
    bar = np.append(enough, 10_000)[np.clip(lost, 0, len(enough))]
    first = np.argmax(won >= bar, axis=1) + 1
    passed = (won >= bar).any(axis=1)
    assert passed.mean() == pytest.approx(found.power, abs=0.02)
    assert found.median == pytest.approx(float(np.median(np.where(passed, first, 201))), abs=4)
    assert found.least == int(enough[0])
    size = fixed(0.9, 0.05, 0.98, found.power)
    assert size.wrong <= 0.05
    assert size.power >= found.power
    assert found.mean < size.episodes
    with pytest.raises(SignalError, match="no number of episodes"):
        plan(0.95, 0.05, 0.95)


def test_canaries_need_the_same_evidence_as_anybody() -> None:
    assert canary("x", 8, 0, good=True, alpha=0.05).status == "pass"
    assert canary("x", 0, 8, good=False, alpha=0.05).status == "pass"
    assert canary("x", 3, 0, good=True, alpha=0.05).voids
    wrong = canary("x", 0, 8, good=True, alpha=0.05)
    assert (wrong.status, wrong.voids, wrong.fault) == ("fail", True, "GAT-010")


@pytest.mark.parametrize("wins", [0.0, 0.05], ids=["never better", "sometimes better"])
def test_a_worse_candidate_is_found_no_worse_no_more_often_than_alpha(wins: float) -> None:
    margin, draws = 0.05, np.random.default_rng(2).random((200, 150))
    wrong = 0
    for row in draws:
        # as much worse as the margin: more losses than wins by just that
        worse, better = row < margin + wins, row > 1.0 - wins
        counts = [0, 0, 0]
        for w, b in zip(worse, better, strict=True):
            counts[0] += int(b)
            counts[2] += int(w)
            counts[1] += int(not w and not b)
            if rate.proof(above(Pairs(*counts), -margin), 0.05):
                wrong += 1
                break
    assert wrong / len(draws) <= 0.05 + 0.04


def test_pairs_count_and_an_interval_holds_what_it_must() -> None:
    mine: Mapping[str, Outcome] = {"a": "success", "b": "failure", "c": "success"}
    theirs: Mapping[str, Outcome] = {"a": "success", "b": "success", "c": "timeout", "d": "success"}
    assert pairs(mine, theirs) == Pairs(1, 1, 1)
    with pytest.raises(DataError, match="never ran"):
        pairs(theirs, mine)
    ends = interval(Pairs(30, 60, 10), 0.05)
    assert ends.low < 0.2 < ends.high
    assert no_worse(Pairs(0, 200, 0), margin=0.05, alpha=0.05).status == "pass"
    assert no_worse(Pairs(0, 100, 100), margin=0.05, alpha=0.05).status == "fail"
    assert no_worse(Pairs(0, 0, 0), margin=0.05, alpha=0.05).status == "not enough evidence"


def test_a_contest_stops_where_it_is_decided() -> None:
    category = Category(name="nominal", scenarios=NAMES)

    class Ran:
        outcomes: Mapping[str, Outcome] = WON

        def run(self, wanted: Sequence[str], tick: Callable[[], None] | None = None) -> None:
            del wanted, tick

    contest = Contest(Ran(), (category,), 0.1, 0.05)
    assert not contest.decided("nominal")
    contest.take(Ran.outcomes, Ran.outcomes)
    [found] = contest.findings()
    assert (found.status, contest.decided("nominal")) == ("pass", True)
    assert found.count < len(NAMES)
