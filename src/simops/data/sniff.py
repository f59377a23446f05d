"""Tells the format of files by looking at them."""

from __future__ import annotations

from pathlib import Path

from simops.core.errors import DataError

_MAGIC = {
    b"PAR1": "table",
    b"\x89MCAP0\r\n": "mcap",
    b"#ROSBAG V2.0": "ros",
    b"SQLite format 3": "ros",
    b"ULog\x01\x12\x35": "ulog",
}
_ENDS = {".csv": "table", ".tsv": "table", ".txt": "table", ".ulg": "ulog", ".bag": "ros", ".db3": "ros"}


def format_of(path: Path) -> str:
    """The name of the importer for what is at `path`: by a folder's layout, else by the first bytes of a file."""
    if path.is_dir():
        return _folder(path)
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}", where=str(path.parent), fault="DAT-004") from error
    for magic, name in _MAGIC.items():
        if head.startswith(magic):
            return name
    if path.suffix.lower() in _ENDS:
        return _ENDS[path.suffix.lower()]
    raise DataError(
        f"{path.name} is of no format known here",
        where=str(path),
        attempt="--format, with Parquet, CSV, MCAP, rosbag, ULog or LeRobot",
        fault="DAT-012",
    )


def _folder(path: Path) -> str:
    if (path / "meta" / "info.json").is_file():
        return "lerobot"
    if (path / "metadata.yaml").is_file():
        return "ros"
    for file in sorted(path.iterdir(), key=lambda one: (one.is_dir(), one.name)):
        if file.is_file() or (file / "metadata.yaml").is_file() or (file / "meta" / "info.json").is_file():
            try:
                return format_of(file)
            except DataError:
                continue
    raise DataError(f"{path} holds no recording of a format known here", where=str(path), fault="DAT-004")
