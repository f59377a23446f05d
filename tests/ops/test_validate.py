"""The gate as a whole, on the pendulum: what passes, what does not, and that nothing about it depends on luck."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

import numpy as np
import pytest

from simops.core import chance
from simops.core.errors import DataError, EngineError, GateRefused
from simops.core.params import Params
from simops.core.policy import Random, Zero
from simops.core.protocols import Act, Memory, Policy
from simops.core.scenario import Scenario
from simops.core.signal import Array, Columns
from simops.core.task import Draw, Task
from simops.core.verdict import Verdict
from simops.gate.suite import Suite, draw
from simops.ops.validate import VERDICT, Campaign, Order, Rival, validate
from simops.sim.pendulum import Pendulum, PendulumSim
from simops.spec.suite import Disturbed, Edge, Nominal, SuiteSpec
from simops.tasks.pendulum.expert import Expert
from simops.tasks.pendulum.task import pendulum

SPEC = SuiteSpec(
    nominal=Nominal(scenarios=60, rate=0.7), edge=Edge(scenarios=30, rate=0.6), disturbance=Disturbed(scenarios=0)
)


def near_the_top(draw: Draw) -> Columns:
    """Standing, nearly: what does nothing falls."""
    return {"angle": np.pi + chance.between(draw.seeds, "angle", 0.1, 0.25), "rate": np.zeros(len(draw.seeds))}


TASK = replace(pendulum(), horizon_s=1.2, success_hold_s=0.1, ends_on_success=False, initial=near_the_top)


def order(out: Path, policy: Policy | None = None, **changes: object) -> Order:
    made = Order(
        policy=policy or Expert(),
        task=TASK,
        engine=Pendulum(step_s=0.02),
        suite=draw(TASK, SPEC, seed=1),
        rates=SPEC.rates,
        out=out,
        good=Expert(),
        batch=16,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


@final
@dataclass(frozen=True)
class Sometimes:
    """The expert on some seeds, nothing on the others."""

    share: float
    digest: str = "sometimes"

    def start(self, task: Task, seeds: Array) -> Memory:
        """Remember who is lucky."""
        return {**Expert().start(task, seeds), "lucky": chance.uniform(seeds, "lucky") < self.share}

    def act(self, observation: Array, memory: Memory) -> Act:
        """Act, or do not."""
        action = Expert().act(observation, memory).action
        return Act(action * memory["lucky"][:, None], memory)


def test_an_expert_passes_and_the_verdict_is_on_disk_about_its_very_digest(tmp_path: Path) -> None:
    gate = validate(order(tmp_path / "gate"))
    assert gate.verdict.status == "pass"
    kept = Verdict.parse((tmp_path / "gate" / VERDICT).read_text())
    assert kept == gate.verdict
    kept.require(Expert().digest)
    with pytest.raises(GateRefused, match="GAT-009"):
        kept.require(Zero().digest)
    checks = [finding.check for finding in kept.findings]
    assert checks.count("success rate") == checks.count("canary") == 2
    assert {"the same bytes again", "physics audit"} <= set(checks)
    assert len(gate.outcomes) < len(order(tmp_path).suite)  # stopped early


def test_what_does_nothing_fails_and_a_broken_instrument_voids_the_gate(tmp_path: Path) -> None:
    gate = validate(order(tmp_path / "bad", Random()))
    assert gate.verdict.status == "fail"
    void = validate(order(tmp_path / "void", good=Random()))
    assert void.verdict.status == "not enough evidence"
    with pytest.raises(GateRefused, match="canary"):
        void.verdict.require()
    also = validate(order(tmp_path / "also", bad=Expert(pump=2.1)))
    assert any(finding.voids for finding in also.verdict.findings)


def test_a_policy_between_is_marginal_once_everything_ran(tmp_path: Path) -> None:
    gate = validate(order(tmp_path / "gate", Sometimes(0.7)))
    nominal = gate.standings[0]
    assert (nominal.status, nominal.left) == ("marginal", 0)
    assert gate.verdict.status in {"marginal", "fail"}


def test_the_verdict_does_not_depend_on_what_ran_together_nor_on_a_stop(tmp_path: Path) -> None:
    texts = {validate(order(tmp_path / f"b{batch}", Sometimes(0.9), batch=batch)).verdict.text() for batch in (3, 16)}
    once = [0]

    def stop(_: object) -> None:
        once[0] += 1
        if once[0] == 250:
            raise KeyboardInterrupt

    stopped = order(tmp_path / "stopped", Sometimes(0.9))
    with pytest.raises(KeyboardInterrupt):
        validate(stopped, stop)
    texts.add(validate(stopped).verdict.text())
    assert len({"".join(line for line in text.splitlines() if "again" not in line and "audit" not in line)
                for text in texts}) == 1  # fmt: skip


def test_a_champion_of_the_same_kind_is_matched_and_a_worse_candidate_is_not(tmp_path: Path) -> None:
    rival = Rival(policy=Expert(pump=2.2), margin=0.3)
    gate = validate(order(tmp_path / "same", champion=rival))
    assert gate.verdict.status == "pass"
    assert [f.status for f in gate.verdict.findings if "champion" in f.check] == ["pass", "pass"]
    worse = validate(order(tmp_path / "worse", Sometimes(0.4), champion=rival))
    assert "fail" in {f.status for f in worse.verdict.findings if "champion" in f.check}


def test_candidates_of_a_campaign_share_alpha_and_no_more_than_announced_enter(tmp_path: Path) -> None:
    campaign = Campaign(ledger=tmp_path / "campaign.jsonl", candidates=2)
    alphas = [
        validate(order(tmp_path / str(i), Expert(pump=2.0 + i), campaign=campaign)).verdict.alpha for i in (0, 1, 0)
    ]
    assert alphas == [0.025, 0.025, 0.025]
    with pytest.raises(GateRefused, match="GAT-003"):
        validate(order(tmp_path / "3", Expert(pump=5.0), campaign=campaign))
    lines = campaign.ledger.read_text().splitlines()
    campaign.ledger.write_text("\n".join(lines[1:]) + "\n")
    with pytest.raises(DataError, match="GAT-003"):
        validate(order(tmp_path / "4", campaign=campaign))


def test_another_suite_in_the_same_folder_and_seeds_of_training_are_refused(tmp_path: Path) -> None:
    validate(order(tmp_path / "gate"))
    with pytest.raises(DataError, match="CFG-008"):
        validate(order(tmp_path / "gate", suite=draw(TASK, SPEC, seed=2)))
    trained = int(chance.seeds(7, np.arange(1))[0])
    leaked = Suite("pendulum", (Scenario(name="leak", category="nominal", task="pendulum", seed=trained),))
    with pytest.raises(DataError, match="GAT-004"):
        validate(order(tmp_path / "leak", suite=leaked, trained_seeds=(7,)))


@final
@dataclass(frozen=True)
class Moody:
    """A pendulum whose process ends, or that takes for ever, where a bob is as heavy as that."""

    how: str
    above_kg: float
    upto_kg: float

    @contextmanager
    def open(self, task: Task, n: int) -> Generator[MoodySim]:
        """Make `n` of them."""
        with Pendulum(step_s=0.02).open(task, n) as sim:
            yield MoodySim(sim, self)

    def version(self, task: Task) -> str:
        """As the sound one's."""
        return Pendulum(step_s=0.02).version(task)


