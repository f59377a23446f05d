"""A simulator on disk: plain text and weights, content-addressed, no code and no pickle.

simulator.json      engine, motor, sensors, learner, what was told, provenance, errors on what was held out
belief.json         what is believed of the world's numbers
scene/              the scene and every file beside it that it needs
parts/              weights (.safetensors) and tables (.json) of learned parts
manifest.json       SHA-256 of every file
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, cast, final

from simops.core import belief as beliefs
from simops.core.errors import DataError
from simops.core.learning import Candidate, Learner
from simops.core.protocols import Engine, Sensor
from simops.core.rig import Rig
from simops.core.simulator import Simulator, Told
from simops.core.task import Scene, Task
from simops.data.files import make_folder, publish
from simops.spec.canonical import canonical
from simops.spec.load import freeze, load
from simops.spec.node import Plain
from simops.spec.plugins import Plugin, installed_plugins

FORMAT = 1
NAME, BELIEF, MANIFEST, RECIPE, PARTS, SCENE = (
    "simulator.json",
    "belief.json",
    "manifest.json",
    "recipe.yaml",
    "parts",
    "scene",
)


@final
@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What a spec would say of a simulator."""

    engine: Annotated[Engine, Plugin("engine")]
    learner: Annotated[Learner, Plugin("learner")]
    sensors: tuple[Sensor, ...] = ()
    task: Task | None = None
    """The task, where it is one of a plugin's; a rig is written out beside."""


