"""What cameras saw of an episode, for a dataset: colour, depth and ground truth of objects, each a film."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from simops.core.errors import EngineError
from simops.core.signal import Array
from simops.core.trajectory import Trajectory
from simops.sim import optics
from simops.sim.render import FAST, Camera, Kind, Look, Picture, Studio
from simops.sim.stage import Poses, Stage
from simops.sim.video import Codec, decode, encode

FARTHEST_M = 65.535
"""Depth is stored in whole millimetres of 16 bits; 0 is nothing, or farther than this."""


@final
@dataclass(frozen=True)
class Frames:
    """What one camera saw of one episode, as one kind of picture."""

    episode: int
    camera: str
    kind: Kind
    time_s: Array
    """(n,) float64 since the episode began."""
    row: Array
    """(n,) int64 rows of the trajectory."""
    film: bytes
    """MP4 (`h264`, `av1`) or Matroska (`ffv1`), one frame an instant."""
    codec: Codec
    width: int
    height: int
    unit: str = ""
    """Of a pixel's value: `mm` for depth."""
    objects: tuple[str, ...] = ()
    """What each value of a segmentation means; 0 is nothing."""

    @property
    def lossless(self) -> bool:
        """Whether `pixels` gives back what was rendered, bit for bit (for depth, to the millimetre)."""
        return self.codec == "ffv1"

    def pixels(self) -> Array:
        """Decode: (n, h, w, 3) uint8 colour, (n, h, w) float32 metres, or (n, h, w) uint16 objects."""
        values = decode(self.film)
        if self.kind != "depth":
            return values
        return np.where(values > 0, values.astype(np.float32) / 1000, np.inf).astype(np.float32)


@final
class Shooting:
    """Cameras that record episode after episode; a context manager that belongs to one thread."""

    def __init__(
        self, stage: Stage, cameras: Sequence[Camera], *, codec: Codec = "h264", every: int = 1, look: Look = FAST
    ) -> None:
        """Record every `every`-th row; `codec` is for colour, the other kinds are always lossless."""
        if every < 1:
            raise EngineError(f"every {every} rows", attempt="1 for every row")
        for camera in cameras:
            if codec != "ffv1" and "rgb" in camera.kinds and (camera.width % 2 or camera.height % 2):
                attempt = "even numbers of pixels, or codec='ffv1'"
                raise EngineError(f"a film of {camera.width}x{camera.height}", where=camera.name, attempt=attempt)
        self._stage, self._cameras, self._every = stage, tuple(cameras), every
        self._codec: Codec = codec
        self._studio = Studio(stage, self._cameras, look=look)

    def __enter__(self) -> Shooting:
        self._studio.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._studio.__exit__()

    def shoot(self, trajectory: Trajectory, stood: Poses) -> Iterator[Frames]:
        """Record an episode at its own params, one camera and kind after the other."""
        self._studio.dress(trajectory.params)
        rows = np.arange(0, len(stood), self._every)
        seen = [[self._seen(camera, trajectory, stood, row) for camera in self._cameras] for row in rows.tolist()]
        for i, camera in enumerate(self._cameras):
            for kind in camera.kinds:
                pictures = [_pixels(instant[i], kind) for instant in seen]
                yield self._frames(trajectory, camera, kind, stood.time_s[rows], pictures)

    def _seen(self, camera: Camera, trajectory: Trajectory, stood: Poses, row: int) -> Picture:
        """What the camera hands on at a row: what it would see, through its optics as they are in this episode."""
        flaws = camera.optics.at(camera.name, trajectory.params)
        if flaws.perfect:
            self._studio.pose(stood, row)
            return self._studio.picture(camera)
        looks: list[Picture] = []
        at_s = stood.time_s[row] - optics.moments(flaws)
        then = stood.between(self._stage.model, at_s)
        for i in range(len(then)):
            self._studio.pose(then, i)
            looks.append(self._studio.picture(camera))
        eye = optics.Eye(camera.width, camera.height, self._studio.focal_px(camera))
        seed, last = np.array([trajectory.seed], np.uint64), looks[-1]
        rgb, depth, objects = last
        if rgb is not None:
            light = optics.gathered([look.rgb for look in looks if look.rgb is not None], flaws)
            rgb = optics.developed(light, flaws, eye, seed, row)
        if depth is not None:
            depth = optics.measured(depth, flaws, eye, seed, row)
        if objects is not None:
            bent = optics.bent(objects[..., None], flaws, eye, blend=False)[..., 0]
            objects = np.where(np.isfinite(bent), bent, 0).astype(np.uint16)
        return Picture(rgb, depth, objects)

    def _frames(
        self, trajectory: Trajectory, camera: Camera, kind: Kind, time_s: Array, pictures: list[Array]
    ) -> Frames:
        dt_s = self._stage.task.control_dt_s
        codec: Codec = self._codec if kind == "rgb" else "ffv1"
        return Frames(
            episode=trajectory.episode,
            camera=camera.name,
            kind=kind,
            time_s=time_s,
            row=np.rint(time_s / dt_s).astype(np.int64),
            film=encode(pictures, fps=1 / (dt_s * self._every), codec=codec),
            codec=codec,
            width=camera.width,
            height=camera.height,
            unit="mm" if kind == "depth" else "",
            objects=self._stage.objects if kind == "segmentation" else (),
        )


def _pixels(picture: Picture, kind: Kind) -> Array:
    """What is stored of a picture."""
    found = {"rgb": picture.rgb, "depth": picture.depth_m, "segmentation": picture.segmentation}[kind]
    if found is None:
        raise EngineError(f"the camera did not see {kind}")
    if kind != "depth":
        return found
    return np.where(found <= FARTHEST_M, np.rint(found * 1000), 0).astype(np.uint16)
