"""A robot held in the air, limb by limb: what its joints do from commands alone, at many values of their numbers.

Each limb of a robot whose base is held moves by itself, so it is simulated by itself, which is faster by the number of
limbs and keeps the numbers to find few. Pictures are left out of the scene, as are contacts and what floats.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

import numpy as np

from simops.core import servo
from simops.core.errors import SceneError
from simops.core.protocols import Memory, Motor
from simops.core.signal import Array
from simops.sim.binding import Batch, Model, Spec, mj

SCENE: Mapping[str, str] = {
    "armature": "dof_armature",
    "joint_damping": "dof_damping",
    "frictionloss": "dof_frictionloss",
}
"""Numbers of a joint that the scene itself knows; the solver keeps to them exactly, sticking included."""
STOPS = ("stop_low", "stop_high")
"""Where a joint's way ends [rad]."""


@final
@dataclass(frozen=True)
class Limb:
    """Joints that hang together, in a scene of their own."""

    joints: tuple[str, ...]
    places: tuple[int, ...]
    """Which of the robot's joints these are, in the scene's order."""
    model: Model = field(repr=False)
    limits_nm: Array
    """Largest torque of each joint's actuator."""

    def nominal(self, name: str) -> Array:
        """What the scene says of each joint."""
        if name in SCENE:
            return np.asarray(getattr(self.model, SCENE[name]), float).copy()
        ranges = np.asarray(self.model.jnt_range, float)
        limited = np.asarray(self.model.jnt_limited, bool)
        low = name == "stop_low"
        return np.where(limited, ranges[:, 0 if low else 1], -1e3 if low else 1e3)

    def simulate(
        self,
        drive: Drive,
        numbers: Mapping[str, Array],
        *,
        step_s: float | None = None,
        threads: int = 1,
        residual: Motor | None = None,
    ) -> Array:
        """Positions (points, instants, joints) from the first instant on, from commands alone.

        Args:
            drive: The commands, and where the joints were to begin with.
            numbers: Each (points, joints): what the scene knows, stops, and what a servo has (`core.servo`).
            step_s: Physics step, about; as long as an instant when left out.
            residual: A motor whose torque is added, as a network taught on what these numbers leave over.
            threads: Worker threads; more than one pays only where there are many points and joints.
        """
        points = len(next(iter(numbers.values())))
        substeps = max(1, round(drive.period_s / step_s)) if step_s else 1
        self.model.opt.timestep = drive.period_s / substeps
        batch = Batch(self.model, points, threads)
        for name, field_name in SCENE.items():
            if name in numbers:
                batch.expand(field_name)[:] = numbers[name]
        if any(name in numbers for name in STOPS):
            ranges = batch.expand("jnt_range")
            for side, name in enumerate(STOPS):
                ranges[:, :, side] = numbers[name] if name in numbers else self.nominal(name)
        position, velocity, control = batch.bind("qpos"), batch.bind("qvel"), batch.bind("ctrl")
        position[:], velocity[:] = drive.position_rad, drive.velocity_rad_s
        found = np.empty((points, len(drive.command_rad), len(self.joints)))
        late = servo.of(numbers, "late") / drive.period_s + np.zeros((points, len(self.joints)))
        memory: Memory = residual.start(points, len(self.joints)) if residual else {}
        for row in range(len(drive.command_rad)):
            found[:, row] = position
            for substep in range(substeps):
                target = drive.aged(row, late - substep / substeps) + servo.of(numbers, "bias")
                control[:] = torque(numbers, target, position, velocity)
                if residual is not None:
                    more, memory = residual.torque(target, position, velocity, memory, dt_s=self.model.opt.timestep)
                    control[:] += more
                batch.step(None, 1)
        return found

    def missing(self, drive: Drive, numbers: Mapping[str, Array], recorded: Motion) -> Array:
        """Torque (instants, joints) that the recorded motion had and these numbers do not give.

        Args:
            drive: The commands.
            numbers: Each (1, joints).
            recorded: What the joints did.
        """
        model = copy.copy(self.model)
        model.opt.timestep = drive.period_s
        for name, field_name in SCENE.items():
            if name in numbers:
                getattr(model, field_name)[:] = numbers[name][0]
        data = mj.MjData(model)
        found = np.empty_like(recorded.position_rad)
        late = servo.of(numbers, "late") / drive.period_s + np.zeros((1, len(self.joints)))
        for row in range(len(found)):
            data.qpos[:], data.qvel[:] = recorded.position_rad[row], recorded.velocity_rad_s[row]
            data.qacc[:] = recorded.acceleration_rad_s2[row]
            mj.mj_inverse(model, data)
            target = drive.aged(row, late) + servo.of(numbers, "bias")
            given = torque(numbers, target, recorded.position_rad[row][None], recorded.velocity_rad_s[row][None])
            found[row] = data.qfrc_inverse - given[0]
        return found


@final
@dataclass(frozen=True)
class Motion:
    """What joints did, smoothly, (instants, joints) each."""

    position_rad: Array
    velocity_rad_s: Array
    acceleration_rad_s2: Array

    @classmethod
    def of(cls, position_rad: Array, period_s: float, *, over: int = 7) -> Motion:
        """From positions: a parabola through `over` instants about each."""
        half = over // 2
        gone = period_s * np.arange(-half, half + 1)
        fitted = np.linalg.pinv(np.stack([np.ones(over), gone, 0.5 * gone**2], axis=1))
        padded = np.concatenate(
            [np.repeat(position_rad[:1], half, axis=0), position_rad, np.repeat(position_rad[-1:], half, axis=0)]
        )
        seen = np.stack([padded[i : i + len(position_rad)] for i in range(over)])
        return cls(*(np.einsum("o,otj->tj", row, seen) for row in fitted))


