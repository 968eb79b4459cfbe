"""The page on paper: printed to PDF by a Chromium that is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from dynaesti.core import atomic_path
from dynaesti.errors import MissingExtraError, StorageError

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "msedge",
    "microsoft-edge",
)
INSTALLED = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Google\Chrome\Application\chrome.exe",
    r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
)
DASHES = "--"
SWITCHES = (
    "headless=new",
    "disable-gpu",
    "disable-dev-shm-usage",
    "disable-background-networking",
    "disable-component-update",
    "no-first-run",
    "no-pdf-header-footer",
)
PATIENCE = 120  # seconds that a browser may take


def find_browser() -> str:
    """The path of a browser that prints, or an error that says what to do without one."""
    for name in BROWSERS:
        found = shutil.which(name)
        if found:
            return found
    for path in INSTALLED:
        if os.access(path, os.X_OK):
            return path
    raise MissingExtraError(
        "a PDF of the report is printed by Chromium, Chrome or Edge, and none is installed here; "
        "install one, or write the page as .html and print it from any browser"
    )


def print_page(text: str, target: Path) -> None:
    """Print a page, given as HTML, into a PDF.

    Parameters
    ----------
    text : str
        The page; it prints itself whole where its address ends in ``#print``.
    target : Path
        The PDF, which is there afterwards whole or not at all.
    """
    browser = find_browser()
    # a snap's browser sees no hidden folders and not /tmp, so that it works beside the target
    with (
        TemporaryDirectory(dir=target.parent, prefix="report-") as folder,
        atomic_path(target) as part,
    ):
        page = Path(folder).resolve() / "report.html"
        page.write_text(text, encoding="utf-8")
        printed = page.with_suffix(".pdf")
        switches = [
            *SWITCHES,
            f"user-data-dir={page.parent / 'profile'}",
            f"print-to-pdf={printed}",
        ]
        if sys.platform == "linux" and os.geteuid() == 0:
            switches.append("no-sandbox")  # Chromium has none for root; the page is ours
        command = [browser, *(DASHES + switch for switch in switches), f"{page.as_uri()}#print"]
        said = _run(command)
        if not printed.exists() or not printed.read_bytes().startswith(b"%PDF"):
            raise StorageError(f"{target}: {Path(browser).name} printed no PDF ({said})")
        shutil.copyfile(printed, part)


def _run(command: list[str]) -> str:
    """Run the browser; the last line of what it says where it fails."""
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=PATIENCE, check=False, text=True, errors="replace"
        )
    except subprocess.TimeoutExpired:
        return f"it took longer than {PATIENCE} s"
    except OSError as error:
        return str(error)
    return ([line for line in done.stderr.splitlines() if line.strip()] or ["it said nothing"])[-1]
