"""Figures of verbs, written to files."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any


def figure_option(parser: argparse.ArgumentParser) -> None:
    """The file that a figure is drawn into."""
    parser.add_argument("--figure", metavar="FILE", help="draw it (PNG, SVG or PDF)")


def draw_figure(name: str | None, draw: Callable[[], Any]) -> None:
    """Draw into the file of --figure, where one is asked for; `draw` makes the axes."""
    if name is None:
        return
    import matplotlib

    from dynaesti.errors import InputError

    matplotlib.use("Agg")
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    try:
        draw().figure.savefig(name, dpi=150)
    except ValueError as error:  # an ending that matplotlib does not know
        raise InputError(f"--figure: {error}") from None
