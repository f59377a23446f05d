"""Nothing of a bundle can change, go missing or come along without being noticed."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simops.core.errors import DataError
from simops.deploy.bundle import load
from simops.deploy.manifest import MANIFEST, REPORT, digest, manifest, read
from tests.bundles import files_of, put_down


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return put_down(files_of("recurrent"), tmp_path_factory.mktemp("bundles") / "bundle")


@given(st.data())
def test_any_flipped_bit_of_any_file_is_refused(folder: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(each.name for each in folder.iterdir())))
    original = (folder / name).read_bytes()
    at = data.draw(st.integers(0, 8 * len(original) - 1))
    changed = bytearray(original)
    changed[at // 8] ^= 1 << at % 8
    (folder / name).write_bytes(changed)
    try:
        with pytest.raises(DataError) as caught:
            load(folder)
    finally:
        (folder / name).write_bytes(original)
    assert caught.value.fault == "EXP-011"
    assert name in str(caught.value)


@given(st.data())
def test_any_file_cut_short_is_refused(folder: Path, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(each.name for each in folder.iterdir())))
    original = (folder / name).read_bytes()
    (folder / name).write_bytes(original[: data.draw(st.integers(0, len(original) - 1))])
    try:
        with pytest.raises(DataError, match=name):
            load(folder)
    finally:
        (folder / name).write_bytes(original)


def test_what_was_not_changed_is_read(folder: Path) -> None:
    assert read(folder).files == files_of("recurrent")


@pytest.mark.parametrize("name", [*sorted(files_of("recurrent")), MANIFEST])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    copy = put_down(files_of("recurrent"), tmp_path / "copy")
    (copy / name).unlink()
    with pytest.raises(DataError, match=f"EXP-011 {name}"):
        load(copy)


@pytest.mark.parametrize("name", ["weights.bin", ".hidden", "policy.onnx.data"])
def test_a_file_that_nobody_listed_is_named(tmp_path: Path, name: str) -> None:
    copy = put_down(files_of(), tmp_path / "copy")
    (copy / name).write_bytes(b"x")
    with pytest.raises(DataError, match=f"'{name}' is not of this bundle"):
        load(copy)


def test_a_link_is_not_followed_even_to_the_right_bytes(tmp_path: Path) -> None:
    copy = put_down(files_of(), tmp_path / "copy")
    shutil.move(copy / "policy_1.onnx", tmp_path / "elsewhere.onnx")
    (copy / "policy_1.onnx").symlink_to(tmp_path / "elsewhere.onnx")
    with pytest.raises(DataError, match=r"policy_1\.onnx cannot be read"):
        load(copy)


def test_a_pipe_does_not_make_anybody_wait(tmp_path: Path) -> None:
    copy = put_down(files_of(), tmp_path / "copy")
    (copy / "policy_1.onnx").unlink()
    os.mkfifo(copy / "policy_1.onnx")
    with pytest.raises(DataError, match="no plain file"):
        load(copy)


@pytest.mark.parametrize("name", ["../policy.onnx", "/etc/passwd", "a/b.onnx", "..", "policy.onnx\n", ""])
def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    copy = put_down(files_of(), tmp_path / "copy")
    (copy / MANIFEST).write_bytes(manifest({**files_of(), name: b"x"}))
    with pytest.raises(DataError, match=r"manifest\.json does not match"):
        load(copy)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"files": 3}', '{"files": {}}', "[" * 100_000, '{"files": {"a.b": 1}}']
)
def test_a_manifest_of_something_else_is_refused(tmp_path: Path, text: str) -> None:
    copy = put_down(files_of(), tmp_path / "copy")
    (copy / MANIFEST).write_text(text)
    with pytest.raises(DataError, match=r"manifest\.json does not match"):
        load(copy)


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"manifest\.json cannot be read: No such file"):
        load(tmp_path / "nowhere")


def test_the_digest_is_of_the_policy_and_not_of_what_was_measured() -> None:
    files = files_of()
    assert digest(files) == digest({**files, REPORT: b"{}"})
    assert digest(files) != digest({**files, "contract.json": files["contract.json"].replace(b"0.02", b"0.01")})


def test_the_manifest_is_plain_json_for_other_programs() -> None:
    listed = json.loads(manifest({"a.b": b"xyz"}))
    assert listed["files"]["a.b"]["bytes"] == 3
