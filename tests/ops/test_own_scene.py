"""Any URDF with a task of one's own in one file runs, and its dataset is shown by what its lock says."""

from __future__ import annotations

from pathlib import Path

import pytest

from simops.cli.main import main
from simops.data.store import Dataset
from tests.gl import needs_gl

URDF = """\
<robot name="swing">
  <mujoco><compiler discardvisual="false"/></mujoco>
  <link name="base"/>
  <link name="rod">
    <inertial>
      <origin xyz="0 0 -1"/><mass value="1"/>
      <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/>
    </inertial>
    <visual><origin xyz="0 0 -0.5"/><geometry><box size="0.1 0.1 1"/></geometry></visual>
  </link>
  <joint name="hinge" type="revolute">
    <parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>
    <limit lower="-6" upper="6" effort="50" velocity="50"/><dynamics damping="0.5"/>
  </joint>
</robot>
"""

OWN = """\
from pathlib import Path

import numpy as np

from simops.core.belief import Box
from simops.core.params import Change, Param
from simops.core.signal import Schema, Signal
from simops.core.task import Joint, Reading, Scene, Task, Term

ANGLE, RATE = Signal("angle", unit="rad"), Signal("rate", unit="rad/s")


def lift() -> Task:
    return Task(
        name="lift",
        scene=Scene(str(Path(__file__).parent / "swing.urdf"), robot="swing"),
        state=(Reading(ANGLE, Joint(("hinge",))), Reading(RATE, Joint(("hinge",), "velocity"))),
        action=Signal("torque", (1,), "N m", labels=("hinge",), low=(-9.0,), high=(9.0,)),
        observation=Schema((ANGLE, RATE)),
        control_dt_s=0.02,
        horizon_s=0.8,
        belief=Box((Param("mass", 1.0, "kg", low=0.1, changes=(Change("mass", ("rod",)),)),), (0.8,), (1.2,)),
        initial=lambda draw: {"angle": np.full(len(draw.seeds), 0.2)},
        reward=(Term("height", 1.0, lambda c: -np.cos(c["angle"])),),
        failure=lambda c: np.abs(c["rate"]) > 30.0,
        success=lambda c: np.abs(c["angle"]) > 1.0,
    )


class Push:
    digest = "push"

    def start(self, task, seeds):
        return {"rows": np.zeros(len(seeds), bool)}

    def act(self, observation, memory):
        from simops.core.protocols import Act

        return Act(np.full((len(observation), 1), -9.0), memory)
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project about a URDF, as the working folder."""
    (tmp_path / "swing.urdf").write_text(URDF)
    (tmp_path / "lift.py").write_text(OWN)
    spec = "scene: {task: './lift.py:lift'}\npolicy: './lift.py:Push'\nrollout: {parallel_envs: 8}\nout: data\n"
    (tmp_path / "spec.yaml").write_text(spec)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_urdf_with_ones_own_task_in_one_file_runs(own: Path) -> None:
    """Its motors are torques on the joints that the action names: pushed, it rises; left alone, it does not."""
    assert main(["rollout", "spec.yaml"]) == 0
    pushed = Dataset.open(own / "data")
    assert main(["rollout", "spec.yaml", "--set", "policy=zero", "--out", "still"]) == 0
    still = Dataset.open(own / "still")
    assert [pushed.outcomes.get("success"), still.outcomes.get("timeout")] == [8, 8]
    mass = pushed.episodes()["param_mass"]
    assert (mass.min() >= 0.8, mass.max() <= 1.2, len(set(mass.tolist()))) == (True, True, 8)
    executed = pushed.trajectory(0).columns["executed"][:-1]
    assert executed.ravel().tolist() == [-9.0] * len(executed)


@needs_gl
def test_a_dataset_about_ones_own_task_is_shown_from_its_lock(
    own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["rollout", "spec.yaml"]) == 0
    picture = ["--fast", "--size", "64x48", "--sheet", str(own / "sheet.png")]
    assert main(["render", "data", *picture]) == 0
    assert "episode 0: success" in capsys.readouterr().out
    elsewhere = own / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert main(["render", str(own / "data"), *picture]) == 2
    said = capsys.readouterr().err
    assert "the task 'lift' of the dataset is not here: " in said
    assert "--task ./file.py:task" in said
    (elsewhere / "swing.urdf").write_text(URDF)
    (elsewhere / "mine.py").write_text(OWN)
    assert main(["render", str(own / "data"), "--task", "./mine.py:lift", *picture]) == 0
