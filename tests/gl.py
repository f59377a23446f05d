"""Whether this machine can draw."""

from __future__ import annotations

import pytest

from simops.core.errors import EngineError, ExtraError
from simops.sim import gl


def why_not() -> str:
    """Why there can be no picture here, or nothing."""
    try:
        gl.context(16, 16).free()
    except (ExtraError, EngineError) as error:
        return str(error)
    return ""


_WHY_NOT = why_not()
needs_gl = pytest.mark.skipif(bool(_WHY_NOT), reason=f"no OpenGL: {_WHY_NOT}")
