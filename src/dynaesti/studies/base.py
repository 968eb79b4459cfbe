"""What every study hands back.

Numbers beside the paper's, tables, figures, and how to write them down.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dynaesti.errors import MissingExtraError, StorageError

BLUE, ORANGE, GREEN, GREY = (
    "#0b5394",
    "#b45f06",
    "#38761d",
    "#8a8f98",
)  # apart for the colour-blind, and in lightness


@dataclass(frozen=True)
class Options:
    """How a study is to be run."""

    seeds: int = 5
    quick: bool = False
    golf: Path | None = None
    threads: int | None = None
    quiet: bool = False

    def say(self, text: str) -> None:
        """Progress, on standard error."""
        if not self.quiet:
            print(f"  {text}", file=sys.stderr, flush=True)  # noqa: T201


@dataclass(frozen=True)
class Row:
    """One number: what the paper says, what we get, the best that can be had or the bar, and
    whether it holds.
    """

    what: str
    paper: str
    ours: str
    limit: str = ""
    holds: bool | None = None


@dataclass
class Study:
    """A study's outcome."""

    name: str
    title: str
    words: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    tables: list[tuple[str, dict[str, list[Any]]]] = field(default_factory=list)
    figures: list[tuple[str, str, Any]] = field(default_factory=list)  # name, caption, figure
    facts: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    def told(self) -> str:
        """For a terminal."""
        lines = [
            self.title,
            "",
            *_aligned(
                [
                    ("", "paper", "ours", "limit or bar", ""),
                    *[
                        (
                            r.what,
                            r.paper,
                            r.ours,
                            r.limit,
                            {True: "holds", False: "MISSED", None: ""}[r.holds],
                        )
                        for r in self.rows
                    ],
                ]
            ),
        ]
        for caption, columns in self.tables:
            lines += [
                "",
                caption,
                *_aligned(
                    [
                        tuple(columns),
                        *zip(*(map(_cell, column) for column in columns.values()), strict=True),
                    ]
                ),
            ]
        return "\n".join([*lines, "", *self.words])

    def markdown(self, folder: str) -> str:
        """For a page; figures lie in the folder."""
        parts = [f"## {self.title}", *self.words]
        if self.rows:
            verdict = {True: "holds", False: "**missed**", None: ""}
            parts.append(
                "| | paper | ours | limit or bar | |\n|---|---|---|---|---|\n"
                + "\n".join(
                    f"| {r.what} | {r.paper} | {r.ours} | {r.limit} | {verdict[r.holds]} |"
                    for r in self.rows
                )
            )
        for name, caption, _ in self.figures:
            parts.append(f"![{caption}]({folder}/{name}.png)\n\n*{caption}*")
        for caption, columns in self.tables:
            head = "| " + " | ".join(columns) + " |\n|" + "---|" * len(columns) + "\n"
            parts.append(
                f"{caption}\n\n"
                + head
                + "\n".join(
                    "| " + " | ".join(map(_cell, row)) + " |"
                    for row in zip(*columns.values(), strict=True)
                )
            )
        return "\n\n".join(parts)

    def write(self, folder: Path) -> None:
        """Figures as PNG and SVG, and everything else as JSON."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, _, figure in self.figures:
                figure.savefig(folder / f"{name}.png", dpi=110)
                figure.savefig(folder / f"{name}.svg")
            (folder / f"{self.name}.json").write_text(
                json.dumps(self.as_dict(), indent=1, default=_plain), encoding="utf-8"
            )
        except OSError as error:
            raise StorageError(
                f"{folder}: could not be written ({error.strerror or error})"
            ) from error

    def as_dict(self) -> dict[str, Any]:
        """Numbers and words, without the figures."""
        return {
            "study": self.name,
            "title": self.title,
            "words": self.words,
            "rows": [vars(row) for row in self.rows],
            "tables": [
                {"caption": caption, "columns": columns} for caption, columns in self.tables
            ],
            "facts": self.facts,
            "figures": [name for name, _, _ in self.figures],
            "seconds": round(self.seconds, 1),
        }


def _plain(value: Any) -> Any:
    return (
        value.item()
        if isinstance(value, np.generic)
        else value.tolist()
        if isinstance(value, np.ndarray)
        else str(value)
    )


def _cell(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    return str(value)


def _aligned(rows: list[tuple[Any, ...]]) -> list[str]:
    cells = [[str(value) for value in row] for row in rows]
    widths = [max(len(row[k]) for row in cells) for k in range(len(cells[0]))]
    return [
        "  ".join(value.ljust(width) for value, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def canvas(
    rows: int = 1, columns: int = 1, width: float = 7.2, height: float = 4.2
) -> tuple[Any, Any]:
    """A figure and its axes, drawn without a screen."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise MissingExtraError(
            "the studies draw with matplotlib: pip install 'dynaesti[cli]'"
        ) from error
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    mpl.rcParams["svg.hashsalt"] = "dynaesti"  # the same file every time
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns)
    for ax in np.ravel(axes):
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
    return figure, axes


class Stopwatch:
    """CPU seconds of all threads, and seconds by the clock."""

    def __init__(self) -> None:
        self.cpu = time.process_time()
        self.wall = time.perf_counter()

    def spent(self) -> float:
        """CPU seconds since the start."""
        return time.process_time() - self.cpu

    def passed(self) -> float:
        """Seconds by the clock since the start."""
        return time.perf_counter() - self.wall
