"""Films and contact sheets of recorded episodes."""

from __future__ import annotations

import errno
import io
import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, final

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from simops.core.errors import DataError, EngineError, SpaceError
from simops.core.protocols import Engine
from simops.core.rollout import replay
from simops.core.signal import Array
from simops.core.task import Task
from simops.core.trajectory import Outcome, Trajectory
from simops.sim.render import Camera, Look, Studio
from simops.sim.stage import Poses, Stage, Watcher, poses, stage, undetermined
from simops.sim.video import encode, gif

Progress: TypeAlias = Callable[[int, int], None]
"""Called with how many pictures are done, and how many there will be."""

CELL = Camera(width=320, height=240)
"""A picture of a contact sheet."""
_COLOUR: dict[Outcome, tuple[int, int, int]] = {
    "success": (92, 214, 128),
    "failure": (240, 96, 88),
    "timeout": (244, 190, 84),
    "diverged": (226, 110, 232),
}


@final
@dataclass(frozen=True, kw_only=True)
class Cut:
    """Pace of a film, and whether it says what it shows."""

    fps: float = 25.0
    """Frames a second."""
    speed: float = 1.0
    """How much faster than it happened."""
    hold_s: float = 0.6
    """How long the last frame stays."""
    caption: bool = True
    """Whether task, episode, time and outcome are written into the frames."""

    def __post_init__(self) -> None:
        if not (1 <= self.fps <= 240 and 0.01 <= self.speed <= 100 and 0 <= self.hold_s <= 60):
            attempt = "fps 1 to 240, speed 0.01 to 100, hold_s 0 to 60"
            raise EngineError(
                f"no film has {self.fps} frames a second at {self.speed} times its speed", attempt=attempt
            )


@final
@dataclass(frozen=True)
class Made:
    """A film or sheet on disk, and what it took."""

    path: Path
    frames: int
    """Pictures in it."""
    rendered: int
    """Of which were rendered; the rest is the last one, held."""
    size: int
    """Bytes."""
    render_s: float
    """Seconds spent rendering, without encoding."""

    @property
    def rendered_per_s(self) -> float:
        """Pictures rendered a second."""
        return self.rendered / max(self.render_s, 1e-9)


def standing(scene: Stage, trajectory: Trajectory, engine: Engine | None = None) -> Poses:
    """How everything stood: read from the state where it says so, else replayed in `engine`."""
    if engine is None or not undetermined(scene):
        return poses(scene, trajectory)
    watcher = Watcher(scene.task.control_dt_s)
    _ = replay(trajectory, scene.task, engine, watch=watcher)
    return watcher.poses()


def film(
    trajectory: Trajectory,
    task: Task,
    engine: Engine | None,
    out: Path,
    *,
    camera: Camera | None = None,
    look: Look | None = None,
    cut: Cut | None = None,
    progress: Progress | None = None,
) -> Made:
    """Film an episode at its own params: MP4, or GIF if `out` says so.

    Args:
        trajectory: A recording of any origin.
        task: The task it was recorded at.
        engine: What replays the episode where its state does not say how everything stood.
        out: Where the film goes; `.mp4` or `.gif`.
        camera: The scene's first by default.
        look: How much work goes into a frame.
        cut: Pace of the film, and whether it says what it shows.
        progress: Told after every frame.
    """
    _check_suffix(out, (".mp4", ".gif"))
    eye, cut = camera or Camera(), cut or Cut()
    if out.suffix == ".mp4" and (eye.width % 2 or eye.height % 2):
        raise EngineError(f"an MP4 of {eye.width}x{eye.height}", attempt="even numbers of pixels, or a GIF")
    scene = stage(task)
    stood = standing(scene, trajectory, engine)
    rows = _rows_of(stood, step_s=cut.speed / cut.fps)
    started = time.perf_counter()
    frames: list[Array] = []
    with Studio(scene, (eye,), look=look) as studio:
        studio.dress(trajectory.params)
        for row in rows:
            picture = _photo(studio, stood, row, eye)
            frames.append(_captioned(picture, trajectory, stood, row) if cut.caption else picture)
            if progress is not None:
                progress(len(frames), len(rows))
    render_s = time.perf_counter() - started
    frames.extend([frames[-1]] * round(cut.hold_s * cut.fps))
    made = gif(frames, fps=cut.fps) if out.suffix == ".gif" else encode(frames, fps=cut.fps)
    return Made(_publish(out, made), len(frames), len(rows), len(made), render_s)


def sheet(
    trajectory: Trajectory,
    task: Task,
    engine: Engine | None,
    out: Path,
    *,
    camera: Camera = CELL,
    look: Look | None = None,
    moments: int = 12,
    columns: int = 4,
    progress: Progress | None = None,
) -> Made:
    """Lay pictures of one episode, evenly spread over its time, side by side in a PNG."""
    scene = stage(task)
    stood = standing(scene, trajectory, engine)
    rows = np.unique(np.linspace(0, len(stood) - 1, moments).round().astype(int)).tolist()

    def cells() -> Iterator[tuple[Array, str]]:
        with Studio(scene, (camera,), look=look) as studio:
            studio.dress(trajectory.params)
            for row in rows:
                yield _photo(studio, stood, row, camera), f"{stood.time_s[row]:.2f} s"

    return _lay(cells(), len(rows), out, columns, _title(trajectory, outcome=True), progress)


