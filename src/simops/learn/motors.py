"""The learner of motors: a rig's numbers first, then a bounded network for the effort that they do not explain.

The networks run inside the physics step, on top of the motor whose numbers were found. They are a rung of their own: it
is shipped where it predicts better what was held out, and is left away where it would give a joint energy.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, cast, final

import numpy as np

from simops.core.errors import DataError
from simops.core.learning import LEARNED, Candidate, Learned, Material, Predictor, Progress, Watch
from simops.core.params import Params
from simops.core.plugin import Registry
from simops.core.protocols import Engine, Memory, Motor, Torque, Tunable
from simops.core.rig import Rig
from simops.core.signal import Array
from simops.core.task import Task
from simops.learn.direct import Direct, rows_of
from simops.learn.motor import LENGTH, Driven, Teach, fit_network
from simops.learn.passive import Audit, audit
from simops.learn.physical import Physical, drawn
from simops.learn.replay import Track, track
from simops.spec.bounds import Above, AtLeast

WEIGHTS = "motor.safetensors"


@final
@dataclass(frozen=True, kw_only=True)
class Motors:
    """How motors are learned."""

    physical: Physical = field(default_factory=lambda: Physical(by="effort"))
    """How the numbers are found."""
    bound: Annotated[float, Above(0.0)] = 0.3
    """Largest correction, as a share of the recorded effort, root mean square."""
    wary: Annotated[float, AtLeast(0.0)] = 1.0
    """How much of the networks' disagreement is taken off the correction."""
    teach: Teach = field(default_factory=lambda: Teach(hidden=(16, 16), history=2, shared=False, steps=600, members=3))

    def learn(self, material: Material, watch: Watch, *, checkpoint: bytes = b"") -> Learned:
        """Find the numbers, then teach the networks."""
        del checkpoint  # it takes minutes, and begins anew
        _known_effort(material)
        learned = self.physical.learn(material, watch)
        rig, found = cast("Rig", material.rig), learned.candidates[-1]
        tracks = [track(rig, one, cut_hz=self.physical.cut_hz) for one in material.recordings]
        watch(Progress(stage="teaching networks"))
        episodes, size = self._episodes(rig, found, tracks)
        weights = fit_network(episodes, replace(self.teach, period_s=rig.dt_s, seed=material.seed))
        made = replace(found, name=LEARNED, engine=self._on_top(found.engine, size), told=(), notes=())
        made = replace(made, parts={**found.parts, WEIGHTS: weights})
        with _placed(made) as placed:
            energy = audited(placed, rig, episodes)
        notes = (*learned.notes, f"energy: {energy.words}")
        if not energy.passed:
            return replace(learned, notes=(*notes, "the networks are not shipped: they give energy"))
        return replace(learned, candidates=(*learned.candidates, made), notes=notes)

    @contextmanager
    def predicting(self, candidate: Candidate, task: Task, rig: Rig | None) -> Generator[Predictor]:
        """Replay recordings, the networks inside the physics step."""
        with _placed(candidate) as placed, self.physical.predicting(placed, task, rig) as predict:
            yield predict

    def _episodes(self, rig: Rig, found: Candidate, tracks: Sequence[Track]) -> tuple[list[Driven], float]:
        """What the networks should say along every recording, and the size of the recorded effort."""
        cut_hz, episodes, efforts = self.physical.cut_hz, list[Driven](), list[Array]()
        edge = round(1.0 / cut_hz / rig.dt_s)
        with found.engine.open(rig.task(found.belief), self.physical.copies) as sim:
            direct = Direct(sim, rig, found.engine, cut_hz)
            for one in tracks:
                rows = rows_of(rig, [one], cut_hz)
                if len(rows) < 2 * LENGTH:
                    continue
                over = direct(rows, drawn(found.belief, 1))[0]
                command = one.command[:-1][edge : edge + len(rows)]
                driven = Driven(error_rad=command - rows.position, velocity_rad_s=rows.velocity, torque_nm=-over)
                episodes.append(driven)
                efforts.append(direct.filtered(rows))
        if not episodes:
            what = f"no recording has {2 * LENGTH} rows between its ends"
            raise DataError(what, where=rig.name, attempt="longer ones", fault="LRN-004")
        return episodes, float(np.sqrt(np.mean(np.square(np.concatenate(efforts)))))

    def _on_top(self, engine: Engine, size: float) -> Engine:
        network = cast("Any", Registry[Motor]("motor").load("network"))
        motor = network(
            weights=Path("parts") / WEIGHTS,
            under=cast("Any", engine).motor,
            bound_nm=self.bound * size,
            wary=self.wary,
        )
        return cast("Engine", replace(cast("Any", engine), motor=motor))


@final
@dataclass(frozen=True)
class Tuned:
    """A motor with settings of its belief's centre."""

    motor: Motor
    params: Params

    def start(self, n: int, joints: int) -> Memory:
        """Memory that holds the settings."""
        memory = self.motor.start(n, joints)
        if not isinstance(self.motor, Tunable):
            return memory
        return self.motor.tune(memory, self.params.rows(np.zeros(n, np.int64)))

    def torque(self, command: Array, position: Array, velocity: Array, memory: Memory, *, dt_s: float) -> Torque:
        """What the motor says."""
        return self.motor.torque(command, position, velocity, memory, dt_s=dt_s)


def audited(candidate: Candidate, rig: Rig, episodes: Sequence[Driven]) -> Audit:
    """Whether the motor of a candidate gives energy, as far from its command and as fast as was recorded."""
    reach = max(float(np.ptp(one.error_rad, axis=0).max()) / 2 for one in episodes)
    fastest = max(float(np.abs(one.velocity_rad_s).max()) for one in episodes)
    motor = Tuned(cast("Any", candidate.engine).motor, drawn(candidate.belief, 1))
    rate_hz = fastest / (2 * np.pi * reach / 1.5)
    return audit(motor, len(rig.joints), reach_rad=reach, fastest_hz=rate_hz, dt_s=rig.dt_s)


@contextmanager
def _placed(candidate: Candidate) -> Generator[Candidate]:
    """The candidate with its weights in a file, where it has any."""
    if WEIGHTS not in candidate.parts:
        yield candidate
        return
    with TemporaryDirectory() as folder:
        file = Path(folder) / WEIGHTS
        file.write_bytes(candidate.parts[WEIGHTS])
        engine = cast("Any", candidate.engine)
        yield replace(candidate, engine=replace(engine, motor=replace(engine.motor, weights=file)))


def _known_effort(material: Material) -> None:
    """Raise unless the effort was recorded, or is the command itself."""
    motor = getattr(material.engine, "motor", None)
    if motor is None:
        raise DataError("the engine has no motor to learn", attempt="engine: {motor: {use: servo}}", fault="LRN-005")
    settings = {p.name: p.nominal for p in motor.params} if isinstance(motor, Tunable) else {}
    law = settings.get("motor_kp", 0.0) > 0 or settings.get("motor_kd", 0.0) > 0
    if law and material.rig is not None and not material.rig.effort:
        what = "a controller was in the loop and its effort was not recorded"
        raise DataError(
            what, where=material.rig.name, attempt="effort: in the rig, or the learner physical", fault="LRN-004"
        )
