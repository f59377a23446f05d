"""A writer killed at any moment loses nothing it acknowledged, and leaves nothing torn."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from simops.core.errors import DataError, SpaceError
from simops.data.check import check
from simops.data.shard import digests, pick
from simops.data.store import Dataset
from simops.data.writer import Writer
from tests.data.made import header_of, made_block

ROOT = Path(__file__).parents[2]

WRITER = """
import os, sys
import numpy as np
from pathlib import Path
from simops.data.shard import pick
from simops.data.writer import Writer
from tests.data.made import header_of, made_block
folder, acks, limit = Path(sys.argv[1]), os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT), int(sys.argv[3])
block = made_block(limit, steps=6)
with Writer.resume(folder, header_of(block)) as writer:
    os.write(1, b"ready\\n")
    for episode in writer.missing(range(limit)).tolist():
        writer.append(pick(block, np.array([episode])))
        os.write(acks, b"%d\\n" % episode)
        os.fsync(acks)
"""


def start(folder: Path, acks: Path, limit: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", WRITER, str(folder), str(acks), str(limit)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    folder, acks, limit = tmp_path / "set", tmp_path / "acks", 400
    block = made_block(limit, steps=6)
    chance = np.random.default_rng(11)
    for _ in range(6):
        process = start(folder, acks, limit)
        time.sleep(float(chance.uniform(0, 0.15)))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        found = check(folder)  # before anybody tidies up: nothing torn is visible
        assert found.bad == ()
        dataset = Dataset.open(folder)
        acknowledged = np.array(acks.read_text().split() if acks.exists() else [], np.int64)
        assert (dataset.find(acknowledged) >= 0).all()
        assert len(dataset) - len(acknowledged) <= 6  # at most one more a kill: kept, and not yet said so
        with Writer.resume(folder, header_of(block)) as writer:
            assert writer.notices in {(), ("DAT-001 1 unfinished shard discarded",)}
            assert writer.dataset.unfinished == 0
    with Writer.resume(folder, header_of(block)) as writer:
        writer.append(block)  # the rest, at once; what is there is compared bit by bit
    table = Dataset.open(folder).episodes()
    order = np.argsort(table["episode"])
    assert table["episode"][order].tolist() == list(range(limit))
    assert [table["digest"][i] for i in order] == digests(block)


CUTS = (
    "steps/.shard-000001.parquet.tmp",
    "steps/shard-000001.parquet",
    "episodes/.shard-000001.parquet.tmp",
    "episodes/shard-000001.parquet",
    "manifest/.shard-000001.json.tmp",
)


@pytest.mark.parametrize("reached", range(1, len(CUTS) + 1))
@pytest.mark.parametrize("torn", [False, True])
def test_every_prefix_of_a_publication_is_discarded(tmp_path: Path, reached: int, *, torn: bool) -> None:
    """What a crash can leave: files up to some point, the last of them perhaps in part."""
    block = made_block(4)
    with Writer.create(tmp_path / "whole", header_of(block)) as writer:
        writer.append(pick(block, np.arange(2)))
        writer.append(pick(block, np.arange(2, 4)))
    with Writer.create(tmp_path / "set", header_of(block)) as writer:
        writer.append(pick(block, np.arange(2)))
    left = [name for name in CUTS[:reached] if ".tmp" not in name or name == CUTS[reached - 1]]
    for name in left:
        source = tmp_path / "whole" / name.replace("/.", "/").removesuffix(".tmp")
        data = source.read_bytes()
        short = torn and name.endswith(".tmp")
        (tmp_path / "set" / name).write_bytes(data[: len(data) // 2] if short else data)
    dataset = Dataset.open(tmp_path / "set")
    assert (len(dataset), check(tmp_path / "set").bad) == (2, ())
    with Writer.resume(tmp_path / "set", header_of(block)) as writer:
        whole_file = any(not name.endswith(".tmp") for name in left)
        assert writer.notices == (("DAT-001 1 unfinished shard discarded",) if whole_file else ())
        for name in left:
            assert not (tmp_path / "set" / name).exists()
        writer.append(block)
    assert Dataset.open(tmp_path / "set").digest() == Dataset.open(tmp_path / "whole").digest()


def test_data_whose_records_are_gone_are_never_taken_for_debris(tmp_path: Path) -> None:
    block = made_block(4)
    with Writer.create(tmp_path / "set", header_of(block)) as writer:
        for i in range(4):
            writer.append(pick(block, np.array([i])))
    for path in (tmp_path / "set" / "manifest").iterdir():
        path.unlink()
    with pytest.raises(DataError, match="record of shard 1 is gone"):
        Writer.resume(tmp_path / "set", header_of(block))
    assert len(list((tmp_path / "set" / "steps").iterdir())) == 4


FULL = """
import resource, sys
import numpy as np
from pathlib import Path
from simops.core.errors import SpaceError
from simops.data.shard import pick
from simops.data.writer import Writer
from tests.data.made import header_of, made_block
block = made_block(60, steps=50)
with Writer.resume(Path(sys.argv[1]), header_of(block)) as writer:
    writer.append(pick(block, np.arange(10)))
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
    try:
        writer.append(pick(block, np.arange(10, 60)))
    except SpaceError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    writer.append(pick(block, np.arange(10, 20)))
"""


@pytest.mark.parametrize("room", [0, 300, 5000])
def test_a_write_that_hits_a_limit_leaves_nothing_and_the_writer_goes_on(tmp_path: Path, room: int) -> None:
    command = [sys.executable, "-c", FULL, str(tmp_path / "set"), str(room)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "DAT-009 the file size limit is reached: shard-000001.parquet needs" in done.stdout
    assert check(tmp_path / "set").bad == ()
    dataset = Dataset.open(tmp_path / "set")
    assert ([one.number for one in dataset.shards], len(dataset), dataset.unfinished) == ([0, 1], 20, 0)


def test_a_folder_nobody_may_write_to_is_refused_in_words(tmp_path: Path) -> None:
    block = made_block(1)
    (tmp_path / "file").touch()
    with pytest.raises((DataError, SpaceError), match="cannot write"):
        Writer.create(tmp_path / "file" / "set", header_of(block))
