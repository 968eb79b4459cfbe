"""Dates as people and systems write them, brought to the few ways that formats describe.

Names of months and days of four languages, commas, zones by name, am and pm, hours with an h.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

# without accents; the first three letters name a month in English
MONTHS = {
    "Jan": "january januar janner janvier janv enero ene",
    "Feb": "february februar feber fevrier fevr fev febrero",
    "Mar": "march marz maerz mars marzo mrz",
    "Apr": "april avril avr abril abr",
    "May": "may mai mayo",
    "Jun": "june juni juin junio",
    "Jul": "july juli juillet juil julio",
    "Aug": "august aout agosto ago",
    "Sep": "september sept septembre septiembre set",
    "Oct": "october oktober okt octobre octubre",
    "Nov": "november novembre noviembre",
    "Dec": "december dezember dez decembre diciembre dic",
}
ENGLISH = {word: month for month, words in MONTHS.items() for word in words.split()} | {
    month.lower(): month for month in MONTHS
}
DAYS = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday "  # noqa: SIM905  as MONTHS
    "mon tue tues wed thu thur thurs fri sat sun "
    "montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag "
    "lundi mardi mercredi jeudi vendredi samedi dimanche "
    "lunes martes miercoles jueves viernes sabado domingo".split()
)
BETWEEN = frozenset(("de", "del", "um", "at", "a", "le", "uhr"))  # words that say nothing
PLAIN = re.compile(r"[\d .:/+-]*|\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-][\d:]+)?")
WORD = re.compile(r"[^\W\d_]+")
ORDINAL = re.compile(r"(?<=\d)(st|nd|rd|th|er|º|ª)\b", re.IGNORECASE)
HALF_OF_DAY = re.compile(r"(?<=\d) ?([ap])\.?m\b\.?", re.IGNORECASE)
HOURS = re.compile(r"\b(\d{1,2}) ?h ?(\d{2})\b", re.IGNORECASE)  # 10h05
ZONE = re.compile(r" ?\b(?:UTC|GMT|Z)\b(?: ?([+-])(\d{1,2})(?::?(\d\d))?)?", re.IGNORECASE)
CLOCK = re.compile(r"\d:\d\d")


def plain_date(text: str) -> str:
    """A date with English months, without names of days and commas, the zone as an offset."""
    if PLAIN.fullmatch(text):
        return text
    text = unicodedata.normalize("NFKD", " ".join(text.split()))
    text = "".join(c for c in text if not unicodedata.combining(c)).replace(",", " ")
    text = ORDINAL.sub("", text)
    text = HOURS.sub(r"\1:\2", text)
    text = HALF_OF_DAY.sub(lambda half: f" {half[1].upper()}M", text)
    if CLOCK.search(text):
        text = ZONE.sub(_as_offset, text, count=1)
    text = WORD.sub(_in_english, text)
    text = re.sub(r"(?<=\d)\.(?= ?[A-Z][a-z])|(?<=[a-z])\.", " ", text)  # 3. Mai, Sept. 3
    return " ".join(text.split())


def _as_offset(zone: re.Match[str]) -> str:
    sign, hours, minutes = zone.groups()
    return f" {sign}{int(hours):02d}{minutes or '00'}" if sign else " +0000"


def _in_english(word: re.Match[str]) -> str:
    low = word[0].lower()
    if low in DAYS or low in BETWEEN:
        return ""
    return ENGLISH.get(low, word[0])


# --- occasions that are numbered, not dated

NUMBERED = re.compile(r"(?P<stem>[^\W\d_]*)[\s_.-]*(?P<number>\d+)")
MOST_OCCASIONS = 500
BEFORE_AFTER = (
    {"pre": 0.0, "post": 1.0},
    {"pre": 0.0, "mid": 1.0, "post": 2.0},
    {"pretest": 0.0, "posttest": 1.0},
    {"pre_test": 0.0, "post_test": 1.0},
    {"before": 0.0, "after": 1.0},
    {"vorher": 0.0, "nachher": 1.0},
    {"avant": 0.0, "apres": 1.0},
    {"antes": 0.0, "despues": 1.0},
)
SCHOOL_YEAR = re.compile(r"(\d{4})\s*[/–-]\s*(\d{2}|\d{4})")


def occasion_numbers(texts: Sequence[str]) -> dict[str, float] | None:
    """Numbers of occasions: T1 and T2, Week 3, pre and post, 2022/23; None if these are none."""
    if len(texts) > MOST_OCCASIONS:
        return None
    plain = {text: _plain_word(text) for text in texts}
    for scale in BEFORE_AFTER:
        if len(set(plain.values())) > 1 and set(plain.values()) <= scale.keys():
            return {text: scale[word] for text, word in plain.items()}
    years = {text: SCHOOL_YEAR.fullmatch(text) for text in texts}
    if all(year and (int(year[1]) + 1) % 100 == int(year[2]) % 100 for year in years.values()):
        return {text: float(year[1]) for text, year in years.items() if year}
    numbered = {text: NUMBERED.fullmatch(word) for text, word in plain.items()}
    stems = {match["stem"] if match else None for match in numbered.values()}
    if len(stems) != 1 or stems <= {None, "", *ENGLISH}:
        return None
    return {text: float(match["number"]) for text, match in numbered.items() if match}


def _plain_word(text: str) -> str:
    parts = unicodedata.normalize("NFKD", text.strip().lower())
    letters = "".join(c for c in parts if not unicodedata.combining(c))
    return re.sub(r"[\s-]+", "_", letters)
