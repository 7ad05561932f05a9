"""A headless Chromium that pictures and tests drive by the DevTools protocol, over pipes."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_SECONDS = 60
"""Until a browser that does not answer, or close, is killed."""


def find_chromium() -> str | None:
    """The path of a browser; None where none is installed."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Tab:
    """A page in the browser."""

    def __init__(self, reader: int, writer: int) -> None:
        self._reader = reader
        self._writer = writer
        self._pending = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        """Events that the browser told on its own: `method` and `params`."""

    def attach(self) -> None:
        """Open a page and attach to it."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self.call("Page.enable")
        self.call("Runtime.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a command of the protocol."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._writer, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result = answer["result"]
                assert isinstance(result, dict)
                return result
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._pending:
            if not select([self._reader], [], [], _SECONDS)[0]:
                raise TimeoutError(f"the browser says nothing for {_SECONDS} s")
            block = os.read(self._reader, 1 << 20)
            assert block, "the browser has ended"
            self._pending += block
        message, _, self._pending = self._pending.partition(b"\0")
        found = json.loads(message)
        assert isinstance(found, dict)
        return found

    def wait_for(self, method: str) -> dict[str, Any]:
        """The next event of a kind, or one that came before."""
        for number, event in enumerate(self.events):
            if event["method"] == method:
                return dict(self.events.pop(number)["params"])
        while (event := self._next())["method"] != method:
            self.events.append(event)
        return dict(event["params"])

    def open(self, path: Path, *, fragment: str = "") -> None:
        """Go to a file, until it is loaded."""
        self.call("Page.navigate", url=path.as_uri() + fragment)
        self.wait_for("Page.loadEventFired")

    def run(self, script: str) -> Any:
        """The value of an expression, awaited."""
        answer = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def errors(self) -> list[str]:
        """The exceptions of the page's scripts."""
        self.run("0")
        return [
            json.dumps(event["params"])
            for event in self.events
            if event["method"] == "Runtime.exceptionThrown"
        ]

    def resize(self, width: int, height: int, *, dark: bool = False) -> None:
        """The size of the window, and the colour scheme that the user prefers."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            **{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def click(self, x: float, y: float) -> None:
        for kind in ("mousePressed", "mouseReleased"):
            self.call(
                "Input.dispatchMouseEvent",
                **{"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1},
            )

    def wheel(self, x: float, y: float, delta: float) -> None:
        self.call(
            "Input.dispatchMouseEvent",
            **{"type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": delta},
        )

    def picture(self) -> bytes:
        """A screenshot as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot")["data"])

    def trace(self) -> Trace:
        """Begin a trace of the page."""
        self.call("Tracing.start", categories="devtools.timeline,toplevel,blink.user_timing")
        return Trace(self)


class Trace:
    """A trace that runs until it is stopped."""

    def __init__(self, tab: Tab) -> None:
        self._tab = tab

    def stop(self) -> list[dict[str, Any]]:
        """The events of the trace."""
        self._tab.call("Tracing.end")
        self._tab.wait_for("Tracing.tracingComplete")
        parts = [e for e in self._tab.events if e["method"] == "Tracing.dataCollected"]
        self._tab.events = [e for e in self._tab.events if e not in parts]
        return [event for part in parts for event in part["params"]["value"]]


@contextmanager
def chromium(folder: Path) -> Iterator[Tab]:
    """A page in a browser of its own, whose files are in `folder`."""
    browser = find_chromium()
    assert browser is not None
    to_browser, writer = _pipe()
    reader, from_browser = _pipe()

    def give_pipes() -> None:
        os.dup2(to_browser, 3)
        os.dup2(from_browser, 4)

    process = subprocess.Popen(
        [
            *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"),
            *("--no-first-run", "--disable-background-networking", "--disable-component-update"),
            *("--disable-sync", f"--user-data-dir={folder / 'user'}", "--hide-scrollbars"),
            *("--remote-debugging-pipe", "about:blank"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=give_pipes,
        pass_fds=(3, 4, to_browser, from_browser),
    )
    os.close(to_browser)
    os.close(from_browser)
    try:
        tab = Tab(reader, writer)
        tab.attach()
        yield tab
        os.write(writer, b'{"id": 0, "method": "Browser.close"}\0')
        process.wait(timeout=_SECONDS)
    finally:
        process.kill()
        process.wait()
        os.close(writer)
        os.close(reader)


def _pipe() -> tuple[int, int]:
    """A pipe whose ends are not 3 and 4, which the browser's own get."""
    ends = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 5) for end in ends)
    for end in ends:
        os.close(end)
    return high[0], high[1]
