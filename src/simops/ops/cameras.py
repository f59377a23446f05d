"""What cameras see of the episodes of a dataset, kept beside them: colour, depth, ground truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

from simops.core.errors import SceneError
from simops.core.rollout import Recipe
from simops.core.trajectory import Trajectory
from simops.data.frames import films, keep
from simops.data.writer import Writer
from simops.sim.film import standing
from simops.sim.frames import Frames, Shooting
from simops.sim.render import Camera
from simops.sim.stage import Stage, stage

NAMELESS = "whole"
"""What films are called of a scene without cameras, which is looked at as a whole."""


@final
@dataclass(frozen=True)
class Cameras:
    """Which cameras record which episodes."""

    cameras: tuple[Camera, ...]
    film_every: int = 1
    """One episode in so many."""
    rate_hz: float = 10.0
    """Pictures a second; at most one a control step."""

    def due(self, episodes: Iterable[int]) -> Iterator[int]:
        """Those of the episodes that are filmed."""
        return (episode for episode in episodes if episode % self.film_every == 0)

    def unfilmed(self, episodes: Iterable[int], folder: Path) -> Iterator[int]:
        """Those of the episodes that are filmed, and whose films in `folder` are not all there."""
        there = {(film.episode, film.camera, film.kind) for film in films(folder)}
        wanted = [(camera.name or NAMELESS, kind) for camera in self.cameras for kind in camera.kinds]
        return (one for one in self.due(episodes) if any((one, *which) not in there for which in wanted))


def ready(plan: Cameras, recipe: Recipe) -> Cameras:
    """The plan with the names its cameras have in the scene; raises for one that no film can be made of."""
    scene = _stage(recipe)
    first = next(iter(scene.cameras), "")
    cameras = tuple(replace(camera, name=camera.name or first) for camera in plan.cameras)
    _ = Shooting(scene, cameras)
    for name, count in Counter(camera.name for camera in cameras).items():
        if count > 1:
            raise SceneError(f"camera {name!r} is there {count} times", attempt="one entry with all its kinds")
    return replace(plan, cameras=cameras)


def shoot(plan: Cameras, recipe: Recipe, trajectories: Iterable[Trajectory], writer: Writer) -> Iterator[Trajectory]:
    """Film these episodes where they are not filmed yet; gives each back when its films are on disk."""
    scene = _stage(recipe)
    every = max(1, round(1 / (plan.rate_hz * recipe.task.control_dt_s)))
    there = {film.name for film in films(writer.path)}
    with Shooting(scene, plan.cameras, every=every) as shooting:
        for one in trajectories:
            for frames in shooting.shoot(one, standing(scene, one, recipe.engine)):
                if f"{frames.camera or NAMELESS}-{frames.kind}-{one.episode:06d}" not in there:
                    _keep(writer, frames)
            yield one


def _stage(recipe: Recipe) -> Stage:
    return stage(replace(recipe.task, belief=recipe.belief or recipe.task.belief))


def _keep(writer: Writer, frames: Frames) -> None:
    facts = {"codec": frames.codec, "width": str(frames.width), "height": str(frames.height), "unit": frames.unit}
    facts |= {f"object_{value}": name for value, name in enumerate(frames.objects)}
    keep(
        writer,
        frames.episode,
        frames.camera or NAMELESS,
        frames.kind,
        frames.film,
        time_s=frames.time_s,
        step=frames.row,
        suffix=".mkv" if frames.lossless else ".mp4",
        facts=facts,
    )
