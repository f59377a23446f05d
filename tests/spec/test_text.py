from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simops.spec.node import Leaf, Scalar, Table
from simops.spec.text import MAX_BYTES, parse


def first_value(text: str) -> Scalar:
    root, problems = parse(f"a: {text}")
    assert problems == []
    assert isinstance(root, Table)
    leaf = root.entries["a"]
    assert isinstance(leaf, Leaf)
    return leaf.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e3", 1000.0),
        ("1E-2", 0.01),
        ("no", "no"),
        ("on", "on"),
        ("010", 10),
        ("0o10", 8),
        ("0x1F", 31),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        ("2001-01-01", "2001-01-01"),
        ("=", "="),
        ("+1", 1),
        ("-.5", -0.5),
        ("1.", 1.0),
        ("True", True),
        ("yes", "yes"),
        ("~", None),
        ("", None),
        ("Null", None),
        ('"1"', "1"),
        ("'true'", "true"),
        ("|\n  two\n  lines\n", "two\nlines\n"),
        ("-", "-"),
    ],
)
def test_scalars_are_those_of_the_core_schema(text: str, value: Scalar) -> None:
    if text == "-":
        assert parse("a: -").root is None  # a list cannot begin there
        return
    found = first_value(text)
    assert (found, type(found)) == (value, type(value))


def test_every_duplicate_names_both_its_lines() -> None:
    problems = parse("a: 1\nb: {c: 1,\n  c: 2}\na: 2\na: 3\n").problems
    assert [str(problem) for problem in problems] == [
        "line 3: b.c: given twice, on lines 2 and 3 [CFG-003]",
        "line 4: a: given twice, on lines 1 and 4 [CFG-003]",
        "line 5: a: given twice, on lines 1 and 5 [CFG-003]",
    ]


@pytest.mark.parametrize("number", [".inf", "-.Inf", ".nan", "1e400", "-1e999", "9" * 500])
def test_numbers_are_finite(number: str) -> None:
    [problem] = parse(f"a:\n  b: {number}").problems
    assert (problem.fault, problem.line, problem.path) == ("CFG-004", 2, "a.b")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("a: !!python/object/apply:os.system [ls]", "SEC-001"),
        ("a: !!int '3'", "SEC-001"),
        ("<<: {a: 1}", "CFG-001"),
        ("1: 2", "CFG-002"),
        ("? [a]\n: 3", "CFG-002"),
        ("true: 3", "CFG-002"),
        ('a: "\\ud800"', "CFG-002"),
    ],
)
def test_what_yaml_can_do_and_a_spec_may_not(text: str, fault: str) -> None:
    assert [problem.fault for problem in parse(text).problems] == [fault]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [1,\nb", "line 2: not YAML: while parsing a flow sequence"),
        ("a: 1\n\tb: 2", "line 2: not YAML"),
        ("a: 'x", "line 1: not YAML"),
        ('a: "\\UFFFFFFFF"', "not YAML"),
        ("a: \x00", "not YAML"),
        ("%YAML 1.1\n---\na: no", "line 1: want YAML 1.2"),
        ("a: 1\n---\nb: 2", "line 2: a second document starts here"),
        ("a: *x", "line 1: a: no anchor is called 'x'"),
        ("a: &x [*x]", "line 1: a[0]: no anchor is called 'x'"),
    ],
)
def test_what_is_not_yaml_is_refused_with_its_line(text: str, words: str) -> None:
    root, problems = parse(text)
    assert root is None
    assert str(problems[-1]).startswith(words)


def bomb() -> str:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    return "\n".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "- " * 100_000,
        "? " * 100_000,
        "\n".join(" " * i + "a:" for i in range(500)),
        "\n".join(["a0: &a0 [x]", *(f"a{i}: &a{i} [*a{i - 1}]" for i in range(1, 200))]),
        bomb(),
        "a: " + "x" * MAX_BYTES,
    ],
    ids=["flow", "block", "keys", "maps", "alias-depth", "alias-bomb", "size"],
)
def test_hostile_text_is_refused_before_anything_is_built(text: str) -> None:
    root, problems = parse(text)
    assert root is None
    assert problems[-1].fault == "CFG-011"


def test_an_alias_is_what_its_anchor_is() -> None:
    root, problems = parse("a: &x {b: 1}\nc: *x")
    assert problems == []
    assert isinstance(root, Table)
    assert root.entries["a"] == root.entries["c"]


@given(st.text(alphabet=st.sampled_from("ab:-[]{},&*!|>'\"%@`#? \n\t\\x01.~é\x85\u2028"), max_size=60))
def test_any_text_is_read_or_refused_never_a_crash(text: str) -> None:
    root, problems = parse(text)
    assert root is not None or problems
