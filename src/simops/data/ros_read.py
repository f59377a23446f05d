# pyright: basic
# rosbags types its readers by what a bag may be; this is the one file that opens bags.
"""ROS 1 bags and rosbag2 (MCAP and SQLite) as recordings, without ROS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from simops.core.errors import DataError
from simops.core.recording import Recording
from simops.core.trajectory import Origin
from simops.data.gather import Gathered
from simops.data.mcap_read import gather as gather_mcap
from simops.data.rename import Renamed
from simops.data.ros_types import Types

import rosbags.rosbag1 as bag1  # isort: skip  # after ros_types, which says what to install
import rosbags.rosbag2 as bag2  # isort: skip
from ruamel.yaml import YAML, YAMLError  # isort: skip

MOST_BYTES = 64 * 2**30
_META_BYTES = 10**7


@final
@dataclass(frozen=True)
class Ros:
    """Bags: a `.bag`, a `.db3`, or the folder of a rosbag2."""

    topics: tuple[str, ...] = ()
    """Topics to keep, as `/joint_states` or `/arm/*`; all by default."""
    distro: str = ""
    """Whose message types a bag without definitions has, as `humble`; as the bag says, else of the newest."""
    robot: str = ""
    session: str = ""
    """What was logged in one go; each bag by default."""
    origin: Origin = "recorded"
    signals: Mapping[str, Renamed] = field(default_factory=dict[str, Renamed])
    """Names, labels, units and signs for what the messages hold."""

    def read(self, path: Path) -> Iterator[Recording]:
        """One recording a bag, at `path` or in the folders below it."""
        for bag in _bags(path):
            gathered = Gathered(self.topics)
            try:
                told = self._gather(bag, gathered)
            except (bag1.ReaderError, bag2.ReaderError, OSError, AssertionError, IndexError, KeyError) as error:
                what = f"{bag.name} is not a readable bag: {error}"
                attempt = "rosbag reindex" if bag.suffix == ".bag" else "ros2 bag reindex"
                raise DataError(what, where=str(bag), attempt=attempt, fault="DAT-003") from error
            count = sum(len(topic.rows) for topic in gathered.topics.values()) + sum(gathered.bad.values())
            if told and not self.topics and count < told:
                gathered.notes.append(f"the bag says {told} messages, {count} are there")
            yield gathered.recording(
                bag.stem, robot=self.robot, session=self.session, origin=self.origin, signals=self.signals
            )

    def _gather(self, bag: Path, gathered: Gathered) -> int:
        """Read one bag; give how many messages it says it has, or 0."""
        if bag.suffix == ".bag":
            with bag1.Reader(bag) as reader:
                return self._messages(reader, Types(self.distro), gathered, ros1=True)
        if bag.is_file():
            with bag2.Reader(bag) as reader:
                return self._messages(reader, Types(self.distro), gathered, ros1=False)
        told = _metadata(bag)
        types = Types(self.distro or _distro(told))
        if told.get("compression_mode"):
            with bag2.Reader(bag) as reader:
                return self._messages(reader, types, gathered, ros1=False)
        # file by file: a bag whose metadata differs from its files in a detail would read as empty
        for name in told["relative_file_paths"]:
            file = bag / Path(name).name
            if not file.is_file() or not file.resolve().is_relative_to(bag.resolve()):
                raise DataError(f"{file.name} of the bag is missing", where=str(bag), fault="DAT-004")
            if told["storage_identifier"] == "mcap":
                gather_mcap(file, gathered, types)
                continue
            with bag2.Reader(file) as reader:
                self._messages(reader, types, gathered, ros1=False)
        return int(told.get("message_count", 0))

    def _messages(self, reader: Any, types: Types, gathered: Gathered, *, ros1: bool) -> int:
        for one in reader.connections:
            gathered.wants(one.topic)
            types.learn(one.msgtype, one.msgdef.data, idl=one.msgdef.format.name == "IDL")
        wanted = [one for one in reader.connections if gathered.wants(one.topic)]
        for one, received_ns, data in reader.messages(connections=wanted) if wanted else ():
            if not gathered.wants(one.topic):
                continue
            try:
                gathered.add(one.topic, one.msgtype, types.decode(one.msgtype, data, ros1=ros1), received_ns)
            except DataError as error:
                if error.fault == "SEC-010":
                    raise
                gathered.miss(one.topic, error)
        return int(reader.message_count)


def _bags(path: Path) -> list[Path]:
    if path.is_file() or (path / "metadata.yaml").is_file():
        return [path]
    found = sorted({*path.rglob("*.bag"), *(one.parent for one in path.rglob("metadata.yaml"))})
    lone = [one for one in sorted(path.rglob("*.db3")) if one.parent not in found]
    stray = [one for one in [*found, *lone] if not one.resolve().is_relative_to(path.resolve())]
    if stray:
        raise DataError(f"{stray[0]} leads outside the folder", where=str(path), fault="SEC-010")
    if not found and not lone:
        raise DataError(f"{path} holds no bag", where=str(path), fault="DAT-004")
    return [*found, *lone]


def _metadata(bag: Path) -> dict[str, Any]:
    file = bag / "metadata.yaml"
    if file.stat().st_size > _META_BYTES:
        raise DataError("metadata.yaml is too large to read", where=str(bag), fault="SEC-010")
    try:
        told = YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8"))["rosbag2_bagfile_information"]
        if isinstance(told["relative_file_paths"], list) and isinstance(told["storage_identifier"], str):
            return told
    except (YAMLError, KeyError, TypeError, ValueError) as error:
        what = f"metadata.yaml is not what rosbag2 writes: {type(error).__name__}"
        raise DataError(what, where=str(bag), attempt="ros2 bag reindex", fault="DAT-007") from error
    raise DataError("metadata.yaml names no files", where=str(bag), attempt="ros2 bag reindex", fault="DAT-007")


def _distro(told: Mapping[str, Any]) -> str:
    named = str(told.get("ros_distro") or "")
    return named if named in {"foxy", "galactic", "humble", "iron", "jazzy", "kilted"} else ""
