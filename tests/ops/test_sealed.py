"""A sealed reality: it answers like a robot, keeps time, counts, and says nothing of what it hides."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest

from simops.core.errors import DataError, EngineError
from simops.core.policy import Random, Zero
from simops.core.robot import Guard
from simops.core.trajectory import OUTCOMES
from simops.core.trial import attempt
from simops.ops import sealed_world, wire
from simops.ops.sealed import Sealed
from simops.ops.wire import Frame
from simops.spec.reality import drawn, load_world
from simops.tasks.pendulum.task import pendulum

TASK = pendulum()
HIDDEN = """
scene: {task: pendulum}
engine: pendulum
seed: 3
hidden:
  - {name: bob_mass, field: mass, of: [bob], range: [1.2345, 1.2346]}
effects:
  delay_s: [0.0311, 0.0312]
  noise: {angle: 0.001}
  bias: {rate: 0.05}
  stick: [0.0917, 0.0917]
  backlash: [0.0513, 0.0513]
trials: 20
"""


@pytest.fixture
def reality(tmp_path: Path) -> Path:
    path = tmp_path / "reality.yaml"
    path.write_text(HIDDEN)
    return path


def test_it_answers_keeps_time_and_counts(reality: Path) -> None:
    with Sealed(reality).open(TASK, 4) as robot:
        reading = robot.ready(np.arange(3), {})
        assert (robot.trials, robot.origin, list(reading.time_s)) == (3, "sealed", [0.0] * 3)
        reading = robot.act(np.ones((3, 1)), {})
        assert reading.time_s == pytest.approx([TASK.control_dt_s] * 3)
        assert set(reading.columns) == {"angle", "rate"}
        robot.stop(np.array([1]))
        after = robot.act(np.ones((3, 1)), {})
        assert list(after.ended) == [False, True, False]
        assert OUTCOMES[after.outcome[1]] == "failure"


def test_the_same_numbers_are_the_same_trials_in_any_company(reality: Path) -> None:
    policy = Random(hold_steps=5)
    with Sealed(reality).open(TASK, 3) as robot:
        together = list(attempt(policy, TASK, robot, [5, 6, 7]))
    with Sealed(reality).open(TASK, 1) as robot:
        alone = list(attempt(policy, TASK, robot, [7]))
    np.testing.assert_array_equal(together[2]["angle"], alone[0]["angle"])
    assert together[0].provenance.origin == "sealed"
    assert together[0].params == {}


def test_another_seed_is_another_robot(reality: Path) -> None:
    found: list[str] = []
    for seed in (3, 4):
        with Sealed(reality, seed).open(TASK, 1) as robot:
            found.append(robot.identity)
    assert found[0] != found[1]


def test_nothing_but_observations_crosses(reality: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every byte that comes out is accounted for: readings, times, ends, a count and a digest."""
    seen: list[Frame] = []
    real = wire.receive

    def overheard(pipe: io.BufferedReader) -> Frame | None:
        frame = real(pipe)
        if frame is not None:
            seen.append(frame)
        return frame

    monkeypatch.setattr("simops.ops.sealed.receive", overheard)
    with Sealed(reality).open(TASK, 2) as robot:
        attempt(Zero(), TASK, robot, [1, 2])
    assert [frame.verb for frame in seen[:2]] == ["open", "reading"]
    for frame in seen:
        allowed = {"identity"} if frame.verb == "open" else {"trials"}
        assert set(frame.said) == allowed
        assert set(frame.arrays) <= {"angle", "rate", "time_s", "ended", "outcome"}
    assert re.fullmatch(r"[0-9a-f]{64}", str(seen[0].said["identity"]))
    hidden = drawn(load_world(reality).value, TASK)
    secrets = [*hidden.params.values[0].tolist(), *(v for v in hidden.effects.values() if v)]
    numbers = np.concatenate([np.ravel(rows).astype(float) for frame in seen for rows in frame.arrays.values()])
    for secret in secrets:
        if abs(secret) not in {0.0, 1e9} and secret not in {param.nominal for param in TASK.belief.params}:
            assert not np.any(np.abs(numbers - secret) < 1e-9)


def test_no_file_and_no_line_of_the_other_process_is_ours_to_read(
    reality: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with Sealed(reality).open(TASK, 1) as robot:
        robot.ready(np.arange(1), {})
        assert reality not in {link.resolve() for link in Path("/proc/self/fd").iterdir()}
    out = capfd.readouterr()
    assert (out.out, out.err) == ("", "")


def test_it_refuses_another_task_without_explaining(reality: Path) -> None:
    from dataclasses import replace

    other = replace(TASK, action=replace(TASK.action, low=(-9.0,), high=(9.0,)))
    with pytest.raises(EngineError, match="refuses") as caught, Sealed(reality).open(other, 1):
        pass
    assert "1.23" not in str(caught.value)


def test_a_broken_file_is_refused_without_a_word_of_it(tmp_path: Path) -> None:
    path = tmp_path / "reality.yaml"
    path.write_text(HIDDEN.replace("engine: pendulum", "engine: pendulun"))
    with pytest.raises(EngineError) as caught, Sealed(path).open(TASK, 1):
        pass
    assert "pendulun" not in str(caught.value)
    with pytest.raises(DataError, match="no sealed reality"), Sealed(tmp_path / "none.yaml").open(TASK, 1):
        pass


def test_it_wears_out(reality: Path) -> None:
    with Sealed(reality).open(TASK, 32) as robot, pytest.raises(EngineError, match="refuses"):
        robot.ready(np.arange(21), {})


def test_what_it_hides_makes_a_difference(reality: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain.yaml"
    plain.write_text("scene: {task: pendulum}\nengine: pendulum\nseed: 3\n")
    rows: list[np.ndarray] = []
    for path in (reality, plain):
        with Sealed(path).open(TASK, 1) as robot:
            robot.ready(np.arange(1), {})
            rows.append(np.array([float(robot.act(np.full((1, 1), 4.0), {}).columns["rate"][0]) for _ in range(20)]))
    assert np.abs(rows[0] - rows[1]).max() > 0.1


def test_the_guard_stops_what_leaves_its_limits_and_slows_what_jumps(reality: Path) -> None:
    tight = Guard(rate=0.1)
    with Sealed(reality).open(TASK, 2) as robot:
        [one, _] = attempt(Random(), TASK, robot, [1, 2], guard=tight)
    steps = np.diff(one["executed"][:-1, 0])
    assert np.abs(steps).max() <= 0.1 * 8.0 + 1e-5
    assert np.abs(np.diff(one["action"][:-1, 0])).max() > 2.0


def test_a_message_comes_out_as_it_went_in() -> None:
    pipe = io.BytesIO()
    wire.send(pipe, Frame("act", {"trials": 3}, {"action": np.arange(6, dtype=np.float32).reshape(2, 3)}))
    pipe.seek(0)
    found = wire.receive(pipe)
    assert found is not None
    assert (found.verb, found.said) == ("act", {"trials": 3})
    np.testing.assert_array_equal(found.arrays["action"], np.arange(6).reshape(2, 3))
    assert wire.receive(pipe) is None


def test_the_inside_answers_no_other_verb(reality: Path) -> None:
    inward, outward = io.BytesIO(), io.BytesIO()
    said = {"horizon_s": 8.0, "places": 1, "state": TASK.state_schema.digest, "action": repr(TASK.action)}
    wire.send(inward, Frame("open", said))
    wire.send(inward, Frame("params", {}))
    inward.seek(0)
    with pytest.raises(Exception, match="knows no 'params'"):
        sealed_world.serve(reality, (), inward, outward)