def gallery(
    trajectories: Sequence[Trajectory],
    task: Task,
    engine: Engine | None,
    out: Path,
    *,
    camera: Camera = CELL,
    look: Look | None = None,
    moment: float = 0.0,
    columns: int = 4,
    progress: Progress | None = None,
) -> Made:
    """Lay one picture of each episode side by side in a PNG; `moment` is 0 for its first row, 1 for its last."""
    scene = stage(task)

    def cells() -> Iterator[tuple[Array, str]]:
        with Studio(scene, (camera,), look=look) as studio:
            for trajectory in trajectories:
                stood = standing(scene, trajectory, engine)
                studio.dress(trajectory.params)
                picture = _photo(studio, stood, round(moment * (len(stood) - 1)), camera)
                yield picture, f"episode {trajectory.episode} · {trajectory.outcome}"

    return _lay(cells(), len(trajectories), out, columns, f"{task.name} · {len(trajectories)} episodes", progress)


def _photo(studio: Studio, stood: Poses, row: int, camera: Camera) -> Array:
    studio.pose(stood, row)
    rgb = studio.picture(camera).rgb
    if rgb is None:
        raise EngineError("a film needs a camera that sees rgb", attempt='kinds=("rgb",)')
    return rgb


def _rows_of(stood: Poses, *, step_s: float) -> list[int]:
    """The row nearest to each frame's time."""
    if len(stood) == 0:
        raise DataError("an episode without a single sound row cannot be shown")
    frames = math.floor(float(stood.time_s[-1]) / step_s + 1e-6) + 1
    return [int(np.abs(stood.time_s - i * step_s).argmin()) for i in range(frames)]


def _title(trajectory: Trajectory, *, outcome: bool) -> str:
    made = trajectory.provenance
    words = (
        made.task,
        f"seed {made.seed}",
        f"episode {trajectory.episode}",
        *((trajectory.outcome,) if outcome else ()),
    )
    return " · ".join(words)


def _captioned(picture: Array, trajectory: Trajectory, stood: Poses, row: int) -> Array:
    """Write into the foot of the picture, over a dark band, what it shows."""
    height, width = picture.shape[:2]
    size = max(10, round(height / 32))
    band = round(2.1 * size)
    image = Image.fromarray(picture)
    foot = image.crop((0, height - band, width, height))
    image.paste(Image.blend(foot, Image.new("RGB", foot.size, (18, 20, 24)), 0.72), (0, height - band))
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(size)
    line = height - band // 2
    now, end = float(stood.time_s[row]), float(stood.time_s[-1])
    outcome, colour = trajectory.outcome, _COLOUR[trajectory.outcome]
    draw.text((size, line), _title(trajectory, outcome=False), (235, 236, 240), font, anchor="lm")
    right = width - size
    draw.text((right, line), f"{now:.2f} s", (235, 236, 240), font, anchor="rm")
    draw.text((right - 5 * size, line), outcome, colour, font, anchor="rm")
    draw.rectangle((0, height - 3, round(width * (now / end if end > 0 else 1.0)), height), fill=colour)
    return np.asarray(image)


def _lay(
    cells: Iterator[tuple[Array, str]], count: int, out: Path, columns: int, title: str, progress: Progress | None
) -> Made:
    """Put pictures and their labels on a dark page."""
    _check_suffix(out, (".png",))
    if count == 0:
        raise DataError("a sheet of no pictures")
    started = time.perf_counter()
    pictures: list[tuple[Array, str]] = []
    for cell in cells:
        pictures.append(cell)
        if progress is not None:
            progress(len(pictures), count)
    render_s = time.perf_counter() - started
    height, width = pictures[0][0].shape[:2]
    gap, size = 8, max(11, round(height / 17))
    across, head, foot = min(columns, count), 2 * size + gap, size + 8
    down = math.ceil(count / across)
    page = Image.new("RGB", (gap + across * (width + gap), head + down * (height + foot + gap)), (18, 20, 24))
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(size)
    draw.text((gap, head // 2), title, (235, 236, 240), ImageFont.load_default(round(1.2 * size)), anchor="lm")
    for i, (picture, label) in enumerate(pictures):
        left, top = gap + (i % across) * (width + gap), head + (i // across) * (height + foot + gap)
        page.paste(Image.fromarray(picture), (left, top))
        draw.text((left + 2, top + height + foot // 2), label, (170, 174, 182), font, anchor="lm")
    sink = io.BytesIO()
    page.save(sink, "PNG", optimize=True)
    return Made(_publish(out, sink.getvalue()), count, count, len(sink.getvalue()), render_s)


def _check_suffix(out: Path, allowed: tuple[str, ...]) -> None:
    if out.suffix not in allowed:
        raise EngineError(
            f"no picture can be made as {out.name!r}", attempt=f"a name that ends in {' or '.join(allowed)}"
        )


def _publish(out: Path, content: bytes) -> Path:
    """Write whole or not at all."""
    part = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content)
        part.replace(out)
    except OSError as error:
        part.unlink(missing_ok=True)
        kind = SpaceError if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EROFS} else DataError
        raise kind(f"cannot write {len(content)} bytes: {error.strerror}", where=str(out)) from error
    return out
