# pyright: basic
# The only file that meets MuJoCo's untyped bindings; what it hands out is named, so the rest can be checked.
"""MuJoCo, under the names the rest of this package uses."""

from __future__ import annotations

from typing import Any, TypeAlias

import mujoco
from mujoco import batch

mj: Any = mujoco
Batch: Any = batch.Batch
SimulationError: Any = batch.SimulationError

Model: TypeAlias = Any
"""A compiled mujoco.MjModel."""
Data: TypeAlias = Any
"""A mujoco.MjData."""
Spec: TypeAlias = Any
"""An editable mujoco.MjSpec."""
Batched: TypeAlias = Any
"""A mujoco.batch.Batch."""
Index: TypeAlias = Any
"""Whatever picks rows or columns of an array."""

# model fields that derived constants follow from
CONSTANTS_FOLLOW: frozenset[str] = frozenset(mj.MjModel._setconst_inputs)  # noqa: SLF001
