"""First contact with exports of systems for tests, surveys and courses, and with class lists.

Each is written as the system writes it, for 12 people, and has to come to the answers that were
drawn; what was decided is told.
"""

import json

import numpy as np
import openpyxl
import pytest

import dynaesti as dy

N_PEOPLE = 12
TRUTH = (np.random.default_rng(4).random((N_PEOPLE, 4)) < 0.6).astype(int)
MONTHS = ["Januar", "Februar", "März", "April", "Mai", "Juni"]


def lines(heading, row):
    """A text of a heading and a row for each person."""
    return "\n".join([heading, *(row(k) for k in range(N_PEOPLE))]) + "\n"


def joined(values, form="{}", sep=","):
    return sep.join(form.format(value) for value in values)


def forms():
    """Google Forms: the answer, the score and the feedback of each question."""
    questions = [f"{k}. What is {k}+{k}?" for k in range(1, 5)]
    heads = joined(f'"{q}","{q} [Score]","{q} [Feedback]"' for q in questions)
    return lines(
        f"Timestamp,Email Address,Score,{heads}",
        lambda k: (
            f"2024/03/{k + 1:02d} 10:12:33 AM GMT+1,a{k}@x.example,1.00 / 4,"
            + joined(f"{2 * j + 1 - x},{x}.00 / 1,--" for j, x in enumerate(TRUTH[k]))
        ),
    )


def moodle_in_german():
    heads = joined(range(1, 5), '"F. {} /1,00"')
    return (
        lines(
            f'Nachname,Vorname,E-Mail-Adresse,"Begonnen am",Beendet,"Bewertung/4,00",{heads}',
            lambda k: (
                f'Maier,Ina,i{k}@x.example,"{k + 1}. {MONTHS[k % 6]} 2024 10:15",'
                f'"{k + 1}. {MONTHS[k % 6]} 2024 10:35","3,00",' + joined(TRUTH[k], '"{},00"')
            ),
        )
        + 'Gesamtdurchschnitt,,,,,"3,00","0,50","0,6","0,5","0,4"\n'
    )


def qualtrics():
    names = "StartDate,EndDate,Progress,ResponseId,Q1,Q2,Q3,Q4"
    labels = "Start Date,End Date,Progress,Response ID,I count,I read,I write,I think"
    ids = joined(names.split(","), '"{{""ImportId"":""{}""}}"')
    return lines(
        f"{names}\n{labels}\n{ids}",
        lambda k: (
            f"2024-03-{k + 1:02d} 10:00:00,2024-03-{k + 1:02d} 10:10:00,100,R_{k},"
            + joined(TRUTH[k])
        ),
    )


def surveymonkey():
    return lines(
        "Respondent ID,Start Date,End Date,Q1 Algebra,Q2 Sets,Q3 Maps,Q4 Graphs\n"
        ",,,Response,Response,Response,Response",
        lambda k: (
            f"1000{k},03/{k + 13}/2024 10:00:00 AM,03/{k + 13}/2024 10:10:00 AM," + joined(TRUTH[k])
        ),
    )


def limesurvey():
    return lines(
        '"id";"submitdate";"lastpage";"startlanguage";' + joined(range(4), '"G1[SQ{}]"', ";"),
        lambda k: f'"{k}";"2024-03-{k + 1:02d} 10:15:00";"3";"de";' + joined(TRUTH[k], '"{}"', ";"),
    )


def canvas():
    heads = joined(range(1, 5), "{0}01: {0}+{0}?,1.0")
    return lines(
        f"name,id,sis_id,section,section_id,section_sis_id,submitted,attempt,{heads},score",
        lambda k: (
            f"Pupil {k},{1000 + k},s{k},A,7,x,2024-03-{k + 1:02d} 10:15:00 UTC,1,"
            + joined(f"{2 - x},{x}.0" for x in TRUTH[k])
            + ",2.0"
        ),
    )


def zipgrade():
    heads = joined(range(1, 5), "Stu{0},PriKey{0},Points{0},Mark{0}")
    return lines(
        f"QuizName,Class,First Name,Last Name,QuizCreated,{heads}",
        lambda k: (
            f"Quiz 1,7b,Ann{k},Bell,2024-03-{k + 1:02d},"
            + joined(f"{'CB'[x]},B,{x},{'XC'[x]}" for x in TRUTH[k])
        ),
    )


