"""A page in Chromium without a window, driven over the pipe of its DevTools protocol: no driver, no port, no dependency.

Messages are JSON with a zero byte between them, written to its descriptor 3 and read from its descriptor 4
(https://chromedevtools.github.io/devtools-protocol/, `--remote-debugging-pipe`).
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
SECONDS = 60  # for one answer: machines that build and test at once are slow
_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)


def program() -> str | None:
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Browser:
    """One tab. `evaluate` runs an expression in the page and gives back its value as plain data; what failed in it is raised."""

    def __init__(self, folder: Path) -> None:
        reads, self._to = os.pipe()
        self._from, writes = os.pipe()
        command = [str(program()), *_FLAGS, f"--user-data-dir={folder}", "about:blank"]
        # The browser expects its descriptors as 3 and 4, and ours may well be 3 and 4 the other way round: move them out first.
        shell = f'exec 9<&{reads} 8>&{writes}; exec 3<&9 4>&8 8>&- 9<&-; exec "$@"'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *command], pass_fds=(reads, writes), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        os.close(reads)
        os.close(writes)
        self._buffer, self._number, self._session = b"", 0, None
        self.messages: list[str] = []  # what the page wrote to its console, and errors that nobody caught
        self.requests: list[str] = []  # every address that it asked for
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._to)
        os.close(self._from)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self._note(answer)

    def evaluate(self, expression: str) -> Any:
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, expression: str) -> None:
        """Until the expression is true in the page."""
        end = time.monotonic() + SECONDS
        while not self.evaluate(expression):
            assert time.monotonic() < end, f"never true: {expression}\n{self.messages}"
            time.sleep(0.02)

    def open(self, path: Path, address: str = "", *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """A file of this machine, on a screen of so many pixels, once its script is done."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=features)
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=path.as_uri() + address)
        self.wait("document.documentElement?.dataset.ready === 'true'")

    def press(self, key: str, text: str = "") -> None:
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text or ("\r" if key == "Enter" else ""))
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], SECONDS)
            data = os.read(self._from, 1 << 20) if ready else b""
            assert data, "the browser does not answer"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _note(self, event: dict[str, Any]) -> None:
        parameters = event.get("params", {})
        if event.get("method") == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif event.get("method") in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            self.messages.append(json.dumps(parameters)[:1000])
