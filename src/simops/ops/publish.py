"""Bundles at rest: a folder under its own name is whole, tested and verified."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from simops.core.errors import DataError
from simops.data.files import make_folder, publish, refusal, sync
from simops.deploy.bundle import Bundle, load
from simops.deploy.manifest import MANIFEST, manifest

PACKAGES = ("simops", "numpy", "torch", "onnx", "onnxruntime", "mujoco")


def write(files: Mapping[str, bytes], out: Path) -> Bundle:
    """Publish a bundle's files under a manifest, whole or not at all; the very same bundle may be there already."""
    made = {**files, MANIFEST: manifest(files)}
    make_folder(out.absolute().parent)
    if out.exists():
        _require_same(made, out)
        return load(out)
    try:
        aside = Path(tempfile.mkdtemp(prefix=f".{out.name}.", suffix=".tmp", dir=out.absolute().parent))
    except OSError as error:
        raise refusal(error, out, sum(map(len, made.values()))) from error
    try:
        aside.chmod(0o755)
        for name, data in sorted(made.items()):
            publish(aside / name, data)
        load(aside)
        os.rename(aside, out)  # noqa: PTH104 - refuses a folder that came there meanwhile, as Path.replace may not
        sync(out.absolute().parent)
    except OSError as error:
        raise refusal(error, out, sum(map(len, made.values()))) from error
    finally:
        with contextlib.suppress(OSError):
            shutil.rmtree(aside)
    return load(out)


def packages() -> dict[str, str]:
    """Versions of what a bundle's bytes depend on."""
    found: dict[str, str] = {}
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def as_text(body: Mapping[str, Any]) -> bytes:
    """Write JSON the one way that bundles have it."""
    return (json.dumps(body, indent=1, sort_keys=True, allow_nan=False) + "\n").encode()


def _require_same(made: Mapping[str, bytes], out: Path) -> None:
    there = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()} if out.is_dir() else {}
    if there != dict(made):
        raise DataError(f"{out} is there already and is not this bundle", attempt="another --out", fault="DAT-011")
