# pyright: basic
# mcap's records are met here only.
"""MCAP files as recordings: ROS 2 and ROS 1 messages and JSON; what was written before a cut is kept."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from simops.core.errors import DataError
from simops.core.recording import Recording
from simops.core.trajectory import Origin
from simops.data.gather import Gathered
from simops.data.rename import Renamed
from simops.data.ros_types import Types
from simops.data.table_read import files_of

from zstandard import ZstdError  # isort: skip  # comes with mcap
from mcap.exceptions import EndOfFile, McapError  # isort: skip  # after ros_types, which says what to install
from mcap.records import Channel, DataEnd, Message, Metadata, Schema  # isort: skip
from mcap.stream_reader import CRCValidationError, StreamReader  # isort: skip

RECORD_BYTES = 2 * 2**30
"""The most that one record may take in memory."""


@final
@dataclass(frozen=True)
class Mcap:
    """MCAP, of ROS or not."""

    topics: tuple[str, ...] = ()
    """Topics to keep, as `/joint_states` or `/arm/*`; all by default."""
    distro: str = ""
    """Whose message types a file without definitions has, as `humble`."""
    robot: str = ""
    session: str = ""
    """What was logged in one go; each file by default."""
    origin: Origin = "recorded"
    signals: Mapping[str, Renamed] = field(default_factory=dict[str, Renamed])
    """Names, labels, units and signs for what the messages hold."""

    def read(self, path: Path) -> Iterator[Recording]:
        """One recording a file."""
        for file in files_of(path, (".mcap",)):
            gathered = Gathered(self.topics)
            facts = gather(file, gathered, Types(self.distro))
            yield gathered.recording(
                file.stem,
                robot=self.robot,
                session=self.session,
                origin=self.origin,
                signals=self.signals,
                facts=facts,
            )


def gather(path: Path, gathered: Gathered, types: Types) -> dict[str, str | float]:
    """Read one file; give the metadata that it carries."""
    facts: dict[str, str | float] = {}
    whole = False
    try:
        with path.open("rb") as file:
            whole = _records(
                StreamReader(file, validate_crcs=True, record_size_limit=RECORD_BYTES), gathered, types, facts
            )
    except CRCValidationError as error:
        raise DataError(f"{path.name}: {error}", where=str(path), fault="DAT-003") from error
    except (EndOfFile, struct.error, EOFError):
        pass
    except (McapError, ZstdError, RuntimeError, ValueError, OSError, MemoryError) as error:
        raise DataError(f"{path.name} is not a readable MCAP: {error}", where=str(path), fault="DAT-003") from error
    if not whole:
        gathered.notes.append(f"{path.name} was cut off while it was written: what stood before the cut is kept")
    return facts


def _records(reader: Any, gathered: Gathered, types: Types, facts: dict[str, str | float]) -> bool:
    """Take every record in; give whether the file was closed as files are."""
    schemas: dict[int, Schema] = {}
    channels: dict[int, Channel] = {}
    for record in reader.records:
        match record:
            case Schema():
                schemas[record.id] = record
            case Channel():
                channels[record.id] = record
                gathered.wants(record.topic)
            case Metadata():
                facts |= {f"{record.name}.{key}": str(value) for key, value in record.metadata.items()}
            case Message() if record.channel_id in channels:
                channel = channels[record.channel_id]
                _take(record, channel, schemas.get(channel.schema_id), gathered, types)
            case DataEnd():
                return True
            case _:
                pass
    return False


def _take(record: Any, channel: Any, schema: Any, gathered: Gathered, types: Types) -> None:
    topic, kind, how = channel.topic, schema.name if schema else "", channel.message_encoding
    if not gathered.wants(topic):
        return
    ros1 = how == "ros1"
    try:
        if how in ("cdr", "ros1") and schema is not None:
            types.learn(kind, schema.data.decode(errors="replace"), idl=schema.encoding == "ros2idl")
            message = types.decode(kind if "/msg/" in kind else kind.replace("/", "/msg/", 1), record.data, ros1=ros1)
        elif how == "json":
            message = _json(record.data, topic)
        else:
            gathered.unread[topic] = f"messages are {how or 'of no told encoding'}"
            return
    except DataError as error:
        gathered.miss(topic, error)
        return
    # JSON messages carry no stamp of their own that is known: when they were published stands for it
    if how == "json" and record.publish_time and record.publish_time != record.log_time:
        seconds, nanoseconds = divmod(record.publish_time, 10**9)
        message = {"header": {"stamp": {"sec": seconds, "nanosec": nanoseconds}}, **_dict(message)}
    gathered.add(topic, kind, message, record.log_time)


def _json(data: bytes, topic: str) -> object:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise DataError(f"a message of {topic} is not JSON", fault="DAT-007") from error
    return found if isinstance(found, dict) else {"value": found}


def _dict(message: object) -> dict[str, Any]:
    return message if isinstance(message, dict) else {}
