from __future__ import annotations

from typing import Any, cast

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from simops.spec.load import freeze, load
from simops.spec.schema import json_schema
from tests.spec.made import PLUGINS, Everything
from tests.spec.specs import everything
from tests.spec.test_load import GOOD

SCHEMA = cast("dict[str, Any]", json_schema(Everything, plugins=PLUGINS))


def accepted(document: object) -> bool:
    validator = cast("Any", Draft202012Validator(SCHEMA))
    return bool(validator.is_valid(document))


def read(text: str) -> object:
    return cast("Any", YAML(typ="safe", pure=True)).load(text)


def test_it_is_a_schema() -> None:
    cast("Any", Draft202012Validator).check_schema(SCHEMA)


def test_fields_carry_their_sentences_bounds_and_defaults() -> None:
    fields = SCHEMA["$defs"]["Everything"]["properties"]
    assert fields["count"] == {
        "type": "integer",
        "minimum": 0,
        "maximum": 100,
        "description": "How many.",
        "default": 3,
    }
    assert fields["friction"]["default"] == [0.2, 1.0]
    assert fields["tool"] == {"$ref": "#/$defs/plugin.tool", "default": "hammer"}
    hammer = SCHEMA["$defs"]["plugin.tool"]["oneOf"][1]
    assert hammer["description"] == "A tool that hits."
    assert hammer["properties"]["head_kg"]["description"] == "Mass of the head [kg]."
    assert "grip" not in hammer["properties"]


def test_it_accepts_what_loads() -> None:
    load(GOOD, Everything, plugins=PLUGINS)
    assert accepted(read(GOOD))
    assert accepted({})


@given(everything)
def test_it_accepts_every_spec_written_out(value: Everything) -> None:
    assert accepted(freeze(value, plugins=PLUGINS).plain)


@pytest.mark.parametrize(
    "text",
    [
        "flagg: true",
        "count: '32'",
        "count: 101",
        "mode: fats",
        "several: [1, true]",
        "friction: [1]",
        "inner: {pair: [2, two]}",
        "tool: hamer",
        "tool: {use: hammer, head: 1}",
        "spare: {use: drill, speed_hz: 0}",
        "inner: {ratio: 1}",
    ],
)
def test_it_refuses_what_does_not_load(text: str) -> None:
    assert not accepted(read(text))
