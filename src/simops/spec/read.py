"""From the untyped tree to typed values: walks both together and notes every problem on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, assert_never, cast, final, runtime_checkable

from simops.core.errors import Problem, SimOpsError, SpecError, nearest
from simops.spec.leaf import Read, Wrong, fits, mismatch, read_leaf
from simops.spec.node import Items, Leaf, Node, Plain, Table, join, named
from simops.spec.plain import UnsayableError, plain
from simops.spec.plugins import Make, Plugins
from simops.spec.ranges import Range
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
)


@runtime_checkable
class Checked(Protocol):
    """A class with rules that span its fields."""

    def spec_problems(self, known: Mapping[str, object]) -> Iterable[Problem]:
        """Everything wrong between the fields that could be read, a class method; paths are relative to it."""
        ...


@final
@dataclass(frozen=True)
class Reader:
    """Reads one spec, and gathers what is wrong with it.

    What could be read of a faulty spec is read, so that rules that span fields find their problems in the same pass.
    """

    plugins: Plugins
    problems: list[Problem] = field(default_factory=list[Problem])
    lines: dict[str, int | None] = field(default_factory=dict[str, int | None])
    """Where each key path stands; nowhere if it came from `--set`."""
    doubted: frozenset[str] = frozenset()
    """Paths whose value the text did not give well, and about which nothing more is to be said."""

    def read(self, node: Node, shape: Shape, path: str) -> Read | None:
        """Give the value that `node` says, or note why it says none."""
        match shape:
            case Truth() | Number() | Text() | Choice() | Opaque():
                found = self._kept(read_leaf(node, shape), node, path)
            case Either():
                found = self._either(node, shape, path)
            case Plug():
                found = self._plug(node, shape, path)
            case Interval() if isinstance(node, Items) and len(node.items) == 2:
                found = self._interval(node, shape, path)
            case Listing() | Fixed() if isinstance(node, Items):
                found = self._items(node, shape, path)
            case Names() if isinstance(node, Table):
                found = self._names(node, shape, path)
            case Record(make) if isinstance(node, Table):
                found = self._record(node, make, path, {})
            case Interval() | Listing() | Fixed() | Names() | Record():
                found = self._kept(mismatch(node, shape), node, path)
            case _:
                assert_never(shape)
        return found

    def note(self, path: str, line: int | None, wrong: Wrong) -> None:
        """Write a problem down, at its line or at the flag that it came from; one for each value is enough."""
        if path and path in self.doubted:
            return
        shown = f"--set {path}" if line is None else path
        self.problems.append(Problem(shown, wrong.what, line=line, attempt=wrong.attempt, fault=wrong.fault))

    def _kept(self, found: Read | Wrong, node: Node, path: str) -> Read | None:
        if isinstance(found, Read):
            return found
        self.note(path, node.line, found)
        return None

    def _interval(self, node: Items, shape: Interval, path: str) -> Read | None:
        number = Number(whole=False, bounds=shape.bounds)
        ends = [self.read(item, number, join(path, i)) for i, item in enumerate(node.items)]
        low, high = (cast("float", end.value) if end else None for end in ends)
        if low is None or high is None:
            return None
        if low > high:
            what = f"low {low!r} is above high {high!r}"
            return self._kept(Wrong(what, "CFG-005", f"[{high!r}, {low!r}]"), node, path)
        return Read(Range(low, high), [low, high])

    def _items(self, node: Items, shape: Listing | Fixed, path: str) -> Read | None:
        shapes = shape.items if isinstance(shape, Fixed) else (shape.item,) * len(node.items)
        if len(shapes) != len(node.items):
            what = f"it has {len(node.items)} members, want {len(shapes)}: {shape.want}"
            return self._kept(Wrong(what), node, path)
        pairs = zip(node.items, shapes, strict=True)
        found = [self.read(item, each, join(path, i)) for i, (item, each) in enumerate(pairs)]
        kept = [read for read in found if read is not None]
        if len(kept) < len(found):
            return None
        return Read(tuple(read.value for read in kept), [read.plain for read in kept])

    def _names(self, node: Table, shape: Names, path: str) -> Read | None:
        self._keep_lines(node, path)
        found = {key: self.read(member, shape.value, join(path, key)) for key, member in node.entries.items()}
        kept = {key: read for key, read in found.items() if read is not None}
        return Read({key: read.value for key, read in kept.items()}, {key: read.plain for key, read in kept.items()})

    def _either(self, node: Node, shape: Either, path: str) -> Read | None:
        failures: list[list[Problem]] = []
        for option in shape.options:
            if not fits(node, option):
                continue
            trial = replace(self, problems=[])
            found = trial.read(node, option, path)
            if not trial.problems:
                return found
            failures.append(trial.problems)
        if not failures:
            return self._kept(mismatch(node, shape), node, path)
        self.problems.extend(min(failures, key=len))
        return None

    def _plug(self, node: Node, shape: Plug, path: str) -> Read | None:
        if not fits(node, shape):
            return self._kept(Wrong(f"{named(node)}, want {shape.want}", attempt="use: name"), node, path)
        settings = node if isinstance(node, Table) else Table({}, node.line, {})
        use = settings.entries.get("use", Leaf(shape.default, node.line)) if settings is node else node
        if not isinstance(use, Leaf) or not isinstance(use.value, str) or not use.value:
            names = ", ".join(self.plugins.names(shape.kind))
            wrong = Wrong(f"names no {shape.kind}", attempt=f"use: one of {names}" if names else "")
            self.note(path, use.line, wrong)
            return None
        rest = {key: member for key, member in settings.entries.items() if key != "use"}
        try:
            make = self.plugins.load(shape.kind, use.value)
            return self._record(replace(settings, entries=rest), make, path, {"use": use.value})
        except SimOpsError as error:
            self.note(path, use.line, Wrong(error.what, error.fault or "CFG-001", error.attempt))
            return None

    def _record(self, node: Table, make: Make, path: str, head: Mapping[str, Plain]) -> Read | None:
        self._keep_lines(node, path)
        fields = fields_of(make)
        self._note_unknown(node, [known.name for known in fields], path)
        values: dict[str, object] = {}
        said: dict[str, Plain] = dict(head)
        for each in fields:
            given = node.entries.get(each.name)
            if given is not None:
                found = self.read(given, each.shape, join(path, each.name))
            elif each.required:
                self.note(join(path, each.name), node.line, Wrong(f"missing, want {each.shape.want}"))
                found = None
            else:
                found = self._default(each, node, path)
            if found is not None:
                values[each.name] = found.value
                if each.recipe and found.said:
                    said[each.name] = found.plain
        rules: object = make
        if isinstance(rules, Checked):
            self._adopt(rules.spec_problems(values), path, node.line)
        value = self._made(make, values, path, node.line) if len(values) == len(fields) else None
        return None if value is None else Read(value, said)

    def _default(self, known: Field, node: Table, path: str) -> Read | None:
        if known.default is None:
            use = known.shape.default if isinstance(known.shape, Plug) else None
            return self.read(Leaf(use, node.line), known.shape, join(path, known.name))
        value = known.default()
        try:
            return Read(value, plain(value, known.shape, self.plugins))
        except UnsayableError:
            return Read(value, None, said=False)

    def _made(self, make: Make, values: Mapping[str, object], path: str, line: int | None) -> object:
        try:
            return make(**values)
        except SpecError as error:
            self._adopt(error.problems, path, line)
        except SimOpsError as error:
            self.note(path, line, Wrong(error.what, error.fault or "CFG-005", error.attempt))
        except (ValueError, TypeError) as error:
            self.note(path, line, Wrong(str(error), "CFG-005"))
        return None

    def _adopt(self, problems: Iterable[Problem], path: str, line: int | None) -> None:
        """Take over problems whose paths are relative to `path`."""
        for problem in problems:
            full = join(path, problem.path) if problem.path else path
            known = next((place for place in _upwards(full) if place in self.lines), None)
            wrong = Wrong(problem.what, problem.fault, problem.attempt)
            self.note(full, line if known is None else self.lines[known], wrong)

    def _note_unknown(self, node: Table, known: list[str], path: str) -> None:
        for key in node.entries:
            if key not in known:
                listed = f"one of {', '.join(known)}" if 0 < len(known) <= 12 else ""
                wrong = Wrong("unknown key", "CFG-001", nearest(key, known) or listed)
                self.note(join(path, key), node.key_lines[key], wrong)

    def _keep_lines(self, node: Table, path: str) -> None:
        for key, line in node.key_lines.items():
            self.lines[join(path, key)] = line


def _upwards(path: str) -> Iterator[str]:
    """A key path, then those it stands in."""
    while path:
        yield path
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
