"""Headings by which the columns of each role are recognised, in several languages."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

# as `plain_name` spells them; the first is the usual one, and those before win
SYNONYMS: dict[str, tuple[str, ...]] = {
    role: tuple(words.split())
    for role, words in {
        "id": """
            id person student user user_id student_id anon_student_id learner learner_id respondent
            respondent_id participant participant_id subject subject_id examinee
            examinee_id candidate candidate_id pupil pupil_id player player_id pid person_id
            student_number student_no matriculation_number icpsr legislator senator justice
            schuler schuelerin schueler schulerin schuler_id schueler_id schulernummer
            schuelernummer matrikelnummer teilnehmer teilnehmerin teilnehmernummer proband
            probandin versuchsperson vp vpn vp_nr nutzer kandidat
            eleve eleve_id etudiant apprenant utilisateur personne participant_e
            estudiante alumno alumna usuario persona participante
            studente alunno leerling
            email e_mail email_address e_mail_adresse adresse_e_mail correo
            name full_name student_name student_names names display_name username
            nachname nom nombre uid response_id record_id
        """,
        "item": """
            item problem question item_id problem_id question_id item_name task task_id exercise
            exercise_id skill case hole route rcid roll_call rollcall bill
            aufgabe aufgaben_id aufgabennummer frage frage_id fragennummer
            exercice tache pregunta ejercicio tarea domanda vraag
        """,
        "resp": """
            resp response correct score answer is_correct outcome result vote y value points grade
            mark
            antwort richtig korrekt ergebnis punkte punktzahl bewertung
            reponse resultat juste note
            respuesta correcto resultado puntos acierto puntuacion
            risposta punteggio goed
        """,
        "time": """
            date time timestamp ts when datetime day days year start_time started_on started
            started_at start_date startdate created_at submitted_at submitted answered_at answered
            date_answered submitdate datestamp recorded_date time_done completed completed_at
            end_time end_date enddate wave sitting occasion
            datum testdatum prufungsdatum zeit tag zeitstempel zeitpunkt jahr begonnen_am begonnen
            beendet abgegeben welle messzeitpunkt
            jour heure horodatage annee date_de_passation commence_le termine_le
            fecha hora dia ano marca_temporal comenzado_el comenzado finalizado
        """,
    }.items()
}
# that together are the two sides of a match
SIDES = (
    *(("home", "away"), ("home_team", "away_team"), ("winner", "loser"), ("white", "black")),
    *(("agent_a", "agent_b"), ("team_a", "team_b"), ("player_a", "player_b")),
    *(("player_1", "player_2"), ("player1", "player2"), ("team_1", "team_2"), ("team1", "team2")),
)
# what headings are mostly about, by which unusual ones are guessed
NOUNS = {
    "id": frozenset(
        "student pupil learner user person participant respondent examinee candidate schuler "  # noqa: SIM905  as above
        "schueler eleve etudiant alumno estudiante nom nombre".split()
    ),
    "item": frozenset(
        "item question problem task exercise aufgabe frage exercice pregunta ejercicio".split()  # noqa: SIM905
    ),
    "resp": frozenset(
        "response answer score correct point grade outcome antwort punkte reponse respuesta".split()  # noqa: SIM905
    ),
    "time": frozenset("date time timestamp datum fecha zeitpunkt".split()),  # noqa: SIM905
}
# parts of headings that say nothing of what they are about
NUMBERS = frozenset(("id", "no", "nr", "number", "nummer", "num", "code", "key", "name", "names"))
OF = frozenset(("of", "de", "du", "der", "des", "del"))
# and those of columns about something else
OTHERS = frozenset(
    (
        *("text", "title", "type", "kind", "count", "total", "max", "min", "possible", "mean"),
        *("taken", "spent", "duration", "elapsed", "seconds", "minutes", "ms", "limit", "rt"),
        *("birth", "birthday", "born", "geburtsdatum", "geburtstag", "geboren", "naissance"),
        *("nacimiento", "age", "class", "school", "weight", "sum"),
        *("attempt", "attempts", "hint", "hints", "average", "percent", "rank", "group"),
    )
)
KEY = {"correct", "answer"}  # the right one, not the one that was given
CAMEL = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
LIKE_DATA = re.compile(r"[\d\s.,:/T+-]*\d[\d\s.,:/TZ+-]*|true|false", re.IGNORECASE)


def plain_name(name: str) -> str:
    """A heading without what people vary: case, accents, spaces, hyphens and points."""
    parts = unicodedata.normalize("NFKD", name.strip().lower())
    letters = "".join(c for c in parts if not unicodedata.combining(c))
    return re.sub(r"[\s.\-]+", "_", letters).strip("_")


def recognise(names: Sequence[str], role: str) -> list[str]:
    """The columns whose headings are usual for a role, the likeliest first."""
    by_letters = {_letters(name): name for name in reversed(names)}
    found = [by_letters.get(word.replace("_", "")) for word in SYNONYMS[role]]
    return list(dict.fromkeys(name for name in found if name is not None))


def guess(names: Sequence[str], role: str) -> list[str]:
    """The columns of a role: those with usual headings, else the only one that speaks of it.

    Student names, Question no., Date of test.
    """
    usual = recognise(names, role)
    if usual:
        return usual
    taken = {name for other in SYNONYMS for name in recognise(names, other)}
    alike = [name for name in names if name not in taken and _role_of(name) == role]
    return alike if len(alike) == 1 else []


def speaks_of(name: str, role: str) -> bool:
    """Whether a heading speaks of a role by its noun."""
    return _role_of(name) == role


def speaks_of_others(name: str) -> bool:
    """Whether a heading speaks of something that plays no role, such as a date of birth."""
    return bool(OTHERS & set(re.findall(r"[a-z]+", plain_name(CAMEL.sub(" ", name)))))


def sides_of_matches(names: Sequence[str]) -> tuple[str, str] | None:
    """Two columns whose headings are those of the sides of a match, if there are such."""
    plain = {plain_name(name): name for name in reversed(names)}
    return next(
        ((plain[one], plain[other]) for one, other in SIDES if {one, other} <= plain.keys()), None
    )


def resemble_data(names: Sequence[str]) -> bool:
    """Whether a first line is no headings but an answer: half of it or more numbers and dates."""
    alike = sum(LIKE_DATA.fullmatch(name.strip()) is not None for name in names)
    return 2 * alike >= len(names) and not any(recognise(names, role) for role in SYNONYMS)


def _letters(name: str) -> str:
    """A heading without what stands between its words, so that StudentID is student_id."""
    return plain_name(name).replace("_", "")


def _role_of(name: str) -> str | None:
    """The role that a heading speaks of by its noun: the last word, or the first of "x of y"."""
    words = re.findall(r"[a-z]+", plain_name(CAMEL.sub(" ", name)))
    if not words or OTHERS & set(words) or set(words) >= KEY:
        return None
    nouns = [word for word in words if word not in NUMBERS] or words
    ordered = nouns if OF & set(words) else [nouns[-1], nouns[0]]
    for word in ordered:
        for role, known in NOUNS.items():
            if word in known or word.removesuffix("s") in known:
                return role
    return None
