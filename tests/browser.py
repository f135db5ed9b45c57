"""A headless Chromium, driven over the WebDriver protocol by the standard library alone."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

TAB, ENTER, SPACE = "\ue004", "\ue007", " "


class Browser:
    """One window; a context manager. Dialogues, requests and errors of the page end up in :meth:`log`."""

    def __init__(self, width: int = 1300, height: int = 1000, dark: bool = False) -> None:
        self._folder = tempfile.mkdtemp(prefix="tracekit-browser-")
        driver = shutil.which("chromedriver")
        assert driver
        self._process = subprocess.Popen(
            [driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            self._base = f"http://127.0.0.1:{self._port()}"
            flags = [*FLAGS, f"--user-data-dir={self._folder}", f"--window-size={width},{height}"]
            capabilities = {
                "browserName": "chrome",
                "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
                "goog:chromeOptions": {"binary": shutil.which("chromium"), "args": flags},
            }
            made = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
            self._base += f"/session/{made['sessionId']}"
            self.devtools(
                "Emulation.setEmulatedMedia",
                {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]},
            )
            self.devtools(
                "Emulation.setDeviceMetricsOverride",
                {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
            )
        except BaseException:
            self.close()
            raise

    def _port(self) -> int:
        assert self._process.stdout
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            line = self._process.stdout.readline()
            if "started successfully on port" in line:
                return int(line.rstrip().rstrip(".").rpartition(" ")[2])
        raise RuntimeError("chromedriver did not start")

    def _ask(self, method: str, path: str, content: Any = None) -> Any:
        data = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(self._base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def devtools(self, command: str, parameters: Any) -> Any:
        return self._ask("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def open(self, page: Path, fragment: str = "") -> None:
        self._ask("POST", "/url", {"url": page.resolve().as_uri() + fragment})

    def run(self, script: str, *arguments: Any) -> Any:
        """The value that the body of a function returns."""
        return self._ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def keys(self, *pressed: str) -> None:
        """Press keys, one after the other, wherever the focus is."""
        actions = [{"type": kind, "value": key} for key in "".join(pressed) for kind in ("keyDown", "keyUp")]
        self._ask("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def click(self, selector: str) -> None:
        found = self._ask("POST", "/element", {"using": "css selector", "value": selector})
        self._ask("POST", f"/element/{next(iter(found.values()))}/click", {})

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._ask("GET", "/screenshot")))

    def log(self, kind: str = "browser") -> Sequence[Any]:
        """Since it was last asked for: messages of the console ("browser") or of the network ("performance")."""
        found: Sequence[Any] = self._ask("POST", "/se/log", {"type": kind})
        return found

    def close(self) -> None:
        try:
            if "/session/" in self._base:
                self._ask("DELETE", "")
        finally:
            self._process.terminate()
            self._process.wait(30)
            if self._process.stdout:
                self._process.stdout.close()
            shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
