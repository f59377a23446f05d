from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import final

import pytest

from simops.core.errors import SpecError
from simops.spec.load import freeze, load
from simops.spec.ranges import Range
from tests.spec.made import PLUGINS, Colour, Drill, Everything, Hammer, Inner, saw

GOOD = """\
flag: true
count: 7
gain: 2
name: no
file: scenes/arm.xml
mode: 3
colour: deep_blue
maybe: null
several: [1, 2.5]
friction: [0.1, 0.9]
by_name: {a: [0, 1], b: 3, c: 2.5}
inner: {ratio: 0, pair: [2, two]}
more:
  - ratio: 0.25
tool: {use: drill, speed_hz: 50, bit: hammer}
spare: saw
"""


def problems(text: str, *overrides: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load(text, Everything, plugins=PLUGINS, overrides=overrides)
    return [str(problem) for problem in caught.value.problems]


def test_every_kind_of_field_is_read() -> None:
    loaded = load(GOOD, Everything, plugins=PLUGINS)
    assert loaded.value == Everything(
        flag=True,
        count=7,
        gain=2.0,
        name="no",
        file=Path("scenes/arm.xml"),
        mode=3,
        colour=Colour.DEEP_BLUE,
        maybe=None,
        several=(1.0, 2.5),
        friction=Range(0.1, 0.9),
        by_name={"a": Range(0.0, 1.0), "b": 3, "c": 2.5},
        inner=Inner(ratio=0.0, pair=(2, "two")),
        more=(Inner(ratio=0.25),),
        tool=Drill(speed_hz=50, bit=Hammer()),
        spare=saw(),
    )
    assert type(loaded.value.gain) is float
    assert loaded.lines["more[0].ratio"] == 14
    assert loaded.plain["spare"] == {"use": "saw", "teeth": 40, "sharp": True}
    assert loaded.plain["tool"] == {
        "use": "drill",
        "speed_hz": 50,
        "bit": {"use": "hammer", "head_kg": 0.5, "names": []},
    }


def test_an_empty_spec_is_all_defaults() -> None:
    for text in ("", "# nothing\n", "{}", "null"):
        assert load(text, Everything, plugins=PLUGINS).value == Everything(tool=Hammer())


TEN_MISTAKES = """\
flagg: true
count: '32'
gain: .nan
mode: fats
several: [1, true]
friction: [0.9, 0.1]
inner: {pair: [2, two]}
count: 4
tool: {use: hamer, head_kg: 1}
spare: {use: drill, speed_hz: 0}
"""


def test_ten_mistakes_are_told_at_once() -> None:
    with pytest.raises(SpecError) as caught:
        load(TEN_MISTAKES, Everything, plugins=PLUGINS)
    assert caught.value.exit_code == 2
    assert (
        str(caught.value)
        == """\
spec has 10 problems
  line 1: flagg: unknown key; try 'flag' [CFG-001]
  line 2: count: '32' is a str, want int [CFG-002]
  line 3: gain: .nan is not a finite number [CFG-004]
  line 4: mode: 'fats' is a str, want one of fast, exact, 3; try 'fast' [CFG-002]
  line 5: several[1]: true is a bool, want float [CFG-002]
  line 6: friction: low 0.9 is above high 0.1; try [0.1, 0.9] [CFG-005]
  line 7: inner.ratio: missing, want float [CFG-002]
  line 8: count: given twice, on lines 2 and 8 [CFG-003]
  line 9: tool: no tool is called 'hamer'; try 'hammer' [CFG-001]
  line 10: spare.speed_hz: 0 is out of range, want at least 1 [CFG-005]"""
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("count: 3.0", "line 1: count: 3.0 is a float, want int [CFG-002]"),
        ("count: 1e1", "line 1: count: 10.0 is a float, want int [CFG-002]"),
        ("count: true", "line 1: count: true is a bool, want int [CFG-002]"),
        ("count: -1", "line 1: count: -1 is out of range, want at least 0 and at most 100 [CFG-005]"),
        ("low: 99999999999999999999999", "line 1: low: 99999999999999999999999 does not fit in 64 bits [CFG-005]"),
        ("flag: no", "line 1: flag: 'no' is a str, want true or false [CFG-002]"),
        ("flag:", "line 1: flag: nothing is given, want true or false [CFG-002]"),
        ("name: 3", "line 1: name: 3 is an int, want str [CFG-002]"),
        ('name: "a\\nb"', r"line 1: name: 'a\nb' is refused, want text like [^\n]{0,40} [CFG-005]"),
        ("name: ${oc.env:HOME}", None),
        ("file: 3", "line 1: file: 3 is an int, want path [CFG-002]"),
        ("mode: true", "line 1: mode: true is a bool, want one of fast, exact, 3 [CFG-002]"),
        ("colour: rad", "line 1: colour: 'rad' is a str, want one of red, deep_blue; try 'red' [CFG-002]"),
        ("maybe: x", "line 1: maybe: 'x' is a str, want int or null [CFG-002]"),
        ("several: 1", "line 1: several: 1 is an int, want list of float [CFG-002]"),
        ("friction: [1]", "line 1: friction: it is a list, want [low, high] [CFG-002]"),
        ("friction: [-1, 1]", "line 1: friction[0]: -1.0 is out of range, want at least 0 [CFG-005]"),
        ("by_name: {a: x}", "line 1: by_name.a: 'x' is a str, want [low, high] or int or float [CFG-002]"),
        ("by_name: {a: [1, 0]}", "line 1: by_name.a: low 1.0 is above high 0.0; try [0.0, 1.0] [CFG-005]"),
        ("inner: 3", "line 1: inner: 3 is an int, want map of ratio, pair [CFG-002]"),
        ("inner: {ratio: 1}", "line 1: inner.ratio: 1.0 is out of range, want at least 0 and below 1 [CFG-005]"),
        ("inner: {ratio: 0, pair: [1]}", "line 1: inner.pair: it has 1 members, want 2: [int, str] [CFG-002]"),
        ("more: [{ratio: x}]", "line 1: more[0].ratio: 'x' is a str, want float [CFG-002]"),
        ("tool: 3", "line 1: tool: 3 is an int, want a tool; try use: name [CFG-002]"),
        ("tool: {use: 3}", "line 1: tool: names no tool; try use: one of hammer, drill, saw [CFG-002]"),
        ("spare: {head_kg: 1}", "line 1: spare: names no tool; try use: one of hammer, drill, saw [CFG-002]"),
        ("tool: drill", "line 1: tool.speed_hz: missing, want int [CFG-002]"),
        ("tool: {use: saw, teeth: x}", "line 1: tool.teeth: 'x' is a str, want int [CFG-002]"),
        ("tool: {use: saw, tooth: 4}", "line 1: tool.tooth: unknown key; try 'teeth' [CFG-001]"),
        ("tool: {use: hammer, grip: x}", None),
        ("\nlow: 3\n", "line 2: low: 3 is above high 1 [CFG-005]"),
        ("[1]", "line 1: it is a list, want map of"),
    ],
)
def test_one_mistake(text: str, problem: str | None) -> None:
    [found] = problems(text)
    if problem is None:
        assert "SEC-002" in found or "can only be given in Python" in found
    else:
        assert found.startswith(problem)


