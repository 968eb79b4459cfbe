"""First contact: files as people have them are fitted with every decision told, or refused with
what to do.

A table of 12 people, 5 items and 2 sittings is written in each way, and has to come back.
"""

import gzip
import json
import sqlite3
import zipfile

import numpy as np
import openpyxl
import pandas as pd
import pytest

import dynaesti as dy
from support.saying import spoken

ITEMS = [f"Q{k}" for k in range(1, 6)]
N = 120


@pytest.fixture(scope="module")
def long():
    """Answers, one a row."""
    rng = np.random.default_rng(7)
    rows = [
        (f"p{k:02d}", item, int(rng.random() < 0.3 + 0.04 * k), pd.Timestamp(f"2024-0{s}-1{s}"))
        for s in (3, 5)
        for k in range(12)
        for item in ITEMS
    ]
    return pd.DataFrame(rows, columns=["id", "item", "resp", "date"])


@pytest.fixture(scope="module")
def wide(long):
    """The same, one person and sitting a row."""
    table = long.pivot(index=["id", "date"], columns="item", values="resp").reset_index()
    return table.rename_axis(columns=None).rename(columns={"id": "Name", "date": "Datum"})


# --- how files are written


def text(name, content, encoding="utf-8"):
    """A case's writer: a file with this content, which may depend on the tables."""

    def write(folder, long, wide):
        (folder / name).write_bytes(content(long, wide).encode(encoding))
        return folder / name

    return write


def csv(table, **options):
    return table.to_csv(index=False, **options)


def sheet(folder, rows, merged=(), name="class.xlsx", title="Klasse 7b"):
    """A workbook with one sheet of rows."""
    book = openpyxl.Workbook()
    book.active.title = title
    for row in rows:
        book.active.append(row)
    for cells in merged:
        book.active.merge_cells(cells)
    book.save(folder / name)
    return folder / name


def plain_sheet(folder, long, wide):
    return sheet(folder, [list(long.columns), *long.itertuples(index=False, name=None)])


def titled_sheet(folder, long, wide):
    rows = [
        ["Mathematik, Klasse 7b"],
        [],
        ["Name", "Datum", "Algebra", None, None, "Geometrie", None],
        [None, None, 1, 2, 3, 1, 2],
        *wide.itertuples(index=False, name=None),
        ["Summe", None, 1, 2, 3, 4, 5],
        ["Mittelwert", None, 0.1, 0.2, 0.3, 0.4, 0.5],
    ]
    return sheet(folder, rows, ["A1:G1", "C3:E3", "F3:G3", "A3:A4", "B3:B4"])


def pairs(long):
    """Matches: who played at home, who away, and who won."""
    away = long["id"].sample(frac=1, random_state=1).to_numpy()
    names = {"id": "home", "date": "time", "resp": "response"}
    return long.assign(away=away).drop(columns="item").rename(columns=names)


def behind(folder, long, about):
    """A workbook with answers on its second sheet."""
    path = sheet(folder, about, title="About")
    book = openpyxl.load_workbook(path)
    other = book.create_sheet("answers")
    for row in [list(long.columns), *long.itertuples(index=False, name=None)]:
        other.append(row)
    book.save(path)
    return path


def second_sheet(folder, long, wide):
    return behind(folder, long, [["read me"]])


def largest_sheet(folder, long, wide):
    return behind(folder, long, [["school", "teacher"], ["Gymnasium", "M."], ["class", "7b"]])


def sqlite_file(folder, long, wide):
    with sqlite3.connect(folder / "answers.db") as connection:
        long.assign(date=long["date"].astype(str)).to_sql("answers", connection, index=False)
        connection.execute("CREATE TABLE other (a)")
    connection.close()
    return folder / "answers.db"


def sqlite_address(folder, long, wide):
    return f"sqlite:///{sqlite_file(folder, long, wide)}?table=answers"


def duckdb_file(folder, long, wide):
    import duckdb

    with duckdb.connect(str(folder / "a.duckdb")) as connection:
        connection.execute("CREATE TABLE answers AS SELECT * FROM long")
    return folder / "a.duckdb"


def spss_file(folder, long, wide):
    import pyreadstat

    pyreadstat.write_sav(wide, str(folder / "class.sav"))
    return folder / "class.sav"


def stata_file(folder, long, wide):
    long.to_stata(folder / "class.dta", write_index=False)
    return folder / "class.dta"


