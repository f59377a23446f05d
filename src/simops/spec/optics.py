"""What a camera gets wrong, in numbers that a spec sets and a belief may hold: lens, shutter, pixels, depth."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Annotated, final

from simops.core.params import Param
from simops.spec.bounds import AtLeast, AtMost

if TYPE_CHECKING:
    from collections.abc import Mapping

Amount = Annotated[float, AtLeast(0.0)]


@final
@dataclass(frozen=True, kw_only=True)
class Optics:
    """One camera's flaws; as it stands, none.

    A param of the belief called CAMERA_SETTING, as `wrist_exposure_s`, takes the setting's place for the episode.
    """

    latency_s: Amount = 0.0
    """How old a picture is when it comes."""
    exposure_s: Amount = 0.0
    """How long each row of pixels looks; what moves meanwhile is blurred."""
    rolling_s: Amount = 0.0
    """From reading the first row to reading the last; 0 for all at once."""
    looks: Annotated[int, AtLeast(2), AtMost(64)] = 8
    """Pictures that blur and rolling are made of."""
    gain: Amount = 1.0
    """Brightness beside that of the scene: exposure that is not right, before pixels are full."""
    k1: float = 0.0
    """Radial distortion of the lens, by the square of the distance from its middle in focal lengths."""
    k2: float = 0.0
    p1: float = 0.0
    """Tangential distortion."""
    p2: float = 0.0
    vignette: Annotated[float, AtLeast(0.0), AtMost(1.0)] = 0.0
    """Share of the light that is lost in the corners."""
    full_well: Amount = 0.0
    """Electrons of a full pixel, from which the noise of light follows; 0 for no noise of light."""
    read_noise: Amount = 0.0
    """Spread of the noise of reading a pixel, as a share of a full one."""
    depth_baseline_m: Amount = 0.0
    """Of a stereo camera: depth goes in steps of depth²/(focal length × baseline) × `depth_step_px`; 0 for none."""
    depth_step_px: Amount = 0.125
    """Smallest disparity that is told."""
    depth_noise: Amount = 0.0
    """Spread of depth noise at 1 m [m]; it grows with the square of the distance."""
    depth_edge: Annotated[float, AtLeast(0.0), AtMost(1.0)] = 0.0
    """Share of the pixels beside a jump of depth that see nothing."""
    depth_dropout: Annotated[float, AtLeast(0.0), AtMost(1.0)] = 0.0
    """Share of all pixels that see nothing."""
    depth_near_m: Amount = 0.0
    """Nearer than this nothing is seen."""
    depth_far_m: Amount = 0.0
    """Farther than this nothing is seen; 0 for no end."""

    @property
    def perfect(self) -> bool:
        """Whether nothing is wrong with it."""
        return self == replace(Optics(), looks=self.looks, depth_step_px=self.depth_step_px)

    def params(self, camera: str) -> tuple[Param, ...]:
        """Every number as a param, nominal as it is set."""
        return tuple(
            Param(f"{camera}_{one.name}", float(getattr(self, one.name))) for one in fields(self) if one.name != "looks"
        )

    def at(self, camera: str, point: Mapping[str, float]) -> Optics:
        """The flaws of one episode."""
        held = {
            one.name: float(point[f"{camera}_{one.name}"]) for one in fields(self) if f"{camera}_{one.name}" in point
        }
        return replace(self, **held) if held else self
