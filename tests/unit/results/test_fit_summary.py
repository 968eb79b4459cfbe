"""Summaries: one structure as text, HTML and LaTeX."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import dynaesti as dy
from dynaesti.tables import as_frame


@pytest.fixture(scope="module")
def fit():
    table = dict(dy.simulate.responses(people=40, items=5, per_person=12, seed=1).table)
    table["item"] = [f"q_{name[1:]} & <b>" for name in table["item"]]
    table["age"] = [int(name[1:]) % 7 for name in table["id"]]
    return dy.DynAEsti("2PL", effects="age").fit(table)


class Cells(HTMLParser):
    """The texts of all cells of a page, and its tags."""

    def __init__(self, text):
        super().__init__()
        self.cells, self.open = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1] += data


def test_all_renderings_say_the_same(fit):
    summary = fit.summary()
    text, page, latex = str(summary), summary.to_html(), summary.to_latex()
    assert "480 answers of 40 people" in " ".join(text.split())
    assert "480 answers of 40 people" in summary
    parsed = Cells(page)
    assert not parsed.open  # every tag is closed
    items = as_frame(fit.items)
    for k in range(5):
        shown = f"{items['b'][k]:.3f}"
        assert shown in text
        assert shown in parsed.cells
        assert shown.lstrip("-") in latex
    assert r"q\_0 \& \textless{}b\textgreater{}" in latex
    assert "q_0 & <b>" in parsed.cells
    for name in ("AIC", "BIC", "parameters", "reliability", "Effects"):
        assert name in text
        assert name in page
        assert name in latex
    assert latex.count(r"\begin{table}") == latex.count(r"\end{table}") == 4
    assert not re.search(r"(?<!\\)[&_%#](?![^\n]*\\\\)(?!.*booktabs)", latex.split("\n\n")[1])


def test_criteria_count_all_parameters(fit):
    facts = fit.summary().facts
    k = float(facts["parameters"])
    assert k == pytest.approx(fit.n_parameters, abs=0.05)
    assert float(facts["AIC"]) == pytest.approx(
        -2 * fit.log_evidence + 2 * fit.n_parameters, abs=0.1
    )
    # an effect that the data decide is one parameter more, whether or not there is a trend
    assert 0.9 < fit.priors.cohort.effective_parameters < 3.0


def test_summaries_are_files(fit, tmp_path):
    summary = fit.summary()
    assert summary.save(tmp_path / "s.tex").read_text() == summary.to_latex()
    assert summary.save(tmp_path / "s.txt").read_text().startswith("Fit of 5 items (2PL)")
    assert summary.save(tmp_path / "s.html").read_text().startswith("<!doctype html>")
    with pytest.raises(dy.InputError, match=r"end in \.txt"):
        summary.save(tmp_path / "s.docx")


def test_shards_and_banks_have_summaries(fit, tmp_path):
    shards = dy.prepare(
        dy.simulate.responses(people=20, items=4, per_person=10, seed=1).table,
        tmp_path / "shards",
        shards=2,
    )
    static = dy.DynAEsti("1PL", bandwidth=np.inf)
    summary = static.fit(shards, out=tmp_path / "run").summary()
    assert "2 shards" in summary
    assert {"AIC", "BIC", "people"} <= set(summary.facts)
    bank = dy.Fit.from_bank(fit.items).summary()
    assert "without people" in bank
    assert "AIC" not in bank.facts
