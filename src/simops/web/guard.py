"""What every request goes through before anything else: it reads, from this machine's own pages, and little at a time.

A page of another site can make a browser ask for anything; that it comes from this machine proves nothing. So the
host has to be one that was meant (a name that was bent to 127.0.0.1 is not), the origin our own, and the method one
that only reads. Addresses are made of ids, so whatever looks like a path is nothing we have.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

METHODS = frozenset({"GET", "HEAD"})
LONGEST_PATH, LONGEST_QUERY, LONGEST_HEAD = 256, 1024, 16384
_PLAIN = re.compile(rb"/[A-Za-z0-9_./-]*")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(?::(\d{1,5}))?")
POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
REPORT_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
"""For the report of a run, which is a whole page of its own: it is shown, and nothing in it runs."""
HEADERS = (
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-frame-options", "DENY"),
    ("cache-control", "no-store"),
)


@final
@dataclass(frozen=True)
class Hosts:
    """By which names this server may be asked."""

    names: frozenset[str]
    port: int
    addresses: bool = False
    """Whether any bare address will do: an address cannot be bent to another machine, as a name can."""

    def allow(self, host: str) -> bool:
        """Whether a `Host` header is one that was meant."""
        found = _HOST.fullmatch(host)
        if found is None or (found[2] is not None and int(found[2]) != self.port):
            return False
        name = found[1].strip("[]").lower()
        return name in self.names or (self.addresses and _address(name))

    def own(self, origin: str) -> bool:
        """Whether an `Origin` header is one of our own pages, or is not there."""
        if not origin:
            return True
        scheme, _, host = origin.partition("://")
        return scheme == "http" and self.allow(host)


@final
class Guard:
    """Lets requests through to `app`, or answers them itself; sets what browsers have to keep to."""

    def __init__(self, app: ASGIApp, hosts: Hosts) -> None:
        """Stand before `app`."""
        self._app, self._hosts = app, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # nothing here speaks over a socket that stays
            await send({"type": "websocket.close", "code": 1008})
            return
        status, why = self.judge(scope)
        if status:
            await _answer(send, status, why)
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                held = {name for name, _ in message["headers"]}
                rules = (*HEADERS, ("content-security-policy", POLICY))
                added = [(n.encode(), v.encode()) for n, v in rules if n.encode() not in held]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        await self._app(scope, receive, sent)

    def judge(self, scope: Scope) -> tuple[int, str]:
        """What to refuse a request with, and why; 0 to let it through."""
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        named = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in headers]
        head = dict(named)
        hosts = [value for name, value in named if name == "host"]
        path: bytes = (scope.get("raw_path") or b"/").partition(b"?")[0]
        foreign = head.get("sec-fetch-site", "none") not in {"none", "same-origin"}
        faults = (
            (len(hosts) != 1 or not self._hosts.allow(hosts[0]), 403, "simops ui was not started for this name"),
            (foreign or not self._hosts.own(head.get("origin", "")), 403, "another site asks"),
            (scope["method"] not in METHODS, 405, "everything here is only read"),
            (head.get("content-length", "0") != "0" or "transfer-encoding" in head, 413, "a question has no body here"),
            (len(path) > LONGEST_PATH or len(scope["query_string"]) > LONGEST_QUERY, 414, "too long"),
            (sum(len(name) + len(value) for name, value in headers) > LONGEST_HEAD, 431, "too much"),
            (not _PLAIN.fullmatch(path) or b".." in path, 404, "there is no such page"),
        )
        return next(((status, why) for wrong, status, why in faults if wrong), (0, ""))


def _address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


async def _answer(send: Send, status: int, why: str) -> None:
    rules = [*HEADERS, ("content-security-policy", POLICY), ("content-type", "text/plain; charset=utf-8")]
    if status == 405:
        rules.append(("allow", ", ".join(sorted(METHODS))))
    body = f"{status}: {why}\n".encode()
    head = [(name.encode(), value.encode()) for name, value in (*rules, ("content-length", str(len(body))))]
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})
