"""Every plugin that the package promises exists."""

from __future__ import annotations

import pytest

from simops.core.plugin import Plugin, Registry, listing

OURS = [row for row in listing() if row.distribution == "simops"]


@pytest.mark.parametrize("row", OURS, ids=lambda row: f"{row.kind}-{row.name}")
def test_a_promised_plugin_loads(row: Plugin) -> None:
    assert callable(Registry[object](row.kind).load(row.name))


def test_every_kind_has_a_built_in() -> None:
    assert {row.kind for row in OURS} == {
        "engine",
        "task",
        "motor",
        "sensor",
        "policy",
        "trainer",
        "importer",
        "learner",
    }
