"""The type of a field as the loader sees it: one small algebra for reading, writing and describing specs.

A field typed `Engine`, `Task`, `Motor`, `Sensor` or `Policy` holds a plugin of that kind.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, cast, final, get_args, get_origin, get_type_hints

from simops.core.errors import PluginError
from simops.core.protocols import Engine, Motor, Policy, Sensor
from simops.core.task import Task
from simops.spec.bounds import Above, AtLeast, AtMost, Below, Bound, Matches
from simops.spec.node import Scalar
from simops.spec.plugins import Make, Plugin
from simops.spec.ranges import Range


@final
@dataclass(frozen=True)
class Truth:
    """`true` or `false`."""

    @property
    def want(self) -> str:
        """What the spec has to say here, for an error message."""
        return "true or false"


@final
@dataclass(frozen=True)
class Number:
    """An int or a float."""

    whole: bool
    bounds: tuple[Bound, ...] = ()

    @property
    def want(self) -> str:
        """What the spec has to say here, for an error message."""
        return "int" if self.whole else "float"


@final
@dataclass(frozen=True)
class Interval:
    """A `Range`, written `[low, high]`."""

    bounds: tuple[Bound, ...] = ()

    @property
    def want(self) -> str:
        """What the spec has to say here, for an error message."""
        return "[low, high]"


@final
@dataclass(frozen=True)
class Text:
    """A string or, with `path`, the name of a file."""

    path: bool = False
    patterns: tuple[Matches, ...] = ()

    @property
    def want(self) -> str:
        """What the spec has to say here, for an error message."""
        return "path" if self.path else "str"


@final
@dataclass(frozen=True)
class Choice:
    """One of a few values: a `Literal`, an `Enum`, or the null of an optional field."""

    values: Mapping[Scalar, object]
    """From what the spec says to what the field holds."""

    @property
    def want(self) -> str:
        """What the spec has to say here, for an error message."""
        shown = ["null" if value is None else str(value) for value in self.values]
        return shown[0] if len(shown) == 1 else f"one of {', '.join(shown)}"


@final
@dataclass(frozen=True)
class Listing:
    """Any number of members of one shape, as a tuple."""

    item: Shape

    @property
    def want(self) -> str:
        """What the spec has to say here, for an error message."""
        return f"list of {self.item.want}"


@final
@dataclass(frozen=True)
class Fixed:
    """A tuple of a fixed length."""

    items: tuple[Shape, ...]

    @property
    def want(self) -> str:
        """What the spec has to say here, for an error message."""
        return f"[{', '.join(item.want for item in self.items)}]"


@final
@dataclass(frozen=True)
class Names:
    """A mapping from names of the user's choice."""

    value: Shape

    @property
    def want(self) -> str:
        """What the spec has to say here, for an error message."""
        return f"map to {self.value.want}"


@final
@dataclass(frozen=True)
class Either:
    """The first option that fits."""

    options: tuple[Shape, ...]

    @property
    def want(self) -> str:
        """What the spec has to say here, for an error message."""
        return " or ".join(option.want for option in self.options)


@final
@dataclass(frozen=True)
class Record:
    """A dataclass, or the parameters of a function."""

    make: Make

    @property
    def want(self) -> str:
        """What the spec has to say here, for an error message."""
        return f"map of {', '.join(field.name for field in fields_of(self.make))}"


@final
@dataclass(frozen=True)
class Plug:
    """A plugin and its fields."""

    kind: str
    default: str = ""

    @property
    def want(self) -> str:
        """What the spec has to say here, for an error message."""
        return f"{'an' if self.kind[0] in 'aeiou' else 'a'} {self.kind}"


@final
@dataclass(frozen=True)
class Opaque:
    """Something a spec cannot say, such as a function; only its default is ever used."""

    hint: str

    @property
    def want(self) -> str:
        """What the spec has to say here, for an error message."""
        return f"nothing: a {self.hint} can only be given in Python"


Shape = Truth | Number | Interval | Text | Choice | Listing | Fixed | Names | Either | Record | Plug | Opaque

NOTHING = Choice({None: None})
_SEAMS: Mapping[str, object] = {"engine": Engine, "task": Task, "motor": Motor, "sensor": Sensor, "policy": Policy}


