"""Tooltips of curves say what the fit says, where the pointer is."""

from datetime import datetime

import numpy as np
import pytest

import dynaesti as dy
from dynaesti.report import write_report
from support.browser import CHROMIUM, Browser
from support.simulated import classroom

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")

ACROSS, DOWN = np.linspace(0.06, 0.97, 20), (0.12, 0.3, 0.5, 0.7, 0.85)
# what a hovered place says, and where its dot is; ticks of the axis of abilities
STATE = """(() => { const svg = document.querySelector('#chart-NAME svg');
    const dot = svg.querySelector('.hover'), box = dot.getBoundingClientRect();
    const ticks = [...svg.querySelectorAll('.tick')].filter(
        t => t.getAttribute('text-anchor') === 'end').map(t => {
            const b = t.getBoundingClientRect(), s = svg.getBoundingClientRect();
            return [+t.textContent.replace('−', '-'), +t.getAttribute('y') - 4 + s.y]; });
    return { shown: dot.style.display !== 'none', x: box.x + box.width / 2,
        y: box.y + box.height / 2, ticks, left: svg.getBoundingClientRect().x,
        width: svg.getBoundingClientRect().width }; })()"""


@pytest.fixture(scope="module", params=["dates", "numbers", "years"])
def drawn(request, tmp_path_factory):
    """A page of two groups, its fit, and how the page's words for times are read."""
    table = classroom(24, 8, 25)
    table["class"] = np.where(table["id"].astype("category").cat.codes % 2, "b", "a")
    share = (table["date"] - table["date"].min()) / np.ptp(table["date"])
    if request.param == "dates":
        table["date"] = np.datetime64("2015-09-01T08:00:00") + (share * 86400 * 120).astype(
            "timedelta64[s]"
        )
    else:
        table["date"] = 2011.0 + 9 * share if request.param == "years" else 100 * share
    fit = dy.DynAEsti("2PL", groups="class").fit(table)
    browser = Browser(1100, 900)
    browser.open(write_report(fit, tmp_path_factory.mktemp("page") / "page.html"))
    yield browser, fit, request.param
    browser.close()


def time_of(text, kind):
    """What a tooltip says of when, as the fit takes it; and its precision."""
    if kind != "dates":
        return float(text), 0.05
    form = "%d %b %Y, %H:%M" if ":" in text else "%d %b %Y"
    return np.datetime64(datetime.strptime(text, form)), 0.05


def places(browser, name):
    """Every place of a chart that says something of a curve: (pointer, words, state)."""
    selector = f"#chart-{name} svg"
    browser.hover(selector, 0.5, 0.5)
    for across in ACROSS:
        for down in DOWN:
            text = browser.hover(selector, across, down)
            if not text or "answer" in text:
                continue
            state = browser.run(STATE.replace("NAME", name))
            yield across, dict(line.rsplit("\t", 1) for line in tabbed(text)), state


def tabbed(text):
    """Lines of a tooltip with a tab between the name and the value."""
    for line in text.splitlines():
        for name in ("who", "when", "ability", "mean of", "70 % band"):
            if line.startswith(name + " "):
                yield f"{name}\t{line[len(name) + 1 :]}"


def number(text):
    return float(text.replace("−", "-"))


def check(state, across, ability):
    """The dot is on the drawn curve, under the pointer."""
    assert state["shown"]
    assert abs(state["left"] + across * state["width"] - state["x"]) < 16
    (a, at_a), (b, at_b) = state["ticks"][0], state["ticks"][-1]
    seen = a + (b - a) * (state["y"] - at_a) / (at_b - at_a)
    assert abs(seen - ability) < 0.03


def test_a_person_s_curve_is_that_of_the_fit(drawn):
    browser, fit, kind = drawn
    told = 0
    ids = {str(label): label for label in fit.ids}
    for across, words, state in places(browser, "people"):
        at, within = time_of(words["when"], kind)
        row = fit.ability([at], [ids[words["who"]]], level=0.7)
        assert abs(number(words["ability"]) - row["mean"][0]) < within
        low, high = map(number, words["70 % band"].split(" to "))
        assert abs(low - row["lower"][0]) < within
        assert abs(high - row["upper"][0]) < within
        check(state, across, number(words["ability"]))
        told += 1
    assert told >= 50


def test_a_group_s_mean_is_that_of_the_fit(drawn):
    browser, fit, kind = drawn
    told = 0
    for across, words, state in places(browser, "cohort"):
        at, within = time_of(words["when"], kind)
        frame = fit.cohort([at], level=0.7)
        row = frame[frame["group"] == words["mean of"]].iloc[0]
        assert abs(number(words["ability"]) - row["mean"]) < within
        low, high = map(number, words["70 % band"].split(" to "))
        assert abs(low - row["lower"]) < within
        assert abs(high - row["upper"]) < within
        check(state, across, number(words["ability"]))
        told += 1
    assert told >= 90


def test_years_have_no_thousands_and_no_needless_digits(drawn):
    browser, _, kind = drawn
    texts = browser.run(
        "[...document.querySelectorAll('#chart-cohort .tick')].map(t => t.textContent)"
    )
    assert not any("," in text for text in texts)
    if kind == "years":
        assert {"2012", "2014", "2016"} <= set(texts)


def test_nothing_is_drawn_before_a_person_s_first_answer(drawn):
    browser, fit, _ = drawn
    curves = browser.run(
        "JSON.parse(document.getElementById('data').textContent).people.curves.map(c => c.t[0])"
    )
    first = fit.sites.layout.spans[0]
    shown = fit.from_clock(first)
    if shown.dtype.kind == "M":
        shown = shown.astype("datetime64[ms]").astype(np.int64)
    np.testing.assert_allclose(
        curves, shown.astype(float), atol=1e-4 * np.ptp(fit.responses.clock_times), rtol=1e-6
    )
