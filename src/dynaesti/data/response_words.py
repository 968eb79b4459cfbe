"""What people write for an answer instead of a number: words, marks, points, percentages.

Texts are compared in lower case and without space around them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

# no value, in any column
MISSING = frozenset(
    ("", "na", "n/a", "n.a.", "#n/a", "nan", "none", "null", "missing", ".", "-", "--", "–", "—")
)
# no answer; spreadsheets write what begins with # where a formula failed
NO_ANSWER = MISSING | frozenset(
    (
        *("#div/0!", "#name?", "#null!", "#num!", "#ref!", "#value!"),
        *("no answer", "no response", "not answered", "skipped", "omitted", "absent"),
        *("abs", "abs.", "ill", "sick", "excused", "away", "not present"),
        *("k.a.", "keine angabe", "keine antwort", "nicht beantwortet", "abwesend"),
        *("abw", "abw.", "krank", "fehlt", "gefehlt", "fehlend", "entschuldigt", "unentschuldigt"),
        *("sans réponse", "pas de réponse", "malade", "sin respuesta", "ausente", "enfermo"),
    )
)
RIGHT = (
    *("true", "yes", "correct", "right", "pass", "passed", "aye", "yea"),
    *("wahr", "ja", "richtig", "korrekt", "bestanden"),
    *("vrai", "oui", "juste", "réussi"),
    *("verdadero", "sí", "si", "correcto", "correcta"),
)
WRONG = (
    *("false", "no", "incorrect", "wrong", "fail", "failed", "nay"),
    *("falsch", "nein", "nicht bestanden"),
    *("faux", "non", "échoué"),
    *("falso", "incorrecto", "incorrecta"),
)
WORDS = dict.fromkeys(RIGHT, 1.0) | dict.fromkeys(WRONG, 0.0)
# right and wrong, where a column holds these two and nothing else
MARKS = (
    *(("+", "-"), ("+", "−"), ("+", "–"), ("✓", "✗"), ("✓", "x"), ("✓", "✘"), ("✔", "✘")),
    *(("✔", "✗"), ("✔", "x"), ("☑", "☐"), ("☑", "☒")),
    *(("t", "f"), ("y", "n"), ("c", "i"), ("r", "w"), ("p", "f")),
    *(("w", "f"), ("r", "f"), ("j", "n"), ("v", "f"), ("o", "n"), ("s", "n")),
)
PER_CENT = 100
LONGEST_CHOICE = 3  # letters of an answer to a multiple-choice question
NUMBER = r"[+-]?\d+(?:[.,]\d+)?"
PERCENTAGE = re.compile(rf"({NUMBER})\s*%")
POINTS = re.compile(
    rf"({NUMBER})\s*(?:pts?|points?|marks?|p|punkte?|pkte?|puntos?|pontos?)\.?",
)
OUT_OF = re.compile(rf"({NUMBER})\s*/\s*({NUMBER})")
SEVERAL = re.compile(r"\[?\s*[\d.]+(\s*[,;]\s*[\d.]+)+\s*\]?")  # 1,0,1: answers to several items
# what people call the row with the right answers
KEY_ROW = re.compile(
    r"(the )?(answer )?keys?|(right|correct) answers?|solutions?|(muster)?l(ö|oe)sung(en)?|"
    r"(l(ö|oe)sungs)?schl(ü|ue)ssel|corrigé|corrige|clé|solución|soluciones|clave"
)
LABELLED = re.compile(r"\(?(\d+)\)?\s*[-–=:.)]\s*[^\W\d].*")  # 5 - strongly agree


def meanings(texts: Collection[str]) -> dict[str, float]:
    """Numbers that words among the texts of a column stand for; some depend on all of them."""
    known = {text: WORDS[text] for text in texts if text in WORDS}
    for right, wrong in MARKS:
        others = {text for text in texts if text not in NO_ANSWER or text == wrong}
        if others == {right, wrong}:
            return known | {right: 1.0, wrong: 0.0}
    return known


def is_no_answer(text: str) -> bool:
    """Whether a text says that there is no answer."""
    return text in NO_ANSWER


def written_numbers(texts: Iterable[str]) -> dict[str, float]:
    """Numbers written with what they count: 1 pt, 1.00 / 2, 85 %, 5 - agree.

    Parts of a whole are points, if some are none of it or all of it; a per cent is a hundredth.
    """
    texts = list(texts)
    parts = [match for match in map(OUT_OF.fullmatch, texts) if match]
    are_points = any(_number(part[1]) in (0.0, _number(part[2])) for part in parts)
    forms = (POINTS, LABELLED, *([OUT_OF] if are_points else []))
    found = {}
    for text in texts:
        whole = next(filter(None, (form.fullmatch(text) for form in forms)), None)
        if whole is not None:
            found[text] = _number(whole[1])
        elif (share := PERCENTAGE.fullmatch(text)) is not None:
            found[text] = _number(share[1]) / PER_CENT
    return found


def _number(text: str) -> float:
    return float(text.replace(",", "."))


def is_choice(text: str) -> bool:
    """Whether a text could be the answer to a multiple-choice question: a letter or a few."""
    return text.isalpha() and len(text) <= LONGEST_CHOICE