def occasions():
    """Two sittings side by side: the first two people of six, and the other six."""
    heads = joined(f"T{t}_Q{j}" for t in (1, 2) for j in range(1, 5))
    return "\n".join(
        [f"VP,{heads}", *(f"{k},{joined([*TRUTH[k], *TRUTH[k + 6]])}" for k in range(6))]
    )


def turned_round():
    rows = [f"A{j},2024-03-0{j + 1},{joined(TRUTH[:, j])}" for j in range(4)]
    return "\n".join([f"Aufgabe,Datum,{joined(range(N_PEOPLE), 'pupil {}')}", *rows])


def two_files():
    """Exports of two days put together, the second with its headings."""
    row = "{0},Q{1},{2},2024-03-0{3}"
    body = [row.format(k, j, TRUTH[k, j], 1 + (k > 5)) for k in range(N_PEOPLE) for j in range(4)]
    return "\n".join(["id,item,resp,date", *body[:24], "id,item,resp,date", *body[24:]])


def with_units():
    body = [f"{k},Q{j},{TRUTH[k, j]},2024-03-01" for k in range(N_PEOPLE) for j in range(4)]
    return "\n".join(["id,item,resp,date", "-,-,points,UTC", *body, "", "Source: LMS, 1 June"])


def class_list(above=(), below=(), last="Zoe"):
    names = [*(f"Pupil {k}" for k in range(N_PEOPLE - 1)), last]
    rows = [
        f"{name};2024-03-{k + 1:02d};{joined(TRUTH[k], sep=';')}" for k, name in enumerate(names)
    ]
    return "\n".join(["Name;Datum;A;B;C;D", *above, *rows, *below])


# content, options, what is told
EXPORTS = {
    "google forms": (forms, {}, ["items (1. What is 1+1? [Score]", "'0.00 / 1' is 0"]),
    "moodle in german": (moodle_in_german, {}, ["time is 'Begonnen am' (not 'Beendet')"]),
    "qualtrics": (qualtrics, {}, ["2 rows below the headings, about the columns"]),
    "surveymonkey": (surveymonkey, {}, ["1 row below the headings", "(Q1 Algebra … Q4 Graphs)"]),
    "limesurvey": (limesurvey, {}, ["time is 'submitdate'"]),
    "canvas": (canvas, {}, ["4 columns are items (101: 1+1? [Score]"]),
    "zipgrade": (zipgrade, {"time": "QuizCreated"}, ["items (Points1 … Points4)"]),
    "turned round": (turned_round, {}, ["12 columns are people (pupil 0 … pupil 11)"]),
    "two files": (two_files, {}, ["left out 1 row with the headings again"]),
    "units and source": (
        with_units,
        {},
        ["1 row below the headings, about the columns", "1 line below the table"],
    ),
    "possible points": (
        lambda: class_list(["Max. Punkte;;1;1;1;1"]),
        {},
        ["1 row of totals (Max. Punkte)"],
    ),
    "quotas": (
        lambda: class_list(below=["Lösungsquote;;0,5;0,4;0,3;0,6", "% richtig;;50%;40%;30%;60%"]),
        {},
        ["2 rows of totals (Lösungsquote, % richtig)"],
    ),
    "a pupil called Max": (lambda: class_list(last="Max"), {}, []),
}  # fmt: skip


@pytest.mark.parametrize("case", EXPORTS)
@pytest.mark.parametrize("plain", [False, True], ids=["pyarrow", "plain"])
def test_exports_come_to_the_answers(case, plain, tmp_path, monkeypatch):
    if plain:
        monkeypatch.setattr("dynaesti.data.readers.files.find_spec", lambda name: None)
    content, options, told = EXPORTS[case]
    file = tmp_path / "export.csv"
    file.write_text(content(), encoding="utf-8")
    found = dy.Responses.read(file, **options)
    notes = " | ".join(found.notes)
    for part in told:
        assert part in notes
    assert len(found) == TRUTH.size
    assert found.people.size == N_PEOPLE
    assert found.items.size == 4
    right = np.zeros((N_PEOPLE, 4))
    right[found.person, found.item] = found.resp
    assert sorted(right.sum(axis=1)) == sorted(TRUTH.sum(axis=1))
    assert right.sum(axis=0).tolist() == TRUTH.sum(axis=0).tolist()


