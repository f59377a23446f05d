"""The recipe for writing, call by call: cut the power after any of them, or let any of them fail."""

from __future__ import annotations

import errno
import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simops.core.errors import DataError, SpaceError
from simops.data.check import check
from simops.data.shard import pick
from simops.data.store import Dataset
from simops.data.writer import Writer
from tests.data.made import header_of, made_block

BLOCK = made_block(4)
PARTS = [pick(BLOCK, np.array([0, 1])), pick(BLOCK, np.array([2, 3]))]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here waits for the disk of this machine: what would survive is noted, and the power stays on."""

    def checked(file: int) -> None:
        _ = os.fstat(file)

    monkeypatch.setattr(os, "fsync", checked)


@dataclass
class Disk:
    """What a disk was told, and what would survive: names after the folder's fsync, bytes after the file's."""

    written: dict[int, bytes] = field(default_factory=dict[int, bytes])
    durable: dict[int, bytes] = field(default_factory=dict[int, bytes])
    names: dict[Path, dict[str, int]] = field(default_factory=dict[Path, dict[str, int]])
    pending: dict[Path, list[tuple[str, str, int]]] = field(default_factory=dict[Path, list[tuple[str, str, int]]])
    """Changes of names that no fsync has made safe: (name that goes, name that comes, file)."""

    def find(self, path: Path) -> int | None:
        names = dict(self.names.get(path.parent, {}))
        for gone, come, number in self.pending.get(path.parent, []):
            names.pop(gone, None)
            if come:
                names[come] = number
        return names.get(path.name)

    def survivors(self) -> Iterator[dict[Path, bytes]]:
        """Every state that a power cut now could leave: any subset of unsafe names, and unsafe bytes torn anyhow."""
        folders = sorted({*self.names, *self.pending})
        choices = [
            [c for n in range(len(p) + 1) for c in itertools.combinations(p, n)]
            for p in (self.pending.get(folder, []) for folder in folders)
        ]
        for chosen in itertools.product(*choices):
            visible: dict[Path, int] = {}
            for folder, changes in zip(folders, chosen, strict=True):
                names = dict(self.names.get(folder, {}))
                for gone, come, number in changes:
                    names.pop(gone, None)
                    if come:
                        names[come] = number
                visible |= {folder / name: number for name, number in names.items()}
            for eighths, zeros in itertools.product(range(9), (False, True)):
                yield {path: self.left(number, eighths, zeros=zeros) for path, number in visible.items()}

    def left(self, number: int, eighths: int, *, zeros: bool) -> bytes:
        """What is left of a file: all of it if safe, else a part, perhaps at its full length."""
        written = self.written[number]
        if written == self.durable[number]:
            return written
        part = written[: len(written) * eighths // 8]
        return part.ljust(len(written), b"\0") if zeros else part


@dataclass
class Recorder:
    """Stands before `os`, notes what passes, and may fail one call."""

    root: Path
    disk: Disk = field(default_factory=Disk)
    states: list[tuple[int, Disk]] = field(default_factory=list[tuple[int, Disk]])
    """Episodes acknowledged, and the disk, after every call."""
    acknowledged: int = 0
    fail_at: int = -1
    error: int = errno.ENOSPC
    calls: int = 0
    recording: bool = True
    opened: dict[int, Path] = field(default_factory=dict[int, Path])
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("open", "write", "fsync", "replace", "unlink"):
            monkeypatch.setattr(os, name, self.around(name, getattr(os, name)))

    def around(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*words: Any, **named: Any) -> Any:  # noqa: ANN401 stands for five functions of `os`
            path = self.opened.get(words[0]) if name in {"write", "fsync"} else Path(words[0])
            if path is None or not path.is_relative_to(self.root) or path.name == "lock":
                return real(*words, **named)
            if name != "unlink" and not (name == "open" and not words[1] & os.O_CREAT):
                self.calls += 1
                if self.calls - 1 == self.fail_at:
                    raise OSError(self.error, os.strerror(self.error))
            result = real(*words, **named)
            if name == "open":
                self.opened[result] = path
            if self.recording:
                self.note(name, path, words, result)
                self.states.append((self.acknowledged, deepcopy(self.disk)))
            return result

        return call

    def note(self, name: str, path: Path, words: tuple[Any, ...], result: int) -> None:
        disk = self.disk
        if name == "open":
            if words[1] & os.O_CREAT:
                number = next(self.numbers)
                disk.written[number] = disk.durable[number] = b""
                disk.pending.setdefault(path.parent, []).append(("", path.name, number))
        elif name == "write":
            number = disk.find(path)
            assert number is not None
            disk.written[number] += bytes(words[1][:result])
        elif name == "fsync" and path.is_dir():
            names = disk.names.setdefault(path, {})
            for gone, come, number in disk.pending.pop(path, []):
                names.pop(gone, None)
                if come:
                    names[come] = number
        elif name == "fsync":
            number = disk.find(path)
            assert number is not None
            disk.durable[number] = disk.written[number]
        elif name == "replace":
            number = disk.find(path)
            assert number is not None
            disk.pending.setdefault(path.parent, []).append((path.name, Path(words[1]).name, number))
        elif name == "unlink":
            disk.pending.setdefault(path.parent, []).append((path.name, "", -1))


def write(recorder: Recorder) -> None:
    with Writer.create(recorder.root, header_of(BLOCK)) as writer:
        for part in PARTS:
            writer.append(part)
            recorder.acknowledged += len(part)
            if recorder.recording:
                recorder.states.append((recorder.acknowledged, deepcopy(recorder.disk)))


def test_a_power_cut_after_any_call_loses_nothing_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(tmp_path / "set")
    with monkeypatch.context() as patch:
        recorder.watch(patch)
        write(recorder)
    seen: dict[frozenset[tuple[Path, bytes]], int] = {}
    """The most that was acknowledged when a cut may leave this."""
    for acknowledged, disk in recorder.states:
        for survivor in disk.survivors():
            left = frozenset(survivor.items())
            seen[left] = max(acknowledged, seen.get(left, 0))
    assert len(seen) > 100
    folder = tmp_path / "after"
    for state, acknowledged in seen.items():
        for path, data in state:
            place = folder / path.relative_to(recorder.root)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
        folder.mkdir(exist_ok=True)
        if (folder / "dataset.json").exists():
            assert check(folder).bad == ()
            assert len(Dataset.open(folder)) >= acknowledged
        else:
            assert acknowledged == 0
        with Writer.resume(folder, header_of(BLOCK)) as writer:
            assert writer.missing(range(acknowledged)).tolist() == []
            writer.append(BLOCK)
            assert len(writer.dataset) == len(BLOCK)
        shutil.rmtree(folder)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS])
def test_any_call_may_fail_and_the_writer_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: int) -> None:
    whole = Recorder(tmp_path / "whole", recording=False)
    with monkeypatch.context() as patch:
        whole.watch(patch)
        write(whole)
    assert whole.calls > 30
    for fail_at in range(whole.calls):
        recorder = Recorder(tmp_path / f"set{fail_at}", fail_at=fail_at, error=error, recording=False)
        with monkeypatch.context() as patch:
            recorder.watch(patch)
            with pytest.raises((SpaceError, DataError)) as caught:
                write(recorder)
        assert isinstance(caught.value, DataError if error == errno.EIO else SpaceError)
        with Writer.resume(recorder.root, header_of(BLOCK)) as writer:
            assert writer.missing(range(recorder.acknowledged)).tolist() == []
            assert check(recorder.root).bad == ()
            writer.append(BLOCK)
        assert check(recorder.root).episodes == len(BLOCK)


def test_a_writer_survives_a_failed_append(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Writer.create(tmp_path / "set", header_of(BLOCK)) as writer:
        writer.append(PARTS[0])
        for fail_at in range(15):
            recorder = Recorder(tmp_path / "set", fail_at=fail_at, recording=False)
            with monkeypatch.context() as patch:
                recorder.watch(patch)
                with pytest.raises((SpaceError, DataError)):
                    writer.append(PARTS[1])
            assert len(writer.dataset) == 2
        writer.append(PARTS[1])
        assert check(tmp_path / "set").episodes == 4
