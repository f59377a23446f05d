"""Where a spec finds its plugins, and how a field says that it holds one.

    engine: Annotated[Engine, Plugin("engine", default="mujoco")]

In YAML `engine: {use: mujoco, threads: 2}` names the plugin and sets its fields; `engine: mujoco` sets none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import final

from simops.core.errors import PluginError, SimOpsError
from simops.core.plugin import Registry

Make = Callable[..., object]
"""What makes a plugin: a dataclass, or a function whose parameters a spec may set."""


@final
@dataclass(frozen=True)
class Plugin:
    """Marks a field that holds a plugin of `kind`."""

    kind: str
    default: str = ""
    """Name of the plugin that stands there when the spec names none; empty if it must name one."""


@final
@dataclass(frozen=True)
class Plugins:
    """Everything a spec may name."""

    load: Callable[[str, str], Make]
    """From a kind and a name to what makes the plugin; raises a `SimOpsError` if there is none."""
    names: Callable[[str], Sequence[str]]
    """The names of a kind, without importing any."""

    def name_of(self, kind: str, value: object) -> str:
        """Find the name under which a plugin made in Python is known."""
        like = str(getattr(value, "name", type(value).__name__)).lower()
        for name in sorted(self.names(kind), key=lambda name: -SequenceMatcher(None, name, like).ratio()):
            try:
                make = self.load(kind, name)
            except SimOpsError:  # not installed whole, so `value` was not made by it
                continue
            if isinstance(make, type) and type(value) is make:
                return name
            if not isinstance(make, type) and _makes(make, value):
                return name
        raise PluginError(f"no {kind} plugin makes this {type(value).__name__}", attempt="naming an installed one")


def no_plugins() -> Plugins:
    """Nothing to name."""
    return Plugins(_refuse, lambda _: ())


def installed_plugins(files_from: Path | None = None) -> Plugins:
    """What packages offer, and files in the project folder `files_from` if one is given."""

    def load(kind: str, name: str) -> Make:
        registry: Registry[object] = Registry(kind)
        return registry.load(name, allow_files=files_from is not None, root=files_from)

    def names(kind: str) -> tuple[str, ...]:
        registry: Registry[object] = Registry(kind)
        return registry.names()

    return Plugins(load, names)


def _refuse(kind: str, name: str) -> Make:
    raise PluginError(f"no {kind} is called {name!r}")


def _makes(make: Make, value: object) -> bool:
    try:
        return make() == value
    except (TypeError, ValueError, SimOpsError):  # wants arguments, or its value cannot be compared
        return False
