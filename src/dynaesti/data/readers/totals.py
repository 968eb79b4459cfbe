"""Rows about the rows of people: totals below them, possible points above."""

from __future__ import annotations

import re
from collections.abc import Collection

from dynaesti.data.headings import plain_name

MOST_ROWS = 5  # of totals, at the end of a table
WORD = re.compile(
    r"((grand|overall|class)_)?(total|sum|mean|average|median|min|minimum|max|maximum|count|sd|std|"
    r"standard_deviation|std_dev|summe|gesamt|mittelwert|durchschnitt|mittel|schnitt|"
    r"standardabweichung|anzahl|moyenne|somme|ecart_type|promedio|suma|media|totales|scoring)"
    r"(_(total|general|generale|score|points|de_la_classe))?:?|"
    r"(%|percent|percentage|per_cent)(_(correct|right|richtig))?:?|"
    r"(punkte|points?|score|punktzahl)_(gesamt|total|summe|sum)|ø|∅|"
    r"(klassen|gesamt)(schnitt|durchschnitt|mittel|mittelwert)|"
    r"difficulty|p_value|schwierigkeit|(losungs|loesungs)quote|taux_de_reussite|dificultad"
)
POSSIBLE_POINTS = re.compile(
    r"(points?_possible|possible_points|out_of|max(imum|imale?)?_(points?|score|marks?|punkte|"
    r"punktzahl)|(punkte|points?|score|punktzahl)_(max|maximal|maximum)|erreichbare_punkte|"
    r"bareme|puntuacion_maxima|puntos_posibles):?"
)
NAMES = frozenset(("max", "min"))  # which people have too


def is_total(text: str | None) -> bool:
    """Whether the first cell of a row says that the row sums up others."""
    return bool(text) and WORD.fullmatch(plain_name(str(text))) is not None


def is_possible_points(text: str | None) -> bool:
    """Whether the first cell of a row says that the row has the points that can be reached."""
    return bool(text) and POSSIBLE_POINTS.fullmatch(plain_name(str(text))) is not None


def are_names(words: Collection[str]) -> bool:
    """Whether words that say totals may be people: Max alone is one."""
    return {plain_name(word) for word in words} <= NAMES
