"""Headless Chromium for tests of pages, controlled by its DevTools protocol with `websockets`, a dependency of viser.

    with Browser() as browser:
        page = browser.page("http://127.0.0.1:8080", 390, 844)
        picture = page.picture()            # (height, width, 3) uint8
        page.evaluate("document.title")

Without Chromium, or if it does not start, `Browser()` raises NoBrowser with the reason.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import shutil
import subprocess
import tempfile
import time
from itertools import count
from pathlib import Path

import numpy as np

# WebGL by the processor: no graphics card, no sandbox of a container, no look-ups of its own
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
    "--font-render-hinting=none",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-extensions",
    "--disable-component-update",
    "--mute-audio",
    "--remote-debugging-port=0",
]
PATIENCE = 60.0  # [s] for an answer that takes a tenth of one, on a machine that has much else to do


class NoBrowser(Exception):
    """Chromium is not installed, or does not start; the message has the reason."""


class Browser:
    """A process of Chromium; a context manager that ends it."""

    def __init__(self) -> None:
        found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
        if found is None:
            raise NoBrowser("there is no Chromium: apt-get install chromium")
        try:
            from websockets.sync.client import connect
        except ModuleNotFoundError:
            raise NoBrowser("there is no websockets, which viser brings along") from None
        self._folder = tempfile.mkdtemp(prefix="chromium-")
        self._process = subprocess.Popen(
            [found, *FLAGS, f"--user-data-dir={self._folder}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._ids, self._socket, self._opened = count(1), None, contextlib.ExitStack()
        try:
            port = Path(self._folder, "DevToolsActivePort")  # where it writes its port and path
            deadline = time.monotonic() + PATIENCE
            while not (port.exists() and len(lines := port.read_text().split()) == 2):
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise NoBrowser(f"{found} does not come up (exit {self._process.returncode})")
                time.sleep(0.05)
            connection = connect(f"ws://127.0.0.1:{lines[0]}{lines[1]}", max_size=None, compression=None)
            self._socket = self._opened.enter_context(connection)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(Exception):
                self.ask("Browser.close")
        self._opened.close()
        try:
            self._process.wait(10 if self._socket is not None else 0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def ask(self, method: str, session: str | None = None, **params: object) -> dict:
        """Return the result of a command of the protocol."""
        number = next(self._ids)
        to = {} if session is None else {"sessionId": session}
        self._socket.send(json.dumps({"id": number, "method": method, "params": params, **to}))
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = json.loads(self._socket.recv(max(0.0, deadline - time.monotonic())))
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def page(self, url: str, width: int, height: int, scale: float = 1.0) -> Page:
        """Return a page of this size [CSS px] with an address; its pictures have `scale` times as many pixels."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, target, session)
        page.resize(width, height, scale)
        page.ask("Page.navigate", url=url)
        return page


class Page:
    """A page of a browser; a context manager that closes it."""

    def __init__(self, browser: Browser, target: str, session: str) -> None:
        self._browser, self._target, self._session = browser, target, session

    def ask(self, method: str, **params: object) -> dict:
        return self._browser.ask(method, self._session, **params)

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *_: object) -> None:
        self._browser.ask("Target.closeTarget", targetId=self._target)

    def resize(self, width: int, height: int, scale: float = 1.0) -> None:
        """Resize the page [CSS px]; narrow pages emulate a phone."""
        size = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": width < 500}
        self.ask("Emulation.setDeviceMetricsOverride", **size)

    def evaluate(self, expression: str) -> object:
        """Return the value of a JavaScript expression, or the result of a promise."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def png(self) -> bytes:
        return base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"])

    def picture(self) -> np.ndarray:
        """Return a screenshot (height, width, 3) uint8."""
        from PIL import Image

        return np.asarray(Image.open(io.BytesIO(self.png())).convert("RGB"))

    def drag(self, *path: tuple[float, float]) -> None:
        """Press the mouse at the first point [px], move it to the others and release it at the last; one point is a click."""
        for kind, (x, y) in [
            ("mousePressed", path[0]),
            *(("mouseMoved", at) for at in path[1:]),
            ("mouseReleased", path[-1]),
        ]:
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    def until(self, condition: str, seconds: float = PATIENCE) -> None:
        """Wait until a JavaScript expression is true."""
        deadline = time.monotonic() + seconds
        while not self.evaluate(condition):
            if time.monotonic() > deadline:
                raise AssertionError(f"not so within {seconds:g} s: {condition}")
            time.sleep(0.05)
