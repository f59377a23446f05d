"""SQL answers from verified files, and reaches nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from simops.core.errors import DataError
from simops.data import frames
from simops.data.query import query
from simops.data.shard import pick
from simops.data.writer import Writer
from tests.data.made import header_of, made_block

BLOCK = made_block(20, steps=6)

HOSTILE = (
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_csv('{steps}/../../../../../../etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    "SELECT * FROM glob('/etc/*')",
    "SELECT * FROM sniff_csv('/etc/passwd')",
    "SELECT * FROM read_text('{folder}/dataset.json')",
    "SELECT * FROM BLOCK",
    "COPY (SELECT 1) TO '{folder}/out.csv'",
    "COPY (SELECT 1 AS a) TO '{steps}/shard-000000.parquet'",
    "COPY (SELECT 1 AS a) TO '{steps}/shard-000000.parquet' (USE_TMP_FILE false)",
    "EXPLAIN ANALYZE COPY (SELECT 1 AS a) TO '{steps}/shard-000000.parquet' (USE_TMP_FILE false)",
    "SELECT * FROM query('COPY (SELECT 1) TO ''{folder}/out''')",
    "ATTACH '{folder}/out.db'",
    "EXPORT DATABASE '{folder}/out'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SELECT * FROM 'https://example.com/a.csv'",
    "SET enable_external_access = true",
    "SET memory_limit = '64GB'",
    "PRAGMA database_list",
    "CREATE TABLE kept AS SELECT 1",
    "DROP VIEW steps",
    "SELECT 1; SELECT 2",
    "SELECT getenv('HOME')",
    "",
    "SELEC 1",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kept") / "it's a set"
    with Writer.create(path, header_of(BLOCK)) as writer:
        writer.append(pick(BLOCK, np.arange(12)))
        writer.append(pick(BLOCK, np.arange(12, 20)))
        frames.keep(writer, 3, "front", "rgb", b"film", time_s=np.array([0.0, 0.1]), step=np.array([0, 5]))
    return path


def test_the_views_are_the_tables(folder: Path) -> None:
    answer = query(folder, "SELECT count(*) AS n, sum(reward) AS total FROM episodes")
    assert answer.columns == ("n", "total")
    assert answer.rows[0] == (20, pytest.approx(float(BLOCK.scores["reward"].sum())))
    assert query(folder, "SELECT count(*) FROM Steps").rows == [(140,)]
    joined = "SELECT frame, angle FROM frames JOIN steps USING (episode, step) ORDER BY frame"
    angles = BLOCK.trajectory(3)["angle"]
    assert query(folder, joined).rows == [(0, float(angles[0])), (1, float(angles[5]))]


def test_the_mean_reward_by_friction_decile_is_what_numpy_says(folder: Path) -> None:
    sql = """
        SELECT decile, avg(reward)
        FROM (SELECT reward, ntile(10) OVER (ORDER BY param_friction) AS decile FROM episodes)
        GROUP BY decile ORDER BY decile
    """
    order = np.argsort(BLOCK.params["friction"], kind="stable")
    want = BLOCK.scores["reward"][order].reshape(10, 2).mean(axis=1)
    assert [row[1] for row in query(folder, sql).rows] == pytest.approx(want.tolist())


def test_seeds_digests_and_outcomes_come_back_exactly(folder: Path) -> None:
    rows = query(folder, "SELECT seed, outcome, steps FROM episodes ORDER BY episode").rows
    assert [row[0] for row in rows] == BLOCK.seeds.tolist()
    assert rows[2][1:] == ("timeout", 6)


@pytest.mark.parametrize("sql", HOSTILE)
def test_nothing_else_is_read_and_nothing_written(folder: Path, sql: str) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    asked = sql.format(folder=str(folder).replace("'", "''"), steps=str(folder / "steps").replace("'", "''"))
    with pytest.raises(DataError):
        query(folder, f"{asked} -- steps episodes" if asked else asked)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_a_query_that_takes_too_long_is_stopped(folder: Path) -> None:
    endless = "SELECT count(*) FROM range(10000000) a, range(10000000) b"
    with pytest.raises(DataError, match=r"took more than 0\.2 s"):
        query(folder, endless, limit_s=0.2)


def test_a_query_never_sees_a_flipped_bit(tmp_path: Path) -> None:
    path = tmp_path / "set"
    with Writer.create(path, header_of(BLOCK)) as writer:
        writer.append(BLOCK)
    file = path / "episodes/shard-000000.parquet"
    data = bytearray(file.read_bytes())
    data[len(data) // 3] ^= 16
    file.write_bytes(data)
    with pytest.raises(DataError, match="does not match its checksum"):
        query(path, "SELECT avg(reward) FROM episodes")
