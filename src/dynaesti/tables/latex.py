"""Frames as LaTeX tables (booktabs), rounded."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dynaesti.tables.digits import decimals
from dynaesti.tables.frame import Frame
from dynaesti.tables.text import printable

ESCAPED = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


def latex_text(frame: Frame) -> str:
    """A frame as a `tabular` of LaTeX, which needs the package booktabs."""
    columns = frame.to_arrays()
    layout = "".join("l" if column.dtype.kind in "OM" else "r" for column in columns.values())
    cells = [_cells(column) for column in columns.values()]
    lines = [
        r"% \usepackage{booktabs}",
        rf"\begin{{tabular}}{{{layout}}}",
        r"\toprule",
        " & ".join(escaped_latex(name) for name in columns) + r" \\",
        r"\midrule",
        *(" & ".join(row) + r" \\" for row in zip(*cells, strict=True)),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _cells(column: npt.NDArray[Any]) -> list[str]:
    if column.dtype.kind == "M":
        return ["" if text == "NaT" else text[:19] for text in column.astype(str).tolist()]
    if column.dtype.kind == "f":
        digits = decimals(column)
        return [_number(value, digits) for value in column.tolist()]
    return [
        "" if value is None or value != value else escaped_latex(str(value))
        for value in column.tolist()
    ]


def _number(value: float, digits: int) -> str:
    """A number with a minus sign, not a hyphen; never −0."""
    if value != value:
        return ""
    if np.isinf(value):
        return r"$\infty$" if value > 0 else r"$-\infty$"
    text = f"{round(value, digits) + 0.0:.{digits}f}"
    return f"${text}$" if text.startswith("-") else text


def escaped_latex(text: str) -> str:
    """A text that LaTeX prints as it is."""
    return "".join(ESCAPED.get(sign, sign) for sign in printable(text).replace("\n", " "))
