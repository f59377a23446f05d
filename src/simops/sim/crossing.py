# pyright: basic
# JSON has no types: what comes back is checked by making it.
"""Recipes as text, so that a worker process can make the same engine: frozen dataclasses of plain values."""

from __future__ import annotations

import base64
import importlib
import importlib.util
import json
import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import reduce
from typing import Any, cast

import numpy as np

from simops.core.errors import EngineError


def written(thing: object) -> str:
    """Write a recipe; raises EngineError for what is none."""
    return json.dumps(_plain(thing))


def made(text: str) -> Any:
    """Make what the text is a recipe of."""
    return _thing(json.loads(text))


def _plain(thing: object) -> object:
    if thing is None or isinstance(thing, bool | int | float | str):
        return thing
    if isinstance(thing, np.ndarray):
        array = np.ascontiguousarray(thing)
        data = base64.b64encode(array.tobytes()).decode()
        return {"array": data, "dtype": array.dtype.str, "shape": list(array.shape)}
    if isinstance(thing, tuple | list | frozenset):
        members = cast("tuple[object, ...]", thing)
        return {"kind": type(members).__name__, "members": [_plain(member) for member in members]}
    if isinstance(thing, Mapping):
        named = cast("Mapping[object, object]", thing)
        return {"keys": [_plain(key) for key in named], "values": [_plain(value) for value in named.values()]}
    if is_dataclass(thing) and not isinstance(thing, type):
        kind = type(thing)
        held = {field.name: _plain(getattr(thing, field.name)) for field in fields(thing) if field.init}
        if kind.__module__ == "__main__" or "<locals>" in kind.__qualname__:
            raise _foreign(f"{kind.__qualname__} is defined where a worker process cannot find it")
        file = getattr(sys.modules.get(kind.__module__), "__file__", None)
        return {"class": kind.__qualname__, "module": kind.__module__, "file": file, "fields": held}
    raise _foreign(f"a {type(thing).__name__} is no part of a recipe")


def _foreign(words: str) -> EngineError:
    return EngineError(words, attempt="a frozen dataclass of plain values in a file of its own, or workers: 1")


def _thing(plain: Any) -> Any:
    if not isinstance(plain, dict):
        return plain
    if "array" in plain:
        flat = np.frombuffer(base64.b64decode(plain["array"]), plain["dtype"])
        return flat.reshape(plain["shape"])
    if "kind" in plain:
        return {"tuple": tuple, "list": list, "frozenset": frozenset}[plain["kind"]](map(_thing, plain["members"]))
    if "keys" in plain:
        return dict(zip(map(_thing, plain["keys"]), map(_thing, plain["values"]), strict=True))
    kind = reduce(getattr, plain["class"].split("."), _module(plain["module"], plain["file"]))
    return kind(**{name: _thing(value) for name, value in plain["fields"].items()})


def _module(name: str, file: str | None) -> Any:
    """Import by name; from the file where no package offers it, as a project's own motor."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        spec = importlib.util.spec_from_file_location(name, file) if file else None
        if spec is None or spec.loader is None:
            raise
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
