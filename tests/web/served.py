"""A dashboard that is being served, and questions to it that no browser would let through."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from simops.web import serve
from simops.web.app import app


class Answer(NamedTuple):
    """What came back."""

    status: int
    head: dict[str, str]
    body: str


class Served:
    """Where it is."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.socket = serve.bound("127.0.0.1", 0)
        self.port = int(self.socket.getsockname()[1])
        self.address = f"http://127.0.0.1:{self.port}"
        self.server = serve.server(app(root, serve.hosts("127.0.0.1", self.port, exposed=False)))

    def ask(self, path: str, *, method: str = "GET", body: bytes | None = None, **head: str) -> Answer:
        """One question, with these headers."""
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            line.putrequest(method, path, skip_host="Host" in head, skip_accept_encoding=True)
            for name, value in head.items():
                line.putheader(name.replace("_", "-"), value)
            line.endheaders(body)
            got = line.getresponse()
            return Answer(got.status, {k.lower(): v for k, v in got.getheaders()}, got.read().decode(errors="replace"))
        finally:
            line.close()


@contextmanager
def served(root: Path) -> Generator[Served]:
    """Serve a folder from a thread until the end."""
    made = Served(root)
    thread = threading.Thread(target=made.server.run, kwargs={"sockets": [made.socket]}, daemon=True)
    thread.start()
    try:
        until = time.monotonic() + 20
        while not made.server.started:
            assert time.monotonic() < until
            time.sleep(0.01)
        yield made
    finally:
        made.server.should_exit = True
        thread.join(timeout=20)
