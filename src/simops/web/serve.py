"""Answers the browser of this machine until it is told to stop."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any, final

from simops.core.errors import ExtraError, Problem, SpecError
from simops.web.guard import Hosts

try:
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ModuleNotFoundError as missing:
    raise ExtraError("the dashboard needs uvicorn, which is not installed", attempt="pip install 'simops[ui]'") from (
        missing
    )

if TYPE_CHECKING:
    from starlette.types import ASGIApp

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
MOST_AT_ONCE = 48
PATIENCE_S = 10.0
"""For how long somebody may take to ask."""


@final
class Patient(H11Protocol):
    """Lets go of whoever has not asked a whole question in time."""

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401  asyncio's own
        """Begin to wait."""
        super().connection_made(transport)
        self._asked = self.loop.call_later(PATIENCE_S, self._late)

    def data_received(self, data: bytes) -> None:
        """Wait anew after each question that is whole."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._asked.cancel()
            self._asked = self.loop.call_later(PATIENCE_S, self._late)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._asked.cancel()
        super().connection_lost(exc)

    def _late(self) -> None:
        if not getattr(self.cycle, "response_complete", True):
            self._asked = self.loop.call_later(PATIENCE_S, self._late)
        elif not self.transport.is_closing():
            self.transport.close()


def hosts(host: str, port: int, *, exposed: bool) -> Hosts:
    """By which names a server at `host` may be asked; refuses more than this machine unless it was meant."""
    if host in LOOPBACK:
        return Hosts(LOOPBACK, port)
    if not exposed:
        raise SpecError(
            "command line",
            [
                Problem(
                    "--host",
                    f"{host} lets other machines in: whoever reaches it reads every run, without a password",
                    attempt="--expose, if that is meant",
                )
            ],
        )
    return Hosts(LOOPBACK | {host.strip("[]").lower(), socket.gethostname().lower()}, port, addresses=True)


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens there, or an error that says who else may."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except (OSError, OverflowError) as error:
        made.close()
        why = error.strerror if isinstance(error, OSError) else error
        problem = Problem("--port", f"cannot listen at {host}:{port}: {why}", attempt="--port 0 takes any")
        raise SpecError("command line", [problem]) from None
    made.listen(64)
    return made


def server(answering: ASGIApp) -> uvicorn.Server:
    """What answers with `answering`; `run(sockets=[...])` begins."""
    settings = uvicorn.Config(
        answering,
        http=Patient,
        ws="none",
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        limit_concurrency=MOST_AT_ONCE,
        timeout_keep_alive=5,
        h11_max_incomplete_event_size=32768,
    )
    return uvicorn.Server(settings)