def test_occasions_in_headings(tmp_path):
    (tmp_path / "a.csv").write_text(occasions())
    found = dy.Responses.read(tmp_path / "a.csv")
    assert any("8 columns are 4 items at 2 occasions (T1_Q1 … T2_Q4)" in n for n in found.notes)
    assert found.items.tolist() == ["Q1", "Q2", "Q3", "Q4"]
    second = found.offsets + found.axis.origin == 2
    assert found.resp[second].reshape(6, 4).tolist() == TRUTH[6:].tolist()


def sheet(path, rows, merged=()):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    for cells in merged:
        book.active.merge_cells(cells)
    book.save(path)


def test_names_merged_over_sittings_and_a_legend(tmp_path):
    rows = [["Name", "Sitzung", *"ABCD"]]
    for k in range(6):
        rows += [[f"p{k}", 1, *TRUTH[k].tolist()], [None, 2, *TRUTH[k + 6].tolist()]]
    rows += [[], ["Legende"], [1, "richtig"], [0, "falsch"]]
    sheet(tmp_path / "a.xlsx", rows, [f"A{2 + 2 * k}:A{3 + 2 * k}" for k in range(6)])
    found = dy.Responses.read(tmp_path / "a.xlsx", time="Sitzung")
    assert found.people.size == 6
    assert found.resp.sum() == TRUTH.sum()
    notes = " | ".join(found.notes)
    assert "6 merged cells hold for all of their rows" in notes
    assert "left out 3 rows below the table" in notes


def test_errors_of_formulas_are_no_answers(tmp_path):
    rows = [[f"p{k}", *TRUTH[k].tolist()] for k in range(N_PEOPLE)]
    rows[2][3] = "#DIV/0!"
    sheet(tmp_path / "a.xlsx", [["Name", *"ABCD"], *rows])
    found = dy.Responses.read(tmp_path / "a.xlsx", timeless=True)
    assert (len(found), found.dropped) == (TRUTH.size - 1, 1)


LONG = [
    {"id": f"p{k}", "item": f"Q{j}", "resp": int(TRUTH[k, j]), "date": f"2024-03-0{j + 1}"}
    for k in range(N_PEOPLE)
    for j in range(4)
]


@pytest.mark.parametrize("name", ["answers.xls", "answers.xlsx"])
def test_text_that_is_called_a_workbook(name, tmp_path):
    rows = ["\t".join(map(str, row.values())) for row in LONG]
    (tmp_path / name).write_text("\n".join(["id\titem\tresp\tdate", *rows]))
    assert len(dy.Responses.read(tmp_path / name)) == TRUTH.size


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<html><body><table><tr><td>1</td></tr></table></body></html>", "this is a web page"),
        ("\ufeff<!DOCTYPE html><html></html>", "page for signing in"),
        ("<?xml version='1.0'?><rows/>", "this is an XML file"),
    ],
)
@pytest.mark.parametrize("name", ["answers.xls", "answers.csv"])
def test_pages_are_refused_by_name(content, message, name, tmp_path):
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(dy.ResponseError, match=message):
        dy.Responses.read(tmp_path / name)


@pytest.mark.parametrize("encoding", ["utf-32", "utf-16-be", "utf-8-sig"])
def test_encodings(encoding, tmp_path):
    (tmp_path / "a.csv").write_bytes(class_list().encode(encoding))
    assert dy.Responses.read(tmp_path / "a.csv").resp.sum() == TRUTH.sum()


JSON = {
    "columns": {key: [row[key] for row in LONG] for key in LONG[0]},
    "columns by row": {key: {str(k): row[key] for k, row in enumerate(LONG)} for key in LONG[0]},
    "split": {"columns": list(LONG[0]), "data": [list(row.values()) for row in LONG]},
    "answers within": [
        {
            "id": f"p{k}",
            "answers": [
                {"item": row["item"], "resp": row["resp"], "date": row["date"]}
                for row in LONG[4 * k : 4 * k + 4]
            ],
        }
        for k in range(N_PEOPLE)
    ],
}


@pytest.mark.parametrize("case", JSON)
def test_json_in_other_shapes(case, tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(JSON[case]))
    found = dy.Responses.read(tmp_path / "a.json")
    assert found.people.size == N_PEOPLE
    assert found.resp.sum() == TRUTH.sum()
