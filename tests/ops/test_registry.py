"""What is kept stays as it was, and what was what, when and why, is known."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simops.core.errors import BusyError, DataError
from simops.ops.ledger import FILE, FORMAT
from simops.ops.lineage import Lineage, dot, tree
from simops.ops.registry import Registry
from simops.ops.shelf import Shelf

if TYPE_CHECKING:
    from collections.abc import Iterator


def made(folder: Path, text: str) -> Path:
    """A folder to keep, whose content depends on `text` alone."""
    (folder / "inner").mkdir(parents=True)
    (folder / "policy.onnx").write_text(f"net {text}")
    (folder / "inner" / "golden.npy").write_text(f"rows {text}")
    return folder


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with Registry(tmp_path / "home", create=True) as opened:
        yield opened


def test_versions_count_from_one_and_the_same_content_keeps_its_own(tmp_path: Path, registry: Registry) -> None:
    first, second, again = (made(tmp_path / part, text) for part, text in (("a", "1"), ("b", "2"), ("c", "1")))
    numbers = [registry.add("go2", folder).version for folder in (first, second, again, second)]
    assert numbers == [1, 2, 1, 2]
    assert registry.add("other", first).version == 1
    assert registry.find("go2").version == 2
    assert registry.find("go2@1").digest == registry.find("other").digest
    assert (registry.fetch("go2@1") / "inner" / "golden.npy").read_text() == "rows 1"
    assert [event.action for event in registry.history("go2")] == ["added", "added"]


def test_kinds_have_names_of_their_own(tmp_path: Path, registry: Registry) -> None:
    registry.add("go2", made(tmp_path / "a", "1"), kind="simulator")
    assert registry.names() == ()
    assert registry.names(kind="simulator") == ("go2",)
    with pytest.raises(DataError, match="no policy is called 'go2'"):
        registry.find("go2")
    with pytest.raises(DataError, match="keeps no 'polcy'"):
        registry.add("go2", tmp_path / "a", kind="polcy")


@pytest.mark.parametrize(
    "name", ["..", ".", "a/b", "/etc", "../a", "Go2", "", "x" * 65, "a\n", "a b", "é", "a\x00", "a\\b"]
)
def test_a_name_that_could_lead_elsewhere_is_refused(tmp_path: Path, registry: Registry, name: str) -> None:
    with pytest.raises(DataError) as caught:
        registry.add(name, made(tmp_path / "a", "1"))
    assert caught.value.fault == "SEC-020"


def test_links_devices_and_hidden_names_are_refused(tmp_path: Path, registry: Registry) -> None:
    def link(folder: Path) -> None:
        (folder / "link").symlink_to("/etc/passwd")

    def linked_folder(folder: Path) -> None:
        (folder / "link").symlink_to("/etc", target_is_directory=True)

    def pipe(folder: Path) -> None:
        os.mkfifo(folder / "pipe")

    def hidden(folder: Path) -> None:
        (folder / "..hidden").write_text("x")

    for plant in (link, linked_folder, pipe, hidden):
        folder = made(tmp_path / plant.__name__, "1")
        plant(folder)
        with pytest.raises(DataError) as caught:
            registry.add("go2", folder)
        assert caught.value.fault == "SEC-020"
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="has no files"):
        registry.add("go2", tmp_path / "empty")
    with pytest.raises(DataError, match="cannot read"):
        registry.add("go2", tmp_path / "nowhere")
    assert registry.names() == ()
    assert list((registry.root / "objects").iterdir()) == list((registry.root / "incoming").iterdir()) == []


def test_a_changed_file_is_found_on_read_and_moved_aside(tmp_path: Path, registry: Registry) -> None:
    source = made(tmp_path / "a", "1")
    registry.add("go2", source)
    registry.add("twin", source)
    file = registry.fetch("go2") / "policy.onnx"
    file.chmod(0o644)
    file.write_text("net 2")
    assert registry.check() == dict.fromkeys(("policy/go2@1", "policy/twin@1"), ("policy.onnx has changed",))
    with pytest.raises(DataError, match=r"policy\.onnx has changed") as caught:
        registry.fetch("go2")
    assert caught.value.fault == "REG-003"
    assert [path.name.split("-")[0] for path in (registry.root / "quarantine").iterdir()] == [
        registry.find("go2").digest
    ]
    with pytest.raises(DataError, match="quarantined") as caught:
        registry.fetch("twin")
    assert caught.value.fault == "REG-005"
    assert registry.add("go2", source).version == 1
    assert (registry.fetch("go2") / "policy.onnx").read_text() == "net 1"


def _flip(root: Path) -> None:
    file = root / "policy.onnx"
    file.chmod(0o644)
    data = bytearray(file.read_bytes())
    data[0] ^= 1
    file.write_bytes(data)


def _drop(root: Path) -> None:
    (root / "policy.onnx").unlink()


def _slip_in(root: Path) -> None:
    (root / "extra.py").write_text("print()")


def _link(root: Path) -> None:
    (root / "policy.onnx").unlink()
    (root / "policy.onnx").symlink_to("/etc/hostname")


@pytest.mark.parametrize("damage", [_flip, _drop, _slip_in, _link])
def test_every_kind_of_damage_is_found(tmp_path: Path, registry: Registry, damage: object) -> None:
    assert callable(damage)
    registry.add("go2", made(tmp_path / "a", "1"))
    damage(registry.fetch("go2"))
    with pytest.raises(DataError) as caught:
        registry.fetch("go2")
    assert caught.value.fault == "REG-003"


def test_a_tag_tells_who_was_what_when_and_why(tmp_path: Path, registry: Registry) -> None:
    for text in "123":
        registry.add("go2", made(tmp_path / text, text))
    registry.tag("go2@1", "best", why="first that walks", who="ann")
    registry.tag("go2@3", "best", why="faster", who="bob", was=1)
    registry.tag("go2@3", "best", why="again", who="bob")
    assert registry.find("go2@best").version == 3
    assert registry.find("go2@3").tags == ("best",)
    told = [(event.version, event.who, event.why) for event in registry.history("go2", tag="best")]
    assert told == [(1, "ann", "first that walks"), (3, "bob", "faster")]
    with pytest.raises(BusyError, match="is version 3 by now, not 1") as caught:
        registry.tag("go2@2", "best", why="too late", was=1)
    assert caught.value.fault == "REG-001"
    registry.untag("go2", "best", why="fell")
    with pytest.raises(DataError, match="no version of go2 is tagged"):
        registry.find("go2@best")
    for bad in ("7", "..", "a/b", ""):
        with pytest.raises(DataError, match="is no tag"):
            registry.tag("go2", bad, why="")


def test_gc_keeps_what_is_live_what_was_live_what_is_pinned_and_the_latest(tmp_path: Path, registry: Registry) -> None:
    for text in "123456789":
        registry.add("go2", made(tmp_path / text, text))
    for ref in ("go2@2", "go2@4", "go2@5", "go2@4"):
        registry.tag(ref, "best", why="better")
    registry.pin("go2@1", why="the paper")
    registry.add("twin", tmp_path / "3")  # the same content under another name
    doomed = [found.ref for found in registry.gc(keep=1, dry_run=True)]
    assert doomed == [found.ref for found in registry.gc(keep=1)] == ["go2@2", "go2@3", "go2@6", "go2@7", "go2@8"]
    for ref in ("go2@1", "go2@4", "go2@5", "go2@9", "twin"):
        assert registry.fetch(ref).is_dir()
    assert not any((registry.root / "objects" / registry.find(f"go2@{n}").digest).exists() for n in (2, 6, 7, 8))
    with pytest.raises(DataError, match="was removed") as caught:
        registry.fetch("go2@3")
    assert caught.value.fault == "REG-005"
    with pytest.raises(DataError, match="is not here"):
        registry.tag("go2@2", "best", why="back")
    assert registry.add("go2", tmp_path / "2").version == 2
    assert registry.fetch("go2@2").is_dir()
    assert registry.add("go2", made(tmp_path / "10", "10")).version == 10
    assert registry.check() == {}


def test_gc_removes_what_a_dead_writer_left_and_leaves_a_living_one_alone(tmp_path: Path, registry: Registry) -> None:
    registry.add("go2", made(tmp_path / "a", "1"))
    dead = registry.root / "incoming" / "0123"
    dead.mkdir()
    (dead / "half").write_text("x")
    stray = registry.root / "objects" / ("0" * 64)
    stray.mkdir()
    with Shelf(registry.root).stage(tmp_path / "a") as staged:
        registry.gc()
        assert not dead.exists()
        assert not stray.exists()
        assert (staged.folder / "policy.onnx").is_file()
    assert registry.fetch("go2").is_dir()


def test_lineage_is_a_graph_that_can_be_printed(tmp_path: Path, registry: Registry) -> None:
    facts = Lineage.of([("data", "ab" * 32), ("spec", "s"), ("seed", "7"), ("identity", "cd" * 32)])
    registry.add("teacher", made(tmp_path / "a", "1"), lineage=facts)
    student = Lineage.of([("parent", "policy/teacher@1"), ("parent", "cd" * 32), ("data", "ab" * 32)])
    registry.add("student", made(tmp_path / "b", "2"), lineage=student)
    registry.add("student", made(tmp_path / "c", "3"), lineage=Lineage.of([("parent", "policy/student")]))
    registry.add("student", made(tmp_path / "d", "4"), lineage=Lineage.of([("parent", "ef" * 32)]))
    registry.tag("student@2", "best", why="better")
    root, nodes = registry.graph("student@best")
    text = tree(nodes, root)
    assert text.splitlines() == [
        "student@2  (best)",
        "└─ made from student@1",
        "   ├─ data abababababab",
        "   └─ made from teacher@1",
        "      ├─ identity cdcdcdcdcdcd",
        "      ├─ data abababababab",
        "      ├─ spec s",
        "      └─ seed 7",
    ]
    assert '"policy/teacher@1" -> "policy/student@1";' in dot(nodes)
    assert dot(nodes).count(f'"data {"ab" * 32}" ->') == 2
    assert registry.find("student@2").lineage["parent"] == ("policy/student@1",)  # the one that was latest then
    root, nodes = registry.graph("student@3")
    assert "not in this registry" in tree(nodes, root)
    with pytest.raises(DataError, match="no policy is called 'nobody'"):
        registry.add("x", tmp_path / "a", lineage=Lineage.of([("parent", "policy/nobody@1")]))
    with pytest.raises(DataError, match="lineage knows no 'dta'"):
        Lineage.of([("dta", "x")])


@pytest.mark.parametrize(
    ("sql", "fault"),
    [
        ("UPDATE log SET why = 'because' WHERE seq = 2", "REG-008"),
        ("DELETE FROM log WHERE seq = 2", "REG-008"),
        ("UPDATE log SET version = 2 WHERE action = 'tagged'", "REG-008"),
        ("UPDATE artefacts SET object = '00' WHERE version = 1", "REG-008"),
        ("UPDATE lineage SET value = '8'", "REG-008"),
        ("DELETE FROM lineage", "REG-008"),
        ("DELETE FROM artefacts WHERE version = 2", "REG-008"),
        (f"PRAGMA user_version = {FORMAT + 1}", "DAT-012"),
        ("PRAGMA application_id = 7", ""),
    ],
)
def test_a_row_that_was_edited_is_noticed(tmp_path: Path, sql: str, fault: str) -> None:
    with Registry(tmp_path / "home", create=True) as registry:
        registry.add("go2", made(tmp_path / "a", "1"), lineage=Lineage.of([("seed", "7")]))
        registry.add("go2", made(tmp_path / "b", "2"))
        registry.tag("go2@1", "best", why="walks")
    connection = sqlite3.connect(tmp_path / "home" / FILE)
    if not sql.startswith("PRAGMA"):
        with pytest.raises(sqlite3.IntegrityError, match="only grows"):
            connection.execute(sql)
    for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {trigger}")
    connection.execute(sql)
    connection.commit()
    connection.close()
    with pytest.raises(DataError) as caught, Registry(tmp_path / "home") as registry:
        registry.find("go2@1")
    assert caught.value.fault == fault


def test_a_foreign_or_torn_file_is_an_error_with_words(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no registry here"):
        Registry(tmp_path / "none")
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / FILE).write_text("not a database, by far" * 100)
    with pytest.raises(DataError, match="is damaged"):
        Registry(tmp_path / "text")


NAMES = st.text(st.sampled_from("ab._-0"), min_size=1, max_size=4).filter(lambda name: set(name) != {"."})


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(NAMES, st.integers(0, 3), st.booleans()), max_size=12))
def test_numbers_are_the_order_of_first_arrival(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, bool]]
) -> None:
    home = tmp_path_factory.mktemp("law")
    sources = [made(home / f"source{i}", str(i)) for i in range(4)]
    seen: dict[str, list[int]] = {}
    with Registry(home / "registry", create=True) as registry:
        for name, content, collect in steps:
            order = seen.setdefault(name, [])
            if content not in order:
                order.append(content)
            assert registry.add(name, sources[content]).version == order.index(content) + 1
            if collect:
                registry.gc(keep=1)
        assert {name: len(registry.versions(name)) for name in registry.names()} == {n: len(o) for n, o in seen.items()}
