"""The outcome of a study: numbers beside the paper's, tables and figures, and how to write them."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dynaesti.errors import MissingExtraError, StorageError

# told apart by the colour-blind, and by their lightness
BLUE = "#0b5394"
ORANGE = "#b45f06"
GREEN = "#38761d"
GREY = "#8a8f98"


@dataclass(frozen=True)
class Options:
    """How a study is run."""

    seeds: int = 5  # of the synthetic studies
    quick: bool = False  # small sizes, and fewer seeds
    golf: Path | None = None  # the scorecards
    threads: int | None = None  # None: all cores
    quiet: bool = False  # no progress

    def print_progress(self, text: str) -> None:
        """Print a line of progress to standard error, unless `quiet`."""
        if not self.quiet:
            print(f"  {text}", file=sys.stderr, flush=True)  # noqa: T201


@dataclass(frozen=True)
class Row:
    """One number of the paper beside ours."""

    what: str
    paper: str
    ours: str
    limit: str = ""  # the best that can be had, or the bar
    holds: bool | None = None  # whether ours passes the bar; None without one


@dataclass
class Study:
    """What a study found."""

    name: str
    title: str
    words: list[str] = field(default_factory=list)  # sentences
    rows: list[Row] = field(default_factory=list)
    tables: list[tuple[str, dict[str, list[Any]]]] = field(default_factory=list)  # with captions
    figures: list[tuple[str, str, Any]] = field(default_factory=list)  # name, caption, figure
    facts: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    def as_text(self) -> str:
        """The study as plain text, for a terminal."""
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
        """The study as Markdown, with the figures in `folder`."""
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
        """Write the figures as PNG and SVG, and everything else as JSON."""
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
        """Everything but the figures, ready for JSON."""
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
    """A NumPy value as JSON can hold it."""
    return (
        value.item()
        if isinstance(value, np.generic)
        else value.tolist()
        if isinstance(value, np.ndarray)
        else str(value)
    )


def _cell(value: Any) -> str:
    """A value in a table: four digits of a fraction."""
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    return str(value)


def _aligned(rows: list[tuple[Any, ...]]) -> list[str]:
    """Lines of a table whose columns are aligned."""
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
    """CPU seconds of all threads, and seconds by the clock, since it was made."""

    def __init__(self) -> None:
        self.cpu = time.process_time()
        self.wall = time.perf_counter()

    def spent(self) -> float:
        """CPU seconds since the start."""
        return time.process_time() - self.cpu

    def passed(self) -> float:
        """Seconds by the clock since the start."""
        return time.perf_counter() - self.wall
