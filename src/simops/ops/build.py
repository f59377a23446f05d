"""From a spec to what runs: names become policies, ranges become a belief."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from simops.core.plugin import Registry
from simops.core.protocols import Policy
from simops.core.rollout import Recipe
from simops.ops.cameras import Cameras, ready
from simops.ops.factory import Pass
from simops.sim.render import Camera
from simops.spec.lock import lock
from simops.spec.run import EXPERT, Rollout, Run, load_run

OUT = Path("out")


def load_pass(path: Path, *, overrides: Sequence[str] = (), out: Path | None = None) -> Pass:
    """Read a spec and say what would run and where it would go; touches nothing."""
    loaded = load_run(path, overrides=overrides)
    run = loaded.value
    folder = out or run.out or OUT / f"{run.scene.task.name}-{loaded.digest.removeprefix('sha256:')[:8]}"
    recipe = recipe_of(run)
    return Pass(
        recipe=recipe,
        episodes=run.rollout.episodes,
        batch=run.rollout.parallel_envs,
        out=folder,
        lock=lock(loaded),
        cameras=_cameras(run.rollout, recipe),
    )


def recipe_of(run: Run) -> Recipe:
    """Everything that the episodes of a run depend on."""
    task = run.scene.task
    policy = expert_of(task.expert) if run.policy == EXPERT else run.policy
    return Recipe(
        policy=policy,
        task=task,
        engine=run.engine,
        sensors=run.sensors,
        belief=run.belief,
        seed=run.seed,
    )


def _cameras(asked: Rollout, recipe: Recipe) -> Cameras | None:
    if not asked.cameras:
        return None
    eyes = tuple(
        Camera(camera.name, camera.width, camera.height, camera.kinds, camera.optics) for camera in asked.cameras
    )
    return ready(Cameras(eyes, film_every=asked.film_every, rate_hz=asked.film_hz), recipe)


def expert_of(name: str) -> Policy:
    """Make the expert that a task names."""
    make = Registry[Policy]("policy").load(name)
    return make()