def test_a_plugin_without_use_sets_fields_of_the_default() -> None:
    assert load("tool: {head_kg: 2}", Everything, plugins=PLUGINS).value.tool == Hammer(head_kg=2.0)


def test_overrides_come_before_the_check() -> None:
    loaded = load(
        GOOD,
        Everything,
        plugins=PLUGINS,
        overrides=(
            "count=9",
            "inner.ratio = 0.75",
            "by_name.new.=1"[:-3] + "=[1, 2]",
            "several=[]",
            "spare=",
            "tool.bit.head_kg=3",
        ),
    )
    value = loaded.value
    assert (value.count, value.inner.ratio, value.several, value.spare) == (9, 0.75, (), None)
    assert value.by_name["new"] == Range(1.0, 2.0)
    assert value.tool == Drill(speed_hz=50, bit=Hammer(head_kg=3.0))
    assert "count" not in loaded.lines


def test_overrides_make_maps_on_the_way_and_reach_into_lists() -> None:
    value = load(
        "more: [{ratio: 0}]", Everything, plugins=PLUGINS, overrides=("tool.head_kg=4", "more.0.ratio=0.5")
    ).value
    assert (value.tool, value.more) == (Hammer(head_kg=4.0), (Inner(ratio=0.5),))


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("count='9'", "--set count: '9' is a str, want int [CFG-002]"),
        ("cuont=9", "--set cuont: unknown key; try 'count' [CFG-001]"),
        ("inner.ratoi=9", "--set inner.ratoi: unknown key; try 'ratio' [CFG-001]"),
        ("count.x=9", "--set count.x: stands below 7, which has no keys [CFG-001]"),
        ("several.5=1", "--set several.5: '5' is no member of a list of 2 [CFG-001]"),
        ("count=.inf", "--set count: .inf is not a finite number [CFG-004]"),
        ("several=[1", "--set several: not YAML: "),
        ("several=[1, x]", "--set several[1]: 'x' is a str, want float [CFG-002]"),
        ("count", "--set count: names no key; try --set a.b=value"),
        (".=3", "--set .=3: names no key; try --set a.b=value"),
        ("low=5", "--set low: 5 is above high 1 [CFG-005]"),
    ],
)
def test_problems_name_the_flag(override: str, problem: str) -> None:
    [found] = problems(GOOD, override)
    assert found.startswith(problem)


