"""The impact engine keeps the kit's promises, and no numbers of its law make a contact that pulls or drives."""

from __future__ import annotations

import numpy as np
import pytest

from simops.core.chance import seeds
from simops.core.errors import EngineError
from simops.core.params import Params
from simops.core.plugin import Registry
from simops.core.signal import Array, Columns
from simops.core.task import Draw, Task
from simops.sim.impact import WEIGHTS, Impact
from simops.testing.engine import check_engine
from simops.testing.truths import truths

TOSS = Registry[Task]("task").load("cube_toss")()


def _wild(seed: int) -> Impact:
    draw = np.random.default_rng(seed)
    settings = {p.name: float(draw.uniform(p.low, p.high)) for p in Impact().settings}
    assert sum(name.startswith("network") for name in settings) == WEIGHTS
    return Impact(step_s=1 / 1480).at(settings | {"inertia": 1.0, "stiffness": float(draw.uniform(0.1, 5.0))})


def _begun(n: int) -> Columns:
    params = Params.nominal(TOSS.belief.params, n)
    return TOSS.initial(Draw(params, seeds(0, np.arange(n)), np.zeros(n, np.int64)))


def test_the_kit_at_tosses() -> None:
    check_engine(Impact(), TOSS, also=(Impact(workers=2),))


def test_what_has_a_known_answer_and_is_its_business() -> None:
    known = {truth.name: truth for truth in truths(Impact())}
    for name in (
        "free fall in 1 s",
        "momentum that a push on a ball does not account for",
        "angular momentum that a twist of it does not account for",
    ):
        truth = known[name]
        assert truth.value is not None
        assert truth.expected is not None
        assert abs(truth.value - truth.expected) <= truth.bound, name
    slid = known["way until a sliding block stops"]
    assert slid.value is not None
    assert slid.expected is not None
    assert abs(slid.value / slid.expected - 1.0) < 0.02


@pytest.mark.parametrize("seed", range(6))
def test_whatever_was_learned_takes_energy_never_pulls_and_comes_to_rest_above_the_table(seed: int) -> None:
    engine, rows = _wild(seed), 300
    begun = _begun(12)
    seen = engine.throw(TOSS, begun, np.full(12, rows))
    height = seen["position"][..., 2]
    assert np.isfinite(height).all()
    speed = np.asarray(begun["velocity"])
    spin = np.asarray(begun["angular_velocity"])
    energy = 0.37 * (9.81 * height[:, 0] + 0.5 * (speed**2).sum(1)) + 0.5 * 8.1e-4 * (spin**2).sum(1)
    assert (0.37 * 9.81 * height.max(axis=1) <= energy + 1e-6).all(), "higher than its energy reaches"
    assert (height.min(axis=1) > 0.03).all(), "through the table"
    late = seen["position"][:, -20:]
    assert (np.linalg.norm(late[:, -1] - late[:, 0], axis=1) < 0.2).all(), "still driven after two seconds"


def test_one_throw_is_the_same_bytes_alone_and_in_the_simulation() -> None:
    engine = Impact(rounding_m=0.004)
    begun = _begun(3)
    many = engine.throw(TOSS, begun, np.array([40, 40, 40]))
    one = {name: np.asarray(rows)[1:2] for name, rows in begun.items()}
    alone = engine.throw(TOSS, one, np.array([40]))
    np.testing.assert_array_equal(many["position"][1], alone["position"][0])
    seen: list[Array] = []
    with engine.open(TOSS, 3) as sim:
        sim.reset(np.arange(3), Params.nominal(TOSS.belief.params, 3), begun)
        for _ in range(39):
            sim.step(np.zeros((3, 0), np.float32))
            seen.append(sim.read()["position"].copy())
    np.testing.assert_allclose(np.stack(seen, 1), many["position"][:, 1:], atol=1e-12)


def test_what_it_would_lose_is_refused_by_name() -> None:
    with pytest.raises(EngineError, match="impact"), Impact().open(Registry[Task]("task").load("velocity")(), 1):
        pass
    with pytest.raises(EngineError, match="26"):
        Impact(network=(0.0,))
