from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from simops.core.errors import SpecError
from simops.spec.load import freeze, load
from simops.spec.lock import lock, read_lock
from tests.spec.made import PLUGINS, Everything
from tests.spec.specs import everything


@given(everything)
def test_a_lock_changes_nothing(value: Everything) -> None:
    frozen = freeze(value, plugins=PLUGINS)
    assert frozen.value == value
    text = lock(frozen)
    again = read_lock(text, Everything, plugins=PLUGINS)
    assert again.value == value
    assert again.plain == frozen.plain
    assert lock(again) == text


@given(everything)
def test_yaml_and_python_make_the_same_spec(value: Everything) -> None:
    frozen = freeze(value, plugins=PLUGINS)
    body = lock(frozen).partition("spec:\n")[2]
    from_yaml = load("\n".join(line.removeprefix("  ") for line in body.splitlines()), Everything, plugins=PLUGINS)
    assert (from_yaml.value, from_yaml.digest) == (frozen.value, frozen.digest)


def test_a_lock_says_every_default() -> None:
    text = lock(load("count: 4", Everything, plugins=PLUGINS))
    assert "  count: 4\n" in text
    assert "  friction: [0.2, 1.0]\n" in text
    assert "  tool:\n    use: hammer\n    head_kg: 0.5\n    names: []\n" in text
    assert "threads" not in text


@pytest.mark.parametrize(
    ("old", "new"),
    [("count: 4", "count: 5"), ("0.5", "0.25"), ("  flag: false\n", "  flag: true\n"), ("sha256:", "sha256:0")],
)
def test_a_changed_lock_is_refused(old: str, new: str, tmp_path: Path) -> None:
    text = lock(load("count: 4", Everything, plugins=PLUGINS))
    assert old in text
    path = tmp_path / "spec.lock"
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(SpecError) as caught:
        read_lock(path, Everything, plugins=PLUGINS)
    [problem] = caught.value.problems
    assert (problem.fault, problem.line) == ("CFG-008", 3)


@pytest.mark.parametrize("text", ["", "count: 4", "lock: 2\ndigest: x\nspec: {}", "[1]"])
def test_what_is_no_lock_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match="CFG-008"):
        read_lock(text, Everything, plugins=PLUGINS)


def test_the_digest_is_of_the_meaning_not_of_the_text() -> None:
    texts = ("gain: 2\ncount: 4", "{count: 4, gain: 2.0} # twice", "count: 0x4\ngain: 20e-1\nflag: false")
    assert len({load(text, Everything, plugins=PLUGINS).digest for text in texts}) == 1
