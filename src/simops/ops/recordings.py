"""Bring recordings in: a plugin reads the files, a map tells it what the columns mean, and what comes out is kept.

from simops.ops.recordings import bring
bring(Path("logs.parquet"), Path("out"), how="xl330_servo")     # a map that is shipped
bring(Path("logs.csv"), Path("out"), how="mine.yaml")            # a map of one's own
bring(Path("bag/"), Path("out"))                                 # a format that tells what it holds
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import cast

from simops.core.errors import DataError, Problem, SpecError, nearest
from simops.core.plugin import Registry
from simops.core.recording import Importer
from simops.data.recordings import Recordings, Watch, keep
from simops.data.sniff import format_of
from simops.spec.load import load

MAPS = "maps"


def maps() -> Mapping[str, str]:
    """The maps that are shipped: name and first line of each."""
    folder = resources.files("simops.data") / MAPS
    found = sorted(file.name for file in folder.iterdir() if file.name.endswith(".yaml"))
    return {
        name.removesuffix(".yaml"): (folder / name).read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        for name in found
    }


def importer(source: Path, *, how: str = "", form: str = "", settings: Sequence[str] = ()) -> tuple[Importer, str]:
    """What reads `source`, and what to call it.

    Args:
        source: Files, whose format is told from what lies there.
        how: A map: the name of a shipped one, or a YAML file; its keys are the fields of the format's importer.
        form: The format, as `ros`; found by looking when left out.
        settings: `key=value`, set over the map.
    """
    name = form or ("table" if how in maps() else format_of(source))
    registry: Registry[Importer] = Registry("importer")
    kind = cast("type[Importer]", registry.load(name))
    value = load(_map(how), kind, overrides=settings).value
    return value, f"{name} {how}".strip()


def bring(
    source: Path | str,
    out: Path | str,
    *,
    how: str = "",
    form: str = "",
    settings: Sequence[str] = (),
    watch: Watch | None = None,
) -> Recordings:
    """Read `source` as `importer` would, and keep its recordings in the new folder `out`."""
    read, recipe = importer(Path(source), how=how, form=form, settings=settings)
    if Path(out).resolve().is_relative_to(Path(source).resolve()):
        raise SpecError("command line", [Problem("--out", "is inside what is read", attempt="another folder")])
    return keep(read.read(Path(source)), out, recipe=recipe, source=Path(source).name, watch=watch)


def _map(how: str) -> Path | str:
    if not how:
        return ""
    if how in maps():
        return (resources.files("simops.data") / MAPS / f"{how}.yaml").read_text(encoding="utf-8")
    if how.endswith((".yaml", ".yml")):
        return Path(how)
    raise DataError(f"no map is called {how!r}", attempt=nearest(how, maps()) or f"a .yaml, or {', '.join(maps())}")
