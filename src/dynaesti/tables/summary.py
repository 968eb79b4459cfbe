"""A summary of results: sentences, facts and tables, as text, HTML or LaTeX."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from os import PathLike
from pathlib import Path
from textwrap import fill

from dynaesti.core import atomic_path
from dynaesti.errors import InputError
from dynaesti.tables.frame import Frame
from dynaesti.tables.latex import escaped_latex, latex_text
from dynaesti.tables.text import aligned, as_html, printable

WIDTH = 100  # of text, in characters
SHOWN_ROWS = 20  # of each table, in text and notebooks


@dataclass(frozen=True)
class Summary:
    r"""What there is to say of a result, once, in three renderings.

    ``str(summary)`` is text, `to_html` a part of a page (notebooks show it), `to_latex` a part of a
    paper, which needs the package booktabs.

    Parameters
    ----------
    title : str
    sentences : tuple of str
    facts : mapping of str to str
        Short facts by what they are.
    tables : mapping of str to Frame
        Tables by their titles.

    Examples
    --------
    >>> import dynaesti as dy
    >>> table = dy.simulate.responses(people=30, items=4, per_person=12, seed=1).table
    >>> summary = dy.DynAEsti("1PL", bandwidth=float("inf")).fit(table).summary()
    >>> "360 answers of 30 people" in str(summary)
    True
    >>> print(summary.to_latex().splitlines()[0])
    % \usepackage{booktabs}
    """

    title: str
    sentences: tuple[str, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, Frame] = field(default_factory=dict)

    def __str__(self) -> str:
        words = "\n".join(fill(printable(sentence), WIDTH) for sentence in self.sentences)
        parts = [printable(self.title), words]
        if self.facts:
            longest = max(map(len, self.facts))
            lines = (f"{name.ljust(longest)}  {value}" for name, value in self.facts.items())
            parts.append(printable("\n".join(lines)))
        for name, table in self.tables.items():
            shown = aligned(table.to_dict(), SHOWN_ROWS, width=WIDTH).rstrip("\n")
            parts.append(f"{printable(name)}\n{shown}")
        return "\n\n".join(parts)

    def __contains__(self, text: str) -> bool:
        """Whether a sentence says this, however the text is broken into lines."""
        return text in " ".join(self.sentences)

    def to_html(self, rows: int = SHOWN_ROWS) -> str:
        """The summary as a part of an HTML page.

        Parameters
        ----------
        rows : int, default 20
            Rows that are shown of each table.

        Returns
        -------
        str
        """
        facts = "".join(
            f"<tr><th style='text-align:left'>{escape(printable(name))}</th>"
            f"<td>{escape(printable(value))}</td></tr>"
            for name, value in self.facts.items()
        )
        tables = "".join(
            f"<h4>{escape(printable(name))}</h4>{as_html(table.to_dict(), rows)}"
            for name, table in self.tables.items()
        )
        words = "".join(f"<li>{escape(printable(sentence))}</li>" for sentence in self.sentences)
        return (
            f"<section><h3>{escape(printable(self.title))}</h3><ul>{words}</ul>"
            f"<table><tbody>{facts}</tbody></table>{tables}</section>"
        )

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_latex(self) -> str:
        """The summary for a paper: a paragraph, then the facts and all rows of all tables.

        Returns
        -------
        str
        """
        parts = [
            r"% \usepackage{booktabs}",
            rf"\paragraph{{{escaped_latex(self.title)}.}} "
            + escaped_latex(" ".join(self.sentences)),
        ]
        facts = Frame({"fact": list(self.facts), "value": list(self.facts.values())})
        for name, table in {"Facts": facts, **self.tables}.items():
            body = latex_text(table).partition("\n")[2].rstrip("\n")
            parts.append(
                "\\begin{table}[htbp]\n\\centering\n"
                f"\\caption{{{escaped_latex(name)}}}\n{body}\n\\end{{table}}"
            )
        return "\n\n".join(parts) + "\n"

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the summary into a file.

        Parameters
        ----------
        path : str or path
            Ends in .txt, .md, .html or .tex.

        Returns
        -------
        pathlib.Path
        """
        target = Path(path)
        suffix = target.suffix.lower()
        if suffix not in (".txt", ".md", ".html", ".htm", ".tex"):
            raise InputError(
                f"path: a summary is text, a page or LaTeX; {target.name!r} should end in .txt, "
                ".html or .tex"
            )
        text = f"{self}\n"
        if suffix == ".tex":
            text = self.to_latex()
        elif suffix.startswith(".htm"):
            text = (
                f'<!doctype html><html lang="en"><meta charset="utf-8"><title>'
                f"{escape(printable(self.title))}</title>{self.to_html(rows=10**9)}</html>\n"
            )
        with atomic_path(target) as part:
            part.write_text(text, encoding="utf-8")
        return target
