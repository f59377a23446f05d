"""Episodes on show: run anew, or taken from a dataset."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from simops.cli.main import main
from simops.core.belief import Box
from simops.core.errors import EngineError
from simops.core.policy import Random
from simops.core.rollout import Recipe, wave
from simops.data.header import Header
from simops.data.writer import Writer
from simops.ops.picture import Order, show
from simops.sim.film import Cut
from simops.sim.mujoco import Mujoco
from simops.sim.render import FAST
from simops.sim.video import decode
from simops.tasks.pick_and_place.task import pick_and_place
from tests.gl import needs_gl

SMALL = Order(target="pick_and_place", policy="random", width=128, height=96, look=FAST, cut=Cut(fps=5, hold_s=0))


def dataset(folder: Path, texture: int) -> Path:
    task = pick_and_place()
    low = tuple(float(texture) if p.name == "texture" else p.nominal for p in task.belief.params)
    recipe = Recipe(
        policy=Random(),
        task=replace(task, horizon_s=0.2),
        engine=Mujoco(threads=1),
        belief=Box(task.belief.params, low, low),
    )
    with recipe.engine.open(recipe.task, 3) as sim, Writer.create(folder, Header.of(recipe)) as writer:
        writer.append(wave(recipe, sim, np.arange(3)))
    return folder


@needs_gl
def test_an_episode_is_run_and_shown_in_every_way(tmp_path: Path) -> None:
    wanted = [tmp_path / name for name in ("film.mp4", "sheet.png", "gallery.png")]
    shown = show(replace(SMALL, film=wanted[0], sheet=wanted[1], gallery=wanted[2], episodes=(3, 4), nominal=True))
    assert [made.path for made in shown.made] == wanted
    assert shown.trajectory.episode == 3
    assert shown.trajectory.params["texture"] == 0
    assert decode(wanted[0].read_bytes()).shape == (shown.made[0].frames, 96, 128, 3)


@needs_gl
def test_an_episode_of_a_dataset_is_shown_at_its_own_params(tmp_path: Path) -> None:
    looks: list[np.ndarray] = []
    for texture in (1, 2):
        data = dataset(tmp_path / f"data{texture}", texture)
        shown = show(replace(SMALL, target=str(data), episodes=(2,), gallery=tmp_path / f"{texture}.png"))
        assert shown.trajectory.episode == 2
        assert shown.trajectory.params["texture"] == texture
        with Image.open(tmp_path / f"{texture}.png") as page:
            looks.append(np.asarray(page).astype(int))
    assert np.abs(looks[0] - looks[1]).mean() > 5


def test_an_order_without_an_episode_is_refused() -> None:
    with pytest.raises(EngineError, match="no such episodes"):
        show(replace(SMALL, episodes=()))


@needs_gl
def test_the_command_says_what_it_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "sheet.png"
    words = ["render", "pendulum", "--fast", "--size", "128x96", "--sheet", str(out), "--policy", "zero"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert f"{out}  12 pictures" in said
    assert "episode 0: timeout" in said
    with Image.open(out) as page:
        assert page.width > 4 * 64
