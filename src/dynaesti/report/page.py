"""The report: one self-contained HTML page that works offline.

The data are embedded as JSON, and the page shows every name as text, never as HTML.
"""

from __future__ import annotations

import json
import re
from html import escape, unescape
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

from dynaesti.core import atomic_path
from dynaesti.errors import InputError
from dynaesti.report.constant import is_constant
from dynaesti.report.data import page_data
from dynaesti.report.printing import find_browser, print_page
from dynaesti.results import Fit, StaticComparison

TITLE = "Abilities over time"  # unless another is given
TITLE_OF_CONSTANT = "Abilities"  # where they do not move
PAGES = (".html", ".htm")
PAPER = ".pdf"
TITLE_WITHIN = 20_000  # characters of a page: its style comes after the title


def write_report(
    fit: Fit,
    path: str | PathLike[str],
    *,
    static_comparison: StaticComparison | None = None,
    title: str | None = None,
) -> Path:
    """Write the report of a fit as one HTML page, or print it as PDF.

    Parameters
    ----------
    fit : Fit
        The fit.
    path : path
        The page, which ends in .html or .htm; or a PDF, which Chromium, Chrome or Edge prints.
    static_comparison : StaticComparison, optional
        The fit beside the same with constant abilities, from `evaluation.compare_with_static`.
    title : str, optional
        The page's title. Default: "Abilities over time", or "Abilities" where none moves.

    Returns
    -------
    Path
        The page, or the PDF.

    Raises
    ------
    InputError
        Where the path has another ending.
    MissingExtraError
        Where a PDF is asked for, and no browser that prints it is installed.
    """
    target = Path(path)
    if target.suffix.lower() not in (*PAGES, PAPER):
        raise InputError(
            f"path: the report is an HTML page, or a PDF that a browser prints; {target.name} "
            f"should end in .html or {PAPER}"
        )
    fit.require_people()
    is_paper = target.suffix.lower() == PAPER
    if is_paper:
        find_browser()  # before anything is computed
    default = TITLE_OF_CONSTANT if is_constant(fit) else TITLE
    text = report_page(fit, static_comparison, title or default)
    target.parent.mkdir(parents=True, exist_ok=True)
    if is_paper:
        print_page(text, target)
        return target
    with atomic_path(target) as part:
        part.write_text(text, encoding="utf-8")
    return target


def title_of(page: Path) -> str | None:
    """The title of a page that was written before; None where there is none."""
    try:
        with page.open(encoding="utf-8", errors="replace") as file:
            found = re.search("<title>(.*?)</title>", file.read(TITLE_WITHIN), re.DOTALL)
    except OSError:
        return None
    return unescape(found[1]) if found else None


def report_page(fit: Fit, static_comparison: StaticComparison | None, title: str) -> str:
    """The HTML of the report."""
    data = page_data(fit, static_comparison)
    page = _asset("report.html")
    # one pass over the slots in their order, so that no inserted text is searched again
    slots = {
        "title": escape(title),
        "style": _asset("report.css"),
        "data": embedded(data),
        "charts": _asset("charts.js"),
        "script": _asset("report.js"),
    }
    for name in slots:
        head, _, tail = page.partition(f"{{{{{name}}}}}")
        slots[name] = head + slots[name]
        page = tail
    return "".join(slots.values()) + page


def embedded(data: Any) -> str:
    """Encode data as JSON that is safe inside a script element: no tag can begin in it."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _asset(name: str) -> str:
    """The text of a file in the folder of assets."""
    return files("dynaesti.report").joinpath("assets", name).read_text(encoding="utf-8")
