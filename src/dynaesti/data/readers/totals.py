"""Rows of totals, which spreadsheets have below the rows of people."""

from __future__ import annotations

import re

from dynaesti.data.headings import plain_name

MOST_ROWS = 5  # of totals, at the end of a table
WORD = re.compile(
    r"(grand_|overall_|class_)?(total|sum|mean|average|median|min|minimum|max|maximum|count|sd|std|"
    r"standard_deviation|std_dev|percent_correct|summe|gesamt|mittelwert|durchschnitt|mittel|"
    r"schnitt|standardabweichung|anzahl|moyenne|somme|ecart_type|promedio|suma|media|totales)"
    r"(_total|_general|_generale)?:?"
)


def is_total(text: str | None) -> bool:
    """Whether the first cell of a row says that the row sums up others."""
    return bool(text) and WORD.fullmatch(plain_name(str(text))) is not None
