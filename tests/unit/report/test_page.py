"""The report as a file: what it holds, and that names are text."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import dynaesti as dy
from dynaesti.report import printing
from dynaesti.report.citation import how_to_cite
from dynaesti.report.page import embedded, title_of, write_report
from support.simulated import EVIL, classroom


def data_of(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)[1]
    ), text


def test_the_page_is_one_file_with_everything_in_it(page):
    path, fit = page
    data, text = data_of(path)
    markup = re.sub(r"<script.*?</script>", "", text, flags=re.DOTALL)
    assert not re.search(r'(src|href)="(?!#)', markup)  # nothing is loaded from elsewhere
    assert "default-src 'none'" in text
    assert data["people"]["names"] == [str(name) for name in fit.ids]
    assert set(data) >= {
        "words",
        "health",
        "people",
        "quantiles",
        "items",
        "wright",
        "priors",
        "calibration",
        "trace",
        "method",
        "findings",
        "terms",
        "cite",
    }
    assert "&lt;script&gt;" in text.split("</title>")[0]
    assert path.stat().st_size < 3e6
    curve = data["people"]["curves"][0]
    assert all(
        low <= mid <= high
        for low, mid, high in zip(curve["l"], curve["m"], curve["u"], strict=True)
    )


def test_curves_on_the_page_are_those_of_the_fit(page):
    path, fit = page
    data, _ = data_of(path)
    k = 5
    curve = data["people"]["curves"][k]
    mean = fit.ability(at=np.array(curve["t"], dtype=float), ids=[fit.ids[k]])["mean"]
    assert np.abs(np.asarray(mean) - np.array(curve["m"])).max() < 0.02


def test_embedded_data_cannot_end_the_script():
    text = embedded({"a": "</script><!-- & \u2028"})
    assert "<" not in text
    assert "&" not in text
    assert json.loads(text) == {"a": "</script><!-- & \u2028"}


def test_the_report_is_a_page_and_says_so(page, tmp_path):
    with pytest.raises(dy.InputError, match=r"\.html"):
        write_report(page[1], tmp_path / "r.txt")
    assert not list(tmp_path.iterdir())


def test_a_pdf_without_a_browser_is_refused_and_nothing_is_written(page, tmp_path, monkeypatch):
    monkeypatch.setattr(printing, "BROWSERS", ("no-such-browser",))
    monkeypatch.setattr(printing, "INSTALLED", ())
    with pytest.raises(dy.errors.MissingExtraError, match="Chromium"):
        write_report(page[1], tmp_path / "r.pdf")
    assert not list(tmp_path.iterdir())


def test_a_browser_that_prints_nothing_is_told_and_nothing_is_written(page, tmp_path, monkeypatch):
    monkeypatch.setattr(printing, "BROWSERS", ("false",))
    with pytest.raises(dy.errors.StorageError, match="printed no PDF"):
        write_report(page[1], tmp_path / "r.pdf")
    assert not list(tmp_path.iterdir())


def test_the_title_of_a_page_is_read_back(page, tmp_path):
    assert title_of(page[0]) == f"Class {EVIL}"
    assert title_of(tmp_path / "absent.html") is None


def test_words_of_the_page_are_for_people(page):
    data = data_of(page[0])[0]
    for words in ("steps to rest", "answers in the middle", "emission", "orient None", "None"):
        assert words not in json.dumps(
            [data[key] for key in ("words", "method", "findings", "lead", "headline", "terms")]
        )
    assert len(data["findings"]) == 3
    explained = {
        part[1]
        for finding in data["findings"]
        for part in finding["parts"]
        if not isinstance(part, str)
    }
    assert explained
    assert explained <= set(data["terms"])
    assert {key for _, key in data["headings"].values()} <= set(data["terms"])


def test_citations_are_those_of_the_repository():
    cff = Path(__file__).parents[3] / "CITATION.cff"
    said = " ".join(how_to_cite()["words"]) + how_to_cite()["bibtex"]
    for line in cff.read_text(encoding="utf-8").splitlines():
        key, _, value = line.strip().removeprefix("- ").partition(": ")
        if key in ("title", "given-names", "family-names", "year", "version", "name"):
            assert value.strip('"').lower() in " ".join(said.lower().split())


@pytest.mark.parametrize("model", ["GRM", "poisson", "gaussian"])
def test_every_kind_of_items_has_a_page(tmp_path, model):
    fit = dy.DynAEsti(model, iterations=30).fit(classroom(25, 5, 20, model=model))
    data, _ = data_of(write_report(fit, tmp_path / "r.html"))
    assert len(data["items"]["curves"]) == 5
    assert np.isfinite(data["items"]["information"]).all()