@final
@dataclass(frozen=True)
class Field:
    """One key that a record knows."""

    name: str
    shape: Shape
    default: Callable[[], object] | None
    """Makes the value to use when the key is left out; absent when it must be given."""

    recipe: bool = True
    """Whether it says what runs; a field left out of the `repr`, such as a number of threads, says only how fast."""

    @property
    def required(self) -> bool:
        """Whether the spec has to give it."""
        plug = isinstance(self.shape, Plug) and bool(self.shape.default)
        return self.default is None and not plug


def shape_of(hint: object) -> Shape:
    """Translate a type hint."""
    marks: tuple[object, ...] = ()
    if get_origin(hint) is Annotated:
        arguments = cast("tuple[object, ...]", get_args(hint))
        hint, marks = arguments[0], arguments[1:]
        for mark in marks:
            if isinstance(mark, Plugin):
                return Plug(mark.kind, mark.default)
    return _plugged(hint) or _scalar(hint, marks) or _collection(hint)


def fields_of(make: Make) -> tuple[Field, ...]:
    """The keys that a dataclass or a function knows, in order."""
    try:
        return _dataclass_fields(make) if _is_dataclass(make) else _parameters(make)
    except NameError as error:
        what = f"the field types of {getattr(make, '__name__', make)} cannot be read: {error}"
        raise PluginError(what, attempt="importing them outside TYPE_CHECKING") from error


def _plugged(hint: object) -> Shape | None:
    for kind, seam in _SEAMS.items():
        if hint is seam:
            return Plug(kind)
    return None


def _is_dataclass(thing: object) -> bool:
    return isinstance(thing, type) and dataclasses.is_dataclass(thing)


def _dataclass_fields(make: Make) -> tuple[Field, ...]:
    hints = get_type_hints(make, include_extras=True)
    fields: tuple[dataclasses.Field[object], ...] = dataclasses.fields(cast("Any", make))
    return tuple(
        Field(field.name, shape_of(hints[field.name]), _default(field), field.repr) for field in fields if field.init
    )


def _parameters(make: Make) -> tuple[Field, ...]:
    start = cast("Make", vars(make).get("__init__", make)) if isinstance(make, type) else make
    hints = get_type_hints(start, include_extras=True)
    known: list[Field] = []
    for name, parameter in inspect.signature(make).parameters.items():
        if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD}:
            continue
        given = parameter.default
        default = None if given is inspect.Parameter.empty else _constant(given)
        known.append(Field(name, shape_of(hints.get(name, object)), default))
    return tuple(known)


def _scalar(hint: object, marks: tuple[object, ...]) -> Shape | None:
    bounds = tuple(mark for mark in marks if isinstance(mark, AtLeast | AtMost | Above | Below))
    patterns = tuple(mark for mark in marks if isinstance(mark, Matches))
    known: dict[object, Shape] = {
        bool: Truth(),
        int: Number(whole=True, bounds=bounds),
        float: Number(whole=False, bounds=bounds),
        str: Text(patterns=patterns),
        Path: Text(path=True, patterns=patterns),
        Range: Interval(bounds),
        None: NOTHING,
        type(None): NOTHING,
    }
    for plain, shape in known.items():
        if hint is plain:
            return shape
    if _is_dataclass(hint):
        return Record(cast("Make", hint))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return Choice({_enum_text(member): member for member in hint})
    return None


def _collection(hint: object) -> Shape:
    origin, arguments = get_origin(hint), get_args(hint)
    kind = origin if isinstance(origin, type) else object
    shape: Shape = Opaque(getattr(hint, "__name__", str(hint)))
    if origin is Literal:
        shape = Choice({value: value for value in arguments})
    elif origin is Union or origin is types.UnionType:
        options = tuple(shape_of(argument) for argument in arguments)
        if not all(isinstance(option, Opaque) or option == NOTHING for option in options):
            # null last, so that messages read "str or null"
            shape = Either(tuple(sorted(options, key=lambda option: option == NOTHING)))
    elif kind is tuple and arguments[1:] != (Ellipsis,):
        shape = Fixed(tuple(shape_of(argument) for argument in arguments))
    elif issubclass(kind, Mapping) and arguments[:1] == (str,):
        shape = Names(shape_of(arguments[1]))
    elif issubclass(kind, Sequence):
        shape = Listing(shape_of(arguments[0]))
    return shape


def _default(field: dataclasses.Field[object]) -> Callable[[], object] | None:
    if field.default is not dataclasses.MISSING:
        return _constant(field.default)
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory
    return None


def _constant(value: object) -> Callable[[], object]:
    return lambda: value


def _enum_text(member: Enum) -> str:
    return member.value if isinstance(member.value, str) else member.name.lower()
