"""Writes plain values as YAML that means the same to every YAML 1.2 reader: one way to write each value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from simops.spec.node import Plain
from simops.spec.text import resolve_scalar

_BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_ESCAPED = re.compile(r'["\\\x00-\x1f\x7f-\U0010ffff]')


def canonical(said: Mapping[str, Plain]) -> str:
    """Write a mapping in block style, keys in their order, lists of scalars on one line."""
    return "".join(f"{line}\n" for line in _map_lines(said, ""))


def _map_lines(said: Mapping[str, Plain], indent: str) -> Iterator[str]:
    for key, value in said.items():
        if _nested(value):
            yield f"{indent}{_text(key)}:"
            yield from _lines(value, f"{indent}  ")
        else:
            yield f"{indent}{_text(key)}: {_flow(value)}"


def _lines(value: Plain, indent: str) -> Iterator[str]:
    if isinstance(value, dict):
        yield from _map_lines(value, indent)
    elif isinstance(value, list):
        for member in value:
            if not _nested(member):
                yield f"{indent}- {_flow(member)}"
                continue
            first, *rest = _lines(member, f"{indent}  ")
            yield f"{indent}- {first.strip()}"
            yield from rest


def _nested(value: Plain) -> bool:
    if isinstance(value, dict):
        return bool(value)
    return isinstance(value, list) and any(isinstance(member, dict) or _nested(member) for member in value)


def _flow(value: Plain) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | float():
            return repr(value)
        case str():
            return _text(value)
        case list():
            return f"[{', '.join(_flow(member) for member in value)}]"
        case dict():
            return "{}"


def _text(text: str) -> str:
    if _BARE.fullmatch(text) and isinstance(resolve_scalar(text), str):
        return text
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if found[0] in '"\\':
        return f"\\{found[0]}"
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