def test_a_missing_file_names_the_nearest(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(GOOD)
    assert load(tmp_path / "run.yaml", Everything, plugins=PLUGINS).value.count == 7
    with pytest.raises(SpecError, match=r"try 'run\.yaml'"):
        load(tmp_path / "rnu.yaml", Everything)
    (tmp_path / "big.yaml").write_bytes(b"#" * 1_000_001)
    with pytest.raises(SpecError, match="CFG-011"):
        load(tmp_path / "big.yaml", Everything)
    (tmp_path / "bad.yaml").write_bytes(b"a: \xff")
    with pytest.raises(SpecError, match="not UTF-8"):
        load(tmp_path / "bad.yaml", Everything)


def test_thousands_of_problems_are_counted_not_listed() -> None:
    found = problems("several: [" + "x," * 5000 + "]")
    assert len(found) == 101
    assert found[-1] == "and 4900 more"


@final
@dataclass(frozen=True)
class Picky:
    size: int = 1

    def __post_init__(self) -> None:
        if self.size == 3:
            raise ValueError("three is too many")


def test_what_a_class_refuses_is_a_problem_too() -> None:
    with pytest.raises(SpecError, match=r"spec has 1 problem\n  line 1: three is too many \[CFG-005\]"):
        load("size: 3", Picky)


def test_threads_are_no_part_of_the_recipe() -> None:
    one, two = (load(f"threads: {n}", Everything, plugins=PLUGINS) for n in (1, 2))
    assert (one.value.threads, two.value.threads) == (1, 2)
    assert one.digest == two.digest
    assert one.digest != load("count: 4", Everything, plugins=PLUGINS).digest


def test_a_spec_made_in_python_is_held_to_the_same_rules() -> None:
    with pytest.raises(SpecError, match=r"Everything has 1 problem\n  count: 500 is out of range"):
        freeze(Everything(tool=Hammer(), count=500), plugins=PLUGINS)
    with pytest.raises(SpecError, match="a spec cannot say"):
        freeze(Everything(tool=Hammer(), gain=float("nan")), plugins=PLUGINS)
    with pytest.raises(SpecError, match="a spec cannot say"):
        freeze(Everything(tool=Hammer(grip=print)), plugins=PLUGINS)
