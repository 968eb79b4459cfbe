"""The report: what it holds, that names are text, and that a real browser shows it."""

import json
import re

import numpy as np
import pytest

import dynaesti as dy
from dynaesti.report.data import _sample
from dynaesti.report.page import embedded, write_report
from support.browser import CHROMIUM, Browser
from support.simulated import EVIL, ODD, classroom


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
        "cohort",
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


def test_many_people_are_sampled_evenly():
    counts = np.arange(50_000) % 97
    chosen = _sample(counts, 3000)
    assert chosen.size <= 3000
    assert abs(counts[chosen].mean() - counts.mean()) < 0.5
    assert np.array_equal(chosen, _sample(counts, 3000))


@pytest.mark.parametrize("model", ["GRM", "poisson", "gaussian"])
def test_every_kind_of_items_has_a_page(tmp_path, model):
    fit = dy.DynAEsti(model, iterations=30).fit(classroom(25, 5, 20, model=model))
    data, _ = data_of(write_report(fit, tmp_path / "r.html"))
    assert len(data["items"]["curves"]) == 5
    assert np.isfinite(data["items"]["information"]).all()


@pytest.fixture(scope="module")
def browser(page):
    browser = Browser()
    try:
        browser.open(page[0])
        yield browser
    finally:
        browser.close()


@pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on this machine; `make browser` installs it where it may"
)
class TestInTheBrowser:
    def test_charts_are_drawn_in_pixels(self, browser):
        for name in (
            "people",
            "cohort",
            "item",
            "information",
            "wright",
            "priors",
            "calibration",
            "trace",
        ):
            inked = browser.run(f"""(() => {{ const c = document.querySelector('#chart-{name} canvas');
                const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
                let n = 0; for (let k = 3; k < d.length; k += 4) if (d[k] > 0) n++; return n; }})()""")
            assert inked > 500, name

    def test_a_person_is_found_and_drawn(self, browser):
        blue = """(() => { const c = document.querySelector('#chart-people canvas');
            if (!c || !c.offsetParent) return 0;
            const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
            let n = 0; for (let k = 0; k < d.length; k += 4) if (d[k + 3] > 0 && d[k + 2] > 100 && d[k + 2] > d[k] + 25) n++;
            return n; })()"""
        browser.run("document.getElementById('clear').click()")
        browser.wait("document.querySelectorAll('#chips li').length === 0")
        browser.wait(f"{blue} < 100")
        browser.run("document.getElementById('who').focus()")
        browser.type("ünï")
        browser.press("Enter")
        browser.wait("document.querySelectorAll('#chips li').length === 1")
        assert browser.run("document.querySelector('#chips button').textContent").startswith(ODD)
        browser.wait(f"{blue} > 2000")

    def test_names_are_text(self, browser):
        browser.run("document.getElementById('clear').click()")
        browser.run("document.getElementById('who').focus()")
        browser.type("<script>")
        browser.press("Enter")
        browser.wait("document.querySelectorAll('#chips li').length === 1")
        assert browser.run("document.querySelector('#chips button').textContent").startswith(EVIL)
        assert EVIL in browser.run("document.querySelector('h1').textContent")
        assert not browser.run("[...document.querySelectorAll('b')].some(b => b.closest('main'))")

    def test_items_are_sorted_and_shown(self, browser):
        browser.run(
            "[...document.querySelectorAll('#table-items thead button')].find(b => "
            "b.textContent.trim() === 'b').click()"
        )
        values = browser.run(
            "[...document.querySelectorAll('#table-items tbody tr')].map(r => "
            "+r.cells[4].textContent)"
        )
        assert values == sorted(values, reverse=True)
        browser.run("document.querySelectorAll('#table-items tbody button')[2].click()")
        assert browser.run("document.getElementById('item-title').textContent").startswith("Item ")

    def test_nothing_leaves_the_file_and_the_console_is_clean(self, browser):
        assert [
            url
            for url in browser.requests
            if not url.startswith(("file:", "data:", "blob:", "about:"))
        ] == []
        assert browser.console == []
        assert browser.errors == []

    def test_tooltips_say_who_when_and_how_wide(self, browser, page):
        browser.run("document.getElementById('clear').click()")
        for name in ("ünï", "<script>"):
            browser.run("document.getElementById('who').focus()")
            browser.type(name)
            browser.press("Enter")
        browser.wait("document.querySelectorAll('#chips li').length === 2")
        browser.run("new Promise(done => setTimeout(done, 300))")
        places = [
            (across, down)
            for across in (0.15, 0.3, 0.45, 0.6, 0.75, 0.9)
            for down in (0.3, 0.6, 0.85)
        ]
        said = [browser.hover("#chart-people canvas", *place) for place in places]
        told = [text for text in said if text]
        assert len(told) >= 12
        for text in told:
            assert not any(word in text for word in ("undefined", "null", "NaN", "[object"))
            lines = dict(line.split(" ", 1) for line in text.splitlines())
            assert lines["who"] in (ODD, EVIL)
            assert {"when", "ability", "70"} <= set(lines) or {"item", "response"} <= set(lines)
        for chart in ("cohort", "item", "information", "wright", "priors", "calibration", "trace"):
            seen = [
                browser.hover(f"#chart-{chart} canvas", across, down)
                for across in (0.3, 0.5, 0.7)
                for down in (0.3, 0.5, 0.65)
            ]
            assert not any(
                word in text for text in seen if text for word in ("undefined", "NaN", "[object")
            ), chart

    def test_every_item_is_printed(self, browser, page, tmp_path):
        browser.run("window.dispatchEvent(new Event('beforeprint'))")
        rows = browser.run("document.querySelectorAll('#table-items tbody tr').length")
        assert rows == page[1].item_labels.size
        browser.call("Emulation.setEmulatedMedia", media="print")
        clipped = browser.run(
            "[...document.querySelectorAll('.scroll')]"
            ".filter(b => b.offsetParent && b.scrollHeight > b.clientHeight + 2).length"
        )
        browser.call("Emulation.setEmulatedMedia", media="")
        assert clipped == 0
        assert browser.printed().startswith(b"%PDF")

    def test_every_chart_has_a_caption_a_label_and_a_table(self, browser):
        assert browser.run(
            "[...document.querySelectorAll('figure')].every(f => "
            "f.querySelector('figcaption').textContent.length > 20)"
        )
        assert browser.run(
            "[...document.querySelectorAll('.chart')].every(c => "
            "c.getAttribute('aria-label').length > 10)"
        )
        assert browser.run(
            "[...document.querySelectorAll('details')].every(d => d.querySelectorAll('tbody "
            "tr').length > 0)"
        )

    @pytest.mark.parametrize("dark", [False, True])
    def test_a_phone_needs_no_sideways_scrolling(self, page, dark):
        phone = Browser(390, 844, dark=dark)
        try:
            phone.open(page[0])
            assert phone.run("document.documentElement.scrollWidth") <= 390
            assert phone.errors == []
        finally:
            phone.close()
