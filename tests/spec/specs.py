"""Hypothesis strategies for specs."""

from __future__ import annotations

from pathlib import Path

from hypothesis import strategies as st

from simops.spec.ranges import Range
from tests.spec.made import Colour, Drill, Everything, Hammer, Inner

finite = st.floats(allow_nan=False, allow_infinity=False)
tricky = st.sampled_from(
    ["true", "null", "no", "~", "", "-", "1e3", "010", ".inf", "<<", " x ", "# a", "a: b", "*a", "=", "\t"]
)
plain_text = st.one_of(tricky, st.text(max_size=30).filter(lambda text: "${" not in text))
one_line = plain_text.filter(lambda text: "\n" not in text)
ranges = st.tuples(finite, finite).map(lambda ends: Range(min(ends), max(ends)))
positive = st.floats(0.0, 1e300).flatmap(lambda low: st.floats(low, 1e301).map(lambda high: Range(low, high)))
hammers = st.builds(
    Hammer,
    head_kg=st.floats(1e-9, 20.0),
    names=st.lists(plain_text, max_size=3).map(tuple),
    grip=st.none(),
    limit=st.one_of(st.just(float("inf")), finite),
)
tools = st.one_of(hammers, st.builds(Drill, speed_hz=st.integers(1, 2**40), bit=st.one_of(st.none(), hammers)))
inners = st.builds(
    Inner, ratio=st.floats(0.0, 1.0, exclude_max=True), pair=st.tuples(st.integers(-(2**63), 2**63), plain_text)
)
everything = st.builds(
    Everything,
    flag=st.booleans(),
    count=st.integers(0, 100),
    gain=finite,
    name=one_line,
    file=st.sampled_from([Path(), Path("a/b.xml"), Path("/x y/ü")]),
    mode=st.sampled_from(["fast", "exact", 3]),
    colour=st.sampled_from(Colour),
    maybe=st.one_of(st.none(), st.integers(-5, 5)),
    several=st.lists(finite, max_size=4).map(tuple),
    friction=positive,
    by_name=st.dictionaries(plain_text, st.one_of(ranges, st.integers(-9, 9), finite), max_size=4),
    inner=inners,
    more=st.lists(inners, max_size=2).map(tuple),
    tool=tools,
    spare=st.one_of(st.none(), tools),
    low=st.just(0),
    high=st.integers(0, 9),
)
