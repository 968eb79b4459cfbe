"""A headless Chromium spoken to over its debugging pipe.

No driver, no network, no further package.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CHROMIUM = next(
    (
        path
        for name in ("chromium", "chromium-browser", "google-chrome")
        if (path := shutil.which(name))
    ),
    None,
)
A_FRAME = "new Promise(done => requestAnimationFrame(() => setTimeout(done, 60)))"
AXE = Path(__file__).parents[2] / ".venv/npm/node_modules/axe-core/axe.min.js"


def violations(browser):
    """What keeps people from using a page, as axe-core finds it: rules and places."""
    browser.run(AXE.read_text(encoding="utf-8") + "; 0")
    return browser.run(
        "axe.run().then(r => r.violations.filter(v => ['serious', 'critical']"
        ".includes(v.impact)).map(v => [v.id, v.nodes.slice(0, 3).map(n => n.html)]))"
    )


class Browser:
    """One page. `requests`, `console` and `errors` collect what happens on it."""

    def __init__(self, width=1280, height=900, dark=False):
        self.requests, self.console, self.errors = [], [], []
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        self.profile = tempfile.mkdtemp()

        def wire():
            high_in, high_out = os.dup(theirs_in), os.dup(theirs_out)  # out of the way of 3 and 4
            os.dup2(high_in, 3)
            os.dup2(high_out, 4)

        self.process = subprocess.Popen(
            [
                CHROMIUM,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--remote-debugging-pipe",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                f"--user-data-dir={self.profile}",
                "about:blank",
            ],
            preexec_fn=wire,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.read, self.write, self.rest, self.number = ours_in, ours_out, b"", 0
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        self.call("Emulation.setScrollbarsHidden", hidden=True)
        if dark:
            self.call(
                "Emulation.setEmulatedMedia",
                features=[{"name": "prefers-color-scheme", "value": "dark"}],
            )

    session = None

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next(60)
            if found.get("id") == self.number:
                assert "error" not in found, found
                return found["result"]

    def _next(self, patience):
        end = time.monotonic() + patience
        while b"\0" not in self.rest:
            ready = select.select([self.read], [], [], max(0.0, end - time.monotonic()))[0]
            assert ready, "the browser does not answer"
            self.rest += os.read(self.read, 1 << 16)
        text, self.rest = self.rest.split(b"\0", 1)
        found = json.loads(text)
        self._note(found.get("method"), found.get("params", {}))
        return found

    def _note(self, method, event):
        if method == "Network.requestWillBeSent":
            self.requests.append(event["request"]["url"])
        elif method == "Runtime.consoleAPICalled":
            self.console.append(event)
        elif method == "Runtime.exceptionThrown":
            self.errors.append(event["exceptionDetails"])
        elif method == "Log.entryAdded" and event["entry"]["level"] in ("error", "warning"):
            self.errors.append(event["entry"])

    def open(self, page):
        """Open a file, or an address."""
        url = page if isinstance(page, str) else page.resolve().as_uri()
        self.call("Page.navigate", url=url)
        self.wait("document.documentElement?.dataset.ready === 'yes'")

    def wait(self, condition, patience=40):
        end = time.monotonic() + patience
        while not self.run(f"!!({condition})"):
            assert time.monotonic() < end, f"never came true: {condition}"
            time.sleep(0.1)

    def run(self, script):
        found = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def type(self, text):
        self.call("Input.insertText", text=text)

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode={"Enter": 13, "Tab": 9}[key],
                text="\r" if key == "Enter" and kind == "keyDown" else "",
            )

    def hover(self, selector, across, down):
        """Move the pointer to a place within an element, in parts of its width and height.

        The tooltip's text, None without one.
        """
        self.run(
            f"document.querySelector({selector!r})"
            ".scrollIntoView({block: 'center', behavior: 'instant'})"
        )
        self.run(A_FRAME)  # scrolling hides tooltips, in the next frame
        x, y, width, height = self.run(
            # the first line of words that are wrapped: their middle may lie on neither line
            f"(() => {{ const r = document.querySelector({selector!r}).getClientRects()[0]; "
            "return [r.x, r.y, r.width, r.height]; })()"
        )
        self.call(
            "Input.dispatchMouseEvent", type="mouseMoved", x=x + across * width, y=y + down * height
        )
        self.run(A_FRAME)
        return self.run(
            "(() => { const tip = document.getElementById('tip'); return tip.hidden ? null : "
            "tip.innerText; })()"
        )

    def printed(self):
        """The page as it goes to paper: a PDF."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def picture(self, whole=False):
        area = {}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            area = {
                "clip": {
                    "x": 0,
                    "y": 0,
                    "width": size["width"],
                    "height": size["height"],
                    "scale": 1,
                },
                "captureBeyondViewport": True,
            }
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", **area)["data"])

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.read)
        os.close(self.write)
        shutil.rmtree(self.profile, ignore_errors=True)


def photograph(page, target, width=1280, height=1180, dark=False):
    """The top of a page as a picture."""
    browser = Browser(width, height, dark=dark)
    try:
        browser.open(Path(page))
        browser.run("new Promise(done => setTimeout(done, 500))")
        Path(target).write_bytes(browser.picture())
    finally:
        browser.close()


SIZES = {
    "report": (1280, 1180, False),
    "report-dark": (1280, 1180, True),
    "report-tablet": (820, 1180, False),
    "report-phone": (390, 1180, False),
}

if __name__ == "__main__":  # browser.py PAGE FOLDER
    for name, size in SIZES.items():
        photograph(sys.argv[1], Path(sys.argv[2], f"{name}.png"), *size)
