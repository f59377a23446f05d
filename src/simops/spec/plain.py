"""From typed values back to what a spec would say for them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import cast, final

from simops.core.errors import PluginError
from simops.spec.node import Plain
from simops.spec.plugins import Make, Plugins
from simops.spec.ranges import Range
from simops.spec.shape import Choice, Either, Fixed, Listing, Names, Number, Opaque, Plug, Record, Shape, fields_of


@final
class UnsayableError(Exception):
    """A spec has no words for this value."""


def plain(value: object, shape: Shape, plugins: Plugins) -> Plain:
    """Say `value` as a spec would, with every default written out; raise `UnsayableError` if it cannot."""
    match shape, value:
        case Either(options), _:
            return _first(value, options, plugins)
        case Plug(kind), _:
            return _plug(value, kind, plugins)
        case Record(make), _ if isinstance(make, type) and type(value) is make:
            return _record(value, make, plugins)
        case Names(inner), Mapping():
            entries = cast("Mapping[str, object]", value)
            return {key: plain(member, inner, plugins) for key, member in entries.items()}
        case ((Listing() | Fixed()), tuple()):
            members = cast("tuple[object, ...]", value)
            shapes = shape.items if isinstance(shape, Fixed) else (shape.item,) * len(members)
            return [plain(member, each, plugins) for member, each in zip(members, shapes, strict=True)]
        case Choice(values), _:
            return _choice(value, values)
        case Opaque(hint), _:
            raise UnsayableError(hint)
        case _, _:
            return _scalar(value, shape)


def _first(value: object, options: Iterable[Shape], plugins: Plugins) -> Plain:
    for option in options:
        try:
            return plain(value, option, plugins)
        except (UnsayableError, PluginError):
            continue
    raise UnsayableError(repr(value))


def _plug(value: object, kind: str, plugins: Plugins) -> Plain:
    name = plugins.name_of(kind, value)
    make = plugins.load(kind, name)
    if isinstance(make, type):
        return {"use": name, **_record(value, make, plugins)}
    settings = {field.name: field for field in fields_of(make)}
    said = {key: plain(field.default(), field.shape, plugins) for key, field in settings.items() if field.default}
    return {"use": name, **said}


def _record(value: object, make: Make, plugins: Plugins) -> dict[str, Plain]:
    said: dict[str, Plain] = {}
    for field in fields_of(make):
        if not field.recipe:
            continue
        try:
            said[field.name] = plain(getattr(value, field.name), field.shape, plugins)
        except UnsayableError:
            if field.default is None or field.default() != getattr(value, field.name):
                raise
    return said


def _choice(value: object, values: Mapping[bool | int | float | str | None, object]) -> Plain:
    for said, held in values.items():
        if type(held) is type(value) and held == value:
            return said
    raise UnsayableError(repr(value))


def _scalar(value: object, shape: Shape) -> Plain:
    if isinstance(value, Range):
        return [float(value.low), float(value.high)]
    if isinstance(value, Path):
        return value.as_posix()
    if isinstance(value, bool | str) and not isinstance(value, Enum):
        return value
    if isinstance(shape, Number) and isinstance(value, int | float) and math.isfinite(value):
        return int(value) if shape.whole and isinstance(value, int) else float(value)
    raise UnsayableError(repr(value))
