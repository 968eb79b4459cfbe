"""The live page in a real browser, while answers come in."""

import time
from urllib.parse import quote

import pytest

import dynaesti as dy
from dynaesti.model.simulate import responses
from dynaesti.serve import make_key, open_database
from support.browser import AXE, CHROMIUM, Browser, violations
from support.service import answer, post, service
from support.simulated import EVIL, ODD

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on this machine; `make packages` installs it where it may"
)
WITHIN = 1.0  # seconds from a posted answer to the curve
MEAN = "document.getElementById('person-title').textContent"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A fit whose people and items have names that look like markup."""
    table = responses(people=25, items=8, per_person=12, span=50.0, seed=5).table
    names = {"p03": EVIL, "p04": ODD, "p05": "a/b?c#d%2e"}
    table["id"] = [names.get(one, one) for one in table["id"]]
    table["item"] = [EVIL if one == "i3" else one for one in table["item"]]
    return dy.DynAEsti("2PL").fit(table).save(tmp_path_factory.mktemp("live") / "run.dyn")


@pytest.fixture(scope="module")
def client(run):
    with service(run) as client:
        yield client


def opened(client, view="", **options):
    browser = Browser(**options)
    try:
        browser.open(f"{client.base_url}{view}")
    except BaseException:
        browser.close()
        raise
    return browser


@pytest.fixture(scope="module")
def browser(client):
    browser = opened(client, "/")
    yield browser
    browser.close()


def go(browser, view, until):
    browser.run(f"location.hash = {view!r}")
    browser.wait(until)


def person(browser, id):
    go(browser, f"#/person/{quote(id, safe='')}", "document.querySelector('#person-chart svg')")
    browser.wait("document.querySelectorAll('#next-table tbody tr').length")


def end_of_curve(browser):
    """The last place of the line that is drawn, on the page."""
    return browser.run(
        "[...document.querySelectorAll('#person-chart svg path')].pop().getAttribute('d')"
    )


def test_the_curve_moves_within_a_second_of_a_posted_answer(browser, client):
    person(browser, "p07")
    for k in range(5):
        before, drawn = browser.run(MEAN), end_of_curve(browser)
        begun = time.perf_counter()
        post(client, answer("p07", "i1", k % 2, 60.0 + k, f"move {k}"))
        while browser.run(MEAN) == before or end_of_curve(browser) == drawn:
            assert time.perf_counter() - begun < WITHIN
        # what moved it comes along
        browser.wait(
            "document.querySelector('#moves-table tbody tr td:last-child').textContent === "
            f"'{60 + k}.00'",
            patience=5,
        )
    told = client.get("/people/p07").json()
    assert f"{told['mean']:.2f}".replace("-", "−") in browser.run(MEAN)


def test_a_late_answer_moves_the_past(browser, client):
    person(browser, "p08")
    rows = browser.run("document.querySelectorAll('#moves-table tbody tr').length")
    drawn = end_of_curve(browser)
    post(client, answer("p08", "i1", 1, 20.0, "late"))
    browser.wait(f"document.querySelectorAll('#moves-table tbody tr').length === {rows + 1}")
    assert end_of_curve(browser) != drawn


def test_the_class_moves(browser, client):
    go(browser, "#/", "document.querySelectorAll('#tiles li').length === 24")
    browser.wait("document.querySelectorAll('#class-chart svg rect').length > 3")
    assert browser.run("document.querySelectorAll('#cohort-chart svg path').length") >= 2
    post(client, answer("newcomer", "i1", 1, 70.0, "first"))
    browser.wait("document.querySelector('#feed').textContent.includes('newcomer')", patience=5)
    browser.wait("document.querySelector('#tiles').textContent.includes('newcomer')", patience=5)
    assert browser.run("document.querySelectorAll('#tiles li').length") == 24
    browser.wait("document.querySelector('#class-title').textContent.includes('26')", patience=8)


def test_names_are_shown_as_text(browser, client):
    post(client, answer(EVIL, EVIL, 1, 75.0, "evil"), answer("<img src=x>", EVIL, 1, 75.0, "e2"))
    go(browser, "#/people", "document.querySelectorAll('#people-table tbody tr').length")
    browser.wait("document.querySelector('#people-table').textContent.includes('<img')")
    for name in (EVIL, ODD, "a/b?c#d%2e", "<img src=x>"):
        person(browser, name)
        assert browser.run(MEAN).startswith(f"{name}: ")
    go(browser, "#/items", f"document.querySelector('#items-table').textContent.includes({EVIL!r})")
    assert browser.run("document.querySelectorAll('main script, main img').length") == 0
    assert browser.errors == []
    assert all(one.startswith(str(client.base_url)) for one in browser.requests)


def test_a_learner_is_found_with_the_keyboard(browser):
    go(browser, "#/people", "document.querySelectorAll('#people-table tbody tr').length > 20")
    assert browser.run("document.activeElement.tagName") == "H2"
    browser.run("document.getElementById('search').focus()")
    browser.type("P11")
    browser.wait("document.querySelectorAll('#people-table tbody tr').length === 1")
    browser.press("Enter")
    browser.wait(f"{MEAN}.startsWith('p11: ')")
    assert browser.run("document.activeElement.id") == "person-title"
    for _ in range(3):  # past the chart: scrolling region, then the choices
        browser.press("Tab")
    assert browser.run("document.activeElement.dataset.target") == "0.8"
    tells_most = browser.run("document.getElementById('next-table').textContent")
    browser.press("Enter")
    browser.wait(f"document.getElementById('next-table').textContent !== {tells_most!r}")
    assert browser.run("document.activeElement.getAttribute('aria-pressed')") == "true"


def test_a_key_is_asked_for(run, tmp_path):
    address = f"sqlite:///{tmp_path}/keys.db"
    database = open_database(address)
    write, read = (make_key(database, role, [role]) for role in ("write", "read"))
    database.close()
    with service(run, address) as client:
        browser = Browser()
        try:
            browser.call("Page.navigate", url=f"{client.base_url}/")
            browser.wait("document.querySelector('#view-key:not([hidden])')")
            assert not browser.run("document.querySelectorAll('#tiles li').length")
            for key, words in (("dyn_wrong", "not known"), (write, "role read")):
                browser.run("document.getElementById('key').focus()")
                browser.type(key)
                browser.press("Enter")
                browser.wait(
                    f"document.getElementById('key-error').textContent.includes({words!r})"
                )
            browser.run("document.getElementById('key').focus()")
            browser.type(read)
            browser.press("Enter")
            browser.wait("document.querySelectorAll('#tiles li').length === 24")
            assert read not in browser.run("document.documentElement.outerHTML")
        finally:
            browser.close()


@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_a_phone(client, dark):
    browser = opened(client, "/", width=390, height=800, dark=dark)
    try:
        for view in ("#/", "#/people", "#/person/p07", "#/items"):
            browser.run(f"location.hash = {view!r}")
            browser.wait("!document.querySelector('main > section:not([hidden]) .lead:empty')")
            assert browser.run("document.documentElement.scrollWidth") <= 390, view
        paper = browser.run("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") != dark
    finally:
        browser.close()


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed; see `make packages`")
@pytest.mark.parametrize("dark", [False, True])
def test_everyone_can_use_it(client, dark):
    browser = opened(client, "/", dark=dark)
    try:
        for view, until in (
            ("#/", "#tiles li"),
            ("#/people", "#people-table td"),
            ("#/person/p07", "#next-table td"),
            ("#/items", "#items-table td"),
        ):
            go(browser, view, f"document.querySelector({until!r})")
            assert violations(browser) == [], view
    finally:
        browser.close()
