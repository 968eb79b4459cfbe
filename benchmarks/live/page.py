"""The live page in Chromium: how soon a curve moves after an answer, and pictures for the docs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from dynaesti.cli.live_demo import DAYS, SimulatedClass, make_run
from support.browser import Browser
from support.service import answer, post, service

ANSWERS = 40
LAST = "[...document.querySelectorAll('#person-chart svg path')].pop().getAttribute('d')"


def delays(folder: Path, pictures: Path | None) -> dict[str, Any]:
    """Milliseconds from posting an answer to the moved curve of the learner who is looked at."""
    one = SimulatedClass(40, 7)
    run = make_run(one, folder / "class.dyn")
    live = [one.shown(a) for day in range(int(DAYS), int(DAYS) + 4) for a in one.day(day)]
    with service(run) as client:
        base = str(client.base_url).rstrip("/")
        found = _followed(client, base, live, pictures)
        if pictures is not None:
            _photographed(base, pictures)
    waits = [1000 * wait for wait in found]
    return {"answers": len(waits), "median_ms": float(np.median(waits)), "longest_ms": max(waits)}


def _followed(
    client: Any, base: str, live: list[dict[str, Any]], pictures: Path | None
) -> list[float]:
    browser = Browser(1180, 1500)
    waits = []
    try:
        browser.open(f"{base}/")
        browser.wait(
            "[...document.querySelectorAll('#tiles .now')].every(n => n.textContent !== '…')"
        )
        for k, given in enumerate(live[:ANSWERS]):
            post(client, {**given, "key": f"seen {k}"})
        browser.wait("document.querySelectorAll('#feed li').length > 8")
        if pictures is not None:
            (pictures / "live-class.png").write_bytes(browser.picture())
        who = live[ANSWERS]["id"]
        browser.run(f"location.hash = '#/person/{quote(who, safe='')}'")
        browser.wait("document.querySelectorAll('#next-table tbody tr').length")
        start = np.datetime64(live[-1]["time"])
        for k in range(ANSWERS):
            before = browser.run(LAST)
            given = answer(
                who, live[k]["item"], k % 2, str(start + np.timedelta64(k, "m")), f"m{k}"
            )
            begun = time.perf_counter()
            post(client, given)
            while browser.run(LAST) == before:
                time.sleep(0.002)
            waits.append(time.perf_counter() - begun)
            time.sleep(0.1)
    finally:
        browser.close()
    return waits


def _photographed(base: str, pictures: Path) -> None:
    """A learner, and a phone in the dark."""
    for name, size, dark in (
        ("live-learner", (1180, 1080), False),
        ("live-phone", (390, 844), True),
    ):
        browser = Browser(*size, dark=dark)
        try:
            browser.open(f"{base}/#/people")
            browser.wait("document.querySelectorAll('#people-table tbody a').length > 3")
            browser.run("[...document.querySelectorAll('#people-table tbody a')][3].click()")
            browser.wait("document.querySelectorAll('#next-table tbody tr').length")
            time.sleep(0.5)
            (pictures / f"{name}.png").write_bytes(browser.picture())
        finally:
            browser.close()
