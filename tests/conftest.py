"""What holds for every test: one BLAS thread a worker, headless pictures, repeatable examples."""

from __future__ import annotations

import os

# Before numpy loads: the workers share the cores, and bytes depend on the number of threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MUJOCO_GL", "egl")

from hypothesis import HealthCheck, settings

settings.register_profile(
    "house", deadline=None, derandomize=True, max_examples=25, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")
