"""One copy of a scene in Drake."""

from __future__ import annotations

import logging
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

import numpy as np

from simops.core.signal import Array
from simops.sim.drake_binding import (
    Context,
    Fixed,
    Plant,
    Push,
    Simulator,
    System,
    analysis,
    framework,
    plants,
    spatial,
    tree,
)
from simops.sim.drake_contact import Feel, Skins, finer
from simops.sim.drake_layout import Layout
from simops.sim.drake_plant import Plan, furnish, reach
from simops.sim.walk import Parts
from simops.sim.world import Load, Touch

LONGEST_S = 0.1
"""The longest step of the error-controlled scheme."""
SHORTEST_S = 2e-4
"""Its shortest: a cube that spins a thousand times a second shall be inexact, not take forever."""


@final
@dataclass(frozen=True)
class Settings:
    """Numbers of the physics."""

    step_s: float
    accuracy: float | None
    """Of the error-controlled scheme; None for fixed steps."""
    stiction_m_s: float
    feel: Feel


@final
class DrakeWorld:
    """A plant, what drives and pushes it, and a simulator that begins anew with every episode."""

    def __init__(self, parts: Parts, settings: Settings) -> None:
        """Build the plant; nothing moves before `begin`."""
        self._parts, self._settings = parts, settings
        self.plant: Plant
        """To inspect."""
        self.context: Context
        """The plant's, since the last `begin`; to inspect."""
        self._finer = 1 if settings.accuracy else finer(parts, settings.step_s)
        self._step_s = settings.step_s / self._finer
        with _quiet():
            self._build()
        plan, plant = self._plan, self.plant
        self.layout = Layout(parts, plan, plant)
        self._efforts = np.zeros(plant.num_actuators())
        starts = [plant.GetJointActuatorByName(name).input_start() for name in plan.actuators]
        self._drives, self._inputs = np.array([d.actuator for d in parts.drives], int), np.array(starts, int)
        self._gain = np.array([drive.gain for drive in parts.drives])
        seats = {joint.dof: joint.rest for link in parts.links for joint in link.joints}
        rests = np.array([seats[drive.dof] for drive in parts.drives])
        centres = np.array([drive.centre for drive in parts.drives])
        self._offset = np.array([drive.offset for drive in parts.drives]) - centres
        self._offset -= np.array([drive.kp for drive in parts.drives]) * rests
        # Drake holds servos to their limits; motors, which hold nothing, are held to theirs here
        servo = np.array([bool(drive.kp or drive.kd) for drive in parts.drives])
        self._reach = np.where(servo, np.inf, np.array([reach(drive) for drive in parts.drives]))
        self._steady = np.zeros(plant.num_velocities())
        for name, effort in zip(plan.actuators, centres, strict=True):
            self._steady[plant.GetJointActuatorByName(name).joint().velocity_start()] += effort
        self._lifts = [self._lift(i) for i, link in enumerate(parts.links) if link.lifted not in {0.0, 1.0}]

    def _build(self) -> None:
        parts, settings, continuous = self._parts, self._settings, self._settings.accuracy is not None
        builder = framework.DiagramBuilder()
        plant, scene = plants.AddMultibodyPlantSceneGraph(builder, 0.0 if continuous else self._step_s)
        if not continuous:
            plant.set_discrete_contact_approximation(plants.DiscreteContactApproximation.kSimilar)
        plant.set_contact_model(plants.ContactModel.kHydroelasticWithFallback)
        plant.set_adjacent_bodies_collision_filters(False)
        self._plan: Plan = furnish(plant, parts, continuous=continuous)
        self._skins = Skins(plant, scene, parts, self._plan.bodies, settings.feel)
        plant.Finalize()
        plant.set_stiction_tolerance(settings.stiction_m_s)
        self.plant = plant
        self._diagram: System = builder.Build()

    def begin(self, qpos: Array, qvel: Array) -> None:
        """Put everything there; a fresh context and a fresh simulator remember nothing."""
        plant = self.plant
        with _quiet():
            root = self._diagram.CreateDefaultContext()
        self.context = plant.GetMyMutableContextFromRoot(root)
        plant.SetPositionsAndVelocities(self.context, self.layout.theirs(qpos, qvel))
        self._actuation: Fixed = plant.get_actuation_input_port().FixValue(self.context, self._efforts)
        for instance in map(tree.ModelInstanceIndex, range(plant.num_model_instances())):
            wanted = plant.get_desired_state_input_port(instance)
            if wanted.size():
                wanted.FixValue(self.context, np.zeros(wanted.size()))
        if self._steady.any():
            plant.get_applied_generalized_force_input_port().FixValue(self.context, self._steady)
        self.load(())
        self._simulator: Simulator = analysis.Simulator(self._diagram, root)
        if self._settings.accuracy is not None:
            _control_errors(self._simulator, self._settings.accuracy)
        with _quiet():
            self._simulator.Initialize()
        self._steps = 0

    def load(self, loads: Sequence[Load]) -> None:
        """Push with these, and no others, from now on."""
        pushes = [*self._lifts, *(self._push(load) for load in loads)]
        self.plant.get_applied_spatial_force_input_port().FixValue(self.context, pushes)

    def advance(self, control: Array, steps: int) -> None:
        """Go on for so many physics steps."""
        efforts = np.zeros(len(self._efforts))
        efforts[self._inputs] = np.clip(self._gain * control[self._drives] + self._offset, -self._reach, self._reach)
        self._actuation.GetMutableData().get_mutable_value().SetFromVector(efforts)
        self._steps += steps * self._finer
        self._simulator.AdvanceTo(self._steps * self._step_s)

    def look(self, qpos: Array, qvel: Array) -> None:
        """Write the state of all joints into the two vectors."""
        self.layout.ours(self.plant.GetPositionsAndVelocities(self.context), qpos, qvel)

    def touches(self) -> Sequence[Touch]:
        """The contacts that carry force."""
        results = self.plant.get_contact_results_output_port().Eval(self.context)
        return self._skins.touches(results)

    def _push(self, load: Load) -> Push:
        push = plants.ExternallyAppliedSpatialForce()
        push.body_index = self._plan.bodies[load.link].index()
        push.p_BoBq_B = load.point
        push.F_Bq_W = spatial.SpatialForce(tau=load.wrench[3:], f=load.wrench[:3])
        return push

    def _lift(self, link: int) -> Push:
        """What holds up a part of a link's weight."""
        held = self._parts.links[link]
        weight = held.mass_kg * self._parts.gravity
        return self._push(Load(link, held.centre, np.concatenate([-held.lifted * weight, np.zeros(3)])))


@contextmanager
def _quiet() -> Generator[None]:
    """Keep Drake from saying that no deformable can lie on the ground."""
    log = logging.getLogger("drake")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(before)


def _control_errors(simulator: Simulator, accuracy: float) -> None:
    """Let the simulator take the steps that keep the error below `accuracy`."""
    config = analysis.SimulatorConfig(
        integration_scheme="cenic",
        max_step_size=LONGEST_S,
        accuracy=accuracy,
        use_error_control=True,
        publish_every_time_step=False,
    )
    analysis.ApplySimulatorConfig(config, simulator)
    integrator = simulator.get_mutable_integrator()
    integrator.set_requested_minimum_step_size(SHORTEST_S)
    integrator.set_throw_on_minimum_step_size_violation(False)
