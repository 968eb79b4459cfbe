"""The report: one self-contained HTML page that works offline.

The data are embedded as JSON, and the page shows every name as text, never as HTML.
"""

from __future__ import annotations

import json
from functools import cache
from html import escape
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

from dynaesti.core import atomic_path
from dynaesti.errors import InputError, MissingExtraError
from dynaesti.report.charts import charts
from dynaesti.report.data import page_data
from dynaesti.results import Fit, StaticComparison


def write_report(
    fit: Fit,
    path: str | PathLike[str],
    *,
    static_comparison: StaticComparison | None = None,
    title: str | None = None,
) -> Path:
    """Write the report of a fit as one HTML page.

    Parameters
    ----------
    fit : Fit
        The fit.
    path : path
        The page, which ends in .html or .htm.
    static_comparison : StaticComparison, optional
        The fit beside the same with constant abilities, from `evaluation.compare_with_static`.
    title : str, default "Abilities over time"
        The page's title.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    InputError
        Where the path has another ending.
    MissingExtraError
        Where the packages that draw the charts are not installed.
    """
    target = Path(path)
    if target.suffix.lower() not in PAGES:
        raise InputError(
            f"path: the report is an HTML page; {target.name} should end in .html (a browser "
            f"prints it to PDF)"
        )
    fit.require_people()
    text = report_page(fit, static_comparison, title or "Abilities over time")
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic_path(target) as part:
        part.write_text(text, encoding="utf-8")
    return target


PAGES = (".html", ".htm")


def report_page(fit: Fit, static_comparison: StaticComparison | None, title: str) -> str:
    """The HTML of the report."""
    data = page_data(fit, static_comparison)
    data["charts"] = charts(data["facts"], amounts=any(data["items"]["amount"]))
    page = _asset("report.html")
    # one pass over the slots in their order, so that no inserted text is searched again
    slots = {
        "title": escape(title),
        "style": _asset("report.css"),
        "script": _asset("report.js"),
        "data": embedded(data),
        "vega": _vega(),
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


@cache
def _vega() -> str:
    """Vega, Vega-Lite and their embedding as one script."""
    try:
        import vl_convert
    except ImportError as error:
        raise MissingExtraError(
            "the report needs altair and vl-convert-python: pip install 'dynaesti[report]'"
        ) from error
    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")).replace(
        "</script", "<\\/script"
    )