def ednet_files(folder, long, wide):
    for k, (_, rows) in enumerate(long.groupby("id")):
        stamp = rows["date"].astype("datetime64[ms]").astype("int64")
        answer = np.where(rows["resp"] == 1, "b", "a")
        pd.DataFrame(
            {
                "timestamp": stamp,
                "solving_id": 1,
                "question_id": rows["item"],
                "user_answer": answer,
                "elapsed_time": 5000,
            }
        ).to_csv(folder / f"u{k}.csv", index=False)
    pd.DataFrame({"question_id": ITEMS, "correct_answer": "b", "part": 1}).to_csv(
        folder / "questions.csv", index=False
    )
    return str(folder / "u*.csv")


def xapi(long, wide):
    """Statements, and one without a result."""
    verb = {"id": "http://adlnet.gov/expapi/verbs/answered", "display": {"en": "answered"}}
    lines = [
        {
            "actor": {"account": {"name": row.id, "homePage": "https://lms.example"}},
            "verb": verb,
            "object": {"id": f"https://x.example/{row.item}", "definition": {"choices": [1, 2]}},
            "result": {"success": bool(row.resp), "extensions": {}},
            "timestamp": f"{row.date.isoformat()}Z",
        }
        for row in long.itertuples()
    ]
    lines.append({key: lines[0][key] for key in ("actor", "verb", "object", "timestamp")})
    return lines


def datashop(long, wide):
    """First attempts with the answers, each followed by a right second one."""
    first = pd.DataFrame(
        {
            "Row": range(len(long)),
            "Anon Student Id": long["id"],
            "Time": long["date"].astype(str) + " 10:00:00",
            "Problem Name": long["item"],
            "Step Name": "step",
            "Attempt At Step": 1,
            "Outcome": np.where(long["resp"] == 1, "CORRECT", "INCORRECT"),
            "Selection": "x",
            "Selection.1": "y",
        }
    )
    second = first.assign(**{"Attempt At Step": 2, "Outcome": "CORRECT"})
    return csv(pd.concat([first, second]), sep="\t").replace("Selection.1", "Selection")


def assistments(long, wide):
    """Every answer twice, once for each of two skills."""
    one = pd.DataFrame(
        {
            "order_id": range(len(long)),
            "user_id": long["id"].str[1:].astype(int),
            "problem_id": long["item"].str[1:].astype(int),
            "correct": long["resp"],
            "skill_id": 1,
        }
    )
    return csv(pd.concat([one, one.assign(skill_id=2)]))


def voteview(long, wide):
    return csv(
        pd.DataFrame(
            {
                "congress": 110 + (long["date"].dt.month == 5),
                "chamber": "Senate",
                "rollnumber": long["item"].str[1:],
                "icpsr": long["id"].str[1:].astype(int),
                "cast_code": np.where(long["resp"] == 1, 1, 6),
            }
        )
    ) + ("110,Senate,1,99,9\n")


def un_votes(long, wide):
    table = long.assign(resp=np.where(long["resp"] == 1, "yes", "no"))
    names = {"id": "country", "item": "rcid", "resp": "vote"}
    return csv(table.rename(columns=names)) + "p00,Q1,abstain,2024-06-01\n"


def choices(long, wide, key_row=False):
    """Multiple choice: B is right."""
    table = wide.copy()
    for item in ITEMS:
        table[item] = np.where(table[item] == 1, "B", "C")
    if key_row:
        first = pd.DataFrame([["KEY", "2024-03-01", *"BBBBB"]], columns=table.columns)
        table = pd.concat([first, table.astype({"Datum": str})])
    return csv(table)


def mixed_dates(long, wide):
    dates = long["date"].dt.strftime("%Y-%m-%d").where(long.index % 3 > 0)
    return csv(long.assign(date=dates.fillna(long["date"].dt.strftime("%d.%m.%Y"))))


def moodle(long, wide):
    table = wide.rename(columns={f"Q{k}": f"Q. {k} /1.00" for k in range(1, 6)})
    table = table.rename(columns={"Name": "Email address", "Datum": "Started on"})
    table["Started on"] = pd.to_datetime(table["Started on"]).dt.strftime("%d %B %Y %I:%M %p")
    table.insert(2, "Grade/5.00", table.iloc[:, 2:].sum(axis=1))
    return csv(table) + "Overall average,,3.1,0.5,0.6,0.7,0.6,0.7\n"


