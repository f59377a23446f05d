"""Publishes a JSON Schema, draft 2020-12, so that editors complete a spec and check it while it is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

from simops.core.errors import PluginError, SimOpsError
from simops.spec.bounds import Above, AtLeast, AtMost, Below, Bound
from simops.spec.docs import field_docs, first_sentence
from simops.spec.node import Plain
from simops.spec.plain import UnsayableError, plain
from simops.spec.plugins import Make, Plugins, no_plugins
from simops.spec.shape import (
    Choice,
    Either,
    Field,
    Fixed,
    Interval,
    Listing,
    Names,
    Number,
    Opaque,
    Plug,
    Record,
    Shape,
    Text,
    Truth,
    fields_of,
    shape_of,
)

_LIMITS: Mapping[type, str] = {
    AtLeast: "minimum",
    AtMost: "maximum",
    Above: "exclusiveMinimum",
    Below: "exclusiveMaximum",
}
Json = dict[str, Plain]
DRAFT = "https://json-schema.org/draft/2020-12/schema"


def json_schema(kind: type, *, plugins: Plugins | None = None) -> Json:
    """Describe the specs that load as `kind`; each plugin of `plugins` is one alternative with its own fields."""
    writer = _Writer(plugins or no_plugins())
    root = writer.describe(shape_of(kind))
    return {"$schema": DRAFT, "title": kind.__name__, **root, "$defs": dict(sorted(writer.defs.items()))}


@final
@dataclass(frozen=True)
class _Writer:
    plugins: Plugins
    defs: dict[str, Plain] = field(default_factory=dict[str, Plain])
    described: dict[str, Make] = field(default_factory=dict[str, Make])

    def describe(self, shape: Shape) -> Json:
        """Say what `shape` wants; records and plugin kinds are described once and referred to."""
        match shape:
            case Listing(item):
                said: Json = {"type": "array", "items": self.describe(item)}
            case Fixed(items):
                said = _tuple([self.describe(item) for item in items])
            case Names(value):
                said = {"type": "object", "additionalProperties": self.describe(value)}
            case Either(options):
                said = {"anyOf": [self.describe(option) for option in options]}
            case Record(make):
                said = self._refer(getattr(make, "__name__", "record"), make)
            case Plug(kind):
                said = self._refer_plug(kind)
            case _:
                said = _simple(shape)
        return said

    def _refer(self, name: str, make: Make) -> Json:
        if self.described.get(name, make) is not make:  # another class of the same name
            name = f"{make.__module__}.{name}"
        if name not in self.defs:
            self.described[name] = make
            self.defs[name] = None  # so that a record that holds itself ends here
            self.defs[name] = self._record(make, {})
        return {"$ref": f"#/$defs/{name}"}

    def _refer_plug(self, kind: str) -> Json:
        key = f"plugin.{kind}"
        if key not in self.defs:
            self.defs[key] = None
            names = self.plugins.names(kind)
            bare: Json = {"type": "string", "anyOf": [{"enum": list(names)}, {"pattern": r"^\./.+\.py:\w+$"}]}
            self.defs[key] = {
                "description": f"The name of a plugin of kind {kind}, or `use: name` beside its fields.",
                "oneOf": [bare, *(self._plugin(kind, name) for name in names), _from_file()],
            }
        return {"$ref": f"#/$defs/{key}"}

    def _plugin(self, kind: str, name: str) -> Plain:
        use: Json = {"use": {"const": name}}
        try:
            return self._record(self.plugins.load(kind, name), use)
        except SimOpsError as error:  # listed, but an extra it needs is not installed: any fields may be given
            return {"type": "object", "description": error.what, "properties": use, "required": ["use"]}

    def _record(self, make: Make, head: Mapping[str, Plain]) -> Json:
        docs = field_docs(make)
        fields = [known for known in fields_of(make) if not isinstance(known.shape, Opaque)]
        properties: Json = {**head, **{known.name: self._property(known, docs) for known in fields}}
        said: Json = {"type": "object", "properties": properties, "additionalProperties": False}
        required: list[Plain] = [*head, *(known.name for known in fields if known.required)]
        if required:
            said["required"] = required
        sentence = first_sentence(make)
        return {"description": sentence, **said} if sentence else said

    def _property(self, known: Field, docs: Mapping[str, str]) -> Json:
        said = self.describe(known.shape)
        if known.name in docs:
            said["description"] = docs[known.name]
        try:
            if isinstance(known.shape, Plug) and known.shape.default:
                said["default"] = known.shape.default
            elif known.default is not None:
                said["default"] = plain(known.default(), known.shape, self.plugins)
        except (UnsayableError, PluginError):  # a default that only Python can make
            return said
        return said


def _simple(shape: Truth | Number | Interval | Text | Choice | Opaque) -> Json:
    match shape:
        case Truth():
            return {"type": "boolean"}
        case Number(whole, bounds):
            return {"type": "integer" if whole else "number", **_limits(bounds)}
        case Interval(bounds):
            return _tuple([{"type": "number", **_limits(bounds)}] * 2)
        case Text(_, patterns):
            rules: list[Plain] = [{"pattern": f"^(?:{each.pattern})$"} for each in patterns]
            return {"type": "string", "allOf": rules} if rules else {"type": "string"}
        case Choice(values):
            return {"enum": list(values)}
        case Opaque():
            return {"not": {}}


def _limits(bounds: Sequence[Bound]) -> Json:
    return {_LIMITS[type(bound)]: bound.value for bound in bounds}


def _tuple(items: Sequence[Json]) -> Json:
    members: list[Plain] = [*items]
    return {"type": "array", "prefixItems": members, "minItems": len(members), "maxItems": len(members)}


def _from_file() -> Json:
    use: Json = {"type": "string", "pattern": r"^\./.+\.py:\w+$"}
    return {"type": "object", "description": "A plugin in a file.", "properties": {"use": use}, "required": ["use"]}
