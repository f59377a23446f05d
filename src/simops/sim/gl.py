"""An OpenGL context with no screen: EGL where there is one, else OSMesa."""

from __future__ import annotations

import ctypes
import importlib
import os
from typing import Any

from simops.core.errors import EngineError, ExtraError

LIBRARIES = {"egl": "libEGL.so.1", "osmesa": "libOSMesa.so.8"}
"""What each backend loads, in the order they are tried."""
INSTALL = "apt-get install -y libegl1 libgl1-mesa-dri libosmesa6"


def backend() -> str:
    """The backend that `MUJOCO_GL` asks for, else the first whose library loads."""
    asked = os.environ.get("MUJOCO_GL", "").lower().strip()
    if asked in LIBRARIES:
        return asked
    for name, library in LIBRARIES.items():
        if _loads(library):
            return name
    raise ExtraError("pictures need OpenGL without a screen, and neither EGL nor OSMesa is installed", attempt=INSTALL)


def context(width: int, height: int) -> Any:
    """Make a context for pictures up to this size, and make it current in this thread."""
    name = backend()
    try:
        made: Any = importlib.import_module(f"mujoco.{name}").GLContext(width, height)
        made.make_current()
    except ModuleNotFoundError as error:
        raise ExtraError(f"pictures need {error.name}", attempt="pip install 'simops[sim,render]'") from error
    except Exception as error:  # PyOpenGL fails in many ways: AttributeError, OSError, GLError, ...
        other = "osmesa" if name == "egl" else "egl"
        attempt = f"{INSTALL}, or set MUJOCO_GL={other}"
        raise EngineError(
            f"no {name} context for pictures: {str(error) or type(error).__name__}", attempt=attempt
        ) from error
    return made


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True
