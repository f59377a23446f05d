# pyright: basic
# rosbags and mcap, which write these logs, have no types.
"""Logs of robots become recordings with their own times, names and units; what is broken in them is said."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from simops.core.errors import DataError
from simops.core.recording import Recording
from simops.data import lerobot
from simops.data.recordings import Recordings
from simops.ops.recordings import bring, importer
from tests.data.made import made_block
from tests.data.test_lerobot import kept

JOINTS = ["hip", "knee"]
ROWS = 40
START_NS = 1_700_000_000_000_000_000


def read(path: Path, **how: str) -> list[Recording]:
    reader, _ = importer(path, **how)
    return list(reader.read(path))


def wave(i: int) -> list[float]:
    return [float(np.sin(0.1 * i)), float(np.cos(0.1 * i))]


def rosbag2(folder: Path, storage: str) -> Path:
    """A bag of joint states, each message naming its joints in another order, stamped 5 ms before it is written."""
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    kinds = store.types
    with Writer(folder, version=9, storage_plugin=StoragePlugin[storage]) as writer:
        line = writer.add_connection("/joint_states", "sensor_msgs/msg/JointState", typestore=store)
        for i in range(ROWS):
            at_ns = START_NS + i * 10_000_000
            order = [0, 1] if i % 2 else [1, 0]
            stamp = kinds["builtin_interfaces/msg/Time"](sec=at_ns // 10**9, nanosec=at_ns % 10**9)
            header = kinds["std_msgs/msg/Header"](stamp=stamp, frame_id="base")
            message = kinds["sensor_msgs/msg/JointState"](
                header=header,
                name=[JOINTS[k] for k in order],
                position=np.array(wave(i))[order],
                velocity=np.zeros(0),
                effort=np.zeros(0),
            )
            data = store.serialize_cdr(message, "sensor_msgs/msg/JointState")
            writer.write(line, at_ns + 5_000_000, data)
    return folder


@pytest.mark.parametrize("storage", ["SQLITE3", "MCAP"])
def test_a_rosbag2_keeps_stamps_and_puts_joints_in_one_order(tmp_path: Path, storage: str) -> None:
    [found] = read(rosbag2(tmp_path / "bag", storage))
    position = found.position
    columns = [position.labels.index(joint) for joint in JOINTS]
    np.testing.assert_allclose(position.values[:, columns], [wave(i) for i in range(ROWS)], atol=1e-12)
    np.testing.assert_allclose(np.diff(position.time_s), 0.01, atol=1e-9)
    stream = found["joint_states"]
    assert stream.received_s is not None
    np.testing.assert_allclose(stream.received_s - stream.time_s, 0.005, atol=1e-9)


def test_a_ros1_bag_is_read_without_ros(tmp_path: Path) -> None:
    from rosbags.rosbag1 import Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC)
    with Writer(tmp_path / "a.bag") as writer:
        line = writer.add_connection("/range", "std_msgs/msg/Float64", typestore=store)
        for i in range(ROWS):
            message = store.types["std_msgs/msg/Float64"](data=wave(i)[0])
            writer.write(line, START_NS + i * 10**7, store.serialize_ros1(message, "std_msgs/msg/Float64"))
    [found] = read(tmp_path / "a.bag")
    np.testing.assert_allclose(found["range"].columns["data"], [wave(i)[0] for i in range(ROWS)])
    assert found.start_ns == START_NS


def mcap_of_json(path: Path) -> Path:
    from mcap.writer import Writer

    with path.open("wb") as file:
        writer = Writer(file)
        writer.start()
        schema = writer.register_schema("Angles", "jsonschema", b"{}")
        channel = writer.register_channel("/angles", "json", schema)
        for i in range(ROWS):
            data = json.dumps({"position": wave(i)}).encode()
            at_ns = START_NS + i * 10**7
            writer.add_message(channel, at_ns, data, at_ns)
        writer.finish()
    return path


def test_an_mcap_of_json_that_was_cut_keeps_what_stood_before_the_cut(tmp_path: Path) -> None:
    whole = mcap_of_json(tmp_path / "a.mcap")
    [found] = read(whole)
    assert len(found["angles"]) == ROWS
    assert found.notes == ()
    data = bytearray(whole.read_bytes())
    data[len(data) // 2] ^= 0x40
    (tmp_path / "bad.mcap").write_bytes(data)
    with pytest.raises(DataError):
        read(tmp_path / "bad.mcap")


def ulog(path: Path) -> Path:
    """A log of one topic, byte by byte as PX4 writes them: header, flags, format, parameter, subscription, data."""

    def message(kind: bytes, body: bytes) -> bytes:
        return struct.pack("<H", len(body)) + kind + body

    parts = [b"ULog\x01\x12\x35\x01" + struct.pack("<Q", 1000)]
    parts.append(message(b"B", bytes(40)))
    parts.append(message(b"F", b"attitude:uint64_t timestamp;float[4] q;float roll_rate;"))
    key = b"float MASS"
    parts.append(message(b"P", bytes([len(key)]) + key + struct.pack("<f", 1.5)))
    parts.append(message(b"A", bytes([0]) + struct.pack("<H", 0) + b"attitude"))
    for i in range(ROWS):
        half = 0.05 * i
        row = struct.pack("<Q4ff", 1000 + 4000 * i, np.cos(half), np.sin(half), 0.0, 0.0, 0.1)
        parts.append(message(b"D", struct.pack("<H", 0) + row))
    path.write_bytes(b"".join(parts))
    return path


def test_a_ulog_has_a_stream_a_topic_and_its_parameters_as_facts(tmp_path: Path) -> None:
    [found] = read(ulog(tmp_path / "a.ulg"))
    attitude = found["attitude"]
    np.testing.assert_allclose(np.diff(attitude.time_s), 0.004, atol=1e-9)
    np.testing.assert_allclose(attitude.columns["q"][:, 0], np.cos(0.05 * np.arange(ROWS)), atol=1e-6)
    assert attitude.schema["q"].labels == ("w", "x", "y", "z")
    assert found.facts["MASS"] == pytest.approx(1.5)


def test_a_lerobot_set_is_a_recording_an_episode(tmp_path: Path) -> None:
    block = made_block(6, steps=20)
    done = lerobot.export(kept(tmp_path / "set", block), tmp_path / "out")
    found = read(tmp_path / "out")
    assert len(found) == done.episodes
    command = found[0].command
    assert command.labels == ("action_hip", "action_knee")
    np.testing.assert_allclose(np.diff(command.time_s), 0.02, atol=1e-5)
    first = block.rows[: block.lengths[0], block.schema.slices["action"]]
    np.testing.assert_array_equal(command.values.astype(np.float32), first)
    assert any("units unknown" in note for note in found[0].notes)


def test_what_is_imported_comes_back_to_the_bit_and_is_found_by_looking(tmp_path: Path) -> None:
    (tmp_path / "bags").mkdir()
    _ = rosbag2(tmp_path / "bags" / "one", "MCAP")
    found = bring(tmp_path / "bags", tmp_path / "kept")
    again = Recordings.open(tmp_path / "kept").recording(0)
    np.testing.assert_array_equal(again.position.values, found.recording(0).position.values)
    assert found.recipe.startswith("ros")
