"""Damage of any kind is found, named and put aside; nothing damaged is ever read."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from simops.core.errors import DataError
from simops.data import frames, parquet
from simops.data.check import check
from simops.data.shard import pick
from simops.data.store import Dataset
from simops.data.writer import Writer
from tests.data.made import header_of, made_block

BLOCK = made_block(12, steps=7)
FILES = (
    "dataset.json",
    "manifest/shard-000001.json",
    "steps/shard-000001.parquet",
    "episodes/shard-000001.parquet",
    "frames/front-rgb-000005.json",
    "frames/front-rgb-000005.parquet",
    "videos/front/rgb/episode-000005.mp4",
)


def kept(folder: Path) -> Path:
    """Three shards and a film."""
    with Writer.create(folder, header_of(BLOCK)) as writer:
        for first in (0, 4, 8):
            writer.append(pick(BLOCK, np.arange(first, first + 4)))
        times = np.arange(8) * 0.02
        frames.keep(writer, 5, "front", "rgb", bytes(range(256)) * 9, time_s=times, step=np.arange(8))
    return folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kept(tmp_path_factory.mktemp("kept") / "set")


def read_everything(folder: Path) -> None:
    """What a trainer would: every number of every table."""
    dataset = Dataset.open(folder)
    for _ in dataset.blocks():
        pass
    for film in frames.films(folder):
        frames.read(folder, film)
        frames.tables(folder, verify=True)


def refusal(folder: Path) -> str:
    """What reading says, or nothing if it has nothing to say."""
    try:
        read_everything(folder)
    except DataError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", FILES)
def test_no_flipped_bit_is_read(whole: Path, tmp_path: Path, name: str) -> None:
    read_everything(whole)
    data = (whole / name).read_bytes()
    places = np.random.default_rng(7).integers(0, len(data) * 8, 60)
    silent: list[int] = []
    for place in [*places.tolist(), 0, len(data) * 8 - 1]:
        folder = tmp_path / "copy"
        shutil.copytree(whole, folder)
        changed = bytearray(data)
        changed[place // 8] ^= 1 << (place % 8)
        (folder / name).write_bytes(changed)
        said = refusal(folder)
        if not said.startswith("DAT-003") or Path(name).name not in said:
            silent.append(place)
        shutil.rmtree(folder)
    assert silent == []


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("keep", [0.0, 0.3, 0.999])
def test_no_file_cut_short_is_read(whole: Path, tmp_path: Path, name: str, keep: float) -> None:
    folder = shutil.copytree(whole, tmp_path / "copy")
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[: int(len(data) * keep)])
    with pytest.raises(DataError) as caught:
        read_everything(folder)
    assert caught.value.fault in {"DAT-003", "DAT-004"}


def test_pages_carry_checksums_of_their_own(whole: Path) -> None:
    data = bytearray((whole / "steps/shard-000000.parquet").read_bytes())
    found = 0
    for place in range(40, len(data) // 2, 97):
        data[place] ^= 4
        try:
            parquet.decode(bytes(data))
        except DataError:
            found += 1
        data[place] ^= 4
    assert found > 0.5 * len(range(40, len(data) // 2, 97))


def test_a_bad_shard_is_named_moved_and_never_read(tmp_path: Path) -> None:
    folder = kept(tmp_path / "set")
    path = folder / "steps/shard-000001.parquet"
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"steps/shard-000001\.parquet does not match its checksum") as caught:
        Dataset.open(folder).trajectory(5)
    assert "quarantine" in caught.value.attempt
    assert sorted(p.name for p in (folder / "quarantine").iterdir()) == [
        "shard-000001.episodes.parquet",
        "shard-000001.json",
        "shard-000001.steps.parquet",
        "shard-000001.why.json",
    ]
    dataset = Dataset.open(folder)
    assert ([one.number for one in dataset.shards], dataset.quarantined) == ([0, 2], (1,))
    assert dataset.missing(range(12)).tolist() == [4, 5, 6, 7]
    with Writer.resume(folder, header_of(BLOCK)) as writer:
        assert writer.append(BLOCK).number == 3  # only what is missing, under a number of its own
    assert Dataset.open(folder).missing(range(12)).tolist() == []
    assert check(folder).bad == ()


def test_a_bad_shard_stays_while_somebody_writes(tmp_path: Path) -> None:
    folder = kept(tmp_path / "set")
    with Writer.resume(folder, header_of(BLOCK)):
        (folder / "episodes/shard-000002.parquet").write_bytes(b"")
        with pytest.raises(DataError, match="has 0 of") as caught:
            list(Dataset.open(folder).blocks())
    assert caught.value.fault == "DAT-004"
    assert "--repair" in caught.value.attempt
    assert not (folder / "quarantine").exists()


def test_check_finds_everything_and_repair_puts_it_aside(tmp_path: Path) -> None:
    folder = kept(tmp_path / "set")
    seen: list[tuple[int, int]] = []
    sound = check(folder, watch=lambda done, total: seen.append((done, total)))
    assert (sound.shards, sound.episodes, sound.bad, sound.repaired) == (3, 12, (), False)
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]
    (folder / "manifest/shard-000000.json").unlink()
    (folder / "steps/shard-000002.parquet").unlink()
    (folder / "videos/front/rgb/episode-000005.mp4").write_bytes(b"x")
    with pytest.raises(DataError, match="the record of shard 0 is gone"):
        Dataset.open(folder)
    for repair in (False, True):
        found = check(folder, repair=repair)
        assert [(bad.name, bad.fault) for bad in found.bad] == [
            ("shard-000000", "DAT-005"),
            ("shard-000002", "DAT-004"),
            ("front-rgb-000005", "DAT-004"),
        ]
        assert (found.shards, found.episodes, found.repaired) == (1, 4, repair)
    assert check(folder).bad == ()
    assert Dataset.open(folder).missing(range(12)).tolist() == [0, 1, 2, 3, 8, 9, 10, 11]


def test_check_compares_the_record_with_the_data(tmp_path: Path) -> None:
    """A record that is sound in itself but belongs to another shard: index and data disagree."""
    folder = kept(tmp_path / "set")
    shutil.copy(folder / "manifest/shard-000000.json", folder / "manifest/shard-000001.json")
    with pytest.raises(DataError, match="record of shard 1 is gone or of another"):
        Dataset.open(folder)
    [bad] = check(folder).bad
    assert (bad.name, bad.fault) == ("shard-000001", "DAT-005")


def test_films_are_kept_whole_once_and_only_for_episodes_that_exist(tmp_path: Path) -> None:
    folder = kept(tmp_path / "set")
    times, steps, film = np.arange(8) * 0.02, np.arange(8), bytes(range(256)) * 9
    [record] = frames.films(folder)
    assert (record.name, record.frames, frames.read(folder, record)) == ("front-rgb-000005", 8, film)
    with Writer.resume(folder, header_of(BLOCK)) as writer:
        again = frames.keep(writer, 5, "front", "rgb", film, time_s=times, step=steps)
        assert again == record
        with pytest.raises(DataError, match="is another"):
            frames.keep(writer, 5, "front", "rgb", film + b"x", time_s=times, step=steps)
        with pytest.raises(DataError, match="there is no episode 99"):
            frames.keep(writer, 99, "front", "rgb", film, time_s=times, step=steps)
        for camera, suffix in (("../out", ".mp4"), ("front", "/../../x"), ("", ".mp4")):
            with pytest.raises(DataError, match="is not"):
                frames.keep(writer, 5, camera, "rgb", film, time_s=times, step=steps, suffix=suffix)
    assert len(frames.films(folder)) == 1
