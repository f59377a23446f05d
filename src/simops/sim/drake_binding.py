# pyright: basic
# The only file that meets Drake's bindings; what it hands out is named, so the rest can be checked.
"""Drake, under the names the rest of this package uses; loaded when an engine is opened, not before."""

from __future__ import annotations

from typing import Any, TypeAlias

from simops.core.errors import ExtraError

try:
    import pydrake.geometry as _geometry
    import pydrake.math as _math
    import pydrake.multibody.cenic as _cenic
    import pydrake.multibody.math as _spatial
    import pydrake.multibody.plant as _plant
    import pydrake.multibody.tree as _tree
    import pydrake.systems.analysis as _analysis
    import pydrake.systems.framework as _framework
except ImportError as missing:
    raise ExtraError(
        "the engine needs Drake, which is not installed", attempt="pip install 'simops[drake]'"
    ) from missing

geometry: Any = _geometry
math: Any = _math
cenic: Any = _cenic
spatial: Any = _spatial
plants: Any = _plant
tree: Any = _tree
analysis: Any = _analysis
framework: Any = _framework

Plant: TypeAlias = Any
"""A MultibodyPlant."""
SceneGraph: TypeAlias = Any
"""What Drake keeps geometry in."""
Geometry: TypeAlias = Any
"""Identifies one shape."""
Joined: TypeAlias = Any
"""A joint of the plant."""
Actuator: TypeAlias = Any
"""A joint actuator of the plant."""
Body: TypeAlias = Any
"""A rigid body of the plant."""
Context: TypeAlias = Any
"""All that changes of a system."""
Fixed: TypeAlias = Any
"""An input port's value."""
Push: TypeAlias = Any
"""A wrench on a body."""
Simulator: TypeAlias = Any
"""What brings a context forward in time."""
Results: TypeAlias = Any
"""What touches, and how hard."""
System: TypeAlias = Any
"""A plant and its geometry, wired up."""