@final
class MoodySim:
    """Sound, but for some."""

    def __init__(self, sim: PendulumSim, engine: Moody) -> None:
        self._sim, self._engine, self.n = sim, engine, sim.n
        self._mood = False

    @property
    def diverged(self) -> Array:
        return self._sim.diverged

    @property
    def executed(self) -> Array:
        return self._sim.executed

    @property
    def busy_s(self) -> float:
        return self._sim.busy_s

    def reset(self, ids: Array, params: Params, initial: Columns) -> None:
        mass = params["bob_mass"]
        self._mood = bool(((mass > self._engine.above_kg) & (mass <= self._engine.upto_kg)).any())
        self._sim.reset(ids, params, initial)

    def push(self, ids: Array, body: str, wrench: Array) -> None:
        self._sim.push(ids, body, wrench)

    def step(self, action: Array, ids: Array | None = None) -> None:
        if self._mood and self._engine.how == "ends":
            raise EngineError("a worker process of the simulation ended", fault="CLU-001")
        if self._mood:
            time.sleep(60.0)
        self._sim.step(action, ids)

    def read(self) -> Columns:
        return self._sim.read()


@pytest.mark.parametrize("how", ["ends", "hangs"])
def test_an_episode_that_ends_its_engine_or_hangs_counts_against_the_policy_and_stops_no_other(
    tmp_path: Path, how: str
) -> None:
    suite = draw(TASK, SuiteSpec(nominal=Nominal(scenarios=24, rate=0.6), edge=Edge(scenarios=0)), seed=1)
    heaviest = max(suite.scenarios, key=lambda each: each.params["bob_mass"] * (each in suite.scenarios[:4]))
    lighter = max(m for each in suite.scenarios[:24] if (m := each.params["bob_mass"]) < heaviest.params["bob_mass"])
    engine = Moody(how, lighter, heaviest.params["bob_mass"])
    made = order(
        tmp_path / "gate",
        engine=engine,
        suite=suite,
        rates={"nominal": 0.6},
        canary_episodes=24,
        batch=4,
        timeout_s=0.8,
    )
    gate = validate(made)
    assert gate.verdict.status == "pass"
    assert {one: how for one, how in gate.outcomes.items() if how != "success"} == {heaviest.hash: "diverged"}
    assert validate(made).verdict == gate.verdict
