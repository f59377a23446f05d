"""A planted contact is found again from a few throws, and what is said of a throw is one that the law can make."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from simops.core.chance import seeds
from simops.core.errors import DataError, EngineError
from simops.core.learning import Material
from simops.core.params import Params
from simops.core.plugin import Registry
from simops.core.recording import Recording, Stream
from simops.core.signal import Columns, Schema
from simops.core.task import Draw, Task
from simops.core.throwing import STATE, Throws, missed
from simops.learn.central import Unknown, medians, most_central, several
from simops.learn.contact import LAG, How, learn_law, misses, predict, spun, stretches
from simops.learn.tossing import Contact
from simops.sim.impact import Impact
from simops.sim.pendulum import Pendulum

TOSS = Registry[Task]("task").load("cube_toss")()
TRUE = {"grip": 1.5, "rounding_m": 0.004, "damping": 2.0}
ENGINE = Impact(step_s=1 / 740, stiffness=5.0)
ROWS = 70


def _recorded(n: int, engine: Impact = ENGINE.at(TRUE), *, lag_s: float = 0.0) -> Throws:  # noqa: B008 (frozen)
    params = Params.nominal(TOSS.belief.params, n)
    begun = TOSS.initial(Draw(params, seeds(1, np.arange(n)), np.zeros(n, np.int64)))
    with engine.open(TOSS, n) as sim:
        sim.reset(np.arange(n), params, begun)
        rows = [{name: cells.copy() for name, cells in sim.read().items()}]
        for _ in range(ROWS - 1):
            sim.step(np.zeros((n, 0), np.float32))
            rows.append({name: cells.copy() for name, cells in sim.read().items()})
    each: list[Columns] = [{name: np.stack([row[name][i] for row in rows]) for name in rows[0]} for i in range(n)]
    for one in each:
        one["velocity"][0, 2] += 9.81 * lag_s
    return Throws.of([str(i) for i in range(n)], each, TOSS.control_dt_s)


def test_what_was_thrown_is_predicted_exactly_by_what_threw_it() -> None:
    off = misses(ENGINE, TOSS, _recorded(4), TRUE)
    assert off.way_m.max() < 1e-9
    assert off.turn_rad.max() < 1e-6


def test_a_planted_contact_is_found_again() -> None:
    law = learn_law(ENGINE, TOSS, _recorded(6), tuple(TRUE), how=How(generations=14, stretches=0.2))
    assert law.cost < 0.3 * law.began
    assert abs(law.values["grip"] / TRUE["grip"] - 1.0) < 0.1
    fresh, before = (misses(ENGINE, TOSS, _recorded(16), values).way_m.mean() for values in (law.values, {}))
    assert fresh < 0.5 * before


def test_how_old_a_recorded_speed_is_is_found() -> None:
    throws = _recorded(8, lag_s=0.004)
    law = learn_law(ENGINE, TOSS, throws, (LAG.name,), how=How(generations=12), start=TRUE)
    assert abs(law.values[LAG.name] - 0.004) < 0.0005


def test_a_fit_is_the_same_bytes_again() -> None:
    throws = _recorded(2)
    one, other = (learn_law(ENGINE, TOSS, throws, ("grip",), how=How(generations=2)) for _ in range(2))
    assert one == other


def test_stretches_begin_in_flight_at_the_speed_of_the_flight() -> None:
    throws = _recorded(6)
    short = stretches(throws, 10)
    assert short is not None
    assert len(short) >= 6
    off = misses(ENGINE, TOSS, short, TRUE)
    assert np.median(off.way_m) < 2e-4
    assert np.median(off.turn_rad) < 2e-3


def test_the_most_central_roll_out_is_one_of_them_and_the_medians_lie_between() -> None:
    throws = _recorded(5)
    unknown = Unknown(draws=6, corner_m=0.002)
    found = several(ENGINE, TOSS, throws, TRUE, unknown)
    own = predict(ENGINE, TOSS, throws, TRUE)
    np.testing.assert_array_equal(found.position[0], own["position"])
    chosen = most_central(found, throws, unknown)
    assert set(chosen.tolist()) <= set(range(6))
    middle = medians(found)
    low, high = found.position.min(axis=0), found.position.max(axis=0)
    assert ((middle.position >= low - 1e-12) & (middle.position <= high + 1e-12)).all()
    off = missed(middle.position, middle.quaternion, throws)
    assert off.way_m.max() < 0.1


def test_a_turn_is_measured_in_the_bodys_axes() -> None:
    half = np.array([np.cos(0.1), 0.0, np.sin(0.1), 0.0])
    np.testing.assert_allclose(spun(np.array([1.0, 0.0, 0.0, 0.0]), -half), [0.0, 0.2, 0.0], atol=1e-12)


def test_what_is_no_throw_is_refused_with_what_is_missing() -> None:
    good = {
        key: np.ones((9, size))
        for key, size in zip(("position", "quaternion", "velocity", "angular_velocity"), (3, 4, 3, 3), strict=True)
    }
    bad = {**good, "velocity": np.full((9, 3), np.nan)}
    with pytest.raises(DataError, match="velocity"):
        Throws.of(["a"], [bad], 0.01)
    with pytest.raises(DataError, match="3 rows"):
        Throws.of(["a"], [{key: cells[:3] for key, cells in good.items()}], 0.01)
    with pytest.raises(DataError, match="no throw"):
        Throws.of([], [], 0.01)


def test_the_learner_climbs_its_ladder_and_predicts_a_toss_it_has_not_seen() -> None:
    throws = _recorded(7)
    signals = {reading.signal.name: reading.signal for reading in TOSS.state}
    recordings = tuple(
        Recording(
            name=name,
            streams=(
                Stream(
                    "rows",
                    np.arange(ROWS) * TOSS.control_dt_s,
                    Schema(tuple(signals[key] for key in STATE)),
                    {key: throws.columns[key][i] for key in STATE},
                ),
            ),
        )
        for i, name in enumerate(throws.names)
    )
    seen: list[str] = []
    material = Material(task=TOSS, engine=ENGINE, recordings=recordings[:6])
    learner = Contact(generations=3, lengths=1.0, believed={"rounding_m": 0.003})
    learned = learner.learn(material, lambda progress: seen.append(progress.stage))
    assert [one.name for one in learned.candidates] == ["nominal", "physical", "learned"]
    assert set(seen) == {"physical", "learned"}
    errors: list[float] = []
    for one in learned.candidates:
        with learner.predicting(one, TOSS, None) as predictor:
            predicted = predictor(recordings[6])
        errors.append(predicted.error)
        assert predicted.coverage is not None
        assert set(predicted.errors) == {"position, mm", "rotation, deg"}
    assert errors[1] < errors[0]
    with pytest.raises(EngineError, match="impact"):
        learner.learn(replace(material, engine=Pendulum()), lambda _: None)