FRENCH = ["élève", "exercice", "réponse", "date"]
GERMAN = ["Schüler", "Aufgabe", "Richtig", "Datum"]
SPANISH = ["alumno", "pregunta", "respuesta", "fecha"]


NOUNS = ["Student ID ", "Question No.", "Score (0/1)", "Date of test"]
CAMEL = ["StudentID", "ItemName", "IsCorrect", "AnsweredAt"]
COMPOUND = ["Schülernummer", "Aufgabennummer", "Punktzahl", "Testdatum"]
OF = ["Nom de l'élève", "Question", "Réponse correcte", "Date de passation"]
EEDI = ["UserId", "QuestionId", "IsCorrect", "DateAnswered"]


def in_words(language):
    return lambda long, wide: csv(long.set_axis(language, axis=1), sep=";")


# name: how it is written, options, number of answers, what is told
FITTED = {
    "csv": (text("a.csv", lambda t, w: csv(t)), {}, N, []),
    "semicolons": (text("a.csv", lambda t, w: csv(t, sep=";")), {}, N, ["separated by ';'"]),
    "sep line": (text("a.csv", lambda t, w: "sep=;\n" + csv(t, sep=";")), {}, N, ["';'"]),
    "tabs": (text("a.tsv", lambda t, w: csv(t, sep="\t")), {}, N, []),
    "utf-16": (text("a.csv", lambda t, w: csv(t), "utf-16"), {}, N, []),
    "utf-16 unmarked": (text("a.csv", lambda t, w: csv(t), "utf-16-le"), {}, N, []),
    "latin-1": (
        text("a.csv", lambda t, w: csv(t.assign(id=t["id"] + "é")), "cp1252"),
        {},
        N,
        ["Windows-1252"],
    ),
    "titles": (
        text("a.csv", lambda t, w: "Class 7b, maths\n\n" + csv(t)),
        {},
        N,
        ["left out 1 line above the headings"],
    ),
    "padded titles": (
        text("a.csv", lambda t, w: "Class 7b,,,\n,,,\n" + csv(t)),
        {},
        N,
        ["above the headings"],
    ),
    "totals": (text("a.csv", lambda t, w: csv(t) + "Total,,66,\n"), {}, N, ["of totals"]),
    "short totals": (text("a.csv", lambda t, w: csv(t) + "Total,66\n"), {}, N, ["of totals"]),
    "ragged": (
        text("a.csv", lambda t, w: csv(t) + "p99,Q1\n"),
        {"unreadable": "drop"},
        N,
        ["1 line cannot be read"],
    ),
    "wide": (
        text("a.csv", lambda t, w: csv(w)),
        {},
        N,
        ["5 columns are items (Q1 … Q5)", "columns: id is 'Name', time is 'Datum'"],
    ),
    "wide with totals": (
        text("a.csv", lambda t, w: csv(w.assign(Total=3), sep=";") + "Summe;;1;2;3;4;5;6\n"),
        {},
        N,
        ["5 columns are items", "beside the items: Total", "of totals (Summe)"],
    ),
    "wide without dates": (
        text("a.csv", lambda t, w: csv(w.drop(columns="Datum").iloc[::2])),
        {"timeless": True},
        N // 2,
        ["5 columns are items"],
    ),
    "wide, some items": (text("a.csv", lambda t, w: csv(w)), {"only": ["Q1", "Q[45]"]}, 72, []),
    "wide, items named": (
        text("a.csv", lambda t, w: csv(w.rename(columns=dict(zip(ITEMS, "abcde", strict=True))))),
        {"items": ["a", "b", "[c-e]"]},
        N,
        ["5 columns are items (a … e)"],
    ),
    "moodle": (text("a.csv", moodle), {}, N, ["id is 'Email address'", "Overall average"]),
    "key": (text("a.csv", choices), {"key": "B,B,B,B,B"}, N, ["scored by the key of 5 items"]),
    "key by letters": (text("a.csv", choices), {"key": "BBBBB"}, N, ["scored by the key of 5"]),
    "key by row": (
        text("a.csv", lambda t, w: choices(t, w, key_row=True)),
        {"key": "key"},
        N,
        ["scored by the key"],
    ),
    "excel": (plain_sheet, {}, N, []),
    "excel with titles": (
        titled_sheet,
        {},
        N,
        [
            "left out 1 row above the headings",
            "items (Algebra 1 … Geometrie 2)",
            "Summe, Mittelwert",
        ],
    ),
    "excel, sheet named": (second_sheet, {"sheet": "answers"}, N, []),
    "excel, answers behind": (largest_sheet, {}, N, ["the largest, 'answers'"]),
    "sqlite": (sqlite_file, {"sheet": "answers"}, N, []),
    "sqlite address": (sqlite_address, {}, N, []),
    "sqlite query": (
        sqlite_file,
        {"query": "SELECT id, item, resp, date FROM answers WHERE item <> 'Q1'"},
        96,
        [],
    ),
    "duckdb": (duckdb_file, {}, N, []),
    "spss": (spss_file, {}, N, ["5 columns are items"]),
    "stata": (stata_file, {}, N, []),
    "datashop": (
        text("tx.txt", datashop),
        {},
        N,
        ["headings are those of DataShop", "120 rows are later attempts"],
    ),
    "assistments": (
        text("a.csv", assistments),
        {},
        N,
        ["ASSISTments 2009", "120 rows repeat an answer for another skill"],
    ),
    "voteview": (
        text("a.csv", voteview),
        {},
        N,
        ["headings are those of Voteview", "'6' counts as 0", "'9' is no answer"],
    ),
    "ednet": (ednet_files, {"key": "questions.csv"}, N, ["EdNet KT1", "scored by the key"]),
    "xapi": (
        text("x.jsonl", lambda t, w: "\n".join(map(json.dumps, xapi(t, w)))),
        {},
        N,
        ["headings are those of xAPI"],
    ),
    "xapi page": (
        text("x.json", lambda t, w: json.dumps({"statements": xapi(t, w)}, indent=1)),
        {},
        N,
        ["headings are those of xAPI"],
    ),
    "german": (text("a.csv", in_words(GERMAN)), {}, N, ["id is 'Schüler'", "resp is 'Richtig'"]),
    "french": (text("a.csv", in_words(FRENCH)), {}, N, ["id is 'élève'", "resp is 'réponse'"]),
    "nouns": (text("a.csv", in_words(NOUNS)), {}, N, ["item is 'Question No.'", "'Date of test'"]),
    "camel case": (text("a.csv", in_words(CAMEL)), {}, N, ["id is 'StudentID'"]),
    "compounds": (text("a.csv", in_words(COMPOUND)), {}, N, ["id is 'Schülernummer'"]),
    "nouns of": (text("a.csv", in_words(OF)), {}, N, ["resp is 'Réponse correcte'"]),
    "eedi": (text("a.csv", in_words(EEDI)), {}, N, ["time is 'DateAnswered'"]),
    "spanish": (text("a.csv", in_words(SPANISH)), {}, N, ["item is 'pregunta'"]),
    "mixed dates": (
        text("a.csv", mixed_dates),
        {},
        N,
        ["2 ways: ISO (80 rows), %d.%m.%Y (40 rows)"],
    ),
    "short years": (
        text("a.csv", lambda t, w: csv(t.assign(date=t["date"].dt.strftime("%d.%m.%y")))),
        {},
        N,
        ["read as '%d.%m.%y'"],
    ),
    "tildes": (text("a.csv", lambda t, w: csv(t, sep="~")), {}, N, ["separated by '~'"]),
    "spaces": (text("a.txt", lambda t, w: csv(t, sep=" ")), {}, N, ["separated by ' '"]),
    "un votes": (
        text("a.csv", un_votes),
        {},
        N,
        ["headings are those of UN votes", "'abstain' is no answer"],
    ),
    "several times": (
        text("a.csv", lambda t, w: csv(t.assign(end_time=t["date"], start_time=t["date"]))),
        {},
        N,
        ["time is 'date' (not 'start_time', 'end_time')"],
    ),
    "years": (text("a.csv", lambda t, w: csv(t)), {"unit": "years"}, N, ["decimal years"]),
    "dashes for missing": (
        text("a.csv", lambda t, w: csv(w.astype(object).replace({"Q1": {0: "-", 1: "n/a"}}))),
        {},
        96,
        ["5 columns are items"],
    ),
    "unix seconds": (
        text("a.csv", lambda t, w: csv(t.assign(date=t["date"].astype("int64") // 10**6))),
        {},
        N,
        ["taken as Unix time in seconds"],
    ),
}


@pytest.mark.parametrize("case", FITTED)
def test_first_contact_is_a_fit(case, tmp_path, long, wide, monkeypatch):
    write, options, n, told = FITTED[case]
    monkeypatch.chdir(tmp_path)
    found = dy.Responses.read(write(tmp_path, long, wide), **options)
    assert len(found) == n
    notes = " | ".join(found.notes)
    for part in told:
        assert part in notes
    assert all(len(note) < 260 for note in found.notes)
    if n == N:
        assert found.people.size == 12
        assert found.resp.sum() == long["resp"].sum()
    fit = dy.DynAEsti("1PL", bandwidth=np.inf, iterations=3, standard_errors=False).fit(found)
    assert len(fit.responses) == n


def zipped(folder, long, wide):
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        archive.writestr("answers.csv", csv(long))
    return folder / "a.zip"


def word(folder, long, wide):
    with zipfile.ZipFile(folder / "a.docx", "w") as archive:
        archive.writestr("word/document.xml", "<w/>")
    return folder / "a.docx"


def written(name, content):
    def write(folder, long, wide):
        (folder / name).write_bytes(content)
        return folder / name

    return write


# name: how it is written, flags, what the error says
REFUSED = {
    "pdf": (written("a.pdf", b"%PDF-1.7\n\xe2\xe3"), [], "this is a PDF document"),
    "pdf called csv": (written("a.csv", b"%PDF-1.7\n\xe2\xe3"), [], "this is a PDF document"),
    "word": (word, [], "this is a Word document"),
    "zip": (zipped, [], "this is a ZIP archive, not a table of answers; unpack it"),
    "r data": (written("a.rds", gzip.compress(b"X\n\x00\x00\x00\x03")), [], "an R data file"),
    "rubbish": (written("a.csv", bytes(range(256)) * 9), [], "this is no text"),
    "no such sheet": (second_sheet, ["--sheet", "answer"], "there are: About, answers"),
    "two tables": (sqlite_file, [], "name one by --sheet answers"),
    "no such table": (sqlite_file, ["--sheet", "answer"], "no table 'answer'"),
    "bad query": (sqlite_file, ["--query", "SELEKT"], "the query failed"),
    "query of a file": (plain_sheet, ["--query", "SELECT 1"], "--query: class.xlsx is no database"),
    "no server": (
        lambda folder, long, wide: "postgresql://ada:secret@127.0.0.1:1/x?table=y",
        [],
        "postgresql://127.0.0.1/x: the database refused",
    ),
    "choices without a key": (text("a.csv", choices), [], "say which answers are right: --key"),
    "choices with a row of the key": (
        text("a.csv", lambda t, w: choices(t, w, key_row=True)),
        [],
        "say which answers are right: --key KEY",
    ),
    "several answers in a cell": (
        text("a.csv", lambda t, w: csv(t.assign(resp="1,0,1"))),
        [],
        "120 of 120 rows hold several answers each; write one answer a row",
    ),
    "lined up": (
        text("a.txt", lambda t, w: t.to_string(index=False)),
        [],
        "the columns seem to be lined up by spaces",
    ),
    "crosses": (
        text("a.csv", lambda t, w: csv(t.assign(resp=np.where(t["resp"] == 1, "x", "")))),
        [],
        "say what words stand for, such as --code =0 --code x=1",
    ),
    "dates both ways": (
        text("a.csv", lambda t, w: csv(t.assign(date="03/04/2024"))),
        [],
        "say which by --time-format",
    ),
    "pairs": (
        text("a.csv", lambda t, w: csv(pairs(t))),
        [],
        "'home' and 'away' seem to be the two sides of matches",
    ),
    "no headings": (
        text("a.csv", lambda t, w: csv(t, header=False)),
        [],
        "the first line seems to be an answer already; write a line of headings above it",
    ),
    "a matrix without headings": (
        text("a.csv", lambda t, w: "1,0,1,1\n" * 9),
        [],
        "the first line holds numbers, not headings",
    ),
    "unknown headings": (
        text("a.csv", lambda t, w: csv(t.set_axis(list("wxyz"), axis=1))),
        [],
        "no column for id among w, x, y, z; name it: --id name",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_first_contact_is_refused_in_words(case, tmp_path, long, wide, capsys):
    write, flags, message = REFUSED[case]
    code, _, err = spoken(capsys, "validate", write(tmp_path, long, wide), *flags)
    assert code in (3, 4)
    assert message in err
    assert "Traceback" not in err
    assert "secret" not in err
    assert len(err.splitlines()[-1]) < 500
