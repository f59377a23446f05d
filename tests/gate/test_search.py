"""A search finds what fails, comes to the same points from the same seed, and says only scenarios that can be run."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from simops.cli.main import main
from simops.core import scenario as scenarios
from simops.core.errors import DataError, SimOpsError, SpecError
from simops.core.margin import margin, margins
from simops.core.perform import run as performed
from simops.core.policy import Random, Zero
from simops.core.protocols import Engine, Policy
from simops.core.rollout import rollout
from simops.core.scenario import Latency, Payload, Push
from simops.core.signal import Array, Columns
from simops.core.task import Task
from simops.gate.search import Map, Search
from simops.gate.space import Space
from simops.ops import falsify, suite_text
from simops.ops.failmap import draw, page
from simops.sim.mujoco import Mujoco
from simops.sim.pendulum import Pendulum
from simops.spec.around import Around, Latencies, Payloads, Pushes
from simops.spec.ranges import Range
from simops.tasks.pendulum.expert import Expert
from simops.tasks.pendulum.task import pendulum
from simops.tasks.pick_and_place.expert import Expert as Placer
from simops.tasks.pick_and_place.task import pick_and_place
from simops.tasks.velocity.task import velocity
from simops.tasks.velocity.trot import Trot

QUICK = Pendulum(step_s=0.005)
SPEC = """\
scene: {task: pendulum}
engine: {use: pendulum, step_s: 0.01}
randomization: {physics: {bob_mass_kg: [0.5, 4.0]}}
around: {initial: {rate: [[-2, 2]]}}
search: {episodes: 96, side_by_side: 24, map: [bob_mass, rate], cells: 8}
seed: 3
"""


def box(points: Array) -> Array:
    """Fails around a point of four axes, in five of a thousand of all there is, and is rough along four more."""
    return np.abs(points[:, :4] - 0.8).sum(axis=1) - 0.3 + 0.01 * np.sin(40 * points[:, 4:]).sum(axis=1)


def searched(seed: int, episodes: int = 360) -> tuple[Array, Array]:
    search = Search(size=8, map=(0, 5), together=30, look=60, seed=seed)
    points: Array = np.empty((0, 8))
    found: Array = np.empty(0)
    while search.told < episodes:
        asked = search.ask(episodes - search.told).points
        search.tell(box(asked))
        points, found = np.concatenate([points, asked]), np.concatenate([found, box(asked)])
    return points, found


def test_it_finds_many_times_what_even_drawing_finds_and_the_same_again() -> None:
    evenly = float((box(np.random.default_rng(0).random((20_000, 8))) < 0).mean())
    points, found = searched(1)
    again, _ = searched(1, 210)
    other, _ = searched(2, 30)
    assert points[:210].tobytes() == again.tobytes()
    assert points[:30].tobytes() != other.tobytes()
    assert 0 < evenly < 0.02
    assert float((found < 0).mean()) > 10 * evenly
    assert bool(((points >= 0) & (points <= 1)).all())


def test_a_map_counts_every_episode_once_and_knows_the_worst_of_each_cell() -> None:
    points, found = searched(1, 120)
    made = Map(points, found, (0, 1), 8)
    assert sum(cell.tried for cell in made.found) == 120
    assert sum(cell.failed for cell in made.found) == int((found < 0).sum())
    for cell in made.found:
        inside = (np.minimum(points[:, :2] * 8, 7).astype(int) == np.array(cell.place)).all(axis=1)
        assert cell.margin == found[inside].min() == found[cell.worst]


AROUND = Around(
    pushes=(Pushes(body="bob", force_n=Range(0.0, 9.0), for_s=0.1),),
    latencies=(Latencies(steps=Range(0.0, 3.0)),),
    payloads=(Payloads(body="bob", mass_kg=Range(0.0, 0.5)),),
    initial={"angle": (Range(-1.0, 1.0),)},
)


def test_every_point_is_a_scenario_of_the_task_and_what_stays_is_no_axis() -> None:
    space = Space(pendulum(), pendulum().belief, AROUND)
    names = [axis.name for axis in space.axes]
    assert names[:4] == ["bob_mass", "hinge_damping", "angle", "push_bob_force"]
    assert "start_spread_rad" not in names
    assert "push_bob_for" not in names
    for number, point in enumerate(np.random.default_rng(1).random((50, len(names)))):
        one = space.scenario(point, number)
        scenarios.check(one, pendulum())
        assert scenarios.parse(scenarios.text(one)).hash == one.hash
        assert one.category == "adversarial"
    low, high = space.scenario(np.zeros(len(names)), 0), space.scenario(np.ones(len(names)), 1)
    assert low.disturbances == ()
    assert {type(one) for one in high.disturbances} == {Push, Latency, Payload}
    assert high.params == {"bob_mass": 1.2, "hinge_damping": 0.1}
    assert high.initial == {"angle": (1.0,)}
    assert low.seed != high.seed
    steps = next(one for one in high.disturbances if isinstance(one, Latency)).steps
    assert steps == 3


def fast(columns: Columns) -> Array:
    return np.abs(columns["rate"]) > 2.0


CASES: list[tuple[Task, Policy, Engine]] = [
    (pendulum(), Expert(), QUICK),
    (pendulum(), Random(), QUICK),
    (replace(pendulum(), failure=fast, failure_margin=None), Random(), QUICK),
    (replace(pendulum(), success_margin=None, failure_margin=None), Random(), QUICK),
    (replace(pick_and_place(), horizon_s=3.4), Placer(), Mujoco(threads=1)),
    (replace(velocity(), horizon_s=1.0), Trot(), Mujoco(threads=1)),
    (replace(velocity(), horizon_s=2.0), Zero(), Mujoco(threads=1)),
]


@pytest.mark.parametrize(("task", "policy", "engine"), CASES)
def test_the_margin_is_above_0_exactly_where_an_episode_succeeded(task: Task, policy: Policy, engine: Engine) -> None:
    for trajectory in rollout(policy, task, engine, n=12, seed=1):
        assert (margin(task, trajectory) > 0) == (trajectory.outcome == "success")


@pytest.mark.parametrize("task", [pendulum(), pick_and_place(), velocity()], ids=lambda task: task.name)
def test_the_margins_of_a_task_change_sign_where_its_scores_do(task: Task) -> None:
    engine = Mujoco(threads=1)
    [one] = rollout(Random(), replace(task, horizon_s=1.0), engine, n=1)
    rows = 4096
    rng = np.random.default_rng(0)
    columns = {
        name: value[rng.integers(0, len(value) - 1, rows)] * rng.uniform(0.0, 1.4, (rows, *[1] * (value.ndim - 1)))
        for name, value in one.columns.items()
        if name in task.state_schema
    }
    assert task.failure_margin is not None
    assert task.success_margin is not None
    failed, asked = task.failure(columns), task.success(columns)
    edge = 1e-6
    far, inside = task.failure_margin(columns), task.success_margin(columns)
    assert bool(np.all((far <= edge)[failed]))
    assert bool(np.all((far >= -edge)[~failed]))
    assert bool(np.all((inside >= -edge)[asked]))
    assert bool(np.all((inside <= edge)[~asked]))


def order(folder: Path, *overrides: str) -> falsify.Order:
    spec = folder / "spec.yaml"
    spec.write_text(SPEC)
    return falsify.load_order(spec, overrides=overrides, out=folder / "out")


def kept(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*.json*"))}


def test_a_search_that_was_stopped_comes_to_the_same_bytes_and_a_larger_one_goes_on(tmp_path: Path) -> None:
    whole = falsify.run(order(tmp_path), lambda _: None)
    before = kept(tmp_path / "out")
    assert whole.progress.failures > 0
    shutil.rmtree(tmp_path / "out" / "failures")
    tried = tmp_path / "out" / falsify.TRIED
    tried.write_bytes(tried.read_bytes()[: len(tried.read_bytes()) // 2])  # in the middle of a line
    again = falsify.run(order(tmp_path), lambda _: None)
    assert 0 < again.progress.kept < 96
    assert kept(tmp_path / "out") == before
    more = falsify.run(order(tmp_path, "search.episodes=130"), lambda _: None)
    assert more.progress.kept == 96
    with pytest.raises(DataError, match="another search"):
        _ = falsify.run(order(tmp_path, "seed=4"), lambda _: None)


def test_a_failure_is_replayed_by_its_hash(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = falsify.run(order(tmp_path), lambda _: None)
    one = next(one for one in found.progress.tried if one.margin < 0)
    assert main(["replay", one.hash[:12], "--in", str(tmp_path / "out")]) == 0
    assert f"{one.outcome} after" in capsys.readouterr().out
    changed = tmp_path / "out" / falsify.TRIED
    changed.write_text(changed.read_text().replace(f'"margin": {one.margin!r}', '"margin": -0.123'))
    assert main(["replay", one.hash[:12], "--in", str(tmp_path / "out")]) == 2
    assert suite_text.read(tmp_path / "out" / falsify.SUITE, pendulum()).categories == ("adversarial",)


def test_every_failure_fails_again_from_its_file_and_what_is_found_is_drawn(tmp_path: Path) -> None:
    asked = order(tmp_path)
    found = falsify.run(asked, lambda _: None)
    files = sorted((tmp_path / "out" / falsify.FAILURES).glob("*.json"))
    assert len(files) == found.progress.failures
    read = [scenarios.parse(path.read_text()) for path in files]
    by_hash = {one.hash: one for one in found.progress.tried}
    [block] = performed(asked.recipe, read)
    for one, value in zip(read, margins(asked.recipe.task, block), strict=True):
        assert value == by_hash[one.hash].margin < 0
    body = json.loads((tmp_path / "out" / falsify.MAP).read_text())["body"]
    assert sum(cell["failed"] for cell in body["found"]) == len(files)
    assert draw(found, tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    assert found.scenario(found.map.failing[0].worst).hash[:16] in page(found, tmp_path / "r.html").read_text()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("around.initial={agle: [1]}", "no state or goal 'agle'; try 'angle'"),
        ("around.initial={angle: [1, 2]}", "angle has 1 elements, not 2"),
        ("around.fixed=[bob_mas]", "no param 'bob_mas'; try 'bob_mass'"),
        ("around.dropouts=[{signal: rat}]", "no state or goal 'rat'; try 'rate'"),
    ],
)
def test_what_a_task_does_not_have_is_said_before_anything_runs(tmp_path: Path, change: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        _ = order(tmp_path, change)
    assert words in str(caught.value)


def test_what_only_the_engine_knows_is_said_before_anything_is_on_disk(tmp_path: Path) -> None:
    with pytest.raises(SimOpsError, match="no body 'bobb'"):
        _ = falsify.run(order(tmp_path, "around.pushes=[{body: bobb, force_n: [0, 2]}]"), lambda _: None)
    assert not (tmp_path / "out").exists()


def test_the_same_scenario_twice_is_one_in_the_suite(tmp_path: Path) -> None:
    found = falsify.run(order(tmp_path, "search.same_seed=true", "search.cells=2"), lambda _: None)
    suite = suite_text.read(tmp_path / "out" / falsify.SUITE, pendulum())
    assert len(suite.scenarios) == len({one.hash for one in suite.scenarios}) <= len(found.map.failing)
    assert {one.seed for one in suite.scenarios} == {found.scenario(0).seed}
