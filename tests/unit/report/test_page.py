"""The report as a file: what it holds, and that names are text."""

import json
import re

import numpy as np
import pytest

import dynaesti as dy
from dynaesti.report.page import embedded, write_report
from support.simulated import classroom


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
        "charts",
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
    fit = dy.DynAEsti(bandwidth=np.inf, standard_errors=False).fit(classroom(10, 4, 10))
    with pytest.raises(dy.InputError, match=r"\.html"):
        write_report(fit, tmp_path / "r.pdf")
    assert not (tmp_path / "r.pdf").exists()


@pytest.mark.parametrize("model", ["GRM", "poisson", "gaussian"])
def test_every_kind_of_items_has_a_page(tmp_path, model):
    fit = dy.DynAEsti(model, iterations=30).fit(classroom(25, 5, 20, model=model))
    data, _ = data_of(write_report(fit, tmp_path / "r.html"))
    assert len(data["items"]["curves"]) == 5
    assert np.isfinite(data["items"]["information"]).all()
