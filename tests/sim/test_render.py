"""Pictures: what is randomised shows, what is measured is right, and what is filmed plays back."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from simops.core.belief import Box
from simops.core.errors import DataError, EngineError, ExtraError, SceneError
from simops.core.params import Change, Param
from simops.core.policy import Zero
from simops.core.rollout import rollout
from simops.core.signal import Array, Columns, Schema, Signal
from simops.core.task import Body, Draw, Joint, Reading, Scene, Site, Task
from simops.core.trajectory import Trajectory
from simops.sim import gl
from simops.sim.film import CELL, Cut, film, gallery, sheet, standing
from simops.sim.frames import Shooting
from simops.sim.mujoco import Mujoco
from simops.sim.render import FAST, KINDS, Camera, Look, Picture, Studio
from simops.sim.stage import poses, stage, undetermined
from simops.sim.texture import texture
from simops.sim.video import decode, encode
from tests.gl import needs_gl

HEIGHT_M = 1.0
"""Of the camera over the floor."""
SCENE = """
<mujoco>
  <visual>
    <headlight ambient="0.1 0.1 0.1" diffuse="0.2 0.2 0.2" specular="0 0 0"/>
    <map znear="0.01" zfar="20"/>
  </visual>
  <statistic extent="1" center="0 0 0"/>
  <asset>
    <texture name="own" type="2d" builtin="checker" width="64" height="64" rgb1="0.4 0.4 0.4" rgb2="0.5 0.5 0.5"/>
    <material name="ground" texture="own"/>
    <material name="paint" rgba="0.8 0.3 0.2 1"/>
  </asset>
  <worldbody>
    <light name="sun" pos="0 0 3" dir="0 0 -1" directional="true" diffuse="0.2 0.2 0.2" specular="0 0 0"/>
    <geom name="floor" type="plane" size="5 5 0.1" material="ground"/>
    <camera name="above" pos="0 0 1"/>
    <camera name="aslant" pos="0 -1 1" xyaxes="1 0 0 0 0.7 0.7"/>
    <body name="slider" pos="0 0 0.1">
      <joint name="slide" type="slide" axis="1 0 0"/>
      <geom name="cube" type="box" size="0.1 0.1 0.1" mass="1" material="paint"/>
      <site name="top" pos="0 0 0.1"/>
    </body>
  </worldbody>
  <actuator><motor name="push" joint="slide"/></actuator>
