"""Pictures of a scene without a screen: colour, depth in metres, and which object each pixel shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self, TypeAlias, final

import numpy as np

from simops.core.errors import EngineError, SceneError, nearest
from simops.core.signal import Array
from simops.sim.binding import mj
from simops.sim.gl import context
from simops.sim.stage import Poses, Stage, paint
from simops.spec.optics import Optics

Kind: TypeAlias = Literal["rgb", "depth", "segmentation"]
KINDS: tuple[Kind, ...] = ("rgb", "depth", "segmentation")


@final
@dataclass(frozen=True)
class Camera:
    """A camera of the scene, the size of its pictures, and what they show."""

    name: str = ""
    """Empty for the first of the scene, or a look at the whole of it where it has none."""
    width: int = 640
    height: int = 480
    kinds: tuple[Kind, ...] = ("rgb",)
    optics: Optics = field(default_factory=Optics)
    """What lens, shutter and pixels get wrong, in pictures that are recorded."""

    def __post_init__(self) -> None:
        if not (16 <= self.width <= 4096 and 16 <= self.height <= 4096):
            raise EngineError(f"a picture of {self.width}x{self.height}", attempt="16 to 4096 pixels a side")
        for kind in self.kinds:
            if kind not in KINDS:
                raise EngineError(f"no camera sees {kind!r}", attempt=nearest(kind, KINDS) or ", ".join(KINDS))


@final
@dataclass(frozen=True, kw_only=True)
class Look:
    """How much work goes into a picture."""

    shadow_px: int = 2048
    """Side of the shadow map; 0 for no shadows, which is twice as fast."""
    samples: int = 4
    """Samples a pixel against jagged edges; 0 for one."""
    reflections: bool = True


FAST = Look(shadow_px=0, samples=0, reflections=False)
"""For datasets: four times as fast as what is made for the eye."""


class Picture(NamedTuple):
    """What a camera saw; what it was not asked for is `None`."""

    rgb: Array | None
    """(height, width, 3) uint8."""
    depth_m: Array | None
    """(height, width) float32, along the optical axis; infinite where there is nothing."""
    segmentation: Array | None
    """(height, width) uint16, indices into `Stage.objects`; 0 where there is nothing."""


class _Turn(NamedTuple):
    """A param that turns a camera about one of its axes."""

    param: str
    camera: int
    axis: int


@final
class Studio:
    """A stage, its lights and its cameras; a context manager that belongs to one thread."""

    def __init__(self, stage: Stage, cameras: Sequence[Camera], *, look: Look | None = None) -> None:
        """Make ready for these cameras."""
        self.stage, self.look = stage, look or Look()
        self.model = stage.model
        self._ids = {camera.name: self._find(camera.name) for camera in cameras}
        self._turns = self._find_turns()
        self._angles: dict[str, float] = {}
        self._painted: dict[int, int] = {}
        self._lights = {field: getattr(self.model, field).copy() for field in _LIGHTS}
        self._head = {field: getattr(self.model.vis.headlight, field).copy() for field in _HEADLIGHT}
        self._materials = {field: getattr(self.model, field).copy() for field in ("mat_texid", "mat_rgba")}
        self._size = (max(c.width for c in cameras), max(c.height for c in cameras))
        self._gl: Any = None

    def __enter__(self) -> Self:
        model, (width, height) = self.model, self._size
        self._gl = context(width, height)
        model.vis.global_.offwidth, model.vis.global_.offheight = width, height
        model.vis.quality.offsamples = self.look.samples
        model.vis.quality.shadowsize = self.look.shadow_px
        try:
            self._target = mj.MjrContext(model, mj.mjtFontScale.mjFONTSCALE_150)
        except mj.FatalError as error:
            self._gl.free()
            raise EngineError(f"no picture of {width}x{height}: {error}", attempt="a smaller picture") from error
        mj.mjr_setBuffer(mj.mjtFramebuffer.mjFB_OFFSCREEN, self._target)
        self._target.readDepthMap = mj.mjtDepthMap.mjDEPTH_ZEROFAR
        self.data = mj.MjData(model)
        self._scene = mj.MjvScene(model, model.ngeom + model.nsite + 1000)
        self._scene.flags[mj.mjtRndFlag.mjRND_SHADOW] = self.look.shadow_px > 0
        self._scene.flags[mj.mjtRndFlag.mjRND_REFLECTION] = self.look.reflections
        self._option = mj.MjvOption()
        return self

    def __exit__(self, *_: object) -> None:
        if self._gl is not None:
            self._gl.make_current()
            self._target.free()
            self._gl.free()
            self._gl = None

    def dress(self, point: Mapping[str, float]) -> None:
        """Put on the textures, the light and the turn of the cameras that the params ask for."""
        self._gl.make_current()
        for slot in self.stage.slots:
            self._cover(slot, slot.number(point.get(slot.param, 0.0)))
        self._light(point)
        self._angles = {turn.param: float(point.get(turn.param, 0.0)) for turn in self._turns}

    def pose(self, poses: Poses, row: int) -> None:
        """Put everything where it stood at this row."""
        data = self.data
        data.qpos[:] = poses.qpos[row]
        data.mocap_pos[:], data.mocap_quat[:] = poses.mocap_pos[row], poses.mocap_quat[row]
        data.time = float(poses.time_s[row])
        mj.mj_kinematics(self.model, data)
        mj.mj_comPos(self.model, data)  # cameras that follow a robot look at its centre of mass
        mj.mj_camlight(self.model, data)
        mj.mj_tendon(self.model, data)
        for turn in self._turns:
            matrix = data.cam_xmat[turn.camera].reshape(3, 3)
            data.cam_xmat[turn.camera] = (matrix @ _rotation(turn.axis, self._angles.get(turn.param, 0.0))).ravel()

    def picture(self, camera: Camera) -> Picture:
        """Take a picture of the scene as it stands."""
        self._gl.make_current()
        self._aim(camera)
        frame = mj.MjrRect(0, 0, camera.width, camera.height)
        rgb = depth = objects = None
        if "rgb" in camera.kinds:
            rgb = np.empty((camera.height, camera.width, 3), np.uint8)
            mj.mjr_render(frame, self._scene, self._target)
            mj.mjr_readPixels(rgb, None, frame, self._target)
            rgb = np.ascontiguousarray(rgb[::-1])
        if "depth" in camera.kinds or "segmentation" in camera.kinds:
            ids, near_to_far = self._measure(frame)
            depth = self._metres(near_to_far) if "depth" in camera.kinds else None
            objects = self._objects(ids) if "segmentation" in camera.kinds else None
        return Picture(rgb, depth, objects)

    def focal_px(self, camera: Camera) -> float:
        """Focal length of a camera, from its angle of view."""
        found = self._ids[camera.name] if camera.name in self._ids else self._find(camera.name)
        angle = float(self.model.cam_fovy[found]) if found >= 0 else float(self.model.vis.global_.fovy)
        return 0.5 * camera.height / float(np.tan(0.5 * np.deg2rad(angle)))

    def _find(self, name: str) -> int:
        if not name:
            return 0 if self.model.ncam else -1
        if name not in self.stage.cameras:
            attempt = nearest(name, self.stage.cameras) or ", ".join(self.stage.cameras)
            raise SceneError(f"the scene has no camera {name!r}", where=self.stage.task.scene.path, attempt=attempt)
        return self.stage.cameras.index(name)

    def _find_turns(self) -> tuple[_Turn, ...]:
        axes = {"camera_tilt": 0, "camera_pan": 1, "camera_roll": 2}
        return tuple(
            _Turn(param.name, self._find(name), axes[change.field])
            for param, change in self.stage.changes(*axes)
            for name in change.of or self.stage.cameras
        )

    def _cover(self, slot: Any, number: int) -> None:
        """Put texture `number` on the material, or its own look back on for 0."""
        if self._painted.get(slot.texture, 0) == number:
            return
        self._painted[slot.texture] = number
        if number == 0:
            for field, before in self._materials.items():
                getattr(self.model, field)[slot.material] = before[slot.material]
            return
        paint(self.stage, slot, number)
        mj.mjr_uploadTexture(self.model, self._target, slot.texture)
        self.model.mat_texid[slot.material, mj.mjtTextureRole.mjTEXROLE_RGB] = slot.texture
        self.model.mat_rgba[slot.material, :3] = 1.0  # the pool's colours, not a mix of both

    def _light(self, point: Mapping[str, float]) -> None:
        intensity, everywhere = np.ones(self.model.nlight), 1.0
        for param, change in self.stage.changes("light"):
            value = float(point.get(param.name, param.nominal))
            value = 1.0 + value if change.how == "add" else value
            names = [self.model.light(i).name for i in range(self.model.nlight)]
            everywhere *= 1.0 if change.of else value
            intensity *= np.array([value if not change.of or name in change.of else 1.0 for name in names])
        for name, before in self._lights.items():
            getattr(self.model, name)[:] = before * intensity[:, None]
        for name, before in self._head.items():
            getattr(self.model.vis.headlight, name)[:] = before * everywhere

    def _aim(self, camera: Camera) -> None:
        view = mj.MjvCamera()
        found = self._ids[camera.name] if camera.name in self._ids else self._find(camera.name)
        if found < 0:
            mj.mjv_defaultFreeCamera(self.model, view)
        else:
            view.type, view.fixedcamid = mj.mjtCamera.mjCAMERA_FIXED, found
        everything = mj.mjtCatBit.mjCAT_ALL
        mj.mjv_updateScene(self.model, self.data, self._option, None, view, everything, self._scene)

    def _measure(self, frame: Any) -> tuple[Array, Array]:
        """Render once with an object's number for colour: numbers, and depth from 1, near, to 0, far."""
        flags = self._scene.flags.copy()
        self._scene.flags[mj.mjtRndFlag.mjRND_SEGMENT] = True
        self._scene.flags[mj.mjtRndFlag.mjRND_IDCOLOR] = True
        colour = np.empty((frame.height, frame.width, 3), np.uint8)
        depth = np.empty((frame.height, frame.width), np.float32)
        mj.mjr_render(frame, self._scene, self._target)
        mj.mjr_readPixels(colour, depth, frame, self._target)
        self._scene.flags[:] = flags
        ids = colour[::-1].astype(np.int32) @ np.array([1, 256, 65536], np.int32)
        return ids, depth[::-1]

    def _metres(self, near_to_far: Array) -> Array:
        """Undo the perspective that OpenGL stores depth with."""
        near, far = (
            float(self.model.stat.extent) * float(z) for z in (self.model.vis.map.znear, self.model.vis.map.zfar)
        )
        stored = near_to_far.astype(np.float64)
        metres = near * far / (near + stored * (far - near))
        return np.where(near_to_far > 0, metres, np.inf).astype(np.float32)

    def _objects(self, ids: Array) -> Array:
        table = np.zeros(self._scene.ngeom + 2, np.uint16)
        for shape in self._scene.geoms[: self._scene.ngeom]:
            if shape.segid >= 0 and shape.objtype == mj.mjtObj.mjOBJ_GEOM:
                table[shape.segid + 1] = 1 + self.model.geom_bodyid[shape.objid]
        return table[np.minimum(ids, len(table) - 1)]


_LIGHTS = ("light_ambient", "light_diffuse", "light_specular")
_HEADLIGHT = ("ambient", "diffuse", "specular")


def _rotation(axis: int, angle_rad: float) -> Array:
    """About a camera's own axis: x to its right, y up, z towards the viewer."""
    sine, cosine = np.sin(angle_rad), np.cos(angle_rad)
    first, second = (axis + 1) % 3, (axis + 2) % 3
    matrix = np.eye(3)
    matrix[[first, second], [first, second]] = cosine
    matrix[first, second], matrix[second, first] = -sine, sine
    return matrix
