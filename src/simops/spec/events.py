# pyright: basic
# ruamel.yaml has no types for its events; they are met here only.
"""Turns YAML text into typed parser events, one at a time, so that a reader can stop early."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, final

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind = Literal[
    "stream", "stream_end", "document", "document_end", "alias", "scalar", "items", "items_end", "map", "map_end"
]

_KINDS: dict[str, Kind] = {
    "StreamStartEvent": "stream",
    "StreamEndEvent": "stream_end",
    "DocumentStartEvent": "document",
    "DocumentEndEvent": "document_end",
    "AliasEvent": "alias",
    "ScalarEvent": "scalar",
    "SequenceStartEvent": "items",
    "SequenceEndEvent": "items_end",
    "MappingStartEvent": "map",
    "MappingEndEvent": "map_end",
}


@final
@dataclass(frozen=True)
class Event:
    """One step of the parser."""

    kind: Kind
    line: int
    """Counted from one."""
    text: str = ""
    plain: bool = False
    """Whether a scalar stands without quotes, so that its text decides its type."""
    anchor: str | None = None
    tag: str | None = None
    version: tuple[int, int] | None = None


@final
class NotYamlError(Exception):
    """The text is not YAML."""

    def __init__(self, what: str, line: int | None) -> None:
        self.what = what
        self.line = line
        super().__init__(what)


def events(text: str) -> Iterator[Event]:
    """Give the parser's events for `text`; raise `NotYamlError` where it stops being YAML."""
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            kind = _KINDS[type(event).__name__]
            tag = getattr(event, "tag", None)
            yield Event(
                kind,
                event.start_mark.line + 1,
                text=event.value if kind == "scalar" else "",
                plain=event.implicit[0] if kind == "scalar" else False,
                anchor=getattr(event, "anchor", None),
                tag=None if tag is None else str(tag),
                version=getattr(event, "version", None),
            )
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        words = [str(part) for part in (error.context, error.problem) if part]
        raise NotYamlError(", ".join(words), None if mark is None else mark.line + 1) from error
    except YAMLError as error:
        raise NotYamlError(str(error).splitlines()[0], None) from error
    except Exception as error:  # hostile text trips the parser itself, as '"\\UFFFFFFFF"' does
        raise NotYamlError(str(error), None) from error
