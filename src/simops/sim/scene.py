"""A scene file to the one compiled model that every engine is built from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, final

import numpy as np

from simops.core.errors import SceneError, nearest
from simops.core.signal import Array, Columns
from simops.core.task import Scene, Task
from simops.sim.binding import Model, Spec, mj
from simops.sim.change import Changes, ids_of


@final
@dataclass(frozen=True)
class Physics:
    """Choices of the solver that a scene does not make."""

    step_s: float | None = None
    """Physics step [s]; the scene's own when left out."""
    cone: Literal["elliptic", "pyramidal"] = "elliptic"
    impratio: float = 10.0
    """Ratio of frictional to normal impedance; 10 creeps 18 times less than 1 at no cost."""
    noslip_iterations: int = 0


def load(scene: Scene) -> Spec:
    """Parse an MJCF or URDF file into an editable spec."""
    path = Path(scene.path)
    if not path.is_file():
        raise SceneError(f"there is no scene {scene.path}", attempt="an MJCF (.xml) or URDF (.urdf) file")
    try:
        return mj.MjSpec.from_file(str(path))
    except ValueError as error:
        raise SceneError(f"{path.name} does not parse: {_first_line(error)}", where=str(path)) from error


def compile_task(task: Task, physics: Physics, *, direct: bool = False) -> Model:
    """Compile the task's scene; `direct` makes its actuators put the command on the joint as a torque."""
    spec = load(task.scene)
    spec.option.cone = getattr(mj.mjtCone, f"mjCONE_{physics.cone.upper()}")
    spec.option.impratio = physics.impratio
    spec.option.noslip_iterations = physics.noslip_iterations
    spec.option.disableflags |= mj.mjtDisableBit.mjDSBL_AUTORESET  # a broken copy must not come back as a new one
    if physics.step_s is not None:
        spec.option.timestep = physics.step_s
    periods = task.control_dt_s / spec.option.timestep
    if abs(periods - round(periods)) > 1e-6 or round(periods) < 1:
        raise SceneError(
            f"a control step of {task.control_dt_s} s is {periods:.6g} physics steps of {spec.option.timestep} s",
            attempt=f"a physics step that divides it, as {task.control_dt_s / max(1, round(periods)):.6g}",
        )
    if not spec.actuators:
        _drive(spec, task)
    if direct:
        for actuator in spec.actuators:
            actuator.set_to_motor()
            actuator.ctrllimited = 0
    compiled = _compiled(spec, task)
    longest = Changes(compiled, task.belief.params).longest_delay_s
    if longest > 0 and direct:
        raise SceneError(
            "a motor takes the actuators' place, so their delay has no effect", attempt="the motor's own delay"
        )
    if longest > 0:
        for actuator in spec.actuators:
            actuator.nsample = int(np.ceil(longest / spec.option.timestep)) + 2
        compiled = _compiled(spec, task)
    return compiled


def digest(task: Task) -> str:
    """SHA-256 of the scene as parsed: the same whatever folder it lies in."""
    return hashlib.sha256(load(task.scene).to_xml().encode()).hexdigest()


def actuators(model: Model, task: Task) -> list[int]:
    """The actuator each element of the action drives: by label, as its own name or its joint's, else in order."""
    if not task.action.labels:
        if model.nu != task.action.size:
            raise SceneError(
                f"{task.action.name} has {task.action.size} elements, the scene {model.nu} actuators",
                attempt="labels that name actuators or joints",
            )
        return list(range(model.nu))
    by_name: dict[str, int] = {}
    for i in range(model.nu):
        joint = int(model.actuator_trnid[i, 0])
        if model.actuator_trntype[i] == mj.mjtTrn.mjTRN_JOINT:
            by_name[model.joint(joint).name] = i
    by_name |= {model.actuator(i).name: i for i in range(model.nu)}
    for label in task.action.labels:
        if label not in by_name:
            raise SceneError(f"no actuator or driven joint is called {label!r}", attempt=nearest(label, by_name))
    return [by_name[label] for label in task.action.labels]


def joint_addresses(model: Model, names: tuple[str, ...] | None) -> tuple[list[int], list[int]]:
    """Where hinge and slide joints lie in the position and in the velocity vector; `None` for no joints."""
    joints = [] if names is None else ids_of(model, "joint", names)
    for joint in joints:
        if int(model.jnt_type[joint]) in (int(mj.mjtJoint.mjJNT_FREE), int(mj.mjtJoint.mjJNT_BALL)):
            raise SceneError(f"joint {model.joint(joint).name!r} is not a hinge or a slide", attempt="Body(...)")
    return [int(model.jnt_qposadr[j]) for j in joints], [int(model.jnt_dofadr[j]) for j in joints]


def free_joint(model: Model, body: int) -> int | None:
    """The free joint of a body, if it has one."""
    joint = int(model.body_jntadr[body])
    return joint if joint >= 0 and model.jnt_type[joint] == mj.mjtJoint.mjJNT_FREE else None


def limits(model: Model, task: Task, chosen: list[int] | None) -> tuple[Array, Array]:
    """The task's limits of the action, and those of the actuators where they are in use."""
    low = np.array(task.action.low or (-np.inf,) * task.action.size)
    high = np.array(task.action.high or (np.inf,) * task.action.size)
    if chosen:
        limited, ranges = model.actuator_ctrllimited[chosen].astype(bool), model.actuator_ctrlrange[chosen]
        low = np.maximum(low, np.where(limited, ranges[:, 0], -np.inf))
        high = np.minimum(high, np.where(limited, ranges[:, 1], np.inf))
    return low, high


def first_action(task: Task, ids: Array, initial: Columns, ends: tuple[Array, Array]) -> Array:
    """What is commanded before an episode: what `initial` says, else the centre of the action; within limits."""
    given = initial.get(task.action.name)
    if given is None:
        given = np.tile(np.array(task.action_centre or (0.0,) * task.action.size), (len(ids), 1))
    return np.clip(given.reshape(len(ids), -1), *ends)


def _drive(spec: Spec, task: Task) -> None:
    """Put a torque on each joint that the action names, where the scene has no actuator at all, as no URDF has."""
    for label in task.action.labels:
        if spec.joint(label) is not None:
            spec.add_actuator(name=label, target=label, trntype=mj.mjtTrn.mjTRN_JOINT).set_to_motor()


def _compiled(spec: Spec, task: Task) -> Model:
    try:
        return spec.compile()
    except ValueError as error:
        raise SceneError(f"{task.name} does not compile: {_first_line(error)}", where=task.scene.path) from error


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
