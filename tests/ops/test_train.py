"""A training run: what it leaves, how it is stopped, and how it goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from simops.cli.main import main
from simops.core.errors import DataError, SpecError
from simops.data.files import digest
from simops.ops import train
from simops.ops.curves import draw, picture, spark, summary
from simops.ops.train import CHECKPOINT, METRICS, STOPPED, Order, Run, load_order, run
from simops.spec.train import load_train
from tests.learn.small import COURSE, PPO, bytes_after

SPEC = """
scene: {task: pendulum}
engine: {use: pendulum, step_s: 0.02}
trainer: {use: ppo, laps: 8, copies: 8, steps: 6, minibatches: 2, checkpoint_every: 2,
          actor: {hidden: [8, 8]}, critic: {hidden: [8, 8]}}
evaluation: {episodes: 4}
"""


def quiet(_: Run) -> None:
    pass


def order(out: Path) -> Order:
    return Order(COURSE, PPO, out)


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "train.yaml"
    path.write_text(SPEC)
    return path


def test_a_run_leaves_the_checkpoint_of_its_training_and_the_figures_of_every_lap(tmp_path: Path) -> None:
    seen = run(order(tmp_path / "out"), quiet)
    data = (tmp_path / "out" / CHECKPOINT).read_bytes()
    assert data == bytes_after(PPO)
    assert seen.checkpoint == digest(data)
    rows = [json.loads(line) for line in (tmp_path / "out" / METRICS).read_text().splitlines()]
    assert [row["lap"] for row in rows] == list(range(1, PPO.laps + 1))
    assert {"physics_s", "collection_s", "learning_s", "steps_per_s", "term/energy"} <= set(rows[-1])


@pytest.mark.parametrize("lap", [1, 3, 5])
def test_a_run_that_is_interrupted_leaves_what_it_has_and_goes_on_to_the_same_bytes(tmp_path: Path, lap: int) -> None:
    def impatient(seen: Run) -> None:
        if len(seen.history) == lap and not seen.stopped:
            raise KeyboardInterrupt

    out = tmp_path / "out"
    assert run(order(out), impatient).stopped
    assert (out / STOPPED).exists()
    seen = run(order(out), quiet, resume=True)
    assert seen.resumed == lap - lap % PPO.checkpoint_every
    assert (out / CHECKPOINT).read_bytes() == bytes_after(PPO)
    rows = [json.loads(line)["lap"] for line in (out / METRICS).read_text().splitlines()]
    assert rows == list(range(1, PPO.laps + 1))


def test_a_finished_run_has_nothing_left_to_do(tmp_path: Path) -> None:
    first = run(order(tmp_path / "out"), quiet)
    assert run(order(tmp_path / "out"), quiet, resume=True).checkpoint == first.checkpoint


def test_a_training_is_not_written_over(tmp_path: Path) -> None:
    run(order(tmp_path / "out"), quiet)
    with pytest.raises(SpecError, match="holds a training"):
        run(order(tmp_path / "out"), quiet)


def test_there_must_be_something_to_go_on_from(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no checkpoint") as caught:
        run(order(tmp_path / "out"), quiet, resume=True)
    assert caught.value.fault == "TRN-011"
    assert not (tmp_path / "out").exists()


def test_a_damaged_checkpoint_is_refused_and_stays(tmp_path: Path) -> None:
    run(order(tmp_path / "out"), quiet)
    path = tmp_path / "out" / CHECKPOINT
    data = bytearray(path.read_bytes())
    data[-5] ^= 4
    path.write_bytes(data)
    with pytest.raises(DataError, match="checksum"):
        run(order(tmp_path / "out"), quiet, resume=True)
    assert path.read_bytes() == data


def test_a_run_that_is_killed_goes_on_to_the_same_bytes(spec: Path, tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert main(["train", str(spec), "--out", str(whole), "--set", "trainer.laps=40"]) == 0
    command = [sys.executable, "-m", "simops.cli", "train", str(spec), "--out", str(cut), "--set", "trainer.laps=40"]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
    while child.poll() is None and not (cut / METRICS).exists():
        time.sleep(0.001)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert main(["train", str(spec), "--out", str(cut), "--set", "trainer.laps=40", "--resume"]) == 0
    assert (cut / CHECKPOINT).read_bytes() == (whole / CHECKPOINT).read_bytes()


def test_the_command_says_what_came_out(spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", str(spec), "--out", str(tmp_path / "out")]) == 0
    told = capsys.readouterr().out
    assert digest((tmp_path / "out" / CHECKPOINT).read_bytes()) in told
    assert "physics" in told
    assert "4 fresh episodes" in told
    assert (tmp_path / "out" / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert list((tmp_path / "out").glob("events.out.tfevents.*"))


def test_rewards_are_weighed_by_name_and_an_unknown_name_is_refused(
    spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    loaded = load_order(spec, overrides=["reward.effort=-0.5"])
    weights = {term.name: term.weight for term in loaded.course.task.reward}
    assert weights["effort"] == -0.5
    assert weights["energy"] == -1.0
    assert main(["train", str(spec), "--set", "reward.efort=1"]) == 2
    told = capsys.readouterr().err
    assert "reward.efort" in told
    assert "'effort'" in told
    assert "CFG-001" in told


def test_what_a_training_learns_from_is_the_spec(spec: Path) -> None:
    text = spec.read_text() + "randomization: {physics: {bob_mass_kg: [0.9, 1.1]}}\nseed: 5\n"
    spec.write_text(text)
    course = load_train(spec).value.course
    assert course.seed == 5
    assert course.belief is not None
    assert course.belief != course.task.belief


@pytest.mark.parametrize(
    "said",
    [
        "trainer.laps=0",
        "trainer.actor.activation=gelu",
        "trainer.copies=0",
        "trainer.use=pppo",
        "evaluation.episodes=-1",
    ],
)
def test_what_cannot_be_is_refused_before_anything_happens(spec: Path, tmp_path: Path, said: str) -> None:
    assert main(["train", str(spec), "--out", str(tmp_path / "out"), "--set", said]) == 2
    assert not (tmp_path / "out" / CHECKPOINT).exists()


def test_curves_are_drawn(tmp_path: Path) -> None:
    seen = run(replace(order(tmp_path / "out"), evaluate=3), quiet)
    assert sum(seen.outcomes.values()) == 3
    assert draw(seen.history, tmp_path / "curves.png", title="pendulum").exists()
    assert picture(seen) is not None
    assert summary(seen).row_count > 3
    assert spark([0.0, 1.0, 0.5]) == "▁█▅"
    assert spark([]) == spark([float("nan")]) == ""
    assert train.CHECKPOINT.endswith(".safetensors")
