"""The next excitation as a file: one row a point of the grid, one column a joint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from simops.core.errors import DataError
from simops.core.learning import Proposer
from simops.data.files import publish
from simops.ops.study import Studied


def propose(studied: Studied, path: Path, *, seconds: float) -> Iterator[str]:
    """Write the motion that would tell most, and say what it would tell."""
    learner, material = studied.order.spec.learner, studied.order.material
    if not isinstance(learner, Proposer):
        raise DataError(f"{type(learner).__name__} proposes no motion", attempt="learner: physical")
    found = learner.propose(studied.best, material, seconds=seconds)
    head = ",".join(["time_s", *(f"command_{name}" for name in found.names)])
    rows = np.column_stack([found.time_s, found.command])
    lines = [head, *(",".join(f"{cell:.9g}" for cell in row) for row in rows.tolist())]
    publish(path, ("\n".join(lines) + "\n").encode())
    yield f"proposed: {path}, {seconds:g} s, worth {found.gain_nats:.2f} nats"
    for name, (before, after) in sorted(found.spreads.items(), key=lambda item: item[1][1] / item[1][0])[:6]:
        yield f"  {name}: spread {before:.3g} would be {after:.3g}"
