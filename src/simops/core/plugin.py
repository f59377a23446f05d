"""Plugins: listed from package metadata, imported only by the run that names them.

A package offers one by an entry point in the group `simops.<kind>`; a project, by a file: `./mine.py:Thing`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar, cast, final

from simops.core.errors import ExtraError, PluginError, SimOpsError, nearest

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

KINDS = ("engine", "task", "motor", "sensor", "policy", "trainer", "importer", "learner")
"""What can be plugged in; each is an entry point group `simops.<kind>`."""

T = TypeVar("T")


@final
@dataclass(frozen=True, order=True)
class Plugin:
    """One installed plugin, as its package's metadata tells it."""

    kind: str
    name: str
    value: str
    """Where the object is, as `package.module:Thing`."""
    distribution: str
    version: str

    @property
    def origin(self) -> str:
        """The package that brought it, as a reader would install it."""
        return f"{self.distribution} {self.version}"


def listing(*kinds: str) -> tuple[Plugin, ...]:
    """Every installed plugin of `kinds`, all of them by default, without importing any."""
    return tuple(sorted({plugin for kind in kinds or KINDS for plugin, _ in _found(kind)}))


@final
class Registry(Generic[T]):
    """The plugins of one kind, by name."""

    def __init__(self, kind: str) -> None:
        """Look among plugins of `kind`, one of `KINDS`."""
        if kind not in KINDS:
            message = f"no plugin kind is called {kind!r}"
            raise PluginError(message, attempt=nearest(kind, KINDS) or ", ".join(KINDS))
        self.kind = kind

    def names(self) -> tuple[str, ...]:
        """Every installed name, sorted; imports nothing."""
        return tuple(sorted({plugin.name for plugin, _ in _found(self.kind)}))

    def load(self, name: str, *, allow_files: bool = False, root: Path | None = None) -> Callable[..., T]:
        """Import the plugin called `name` and give the class or function that makes one.

        Args:
            name: An installed name or, with `allow_files`, `./file.py:Thing`.
            allow_files: Whether code may come from a file.
            root: The project folder that files are relative to and may not leave; the working folder by default.
        """
        if ":" in name or name.endswith(".py"):
            return self._made(_from_file(self.kind, name, root=root or Path(), allowed=allow_files), name)
        found = [(plugin, entry) for plugin, entry in _found(self.kind) if plugin.name == name]
        if not found:
            known = self.names()
            attempt = nearest(name, known) or ", ".join(known) or "`simops plugins`"
            raise PluginError(f"no {self.kind} is called {name!r}", attempt=attempt)
        if len({plugin for plugin, _ in found}) > 1:
            rivals = " and ".join(sorted(plugin.origin for plugin, _ in found))
            raise PluginError(f"{self.kind} {name!r} is offered by {rivals}", attempt="uninstall all but one")
        return self._made(_from_entry(*found[0]), name)

    def _made(self, thing: object, name: str) -> Callable[..., T]:
        if not callable(thing):
            message = f"{self.kind} {name!r} is of type {type(thing).__name__}, want a class or function that makes one"
            raise PluginError(message, where=name)
        return cast("Callable[..., T]", thing)


def _found(kind: str) -> list[tuple[Plugin, metadata.EntryPoint]]:
    entries = metadata.entry_points(group=f"simops.{kind}")
    return [(_described(kind, entry), entry) for entry in entries]


def _described(kind: str, entry: metadata.EntryPoint) -> Plugin:
    if entry.dist is None:
        return Plugin(kind, entry.name, entry.value, "unknown", "0")
    return Plugin(kind, entry.name, entry.value, entry.dist.name, entry.dist.version)


def _from_entry(plugin: Plugin, entry: metadata.EntryPoint) -> object:
    try:
        return entry.load()
    except SimOpsError:
        raise
    except ModuleNotFoundError as error:
        extra = _extra_with(error.name or "", entry.dist)
        if not extra:
            raise _broken(plugin, error) from error
        message = f"{plugin.kind} {plugin.name!r} needs {error.name}, which is not installed"
        raise ExtraError(message, attempt=f"pip install '{plugin.distribution}[{extra}]'") from error
    except Exception as error:
        raise _broken(plugin, error) from error


def _broken(plugin: Plugin, error: Exception) -> PluginError:
    message = f"{plugin.kind} {plugin.name!r} of {plugin.origin} does not load: {type(error).__name__}: {error}"
    attempt = f"pip install --upgrade {plugin.distribution}, or uninstall it"
    return PluginError(message, where=plugin.value, attempt=attempt)


def _extra_with(module: str, dist: metadata.Distribution | None) -> str:
    """Name the smallest extra of `dist` that would bring `module`, or give an empty string."""
    brings: dict[str, set[str]] = {}
    for requirement in (dist.requires if dist else None) or ():
        package = re.match(r"[\w.-]+", requirement)
        extra = re.search(r"""extra\s*==\s*['"]([\w-]+)['"]""", requirement)
        if package and extra:
            brings.setdefault(extra[1], set()).add(package[0].lower().replace("-", "_"))
    wanted = module.partition(".")[0].lower()
    return min((extra for extra in brings if wanted in brings[extra]), key=lambda extra: len(brings[extra]), default="")


def _from_file(kind: str, name: str, *, root: Path, allowed: bool) -> object:
    place, _, attribute = name.rpartition(":")
    if not place or not attribute.isidentifier():
        raise PluginError(f"{name!r} names no {kind}", attempt="./file.py:Thing")
    if not allowed:
        message = f"{name!r} names a file, and code may not come from a file here"
        raise PluginError(message, attempt=f"an installed {kind}; see `simops plugins`", fault="SEC-001")
    home = root.resolve()
    path = (home / place).resolve()
    if not path.is_relative_to(home):
        raise PluginError(f"{place!r} is outside the project", where=str(home), fault="SEC-001")
    if path.suffix != ".py" or not path.is_file():
        raise PluginError(f"no Python file {place!r}", where=str(home), attempt="./file.py:Thing")
    module = _module_at(path, f"{kind} {name!r}")
    if not hasattr(module, attribute):
        raise PluginError(f"{place} has no {attribute!r}", where=str(path), attempt=nearest(attribute, vars(module)))
    return getattr(module, attribute)


def _module_at(path: Path, asked: str) -> ModuleType:
    """Import the file, once for each content, so that an edit is seen and a class keeps its identity."""
    digest = hashlib.sha256(str(path).encode() + path.read_bytes()).hexdigest()[:16]
    name = f"simops_file_{path.stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise PluginError(f"{asked} is not importable", where=str(path))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, SimOpsError) or not isinstance(error, Exception):
            raise
        raise PluginError(f"{asked} does not load: {type(error).__name__}: {error}", where=str(path)) from error
    return module
