"""My task: push a cart along its rail to a post, and stop there."""

from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np

from simops.core.belief import Box
from simops.core.chance import between
from simops.core.params import Change, Param
from simops.core.protocols import Act, Memory
from simops.core.signal import Array, Columns, Schema, Signal
from simops.core.task import Draw, Joint, Marker, Reading, Scene, Task, Term

POSITION = Signal("position", unit="m")
VELOCITY = Signal("velocity", unit="m/s")
GOAL = Signal("goal", (3,), "m", "world", labels=("x", "y", "z"))


def reach() -> Task:
    """Everything that is asked of the cart. Functions take columns, so they read a log as well as a simulation."""
    return Task(
        name="reach",
        scene=Scene(str(Path(__file__).parent / "scene.xml"), robot="cart"),
        state=(
            Reading(POSITION, Joint(("slide",))),
            Reading(VELOCITY, Joint(("slide",), "velocity")),
            Reading(GOAL, Marker("post")),
        ),
        action=Signal("force", (1,), "N", labels=("push",), low=(-6.0,), high=(6.0,)),
        observation=Schema((POSITION, VELOCITY, GOAL)),
        control_dt_s=0.02,
        horizon_s=5.0,
        belief=Box(
            (
                Param("cart_mass", 1.0, "kg", low=0.01, changes=(Change("mass", ("cart",)),)),
                Param("rail_friction", 0.1, "N", low=0.0, changes=(Change("frictionloss", ("slide",)),)),
            ),
            low=(0.5, 0.0),
            high=(2.0, 0.3),
        ),
        initial=initial,
        reward=(
            Term("distance", -1.0, distance),
            Term("effort", -0.001, lambda c: np.sum(c["action"] ** 2, axis=1)),
        ),
        failure=lambda c: np.abs(c["velocity"]) > 20.0,
        success=lambda c: (distance(c) < 0.02) & (np.abs(c["velocity"]) < 0.05),
        success_hold_s=0.2,
    )


def initial(draw: Draw) -> Columns:
    """The cart on one half of the rail, the post on the other."""
    post = np.zeros((len(draw.seeds), 3))
    post[:, 0] = between(draw.seeds, "post", 0.2, 1.0)
    post[:, 2] = 0.2
    return {"position": between(draw.seeds, "cart", -1.0, -0.2), "goal": post}


def distance(columns: Columns) -> Array:
    """How far the cart is from the post [m]."""
    return np.abs(columns["goal"][:, 0] - columns["position"])


@final
@dataclass(frozen=True)
class Push:
    """A spring towards the post, and a damper; its fields are what the spec may set."""

    stiffness_n_m: float = 12.0
    damping_ns_m: float = 6.0
    boost_n: float = 0.3
    """Extra force towards the post, against friction."""

    @property
    def digest(self) -> str:
        """Its recipe says all."""
        return repr(self)

    def start(self, task: Task, seeds: Array) -> Memory:
        """Nothing to remember."""
        del task
        return {"rows": np.zeros(len(seeds), bool)}

    def act(self, observation: Array, memory: Memory) -> Act:
        """One force a row of position, velocity and goal."""
        error = observation[:, 2] - observation[:, 0]
        force = self.stiffness_n_m * error - self.damping_ns_m * observation[:, 1]
        force = force + self.boost_n * np.clip(error / 0.01, -1, 1)
        return Act(force[:, None], memory)
