"""`simops data` says what is there, answers, checks, and carries out and in."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from simops.cli.main import main
from simops.data.store import Dataset
from simops.data.writer import Writer
from tests.data.made import header_of, made_block

BLOCK = made_block(6, steps=4)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Writer.create(tmp_path / "set", header_of(BLOCK)) as writer:
        writer.append(BLOCK)
    return tmp_path / "set"


def said(capsys: pytest.CaptureFixture[str], *words: str | Path, code: int = 0) -> str:
    assert main([str(word) for word in ("data", *words)]) == code
    shown = capsys.readouterr()
    return shown.out + shown.err


def test_show_tells_counts_outcomes_units_and_where_it_came_from(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = said(capsys, "show", folder)
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in text.splitlines() if line.strip()}
    assert rows["episodes"] == "6"
    assert rows["steps"] == "24 (0 s at 0.02 s)"
    assert rows["success"] == "2 (33.3%)"
    assert f"{Dataset.open(folder).bytes / 6:,.0f} bytes a trajectory" in rows["on"]
    assert rows["engine"] == "Made()"
    assert rows["params"] == "friction [1], mass [1]"
    assert rows["gyro"] == "3 rad/s imu"
    assert rows["action"] == "2 N m hip, knee"


def test_an_empty_dataset_can_be_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Writer.create(tmp_path / "set", header_of(BLOCK)).close()
    assert "0 B in 0 shards" in said(capsys, "show", tmp_path / "set")


def test_query_prints_a_table_or_csv(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sql = "SELECT episode, outcome, reward FROM episodes ORDER BY episode"
    table = said(capsys, "query", folder, sql)
    assert table.splitlines()[0].split() == ["episode", "outcome", "reward"]
    assert len(table.splitlines()) == 7
    assert "and 4 rows more" in said(capsys, "query", folder, sql, "--rows", "2")
    rows = list(csv.DictReader(io.StringIO(said(capsys, "query", folder, sql, "--csv"))))
    assert [float(row["reward"]) for row in rows] == BLOCK.scores["reward"].tolist()
    assert said(capsys, "query", folder, "SELECT 1 AS one WHERE false").split() == ["one"]


def test_a_query_that_writes_exits_2(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "one SELECT" in said(capsys, "query", folder, "DROP VIEW steps", code=2)


def test_check_names_each_bad_shard_and_repair_puts_it_aside(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "6 episodes in 1 shards" in said(capsys, "check", folder)
    file = folder / "steps/shard-000000.parquet"
    data = bytearray(file.read_bytes())
    data[77] ^= 2
    file.write_bytes(data)
    text = said(capsys, "check", folder, code=2)
    assert "DAT-003 shard-000000: steps/shard-000000.parquet does not match its checksum" in text
    assert "--repair" in text
    assert file.exists()
    assert "quarantine" in said(capsys, "check", folder, "--repair", code=2)
    assert not file.exists()
    said(capsys, "check", folder)
    assert "quarantine  shard 0" in said(capsys, "show", folder)


def test_export_and_import_carry_everything(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, back = tmp_path / "out", tmp_path / "back"
    assert "6 episodes, 24 frames, as LeRobot v3.0" in said(capsys, "export", folder, "--to", "lerobot", "--out", out)
    assert "6 episodes, 24 frames" in said(capsys, "import", out, "--from", "lerobot", "--out", back)
    assert Dataset.open(back).digest() == Dataset.open(folder).digest()
    only = said(capsys, "export", folder, "--to", "lerobot", "--out", tmp_path / "wins", "--outcome", "success")
    assert "2 episodes, 8 frames" in only
    assert "note: 4 episodes left out" in only


def test_import_of_what_is_no_dataset_exits_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "import", tmp_path, "--from", "lerobot", "--out", tmp_path / "set", code=2)
    assert "DAT-004 info.json is missing" in text
    same = said(capsys, "import", tmp_path, "--from", "lerobot", "--out", tmp_path, code=2)
    assert "is the folder to read" in same
