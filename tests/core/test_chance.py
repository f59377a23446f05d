"""Random numbers are pure functions of seed, purpose and step, and look random."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from simops.core import chance
from tests import strategies as some

MANY = 20_000
FIRST_SEEDS = [652732062400372739, 4829337298251333631, 12992824693714451828]
FIRST_UNIFORM = [0.924799616071, 0.014481833378, 0.086229383418]
PURPOSES = ("param/mass", "noise/angle", "bias/angle", "policy/random")


def distance(draws: np.ndarray, sorted_cdf: np.ndarray) -> float:
    """Kolmogorov and Smirnov's distance of draws from their distribution, in units of the 1 % bound."""
    n = len(draws)
    steps = np.arange(n + 1) / n
    worst = max(float(np.max(steps[1:] - sorted_cdf)), float(np.max(sorted_cdf - steps[:-1])))
    return worst * float(np.sqrt(n)) / 1.63


def test_uniform_numbers_are_uniform_over_seeds_elements_and_steps() -> None:
    seeds = chance.seeds(0, np.arange(MANY))
    over = {
        "seeds": chance.uniform(seeds, "a"),
        "elements": chance.uniform(seeds[:1], "a", (MANY,))[0],
        "steps": np.array([chance.uniform(seeds[:1], "a", step=step)[0] for step in range(2000)]),
        "neighbours": chance.uniform(np.arange(MANY, dtype=np.uint64), "a"),
    }
    for name, draws in over.items():
        assert distance(draws, np.sort(draws)) < 1.0, name
        assert draws.min() >= 0.0
        assert draws.max() < 1.0


def test_normal_numbers_are_normal() -> None:
    draws = np.sort(chance.normal(chance.seeds(0, np.arange(MANY)), "a", (3,)).ravel())
    from math import erf

    cdf = np.array([0.5 * (1.0 + erf(x / np.sqrt(2.0))) for x in draws])
    assert distance(draws, cdf) < 1.0


def test_purposes_steps_realms_and_roots_share_nothing() -> None:
    seeds = chance.seeds(0, np.arange(5000))
    streams = [chance.uniform(seeds, purpose, step=step) for purpose in PURPOSES for step in (0, 1, 2)]
    streams += [chance.uniform(chance.seeds(1, np.arange(5000)), PURPOSES[0])]
    streams += [chance.uniform(chance.seeds(0, np.arange(5000), realm="gate"), PURPOSES[0])]
    correlation = np.corrcoef(streams) - np.eye(len(streams))
    assert np.abs(correlation).max() < 4.5 / np.sqrt(5000)


def test_realms_never_share_a_seed() -> None:
    episodes = np.arange(100_000)
    seen = np.concatenate([chance.seeds(root, episodes, realm=realm) for root in (0, 1) for realm in ("train", "gate")])
    assert len(np.unique(seen)) == len(seen)


@given(some.seed_rows(9), st.permutations(range(9)), st.integers(0, 1000), st.sampled_from(PURPOSES))
def test_a_row_does_not_know_its_neighbours(seeds: np.ndarray, order: list[int], step: int, purpose: str) -> None:
    for draw in (chance.uniform, chance.normal):
        whole = draw(seeds, purpose, (2, 3), step=step)
        np.testing.assert_array_equal(draw(seeds[order], purpose, (2, 3), step=step), whole[order])
        np.testing.assert_array_equal(draw(seeds[4:5], purpose, (2, 3), step=step), whole[4:5])
        steps = np.full(9, step)
        np.testing.assert_array_equal(draw(seeds, purpose, (2, 3), step=steps), whole)


def test_each_row_may_be_at_its_own_step() -> None:
    seeds = chance.seeds(0, np.arange(4))
    together = chance.uniform(seeds, "a", (2,), step=np.array([0, 5, 5, 9]))
    for row, step in enumerate((0, 5, 5, 9)):
        np.testing.assert_array_equal(together[row], chance.uniform(seeds[row : row + 1], "a", (2,), step=step)[0])


@given(some.seed_rows(3), some.numbers, st.floats(0, 1e3))
def test_between_stays_between(seeds: np.ndarray, low: float, width: float) -> None:
    draws = chance.between(seeds, "a", low, low + width)
    assert np.all((draws >= low) & (draws <= low + width))


def test_numbers_stay_as_they_were_first_drawn() -> None:
    seeds = chance.seeds(7, np.array([0, 1, 123_456]))
    assert seeds.tolist() == FIRST_SEEDS
    assert [round(x, 12) for x in chance.uniform(seeds, "param/mass").tolist()] == FIRST_UNIFORM
