"""Whoever asks from elsewhere, asks for more than there is, or asks to change something, is refused."""

from __future__ import annotations

import re
import socket
from collections.abc import Generator
from pathlib import Path

import pytest

from simops.core.errors import SpecError
from simops.web import serve
from simops.web.app import Dashboard
from simops.web.guard import Hosts
from tests.web.served import Served, served

TRAVERSALS = [
    f"/{where}/{way}etc/passwd"
    for where in ("run", "static", "run/0123456789abcdef")
    for way in (
        "../../../", "..%2f..%2f..%2f", "%2e%2e/%2e%2e/", "%252e%252e%252f", "..\\..\\", "..%5c..%5c", "/", "%2f",
        "%00/", "\x7f", "....//", "..;/", "%c0%ae%c0%ae/", "file:///", "%e5%98%8a",
    )
]  # fmt: skip


@pytest.fixture(scope="module")
def ui(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    """A dashboard over a folder with one thing in it, and a secret beside it that a link leads to."""
    folder = tmp_path_factory.mktemp("ui")
    (folder / "secret").mkdir()
    (folder / "secret" / "metrics.jsonl").write_text('{"lap": 1, "reward": 42424242}\n')
    run = folder / "out" / "run<script>alert(1)</script>"
    run.mkdir(parents=True)
    (run / "metrics.jsonl").write_text('{"lap": 1, "reward": 1.5}\n')
    (folder / "out" / "link").symlink_to(folder / "secret")
    with served(folder / "out") as made:
        yield made


def addresses(ui: Served) -> list[str]:
    [run] = re.findall(r'href="(/run/[0-9a-f]{16})"', ui.ask("/").body)
    return [run]


def test_every_route_reads_and_nothing_else(ui: Served, tmp_path: Path) -> None:
    [run] = addresses(ui)
    routes = Dashboard(tmp_path).routes
    assert len(routes) >= 6
    for route in routes:
        assert route.methods == {"GET", "HEAD"}
        path = (
            route.path.replace("/run/{id}", run)
            .replace("{name}", "page.js")
            .replace("{number}", "0")
            .replace("{which}", "0")
        )
        for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "NONSENSE"):
            assert ui.ask(path, method=method).status in {400, 405}, (method, path)
        assert ui.ask(path, Host="evil.example").status == 403, path
        assert ui.ask(path, Origin="http://evil.example").status == 403, path
        assert ui.ask(path, Sec_Fetch_Site="cross-site").status == 403, path
        assert ui.ask(path, Content_Length="3", body=b"abc").status == 413, path
        got = ui.ask(path)
        assert got.status in {200, 404}, (path, got)
        policy = got.head["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        assert got.head["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("host", ["", "127.0.0.1", "localhost", "127.0.0.1:{port}", "localhost:{port}", "[::1]:{port}"])
def test_only_names_that_were_meant_are_answered(ui: Served, host: str) -> None:
    said = host.format(port=ui.port)
    assert ui.ask("/", Host=said).status == (200 if said else 403)
    assert ui.ask("/", Host=f"{said}.evil.example").status == 403


@pytest.mark.parametrize("host", ["127.0.0.1:1", "127.0.0.1@evil.example", "0.0.0.0", "localhost:", "a b", "[::1"])  # noqa: S104  what is refused
def test_a_bent_name_is_refused(ui: Served, host: str) -> None:
    assert ui.ask("/", Host=host).status in {400, 403}


def test_two_hosts_are_none(ui: Served) -> None:
    with socket.create_connection(("127.0.0.1", ui.port), timeout=10) as line:
        line.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
        assert line.recv(100).split()[1] in {b"400", b"403"}


@pytest.mark.parametrize("path", TRAVERSALS)
def test_no_path_leads_anywhere(ui: Served, path: str) -> None:
    with socket.create_connection(("127.0.0.1", ui.port), timeout=10) as line:
        line.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode("latin-1"))
        got = b"".join(iter(lambda: line.recv(4096), b""))
    assert got.split()[1] in {b"400", b"404"}, got[:200]
    assert b"root:" not in got


def test_a_link_out_of_the_folder_is_not_followed(ui: Served) -> None:
    assert "42424242" not in ui.ask("/").body
    assert len(addresses(ui)) == 1


def test_names_are_words_and_never_markup(ui: Served) -> None:
    [run] = addresses(ui)
    for path in ("/", run, "/?q=%3Cscript%3Ealert(1)%3C/script%3E"):
        body = ui.ask(path).body
        assert "<script>alert" not in body
        assert "&lt;script&gt;alert" in body


def test_what_is_too_much_is_refused(ui: Served) -> None:
    assert ui.ask("/?q=" + "a" * 2000).status == 414
    assert ui.ask("/run/" + "a" * 300).status == 414
    assert ui.ask("/", Cookie="a" * 20000).status == 431
    assert ui.ask("/?page=99999999999999999999").status == 200


def test_who_never_finishes_asking_is_let_go(ui: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "PATIENCE_S", 0.3)
    with socket.create_connection(("127.0.0.1", ui.port), timeout=10) as line:
        line.sendall(b"GET / HTTP/1.1\r\nHost: 127.0")
        assert line.recv(100) == b""


def test_other_machines_are_let_in_only_when_that_is_meant() -> None:
    with pytest.raises(SpecError, match="without a password"):
        serve.hosts("0.0.0.0", 80, exposed=False)  # noqa: S104  what is refused
    meant = serve.hosts("192.0.2.7", 80, exposed=True)
    assert meant.allow("192.0.2.7:80")
    assert not meant.allow("evil.example")


def test_an_origin_is_ours_only_whole() -> None:
    ours = Hosts(frozenset({"localhost"}), 80)
    assert ours.own("http://localhost:80")
    for origin in ("https://localhost:80", "http://localhost:80.evil.example", "null", "http://localhost:81"):
        assert not ours.own(origin)
