"""Laws of the evidence: it cannot be gained on average while the claim is true, and intervals follow from it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simops.gate import rate

COUNTS = st.integers(0, 400)
RATES = st.floats(0.01, 0.99)


@given(COUNTS, COUNTS, RATES, st.floats(0.0, 1.0))
def test_no_bet_gains_on_average_while_the_claim_is_true(s: int, f: int, claimed: float, share: float) -> None:
    truth = claimed * share
    now = rate.above(s, f, claimed)
    mean = truth * math.exp(rate.above(s + 1, f, claimed) - now)
    mean += (1.0 - truth) * math.exp(rate.above(s, f + 1, claimed) - now)
    assert mean <= 1.0 + 1e-9


@given(RATES)
def test_one_begins_with_a_stake_of_one(claimed: float) -> None:
    assert rate.above(0, 0, claimed) == pytest.approx(0.0, abs=1e-12)
    assert rate.below(0, 0, claimed) == pytest.approx(0.0, abs=1e-12)


@given(COUNTS, COUNTS, RATES)
def test_to_be_above_is_for_successes_what_to_be_below_is_for_failures(s: int, f: int, claimed: float) -> None:
    assert rate.above(s, f, claimed) == pytest.approx(rate.below(f, s, 1.0 - claimed), rel=1e-9, abs=1e-9)


@given(COUNTS, COUNTS, st.sampled_from([0.05, 0.005]))
def test_the_low_end_is_where_the_evidence_is_just_enough(s: int, f: int, alpha: float) -> None:
    low, high = rate.interval(s, f, alpha)
    assert 0.0 <= low <= high <= 1.0
    if s + f:
        assert low <= s / (s + f) <= high
    for end, evidence in ((low, rate.above(s, f, low)), (high, rate.below(s, f, high))):
        if 1e-6 < end < 1.0 - 1e-6:
            assert evidence == pytest.approx(-math.log(alpha), rel=1e-6)


@given(st.floats(0.5, 0.99), st.sampled_from([0.05, 0.01]))
def test_what_is_wanted_is_the_least_that_is_enough(claimed: float, alpha: float) -> None:
    enough = rate.wanted(claimed, alpha, 500)
    for failures, successes in enumerate(enough.tolist()):
        assert rate.above(successes, failures, claimed) >= -math.log(alpha)
        assert rate.above(successes - 1, failures, claimed) < -math.log(alpha)
        assert successes + failures <= 500
    assert np.all(np.diff(enough) > 0)


def test_intervals_hold_at_all_looks_together() -> None:
    truth, alpha, runs, looks = 0.9, 0.1, 400, 200
    outcomes = np.random.default_rng(5).random((runs, looks)) < truth
    wrong = 0
    for row in outcomes:
        s = np.cumsum(row)
        wrong += any(
            rate.above(int(s[n - 1]), n - int(s[n - 1]), truth) >= -math.log(alpha) for n in range(1, looks + 1)
        )
    assert wrong / runs <= alpha
    assert wrong > 0  # the bound is used, not merely kept
