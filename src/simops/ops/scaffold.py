"""A new project: the files of a small one that runs, to be changed into one's own."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from simops.core.errors import DataError
from simops.data.files import make_folder, publish

FILES = ("README.md", "scene.xml", "spec.yaml", "task.py")


def scaffold(folder: Path) -> tuple[Path, ...]:
    """Write the project into `folder`; refuses to write over anything."""
    taken = [name for name in FILES if (folder / name).exists()]
    if taken:
        raise DataError(f"{folder} has a {taken[0]} already", where=str(folder), attempt="another folder")
    make_folder(folder)
    template = resources.files("simops.ops.template")
    for name in FILES:
        publish(folder / name, (template / name).read_bytes())
    return tuple(folder / name for name in FILES)
