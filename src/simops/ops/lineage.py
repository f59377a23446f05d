"""Where an artefact comes from: data, spec, code, engine, simulator, seed, and what it was made out of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast, final

from simops.core.errors import DataError, nearest

FACTS = ("identity", "data", "spec", "code", "engine", "simulator", "seed", "parent")
"""What lineage is made of; each may be there more than once, as two datasets are.

`identity` is the digest an artefact goes by in trajectories and verdicts, `parent` what it was made out of.
"""
SHORT = 12
_LONGEST = 1024


@final
@dataclass(frozen=True)
class Lineage:
    """Facts about where an artefact comes from, in the order of FACTS."""

    facts: tuple[tuple[str, str], ...] = ()
    """What and value: digests, versions, recipes. A `parent` is `kind/name@version`, or the digest of its content."""

    def __post_init__(self) -> None:
        for what, value in self.facts:
            if what not in FACTS:
                raise DataError(f"lineage knows no {what!r}", attempt=nearest(what, FACTS) or ", ".join(FACTS))
            if not value or len(value) > _LONGEST or not value.isprintable():
                raise DataError(f"{what} is {value[:40]!r}", attempt=f"1 to {_LONGEST} printable characters")

    @classmethod
    def of(cls, facts: Iterable[tuple[str, str]]) -> Lineage:
        """Sort facts and drop repetitions."""
        order = {what: place for place, what in enumerate(FACTS)}
        return cls(tuple(sorted(set(facts), key=lambda fact: (order.get(fact[0], len(order)), fact[1]))))

    @classmethod
    def read(cls, provenance: Mapping[str, object]) -> Lineage:
        """The facts that a bundle's provenance tells; its other entries are none of lineage's business."""
        return cls.of([(what, text) for what in FACTS for text in _texts(provenance.get(what)) if text])

    def __getitem__(self, what: str) -> tuple[str, ...]:
        return tuple(value for name, value in self.facts if name == what)


class Node(NamedTuple):
    """One artefact in a graph of lineage."""

    name: str
    """As `go2@3`, or a digest that this registry does not hold."""
    lineage: Lineage
    parents: tuple[str, ...]
    about: str = ""
    """What else to say of it: tags, whether it was removed."""


def tree(nodes: Mapping[str, Node], root: str) -> str:
    """A graph as plain text: each artefact, its facts, then what it was made out of; each is told once."""
    lines: list[str] = []
    told: set[str] = set()

    def tell(name: str, lead: str, trunk: str) -> None:
        node = nodes[name]
        again = name in told
        lines.append(f"{lead}{node.name}{f'  ({node.about})' if node.about else ''}{'  (above)' if again else ''}")
        if again:
            return
        told.add(name)
        facts = [f"{what} {brief(value)}" for what, value in node.lineage.facts if what != "parent"]
        count = len(facts) + len(node.parents)
        for place, fact in enumerate(facts, 1):
            lines.append(f"{trunk}{'└─ ' if place == count else '├─ '}{fact}")
        for place, parent in enumerate(node.parents, len(facts) + 1):
            last = place == count
            tell(parent, f"{trunk}{'└─ ' if last else '├─ '}made from ", f"{trunk}{'   ' if last else '│  '}")

    tell(root, "", "")
    return "\n".join(lines)


def dot(nodes: Mapping[str, Node]) -> str:
    """A graph for Graphviz: artefacts are boxes, facts are ellipses that they share."""
    lines = ["digraph lineage {", "  rankdir=LR;", "  node [shape=box];"]
    facts: set[str] = set()
    for key, node in nodes.items():
        label = f"{node.name}\\n{node.about}" if node.about else node.name
        lines.append(f"  {_quoted(key)} [label={_quoted(label)}];")
        for what, value in node.lineage.facts:
            if what == "parent":
                continue
            fact = f"{what} {value}"
            if fact not in facts:
                facts.add(fact)
                lines.append(f"  {_quoted(fact)} [shape=ellipse, label={_quoted(f'{what} {brief(value)}')}];")
            lines.append(f"  {_quoted(fact)} -> {_quoted(key)};")
        lines.extend(f"  {_quoted(parent)} -> {_quoted(key)};" for parent in node.parents)
    return "\n".join([*lines, "}"])


def brief(value: str) -> str:
    """A digest by its first letters; anything else as it is."""
    bare = value.removeprefix("sha256:")
    hexadecimal = len(bare) == 64 and all(letter in "0123456789abcdef" for letter in bare)
    return bare[:SHORT] if hexadecimal else value


def _texts(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        return tuple(str(one) for one in cast("Sequence[object]", value))
    return (str(value),)


def _quoted(text: str) -> str:
    escaped = text.replace('"', '\\"')
    return f'"{escaped}"'