@final
@dataclass(frozen=True)
class Drive:
    """What a limb was asked for, and how it began."""

    command_rad: Array
    """(instants, joints)."""
    period_s: float
    position_rad: Array
    """(joints,) at the first instant."""
    velocity_rad_s: Array

    def aged(self, row: int, age: Array) -> Array:
        """What was commanded `age` instants before `row`, one age a joint, between two commands where need be."""
        age = np.maximum(age, 0.0)
        whole = age.astype(int)
        share = age - whole
        columns: Array = np.arange(len(self.position_rad))
        at = np.maximum(row - whole, 0)
        return (1.0 - share) * self.command_rad[at, columns] + share * self.command_rad[np.maximum(at - 1, 0), columns]


def torque(numbers: Mapping[str, Array], target: Array, position: Array, velocity: Array) -> Array:
    """What a servo puts on a joint whose plain dry friction is the scene's: its drive, less what is beyond that."""
    drive = servo.driven(numbers, target, position, velocity)
    slow = 0.02
    rest = servo.resistance({k: v for k, v in numbers.items() if k != "uneven"}, drive, 0.0, position, velocity)
    if "uneven" in numbers:  # more than the scene's on one side of the centre, less on the other
        rest = rest + numbers["uneven"] * (position - servo.of(numbers, "centre"))
    pull = servo.of(numbers, "offset") - servo.of(numbers, "spring") * (position - servo.of(numbers, "centre"))
    return drive - np.tanh(velocity / slow) * rest + pull


def limbs(path: Path, labels: Sequence[str] = ()) -> tuple[Limb, ...]:
    """The limbs of a robot in an MJCF file, its base held where it is; meshes need not be there.

    Args:
        path: The scene.
        labels: What the recorded joints are called. Where all of them are joints of the scene, or actuators of joints,
            they are those, in any order, and joints that were not recorded stay where the scene has them; else all
            joints of the scene are meant, in its order.
    """
    names, trees = _trees(_bare(path).compile(), path)
    drives = {actuator.name: actuator.target for actuator in _bare(path).actuators}
    meant = [label if label in names else drives.get(label, "") for label in labels]
    if meant and set(meant) <= set(names):
        trees = [trees[names.index(name)] for name in meant]
        names = meant
    found: list[Limb] = []
    for tree in sorted(set(trees)):
        spec = _bare(path)
        ours = {name for name, other in zip(names, trees, strict=True) if other == tree}
        mine = tuple(joint.name for joint in spec.joints if joint.name in ours)  # as the scene has them
        for actuator in list(spec.actuators):
            if actuator.target not in mine:
                spec.delete(actuator)
        for joint in list(spec.joints):
            if joint.name not in mine:
                spec.delete(joint)
        found.append(_limb(spec, mine, tuple(names.index(name) for name in mine)))
    return tuple(found)


def _limb(spec: Spec, joints: tuple[str, ...], places: tuple[int, ...]) -> Limb:
    limits = np.full(len(joints), np.inf)
    for actuator in list(spec.actuators):
        ranges = [r for r in (actuator.forcerange, actuator.ctrlrange) if r[1] > r[0]]
        if ranges:
            limits[joints.index(actuator.target)] = float(np.abs(ranges[0]).max() * actuator.gear[0])
        spec.delete(actuator)
    for name in joints:
        spec.add_actuator(name=name, target=name, trntype=mj.mjtTrn.mjTRN_JOINT).set_to_motor()
    model = spec.compile()
    return Limb(joints, places, model, limits)


def _trees(model: Model, path: Path) -> tuple[list[str], list[int]]:
    names = [model.joint(i).name for i in range(model.njnt)]
    if not names:
        raise SceneError(f"{path.name} has no joint that turns", where=str(path))
    return names, [int(model.dof_treeid[model.jnt_dofadr[i]]) for i in range(model.njnt)]


def _bare(path: Path) -> Spec:
    """The scene without pictures, contacts, sensors, keyframes and whatever floats."""
    if not path.is_file():
        raise SceneError(f"there is no scene {path}", attempt="an MJCF (.xml) file")
    try:
        spec = mj.MjSpec.from_file(str(path))
    except ValueError as error:
        raise SceneError(f"{path.name} does not parse: {str(error).splitlines()[0]}", where=str(path)) from error
    for geom in list(spec.geoms):
        if geom.type == mj.mjtGeom.mjGEOM_MESH:
            spec.delete(geom)
        else:
            geom.contype = geom.conaffinity = 0
    for several in (spec.meshes, spec.keys, spec.sensors, spec.pairs, spec.excludes):
        for one in list(several):
            spec.delete(one)
    for joint in list(spec.joints):
        if joint.type in (mj.mjtJoint.mjJNT_FREE, mj.mjtJoint.mjJNT_BALL):
            spec.delete(joint)
    spec.option.integrator = mj.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.disableflags |= mj.mjtDisableBit.mjDSBL_AUTORESET
    return spec
