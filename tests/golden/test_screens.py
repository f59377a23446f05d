"""What users and readers see is what was agreed on; `python -m tests.golden.screens` writes it anew."""

from __future__ import annotations

import pytest

from tests.golden.screens import FOLDER, texts

TEXTS = texts()


@pytest.mark.parametrize("name", TEXTS)
def test_it_reads_as_agreed(name: str) -> None:
    assert (FOLDER / name).read_text() == TEXTS[name]


def test_nothing_agreed_on_is_forgotten() -> None:
    assert {path.name for path in FOLDER.glob("*.txt")} == set(TEXTS)