@final
@dataclass(frozen=True, kw_only=True)
class Kept:
    """A simulator as it lies on disk."""

    folder: Path | None
    candidate: Candidate
    learner: Learner
    task: Task
    rig: Rig | None
    task_name: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Provenance: data, split, seed, versions, errors on what was held out."""

    @property
    def digest(self) -> str:
        """SHA-256 of what decides how it simulates: engine, motor, sensors, belief, parts and scene."""
        sha = hashlib.sha256()
        one = self.candidate
        sha.update(f"{self.task.name}\n{_nameless(repr(one.engine))}\n{one.sensors!r}\n".encode())
        sha.update(beliefs.text(one.belief).encode())
        for name in sorted(one.parts):
            sha.update(f"{name} {hashlib.sha256(one.parts[name]).hexdigest()}\n".encode())
        return sha.hexdigest()

    @property
    def simulator(self) -> Simulator:
        """To train in."""
        one = self.candidate
        return Simulator(
            task=self.task,
            engine=one.engine,
            belief=one.belief,
            sensors=one.sensors,
            task_name=self.task_name,
            told=one.told,
            notes=one.notes,
        )


def write(kept: Kept, folder: Path) -> Path:
    """Put a simulator down in a new folder; it counts once its manifest is there."""
    make_folder(folder)
    one = kept.candidate
    files: dict[str, bytes] = {
        BELIEF: beliefs.text(one.belief).encode(),
        RECIPE: _recipe(kept).encode(),
        **{f"{PARTS}/{name}": data for name, data in one.parts.items()},
        **{f"{SCENE}/{name}": data for name, data in _scene(kept).items()},
    }
    body = {
        "format": FORMAT,
        "name": one.name,
        "task": kept.task_name or kept.task.name,
        "rig": _rig_said(kept.rig) if kept.rig else None,
        "told": [dataclasses.asdict(told) for told in one.told],
        "notes": list(one.notes),
        "facts": dict(kept.facts),
    }
    files[NAME] = json.dumps(body, indent=1, sort_keys=True).encode()
    for name, data in files.items():
        make_folder((folder / name).parent)
        publish(folder / name, data)
    listing = {name: hashlib.sha256(data).hexdigest() for name, data in sorted(files.items())}
    publish(folder / MANIFEST, json.dumps(listing, indent=1).encode())
    return folder


def read(folder: Path) -> Kept:
    """Open a simulator, verified to the last bit."""
    files = _verified(folder)
    body = cast("dict[str, Any]", json.loads(files[NAME]))
    if body.get("format") != FORMAT:
        raise DataError(f"format {body.get('format')} is not known here", where=str(folder), fault="DAT-012")
    recipe = load(files[RECIPE].decode(), Recipe, plugins=installed_plugins()).value
    rig = _rig_read(body["rig"], folder) if body["rig"] else None
    if rig is None and recipe.task is None:
        raise DataError("neither a rig nor a task is named", where=str(folder), fault="DAT-005")
    belief = beliefs.parse(files[BELIEF].decode())
    parts = {name.removeprefix(f"{PARTS}/"): data for name, data in files.items() if name.startswith(f"{PARTS}/")}
    candidate = Candidate(
        name=body["name"],
        belief=belief,
        engine=cast("Engine", _placed(recipe.engine, folder)),
        sensors=recipe.sensors,
        parts=parts,
        told=tuple(Told(**told) for told in body["told"]),
        notes=tuple(body["notes"]),
    )
    return Kept(
        folder=folder,
        candidate=candidate,
        learner=recipe.learner,
        task=rig.task() if rig else cast("Task", recipe.task),
        rig=rig,
        task_name=body["task"],
        facts=body["facts"],
    )


def _verified(folder: Path) -> dict[str, bytes]:
    path = folder / MANIFEST
    if not path.is_file():
        raise DataError(f"{folder} holds no simulator: it has no {MANIFEST}", where=str(folder), fault="DAT-004")
    listing = cast("dict[str, str]", json.loads(path.read_text(encoding="utf-8")))
    root, found = folder.resolve(), dict[str, bytes]()
    for name, digest in listing.items():
        file = (folder / name).resolve()
        if not file.is_relative_to(root):
            raise DataError(f"{name} leads outside the folder", where=str(folder), fault="SEC-010")
        if not file.is_file():
            raise DataError(f"{name} is missing", where=str(folder), fault="DAT-004")
        data = file.read_bytes()
        if hashlib.sha256(data).hexdigest() != digest:
            raise DataError(f"{name} is not what was written", where=str(folder), fault="DAT-003")
        found[name] = data
    for name in (NAME, BELIEF, RECIPE):
        if name not in found:
            raise DataError(f"{name} is missing", where=str(folder), fault="DAT-004")
    return found


def _recipe(kept: Kept) -> str:
    task = None if kept.rig else kept.task
    recipe = Recipe(
        engine=cast("Engine", _moved(kept.candidate.engine, kept.folder)),
        learner=kept.learner,
        sensors=kept.candidate.sensors,
        task=task,
    )
    return canonical(cast("dict[str, Plain]", freeze(recipe, plugins=installed_plugins()).plain))


def _scene(kept: Kept) -> dict[str, bytes]:
    """The scene's files, where it is a rig's own; a task brings its own."""
    if kept.rig is None:
        return {}
    path = Path(kept.rig.scene.path)
    return {path.name: path.read_bytes()}


def _rig_said(rig: Rig) -> dict[str, Any]:
    said = dataclasses.asdict(replace(rig, params=()))
    said["scene"] = {"path": f"{SCENE}/{Path(rig.scene.path).name}", "robot": rig.scene.robot}
    said["params"] = json.loads(beliefs.text(rig.prior))
    return said


def _rig_read(said: dict[str, Any], folder: Path) -> Rig:
    body = dict(said)
    scene = body.pop("scene")
    params = beliefs.parse(json.dumps(body.pop("params"))).params
    body["joints"] = tuple(body["joints"])
    return Rig(scene=Scene(str(folder / scene["path"]), scene["robot"]), params=params, **body)


def _placed(thing: object, folder: Path) -> object:
    """The same frozen recipe, with paths of files of the artefact as they lie here."""
    return _mapped(thing, lambda path: folder / path if path.parts[:1] == (PARTS,) else path)


def _moved(thing: object, folder: Path | None) -> object:
    """The same frozen recipe, with paths of files of the artefact as they are within it."""
    if folder is None:
        return thing
    return _mapped(thing, lambda path: path.relative_to(folder) if path.is_relative_to(folder) else path)


def _mapped(thing: object, rule: Callable[[Path], Path]) -> object:
    if isinstance(thing, Path):
        return rule(thing)
    if not dataclasses.is_dataclass(thing) or isinstance(thing, type):
        return thing
    changed = {
        each.name: new
        for each in dataclasses.fields(thing)
        if each.init and (new := _mapped(old := getattr(thing, each.name), rule)) is not old
    }
    return dataclasses.replace(thing, **changed) if changed else thing


def _nameless(text: str) -> str:
    """Without the folders of paths, which differ from machine to machine."""
    return re.sub(r"Path\('[^']*/(parts/[^']+)'\)", r"Path('\1')", text)
