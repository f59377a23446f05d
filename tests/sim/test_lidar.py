"""Beams get as far as geometry says; a LiDAR adds what it is told to."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simops.core.belief import Box
from simops.core.errors import EngineError
from simops.core.params import Params
from simops.core.signal import Array, Schema, Signal
from simops.core.task import Draw, Joint, Reading, Scan, Scene, Task, beams
from simops.sim.lidar import Lidar
from simops.sim.mujoco import Mujoco
from simops.sim.pendulum import Pendulum
from simops.sim.timing import Timing
from simops.testing.sensor import check_sensor

SCENE = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="20 20 0.1"/>
    <geom name="wall" type="box" size="0.1 50 5" pos="3.1 0 5"/>
    <body name="cart" pos="0 0 1">
      <joint name="x" type="slide" axis="1 0 0"/>
      <geom type="box" size="0.2 0.2 0.2" mass="1"/>
      <site name="eye"/>
    </body>
  </worldbody>
  <actuator><motor name="push" joint="x"/></actuator>
</mujoco>
"""
BEAMS = beams(rings=3, points=25, across_deg=(-60, 60), up_deg=(-20, 20))
N = 4


def cart(folder: Path) -> Task:
    (folder / "cart.xml").write_text(SCENE)
    state = (
        Reading(Signal("x", (1,), "m"), Joint(("x",))),
        Reading(Signal("scan", (len(BEAMS),), "m"), Scan("eye", BEAMS)),
        Reading(Signal("facing", (len(BEAMS),)), Scan("eye", BEAMS, "incidence")),
    )
    return Task(
        name="cart",
        scene=Scene(str(folder / "cart.xml")),
        state=state,
        action=Signal("push", (1,), "N", labels=("push",), low=(-1.0,), high=(1.0,)),
        observation=Schema((state[1].signal,)),
        control_dt_s=0.02,
        horizon_s=1.0,
        belief=Box((), (), ()),
        initial=lambda draw: {"x": np.zeros((len(draw.seeds), 1))},
        failure=lambda c: np.zeros(len(c["x"]), bool),
        success=lambda c: np.zeros(len(c["x"]), bool),
    )


def draw(step: int = 0) -> Draw:
    return Draw(Params((), np.zeros((N, 0))), np.arange(1, N + 1, dtype=np.uint64), np.full(N, step))


def read(task: Task, at: Array) -> dict[str, Array]:
    with Mujoco(threads=1).open(task, N) as sim:
        sim.reset(np.arange(N), Params((), np.zeros((N, 0))), {"x": at[:, None]})
        return {name: np.array(rows) for name, rows in sim.read().items()}


def test_beams_meet_wall_and_floor_where_geometry_says(tmp_path: Path) -> None:
    at = np.array([0.0, 0.5, 1.0, -2.0])
    found = read(cart(tmp_path), at)
    ways = np.array(BEAMS)
    wall = (3.0 - at[:, None]) / ways[None, :, 0]
    with np.errstate(divide="ignore"):
        floor = np.where(ways[:, 2] < 0, -1.0 / ways[:, 2], np.inf)
    hit = np.minimum(wall, floor[None])
    np.testing.assert_allclose(found["scan"], hit, rtol=1e-5)
    facing = np.where(wall <= floor[None], ways[None, :, 0], -ways[None, :, 2])
    np.testing.assert_allclose(found["facing"], np.broadcast_to(facing, hit.shape), atol=1e-5)


def test_a_turn_covers_the_circle_once() -> None:
    rows = np.array(beams(rings=1, points=90, across_deg=(0, 360)))
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0)
    assert len(np.unique(np.round(rows, 9), axis=0)) == 90


@pytest.mark.parametrize(
    "lidar",
    [
        Lidar(),
        Lidar(noise_m=0.01, noise_share=0.002, step_m=0.002, lost=0.1, near_m=0.1, far_m=8.0),
        Lidar(incidence="facing", dark=0.05, sweep_s=0.015, timing=Timing(rate_hz=20.0, delay_s=0.03, dropout=0.1)),
    ],
)
def test_it_passes_its_kit(tmp_path: Path, lidar: Lidar) -> None:
    check_sensor(lidar, cart(tmp_path))


def test_noise_is_as_told_and_lost_beams_show_zero(tmp_path: Path) -> None:
    task, truth = cart(tmp_path), read(cart(tmp_path), np.zeros(N))
    lidar = Lidar(noise_m=0.02, lost=0.25)
    shown: list[Array] = []
    memory = lidar.start(task, draw())
    for step in range(60):
        columns, memory = lidar.sense(truth, draw(step), memory)
        shown.append(columns["scan"])
    rows = np.stack(shown)
    lost = rows == 0
    assert lost.mean() == pytest.approx(0.25, abs=0.02)
    assert (rows - truth["scan"])[~lost].std() == pytest.approx(0.02, rel=0.03)


def test_dark_beams_fade_with_distance_and_slant(tmp_path: Path) -> None:
    task, truth = cart(tmp_path), read(cart(tmp_path), np.zeros(N))
    lidar = Lidar(incidence="facing", dark=0.1)
    memory = lidar.start(task, draw())
    back = np.zeros(len(BEAMS))
    for step in range(200):
        columns, memory = lidar.sense(truth, draw(step), memory)
        back += (columns["scan"] > 0).mean(axis=0)
    bright = truth["facing"][0] / truth["scan"][0] ** 2
    np.testing.assert_allclose(back / 200, bright / (bright + 0.1), atol=0.08)


def test_a_sweep_bends_what_moves_by_how_far_it_moved(tmp_path: Path) -> None:
    task = cart(tmp_path)
    before, now = read(task, np.zeros(N)), read(task, np.full(N, 0.1))
    lidar = Lidar(sweep_s=0.01)
    memory = lidar.start(task, draw())
    _, memory = lidar.sense(before, draw(0), memory)
    columns, _ = lidar.sense(now, draw(1), memory)
    share = np.linspace(0.01, 0.0, len(BEAMS)) / 0.02
    wanted = now["scan"] + share * (before["scan"] - now["scan"])
    np.testing.assert_allclose(columns["scan"], wanted, rtol=1e-6)
    assert np.abs(columns["scan"] - now["scan"]).max() > 0.03


def test_an_engine_without_rays_says_so(tmp_path: Path) -> None:
    with pytest.raises(EngineError), Pendulum().open(cart(tmp_path), 1):
        pass
