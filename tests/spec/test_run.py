from __future__ import annotations

import math
from pathlib import Path
from typing import Any, cast

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from simops.core.belief import Box
from simops.core.errors import SpecError
from simops.core.policy import Random
from simops.spec.lock import lock
from simops.spec.plugins import installed_plugins
from simops.spec.run import Run, load_run
from simops.spec.schema import json_schema

FIELD = """\
scene: {robot: franka_panda, task: pick_and_place}
randomization:
  visual: {texture_pool: 200, lighting_intensity: [0.3, 1.8], camera_jitter_deg: [-5, 5]}
  physics: {object_mass_kg: [0.05, 0.4], friction_coefficient: [0.2, 1.1], object_position_noise_cm: [-2, 2]}
rollout: {parallel_envs: 4096, episodes_per_env: 50}
"""

TEN_MISTAKES = """\
scene: {robot: franka_pand, task: pick_and_place}
randomization:
  visual: {texture_pol: 200, lighting_intensity: [-0.3, 1.8], camera_jitter_deg: [5, -5]}
  physics:
    object_mass_cm: [0.05, 0.4]
    friction_coefficient: .nan
    object_position_noise: [-2, 2]
rollout: {paralel_envs: 4096, episodes_per_env: '50'}
engine: mujocoo
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "run.yaml"
    path.write_text(FIELD)
    return path


def complaints(path: Path, *overrides: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load_run(path, overrides=overrides)
    return [str(problem) for problem in caught.value.problems]


def test_the_spec_from_the_field_loads_as_it_stands(spec: Path) -> None:
    run = load_run(spec).value
    assert run.scene.task.name == "pick_and_place"
    assert run.rollout.episodes == 204_800
    assert (run.policy, run.sensors, run.seed, run.out) == ("expert", (), 0, None)
    belief = run.belief
    assert isinstance(belief, Box)
    low, high = (dict(zip((p.name for p in belief.params), row, strict=True)) for row in (belief.low, belief.high))
    assert (low["object_mass"], high["object_mass"]) == (0.05, 0.4)
    assert (low["camera_jitter_pan"], high["camera_jitter_tilt"]) == pytest.approx((-math.pi / 36, math.pi / 36))
    assert (low["object_position_noise_x"], high["object_position_noise_y"]) == (-0.02, 0.02)
    assert (low["texture"], high["texture"]) == (0, 200)


def test_ten_mistakes_are_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(TEN_MISTAKES)
    with pytest.raises(SpecError) as caught:
        load_run(path)
    words = str(caught.value).replace(str(path), "run.yaml")
    assert (
        words
        == """\
run.yaml has 10 problems
  line 1: scene.robot: pick_and_place is not for 'franka_pand'; try 'franka_panda' [CFG-012]
  line 3: randomization.visual.camera_jitter_deg: low 5.0 is above high -5.0; try [-5.0, 5.0] [CFG-005]
  line 3: randomization.visual.texture_pol: the task has no param 'texture_pol'; try 'texture_pool' [CFG-001]
  line 3: randomization.visual.lighting_intensity: [-0.3, 1.8] is impossible for lighting_intensity, \
want at least 0 and at most 10 [CFG-005]
  line 5: randomization.physics.object_mass_cm: object_mass is measured in kg, not in cm; \
try 'object_mass_kg' or 'object_mass_g' [CFG-006]
  line 6: randomization.physics.friction_coefficient: .nan is not a finite number [CFG-004]
  line 7: randomization.physics.object_position_noise: object_position_noise is measured in m, \
and the key names no unit; try 'object_position_noise_m' or 'object_position_noise_cm' or \
'object_position_noise_mm' [CFG-006]
  line 8: rollout.paralel_envs: unknown key; try 'parallel_envs' [CFG-001]
  line 8: rollout.episodes_per_env: '50' is a str, want int [CFG-002]
  line 9: engine: no engine is called 'mujocoo'; try 'mujoco' [CFG-001]"""
    )
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (("seed=1e3",), "--set seed: 1000.0 is a float, want int [CFG-002]"),
        (("scene.robot=ur5",), "--set scene.robot: pick_and_place is not for 'ur5'; try 'franka_panda' [CFG-012]"),
        (("scene.task=pick_and_plac",), "--set scene.task: no task is called 'pick_and_plac'; try 'pick_and_place'"),
        (("scene.task=os:system",), "--set scene.task: no Python file 'os'"),
        (("scene.task=../mine.py:Task",), "--set scene.task: '../mine.py' is outside the project"),
        (("randomization.physics.object_mass_kg=[1, 9]",), "--set randomization.physics.object_mass_kg: [1, 9] is imp"),
    ],
)
def test_one_mistake(spec: Path, overrides: tuple[str, ...], words: str) -> None:
    [found] = complaints(spec, *overrides)
    assert found.removeprefix("line 1: ").startswith(words)


def test_code_may_come_from_the_folder_of_the_spec(spec: Path) -> None:
    code = "from simops.tasks.pendulum.task import pendulum\ndef mine():\n    return pendulum()\n"
    (spec.parent / "mine.py").write_text(code)
    spec.write_text("scene: {task: ./mine.py:mine}\nengine: pendulum\n")
    assert load_run(spec).value.scene.task.name == "pendulum"


def test_a_task_without_an_expert_wants_a_policy(spec: Path) -> None:
    code = "import dataclasses\nfrom simops.tasks.pendulum.task import pendulum\n"
    (spec.parent / "mine.py").write_text(f"{code}def mine():\n    return dataclasses.replace(pendulum(), expert='')\n")
    spec.write_text("scene: {task: ./mine.py:mine}\n")
    assert complaints(spec) == ["line 1: policy: pendulum has no expert; try naming a policy, as 'random' [CFG-001]"]
    assert load_run(spec, overrides=("policy=random",)).value.policy == Random()


def test_the_lock_runs_the_same(spec: Path) -> None:
    loaded = load_run(spec, overrides=("engine.threads=1", "out=somewhere", "engine.motor=pd"))
    path = spec.with_suffix(".lock")
    path.write_text(lock(loaded))
    again = load_run(path)
    assert again.digest == loaded.digest
    assert again.value.belief == loaded.value.belief
    assert again.value.scene.task.name == loaded.value.scene.task.name
    assert lock(again) == lock(loaded)
    assert complaints(path, "seed=3") == ["--set seed=3: a lock cannot be changed; try the spec [CFG-008]"]
    path.write_text(path.read_text().replace("seed: 0", "seed: 1"))
    assert "[CFG-008]" in complaints(path)[0]


def test_the_schema_accepts_the_spec_from_the_field(spec: Path) -> None:
    validator = cast("Any", Draft202012Validator(cast("Any", json_schema(Run, plugins=installed_plugins()))))
    read = cast("Any", YAML(typ="safe", pure=True)).load
    assert list(validator.iter_errors(read(FIELD))) == []
    assert list(validator.iter_errors(load_run(spec).plain)) == []
    assert not validator.is_valid(read(TEN_MISTAKES.replace(".nan", "x")))