</mujoco>
"""
SLIDE = Reading(Signal("slide"), Joint(("slide",)))
ABOVE = Camera("above", 64, 48, KINDS)


def never(columns: Columns) -> Array:
    return np.zeros(len(columns["time_s"]), bool)


def begin(draw: Draw) -> Columns:
    return {"slide": np.full(len(draw.seeds), 0.05)}


def slider(folder: Path, *, state: tuple[Reading, ...] = (SLIDE,), begin: Callable[[Draw], Columns] = begin) -> Task:
    path = folder / "scene.xml"
    path.write_text(SCENE)
    params = (
        Param("surface", 0, low=0, high=50, changes=(Change("texture", ("ground", "paint")),), integer=True),
        Param("light", 1.0, low=0.0, high=3.0, changes=(Change("light", how="scale"),)),
        Param("pan", 0.0, "rad", changes=(Change("camera_pan", ("above",), how="add"),)),
        Param("tilt", 0.0, "rad", changes=(Change("camera_tilt", how="add"),)),
        Param("roll", 0.0, "rad", changes=(Change("camera_roll", how="add"),)),
    )
    nominal = tuple(param.nominal for param in params)
    return Task(
        name="slider",
        scene=Scene(str(path)),
        state=state,
        action=Signal("push", (1,), "N", labels=("push",), low=(-1.0,), high=(1.0,)),
        observation=Schema((state[0].signal,)),
        control_dt_s=0.02,
        horizon_s=0.4,
        belief=Box(params, nominal, nominal),
        initial=begin,
        failure=never,
        success=never,
    )


def episode(task: Task) -> Trajectory:
    return rollout(Zero(), task, Mujoco(threads=1))[0]


def photo(task: Task, point: Mapping[str, float], camera: Camera = ABOVE, look: Look = FAST) -> Picture:
    scene = stage(task)
    with Studio(scene, (camera,), look=look) as studio:
        studio.dress(point)
        studio.pose(poses(scene, episode(task)), 0)
        return studio.picture(camera)


def rgb(picture: Picture) -> Array:
    assert picture.rgb is not None
    return picture.rgb.astype(int)


@given(st.integers(0, 10_000))
@settings(max_examples=20)
def test_a_texture_is_a_function_of_its_number(number: int) -> None:
    drawn = texture(number, side=64)
    assert drawn.shape == (64, 64, 3)
    assert drawn.dtype == np.uint8
    np.testing.assert_array_equal(drawn, texture(number, side=64))
    assert drawn.std() > 1.0


def test_no_two_textures_of_a_pool_are_alike() -> None:
    pool = [texture(number, side=32).astype(int) for number in range(200)]
    apart = [np.abs(a - b).mean() for i, a in enumerate(pool) for b in pool[:i]]
    assert min(apart) > 2.0


def test_textures_repeat_without_a_seam() -> None:
    for number in (0, 3, 6, 9):  # smooth kinds
        drawn = texture(number).astype(int)
        seam = np.abs(drawn[0] - drawn[-1]).mean()
        inside = np.abs(np.diff(drawn, axis=0)).mean(axis=(1, 2)).max()
        assert seam <= 2 * inside + 1


@needs_gl
def test_each_texture_shows_and_zero_is_the_scene_as_modelled(tmp_path: Path) -> None:
    task = slider(tmp_path)
    scene, seen = stage(task), poses(stage(task), episode(task))
    with Studio(scene, (ABOVE,), look=FAST) as studio:
        shots: dict[int, Array] = {}
        for number in (0, 1, 2, 3):
            studio.dress({"surface": number})
            studio.pose(seen, 0)
            shots[number] = rgb(studio.picture(ABOVE))
        studio.dress({"surface": 0})
        np.testing.assert_array_equal(rgb(studio.picture(ABOVE)), shots[0])
    apart = [np.abs(shots[a] - shots[b]).mean() for a, b in itertools.combinations(shots, 2)]
    assert min(apart) > 5.0
    cube = shots[0][24, 32]
    assert cube[0] > 2 * cube[2]  # the paint is red


@needs_gl
def test_one_param_puts_different_textures_on_different_materials(tmp_path: Path) -> None:
    scene = stage(slider(tmp_path))
    ground, paint = scene.slots
    assert ground.number(7) == 7
    assert paint.number(7) not in {0, 7}
    assert ground.number(0) == paint.number(0) == 0
    assert {paint.number(n) for n in range(1, 50)} == set(range(1, 50))


@needs_gl
def test_more_light_is_brighter(tmp_path: Path) -> None:
    task = slider(tmp_path)
    brightness = [rgb(photo(task, {"light": value})).mean() for value in (0.0, 0.3, 0.7, 1.0, 1.4, 1.8)]
    assert np.all(np.diff(brightness) > 3.0)


@needs_gl
@pytest.mark.parametrize(("param", "axis", "sign"), [("pan", 1, 1), ("tilt", 0, 1)])
def test_a_turned_camera_moves_the_picture_by_the_angle(tmp_path: Path, param: str, axis: int, sign: int) -> None:
    task, angle = slider(tmp_path), 0.1
    before, after = (photo(task, {param: value}).segmentation for value in (0.0, angle))
    assert before is not None
    assert after is not None
    objects = stage(task).objects
    moved = [np.argwhere(seen == objects.index("slider")).mean(axis=0)[axis] for seen in (before, after)]
    focal = 24 / math.tan(math.radians(45 / 2))
    assert sign * (moved[1] - moved[0]) == pytest.approx(focal * math.tan(angle), rel=0.25)


@needs_gl
def test_roll_turns_the_picture_about_its_middle(tmp_path: Path) -> None:
    task = slider(tmp_path, begin=lambda draw: {"slide": np.zeros(len(draw.seeds))})
    square = Camera("above", 64, 64, ("segmentation",))
    before, after = (photo(task, {"roll": value}, square).segmentation for value in (0.0, math.pi / 4))
    assert before is not None
    assert after is not None
    extent = [np.ptp(np.argwhere(seen == seen[32, 32])[:, 0]) for seen in (before, after)]
    assert extent[1] / extent[0] == pytest.approx(math.sqrt(2), rel=0.15)


@needs_gl
@pytest.mark.parametrize("look", [FAST, Look()])
def test_depth_of_known_planes_is_right_to_a_millimetre(tmp_path: Path, look: Look) -> None:
    picture = photo(slider(tmp_path), {}, Camera("above", 128, 96, KINDS), look)
    assert picture.depth_m is not None
    assert picture.depth_m.dtype == np.float32
    assert abs(picture.depth_m[5:90, 5:30] - HEIGHT_M).max() < 1e-3  # along the axis, not along the ray
    assert abs(picture.depth_m[48, 64] - (HEIGHT_M - 0.2)) < 1e-3


@needs_gl
def test_segmentation_names_what_each_pixel_shows(tmp_path: Path) -> None:
    task = slider(tmp_path)
    picture = photo(task, {}, Camera("aslant", 64, 48, ("segmentation",)))
    assert picture.rgb is None
    assert picture.segmentation is not None
    names = np.array(stage(task).objects)[picture.segmentation]
    assert set(names.ravel()) == {"world", "slider"}
    assert names[24, 34] == "slider"
    assert names[-1, 0] == "world"


@needs_gl
def test_poses_read_from_the_state_are_those_of_the_replay(tmp_path: Path) -> None:
    told = slider(tmp_path)
    untold = slider(tmp_path, state=(Reading(Signal("top", (3,)), Site("top")),), begin=lambda _: {})
    assert undetermined(stage(told)) == ()
    assert undetermined(stage(untold)) == ("slide",)
    one = episode(untold)
    with pytest.raises(SceneError, match="slide"):
        standing(stage(untold), one)
    replayed = standing(stage(untold), one, Mujoco(threads=1))
    assert len(replayed) == len(one)  # a replay stops short of the last row
    read = poses(stage(told), episode(slider(tmp_path, begin=lambda _: {})))
    np.testing.assert_allclose(read.qpos[:-1], replayed.qpos, atol=1e-6)


@needs_gl
def test_an_unknown_camera_is_named_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(SceneError, match="abov") as caught:
        photo(slider(tmp_path), {}, Camera("abov", 64, 48))
    assert caught.value.attempt == "'above'"


@needs_gl
def test_a_film_plays_back_with_every_frame(tmp_path: Path) -> None:
    task = slider(tmp_path)
    one, seen = episode(task), Camera("above", 128, 96)
    progress: list[tuple[int, int]] = []
    cut = Cut(fps=25, hold_s=0.2)
    for name in ("film.mp4", "film.gif"):
        made = film(
            one,
            task,
            None,
            tmp_path / name,
            camera=seen,
            look=FAST,
            cut=cut,
            progress=lambda done, total: progress.append((done, total)),
        )
        assert (made.rendered, made.frames) == (11, 16)  # 0.4 s and both ends, then 0.2 s held
        assert made.size == made.path.stat().st_size
    assert progress == 2 * [(i + 1, 11) for i in range(11)]
    assert decode((tmp_path / "film.mp4").read_bytes()).shape == (16, 96, 128, 3)
    with Image.open(tmp_path / "film.gif") as moving:
        length_ms = 0
        for i in range(getattr(moving, "n_frames", 1)):
            moving.seek(i)
            length_ms += int(moving.info["duration"])
        assert (moving.size, length_ms) == ((128, 96), 16 * 40)  # equal frames may be stored as one
    assert not list(tmp_path.glob(".*.part"))


@needs_gl
def test_sheets_are_grids_of_cells(tmp_path: Path) -> None:
    task = slider(tmp_path)
    one = episode(task)
    wide = sheet(one, task, None, tmp_path / "sheet.png", look=FAST, moments=6, columns=3)
    many = gallery([one, one], task, None, tmp_path / "gallery.png", look=FAST, moment=1.0)
    assert (wide.frames, many.frames) == (6, 2)
    with Image.open(wide.path) as page:
        assert page.width > 3 * CELL.width
        assert page.height > 2 * CELL.height


@needs_gl
def test_files_of_other_kinds_are_refused(tmp_path: Path) -> None:
    task = slider(tmp_path)
    with pytest.raises(EngineError, match="avi"):
        film(episode(task), task, None, tmp_path / "film.avi")
    with pytest.raises(EngineError, match="127x96"):
        film(episode(task), task, None, tmp_path / "film.mp4", camera=Camera("above", 127, 96))


@needs_gl
def test_frames_of_a_dataset_decode_to_what_was_seen(tmp_path: Path) -> None:
    task = slider(tmp_path)
    scene, one = stage(task), episode(task)
    stood = poses(scene, one)
    with Shooting(scene, (ABOVE,), codec="ffv1", every=4) as shooting:
        found = {frames.kind: frames for frames in shooting.shoot(one, stood)}
    assert set(found) == set(KINDS)
    direct = photo(task, one.params)
    assert direct.depth_m is not None
    np.testing.assert_array_equal(found["rgb"].pixels()[0], direct.rgb)
    np.testing.assert_array_equal(found["segmentation"].pixels()[0], direct.segmentation)
    np.testing.assert_allclose(found["depth"].pixels()[0], direct.depth_m, atol=0.0005001)
    assert found["segmentation"].objects.index("slider") in found["segmentation"].pixels()
    np.testing.assert_array_equal(found["rgb"].row, np.arange(0, len(one) + 1, 4))
    np.testing.assert_allclose(found["depth"].time_s, found["depth"].row * task.control_dt_s)
    assert found["depth"].unit == "mm"


@pytest.mark.parametrize(("codec", "loss"), [("h264", 4.0), ("av1", 6.0)])
def test_lossy_films_keep_what_the_eye_sees(codec: str, loss: float) -> None:
    across = np.linspace(40, 200, 64)
    frames = [np.stack([np.tile(across + 4 * i, (48, 1))] * 3, axis=2).astype(np.uint8) for i in range(5)]
    back = decode(encode(frames, fps=25, codec="av1" if codec == "av1" else "h264"))
    assert back.shape == (5, 48, 64, 3)
    assert np.abs(back.astype(int) - np.stack(frames).astype(int)).mean() < loss


@given(st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=10)
def test_a_lossless_film_gives_every_bit_back(seed: int, deep: bool) -> None:  # noqa: FBT001 - hypothesis passes by name
    chance = np.random.default_rng(seed)
    shape = (3, 18, 22) if deep else (3, 18, 22, 3)
    frames = chance.integers(0, 65536 if deep else 256, shape).astype(np.uint16 if deep else np.uint8)
    np.testing.assert_array_equal(decode(encode(list(frames), fps=50, codec="ffv1")), frames)


def test_what_is_no_film_is_refused() -> None:
    with pytest.raises(DataError, match="does not decode"):
        decode(b"not a film")
    with pytest.raises(DataError, match="no frames"):
        encode([], fps=25)


def test_without_a_library_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr(gl, "LIBRARIES", {"egl": "libNoSuchEGL.so", "osmesa": "libNoSuchMesa.so"})
    with pytest.raises(ExtraError) as caught:
        gl.backend()
    assert "apt-get install" in caught.value.attempt


def test_a_context_that_cannot_be_made_is_an_engine_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", "osmesa")
    monkeypatch.setenv("PYOPENGL_PLATFORM", "nonsense")
    monkeypatch.delitem(sys.modules, "mujoco.osmesa", raising=False)  # it looks when it is imported
    with pytest.raises((EngineError, ExtraError)) as caught:
        gl.context(16, 16)
    assert caught.value.attempt


def test_a_free_body_is_where_its_state_says(tmp_path: Path) -> None:
    path = tmp_path / "free.xml"
    path.write_text(
        '<mujoco><worldbody><body name="ball"><freejoint name="ball"/><geom size="0.1"/></body></worldbody></mujoco>'
    )
    state = (
        Reading(Signal("place", (3,)), Body("ball")),
        Reading(Signal("turn", (4,)), Body("ball", "quaternion")),
    )
    task = Task(
        name="free",
        scene=Scene(str(path)),
        state=state,
        action=Signal("nothing", (0,)),
        observation=Schema((state[0].signal,)),
        control_dt_s=0.02,
        horizon_s=0.1,
        belief=Box((), (), ()),
        initial=lambda draw: {"place": np.tile([0.1, 0.2, 3.0], (len(draw.seeds), 1))},
        failure=never,
        success=never,
    )
    one = episode(task)
    stood = poses(stage(task), one)
    np.testing.assert_allclose(stood.qpos[:, :3], one["place"], atol=1e-7)
    np.testing.assert_allclose(stood.qpos[:, 3:], one["turn"], atol=1e-7)
