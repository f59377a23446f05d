"""What makes a policy fail in another world is named, and nothing is where nothing does."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from benchmarks import doctor_gap as bench
from simops.cli.main import main
from simops.core.errors import SpecError
from simops.core.perform import run as performed
from simops.core.rollout import Recipe
from simops.core.signal import Array
from simops.gate.culprit import Swapped, diagnose
from simops.ops.gap import FACTORS, Case, differing, explain, lines, mixed, succeeded
from simops.sim.motor import Dc, Pd
from simops.sim.mujoco import Mujoco
from simops.sim.pendulum import Pendulum
from simops.spec.gap import Wires, load_gap
from simops.tasks.pendulum.expert import Expert
from simops.testing.miswired import Miswired, Wiring
from tests.house.tree import ROOT

SMALL = replace(bench.of_pendulum(), episodes=16)


def rows(rate: float, n: int = 40) -> Array:
    return np.arange(n) < rate * n


@pytest.mark.parametrize(("broken", "mended"), [(0.0, 0.0), (1.0, 1.0)], ids=["either is enough", "both are needed"])
def test_two_causes_share_the_gap_evenly_however_they_act_together(broken: float, mended: float) -> None:
    two = [Swapped((name,), rows(broken), rows(mended)) for name in ("delay", "friction")]
    found = diagnose(rows(1.0), rows(0.0), [*two, Swapped(("body",), rows(1.0), rows(0.0))])
    assert [(share.factors, share.share) for share in found.culprits] == [(("delay",), 0.5), (("friction",), 0.5)]
    assert found.shares[-1].share == 0.0


def test_without_a_gap_beyond_doubt_nobody_is_blamed() -> None:
    almost = np.ones(40, bool)
    almost[:2] = False
    assert diagnose(rows(1.0), almost, [Swapped(("delay",), almost, rows(1.0))]).culprits == ()


@pytest.mark.parametrize("number", [0, 11], ids=lambda number: f"plant {number}")
def test_a_planted_cause_comes_first(number: int) -> None:
    plants = list(bench.planted(SMALL))[number]
    found = bench.judged(SMALL, plants, number)
    assert bench.named(found, plants)
    assert all(one.share >= other.share for one, other in pairwise(found.culprits))


def test_a_clean_pair_raises_no_alarm() -> None:
    found = bench.judged(SMALL, (), 7)
    assert found.culprits == ()
    assert "no gap beyond doubt" in "\n".join(lines(found))


def test_a_mixture_of_nothing_is_the_one_world_and_of_everything_the_other() -> None:
    plants = (*SMALL.harmless, *SMALL.causes[6:8])
    case = Case(Expert(), SMALL.task, SMALL.world, bench.with_(SMALL.world, plants), 8)
    swapped = Case(Expert(), SMALL.task, case.fails, case.works, 8)
    for one, other in ((case, swapped), (swapped, case)):
        a, b = (performed(*mixed(*each)) for each in ((one, frozenset[str]()), (other, frozenset(FACTORS))))
        assert a[0].rows.tobytes() == b[0].rows.tobytes()
    assert differing(case) == ("motor", "delay", "contact", "body", "sensor", "initial state")
    assert differing(Case(Expert(), SMALL.task, SMALL.world, SMALL.world, 8)) == ()


def test_a_motor_is_swapped_apart_from_its_delay() -> None:
    world = replace(SMALL.world, engine=Mujoco(threads=1))
    late = Dc(kp_nm_rad=0.0, kd_nms_rad=0.5, delay_steps=3)
    other = replace(world, engine=Mujoco(threads=1, motor=late))
    works = replace(world, engine=Mujoco(threads=1, motor=Dc(kp_nm_rad=0.0)))
    case = Case(Expert(), SMALL.task, works, other, 8)
    assert differing(case) == ("motor", "delay")

    def motor(*factors: str) -> object:
        recipe: Recipe = mixed(case, frozenset(factors))[0]
        assert isinstance(recipe.engine, Mujoco)
        return recipe.engine.motor

    assert motor("delay") == Dc(kp_nm_rad=0.0, delay_steps=3)
    assert motor("motor") == Dc(kp_nm_rad=0.0, kd_nms_rad=0.5)
    assert motor("motor", "delay") == late
    assert differing(replace(case, fails=replace(world, engine=Mujoco(threads=1, motor=Pd())))) == ("motor", "delay")


def test_wires_around_an_engine_are_its_contract_and_not_another_engine() -> None:
    engine = Miswired(Pendulum(step_s=0.004), command=Wiring(gain=(-1.0,)))
    case = Case(Expert(), SMALL.task, SMALL.world, replace(SMALL.world, engine=engine), 16)
    assert differing(case) == ("contract", "contact")
    assert mixed(case, frozenset(FACTORS))[0].engine == engine
    found = explain(case)
    assert [share.factors for share in found.culprits] == [("contract",)]
    assert any(line.startswith("culprit: contract") for line in lines(found))


def test_wires_lead_where_they_say() -> None:
    plain = Case(Expert(), SMALL.task, SMALL.world, SMALL.world, 8)
    twice = replace(SMALL.world, wires=Wires(action_gain=(-1.0,)))
    assert succeeded(plain, frozenset()).all()
    assert not succeeded(replace(plain, works=twice), frozenset()).any()


def test_the_example_names_the_delay(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", str(ROOT / "examples" / "doctor_gap" / "worlds.yaml")]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[2].startswith("culprit: delay")
    assert not any(line.startswith("culprit") for line in out[3:])


def test_what_two_worlds_cannot_have_is_said_at_once(tmp_path: Path) -> None:
    spec = tmp_path / "worlds.yaml"
    spec.write_text(
        "scene: {task: pendulum}\nworks: {engine: {use: pendulum}}\n"
        "fails: {engine: {use: pendulum}, initial: {agle: [1]},"
        " wires: {action_gain: [1, 2], observation_order: [0, 1, 1]}}"
    )
    with pytest.raises(SpecError) as caught:
        _ = load_gap(spec)
    said = str(caught.value)
    for words in ("no state or goal 'agle'; try 'angle'", "has 2 elements, want 1", "is no order of 0 to 2"):
        assert words in said
