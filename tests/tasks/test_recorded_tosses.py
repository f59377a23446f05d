"""Recorded tosses are read, thrown again, and measured as the literature does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simops.core.errors import DataError
from simops.core.params import Params
from simops.core.signal import Array
from simops.sim.mujoco import Mujoco
from simops.tasks.cube_toss.recorded import Off, Toss, apart, off, recorded, thrown, tuned
from simops.tasks.cube_toss.task import RATE_HZ, SIDE_M, cube_toss

COLUMNS = ("x", "y", "z", "qw", "qx", "qy", "qz", "vx", "vy", "vz", "wx", "wy", "wz")
FRICTION = 0.3


def simulated(rows: int, lengths: float) -> Array:
    """A toss of this very engine as a recording with short lengths would show it: (rows, 13)."""
    task = cube_toss()
    point = {p.name: p.nominal for p in task.belief.params} | {"friction_coefficient": FRICTION}
    begun = {"position": np.array([[0.0, 0.1, 0.12]]), "velocity": np.array([[0.8, -0.3, 0.2]])}
    begun["angular_velocity"] = np.array([[2.0, 5.0, -1.0]])
    seen: list[Array] = []
    with Mujoco(threads=1).open(task, 1) as sim:
        sim.reset(np.arange(1), Params.of([point]), begun)
        for row in range(rows):
            if row:
                sim.step(np.zeros((1, 0), np.float32))
            read = sim.read()
            scaled = {"position": lengths, "velocity": lengths, "quaternion": 1.0, "angular_velocity": 1.0}
            order = ("position", "quaternion", "velocity", "angular_velocity")
            seen.append(np.concatenate([scaled[name] * read[name][0] for name in order]))
    return np.stack(seen)


def written(folder: Path, tosses: list[Array]) -> Path:
    tables: list[Array] = []
    for number, rows in enumerate(tosses):
        key = np.column_stack([np.full(len(rows), number), np.arange(len(rows)) / RATE_HZ])
        tables.append(np.hstack([key, rows]))
    path = folder / "tosses.csv"
    header = ",".join(("toss", "t", *COLUMNS))
    np.savetxt(path, np.vstack(tables), fmt="%.17g", delimiter=",", header=header, comments="")
    return path


def test_a_toss_of_the_same_physics_is_thrown_again_without_error_and_another_physics_is_off(tmp_path: Path) -> None:
    path = written(tmp_path, [simulated(40, 0.978), simulated(60, 0.978)])
    tosses = recorded(path)
    assert [len(toss) for toss in tosses] == [40, 60]
    same = thrown(Mujoco(threads=1), tosses, {"friction_coefficient": FRICTION})
    assert all(one.position_percent < 1e-3 and one.rotation_deg < 1e-2 for one in same)
    smooth = thrown(Mujoco(threads=1), tosses, {"friction_coefficient": 0.1})
    assert all(other.position_percent > 1.0 for other in smooth)
    stretched = thrown(Mujoco(threads=1), tosses, {"friction_coefficient": FRICTION}, lengths=1.0)
    assert all(other.position_percent > 0.1 for other in stretched)


def test_the_measure_is_percent_of_the_side_and_degrees() -> None:
    rows = np.tile([1.0, 0.0, 0.0, 0.0], (3, 1))
    toss = Toss("a", np.zeros((3, 3)), rows, np.zeros((3, 3)), np.zeros((3, 3)))
    turned = np.tile([-np.cos(0.25), np.sin(0.25), 0.0, 0.0], (3, 1))
    aside = np.array([[0.0, 0.0, 0.0], [0.5 * SIDE_M, 0.0, 0.0], [0.0, SIDE_M, 0.0]])
    assert off(toss, aside, turned) == pytest.approx((50.0, np.rad2deg(0.5)))
    assert apart(rows, -rows) == pytest.approx(np.zeros(3))
    both = tuned([Off(10.0, 4.0), Off(20.0, 8.0)])
    assert both == pytest.approx((15.0, 6.0, 5.0, 2.0))


def test_a_table_without_the_columns_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text("toss,t,x\n0,0.0,0.1\n0,0.1,0.2\n")
    with pytest.raises(DataError, match="y"):
        recorded(path)
