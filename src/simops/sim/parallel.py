"""Copies spread over worker processes, which share their rows with this one.

A worker is a fresh Python that is told a compiled model, a recipe and a plan, and from then on
which rows to reset or to step. What it writes does not depend on how many workers there are.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol, final

from simops.core.errors import EngineError
from simops.core.signal import Array
from simops.sim import crossing
from simops.sim.bank import Bank, Row, shareable
from simops.sim.binding import Model, mj
from simops.sim.copies import Copies, Plan
from simops.sim.world import Maker

ENDED = "a worker process of the simulation ended"
PATIENCE_S = 10.0
"""How long a worker may take to end."""
FEWEST = 4
"""Copies below which a worker is not worth its start."""


class Crew(Protocol):
    """Whoever holds the copies."""

    @property
    def bank(self) -> Bank:
        """Their rows."""
        ...

    def reset(self, ids: Array) -> None:
        """Begin these anew."""
        ...

    def step(self, ids: Array) -> None:
        """Step these by one control period."""
        ...


@final
class Alone:
    """All copies in this process."""

    def __init__(self, maker: Maker, bank: Bank, plan: Plan) -> None:
        """Hold them all."""
        self.bank = bank
        self._copies = Copies(maker, bank, plan)

    def reset(self, ids: Array) -> None:
        """Begin these anew."""
        self._copies.reset(ids.tolist())

    def step(self, ids: Array) -> None:
        """Step these by one control period."""
        self._copies.step(ids.tolist())


@final
class Workers:
    """Every worker holds the copies whose number leaves the same rest."""

    def __init__(self, maker: Maker, bank: Bank, plan: Plan, file: int, count: int, held: ExitStack) -> None:
        """Start them, and have `held` end them."""
        self.bank = bank
        self._links: list[socket.socket] = []
        folder = held.enter_context(tempfile.TemporaryDirectory(prefix="simops-"))
        scene = Path(folder) / "scene.mjb"
        mj.mj_saveModel(bank.model, str(scene))
        said = {
            "path": sys.path,
            "scene": str(scene),
            "copies": bank.n,
            "fields": {name: [row.shape, row.dtype] for name, row in bank.fields.items()},
            "maker": crossing.written(maker),
            "plan": crossing.written(plan),
        }
        for _ in range(count):
            self._links.append(held.enter_context(_started(held, file)))
        for link in self._links:
            _say(link, said)
        for link in self._links:
            self._answer(link)

    def reset(self, ids: Array) -> None:
        """Begin these anew."""
        self._share("reset", ids)

    def step(self, ids: Array) -> None:
        """Step these by one control period."""
        self._share("step", ids)

    def _share(self, what: str, ids: Array) -> None:
        count = len(self._links)
        busy: list[socket.socket] = []
        for worker, link in enumerate(self._links):
            mine = ids[ids % count == worker]
            if len(mine):
                _say(link, {what: mine.tolist()})
                busy.append(link)
        refused = [words for words in map(self._answer, busy) if words]
        if refused:
            raise EngineError(**refused[0])

    def _answer(self, link: socket.socket) -> Mapping[str, str]:
        said = _hear(link)
        if said is None:
            raise EngineError(ENDED, attempt="workers: 1, to see why", fault="CLU-001")
        return said


def serve(link: socket.socket, file: int) -> None:
    """Do what the link says until it ends."""
    said = _hear(link)
    if said is None:
        return
    sys.path[:] = said["path"]
    model: Model = mj.MjModel.from_binary_path(said["scene"])
    fields = {name: Row(tuple(shape), dtype) for name, (shape, dtype) in said["fields"].items()}
    bank = Bank(model, said["copies"], fields, file)
    copies = Copies(crossing.made(said["maker"]), bank, crossing.made(said["plan"]))
    _say(link, {})
    while (said := _hear(link)) is not None:
        try:
            copies.reset(said.get("reset", ()))
            copies.step(said.get("step", ()))
            _say(link, {})
        except EngineError as error:
            _say(link, {"what": error.what, "where": error.where, "attempt": error.attempt})


def held(maker: Maker, model: Model, n: int, fields: Mapping[str, Row], plan: Plan, stack: ExitStack) -> Crew:
    """Spread `n` copies over as many workers as the engine wants and as are worth it."""
    wanted = maker.workers or len(os.sched_getaffinity(0))
    count = min(wanted, n // FEWEST)
    if count < 2:
        return Alone(maker, Bank(model, n, fields), plan)
    file = shareable()
    stack.callback(os.close, file)
    return Workers(maker, Bank(model, n, fields, file), plan, file, count, stack)


def _started(held: ExitStack, file: int) -> socket.socket:
    """A worker at the other end of a link; it ends when the link does."""
    mine, theirs = socket.socketpair()
    command: Sequence[str] = [sys.executable, "-m", "simops.sim.worker", str(theirs.fileno()), str(file)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    process = subprocess.Popen(  # noqa: S603 - this very Python, on a module of this package
        command, pass_fds=(theirs.fileno(), file), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment
    )
    theirs.close()
    held.callback(_gone, process)
    return mine


def _gone(process: subprocess.Popen[bytes]) -> None:
    """Wait until a worker has ended, and end one that does not."""
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _say(link: socket.socket, said: Mapping[str, object]) -> None:
    text = json.dumps(said).encode()
    try:
        link.sendall(struct.pack("<Q", len(text)) + text)
    except OSError as error:
        raise EngineError(ENDED, attempt="workers: 1, to see why", fault="CLU-001") from error


def _hear(link: socket.socket) -> Any:
    """What is said next; None when nobody is there any more."""
    head = _read(link, 8)
    if head is None:
        return None
    text = _read(link, struct.unpack("<Q", head)[0])
    return None if text is None else json.loads(text)


def _read(link: socket.socket, count: int) -> bytes | None:
    parts: list[bytes] = []
    while count:
        part = link.recv(min(count, 1 << 20))
        if not part:
            return None
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
