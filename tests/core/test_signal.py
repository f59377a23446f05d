"""Signals and schemas: packing loses nothing, digests see everything, errors say what and where."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simops.core.errors import SignalError
from simops.core.signal import Schema, Signal
from tests import strategies as some

GYRO = Signal("gyro", (3,), "rad/s", "imu", labels=("x", "y", "z"), low=(-1.0, -2.0, -3.0), high=(1.0, 2.0, 3.0))


@given(st.data(), some.schemas(), st.integers(1, 5))
def test_packing_loses_no_bit(data: st.DataObject, schema: Schema, rows: int) -> None:
    columns = data.draw(some.columns(schema, rows))
    back = schema.unpack(schema.pack(columns))
    assert list(back) == list(schema.names)
    for name, column in columns.items():
        assert back[name].shape == column.shape
        assert np.ascontiguousarray(back[name]).tobytes() == column.tobytes()


@given(some.schemas(most=5))
def test_slices_and_scalars_cover_a_row_once(schema: Schema) -> None:
    covered = [i for where in schema.slices.values() for i in range(where.start, where.stop)]
    assert covered == list(range(schema.size))
    assert len(set(schema.scalars)) == len(schema.scalars) == schema.size


@given(some.schemas())
def test_text_reads_back_equal(schema: Schema) -> None:
    back = Schema.parse(schema.text())
    assert back == schema
    assert back.digest == schema.digest


@pytest.mark.parametrize(
    "changed",
    [
        replace(GYRO, name="gyra"),
        replace(GYRO, shape=(3, 1)),
        replace(GYRO, unit="deg/s"),
        replace(GYRO, frame="base"),
        replace(GYRO, dtype="float64"),
        replace(GYRO, labels=("y", "x", "z")),
        replace(GYRO, low=(-1.0, -2.0, -3.5)),
        replace(GYRO, high=(1.0, 2.0, 3.5)),
        replace(GYRO, low=(), high=()),
    ],
    ids=str,
)
def test_the_digest_changes_with_anything(changed: Signal) -> None:
    assert Schema((changed,)).digest != Schema((GYRO,)).digest


def test_the_digest_knows_the_order() -> None:
    one, other = Signal("a"), Signal("b")
    assert Schema((one, other)).digest != Schema((other, one)).digest


@given(st.lists(st.floats(-10, 10, width=32), min_size=6, max_size=6))
def test_clipping_ends_inside_and_leaves_the_inside_alone(values: list[float]) -> None:
    rows = np.array(values, np.float32).reshape(2, 3)
    clipped = GYRO.clip(rows)
    assert clipped.dtype == np.float32
    assert np.all((clipped >= GYRO.low) & (clipped <= GYRO.high))
    inside = (rows >= GYRO.low) & (rows <= GYRO.high)
    np.testing.assert_array_equal(clipped[inside], rows[inside])
    np.testing.assert_array_equal(GYRO.clip(clipped), clipped)


def test_clipping_one_sided_and_no_limits() -> None:
    rows = np.array([[-9.0], [9.0]])
    np.testing.assert_array_equal(Signal("a", (1,), low=(-1.0,)).clip(rows), [[-1.0], [9.0]])
    assert Signal("a", (1,)).clip(rows) is rows


def test_a_clash_of_stored_columns_is_seen() -> None:
    with pytest.raises(SignalError) as caught:
        Schema((Signal("a", (2,)), Signal("a_1")))
    assert str(caught.value) == "two signals would be stored as 'a_1'\n  at: a_1"
    with pytest.raises(SignalError, match="two signals would be stored as 'a'"):
        Schema((Signal("a"), Signal("a")))


def test_errors_say_what_it_is_and_what_it_should_be() -> None:
    schema = Schema((GYRO, Signal("angle")))
    cases = [
        (lambda: GYRO.check(np.zeros((4, 3))), "gyro is float64, want float32\n  at: gyro"),
        (lambda: GYRO.check(np.zeros((4, 2), np.float32)), "gyro has shape (4, 2), want (n, 3)\n  at: gyro"),
        (lambda: GYRO.check(np.zeros(3, np.float32)), "gyro has shape (3,), want (n, 3)\n  at: gyro"),
        (lambda: schema["anlge"], "no signal 'anlge'\n  try: 'angle'"),
        (lambda: schema.pack({"gyro": np.zeros((1, 3)), "angel": np.zeros(1)}), "no column 'angle'\n  try: 'angel'"),
        (lambda: Signal("two words"), "'two words' is not a name\n  try: letters, digits and underscores"),
        (lambda: Signal("a", (2,), labels=("x",)), "a has 2 elements and 1 labels"),
        (lambda: Signal("a", (2,), low=(0.0,)), "a has 2 elements and 1 low"),
    ]
    for act, words in cases:
        with pytest.raises(SignalError) as caught:
            act()
        assert str(caught.value) == words


def test_checking_gives_the_rows_back() -> None:
    rows = np.zeros((4, 3), np.float32)
    assert GYRO.check(rows) is rows
