"""A real browser, headless, over the pipe of its DevTools protocol: what a page asks for, says and looks like."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, Self

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or ""
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars",
    "--remote-debugging-pipe", "about:blank",
)  # fmt: skip
needs_chromium = pytest.mark.skipif(not CHROMIUM, reason="no chromium on this machine")
PATIENCE_S = 30.0


class Browser:
    """One tab; a context manager."""

    def __init__(self) -> None:
        self._profile = tempfile.TemporaryDirectory(prefix="simops-chromium-", ignore_cleanup_errors=True)
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        command = [CHROMIUM, f"--user-data-dir={self._profile.name}", *FLAGS]
        script = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", script, "bash", *command],
            pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        self._held, self._number, self._session = b"", 0, ""
        self.asked: list[str] = []
        """Every address that was asked for."""
        self.said: list[str] = []
        """What the console said, and what broke."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._profile.cleanup()

    def call(self, method: str, **params: object) -> dict[str, Any]:
        """Say something, and give the answer."""
        self._number += 1
        body: dict[str, object] = {"id": self._number, "method": method, "params": params}
        if self._session:
            body["sessionId"] = self._session
        os.write(self._out, json.dumps(body).encode() + b"\0")
        until = time.monotonic() + PATIENCE_S
        while True:
            said = self._next(until)
            if said.get("id") == body["id"]:
                assert "error" not in said, said
                return said["result"]

    def open(self, address: str, *, width: int = 1200, height: int = 900, dark: bool = False) -> None:
        """Go there, and wait until it is loaded."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        self.call("Page.navigate", url="about:blank")  # so that nothing of the page before is heard
        self.until("location.href === 'about:blank' && document.readyState === 'complete'")
        self.asked.clear()
        self.said.clear()
        self.call("Page.navigate", url=address)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def js(self, expression: str) -> Any:  # noqa: ANN401  JSON's own types
        """What an expression comes to in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait until it is so."""
        until = time.monotonic() + PATIENCE_S
        while not self.js(expression):
            assert time.monotonic() < until, f"never so: {expression}"
            time.sleep(0.05)

    def picture(self, path: Path, *, whole: bool = False) -> bytes:
        """What it looks like, as a PNG; with `whole`, all of the page."""
        taken = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        data = base64.b64decode(taken["data"])
        path.write_bytes(data)
        return data

    def _next(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._held:
            ready, _, _ = select.select([self._in], [], [], max(0.0, until - time.monotonic()))
            assert ready, "the browser does not answer"
            more = os.read(self._in, 1 << 20)
            assert more, "the browser is gone"
            self._held += more
        one, _, self._held = self._held.partition(b"\0")
        said: dict[str, Any] = json.loads(one)
        params: dict[str, Any] = said.get("params", {})
        if said.get("method") == "Network.requestWillBeSent":
            self.asked.append(params["request"]["url"])
        elif said.get("method") == "Log.entryAdded":
            self.said.append(str(params["entry"]["text"]))
        elif said.get("method") == "Runtime.exceptionThrown":
            self.said.append(str(params["exceptionDetails"]))
        return said
