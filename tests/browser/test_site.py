"""The documentation site in a browser, where `make docs` has built it."""

import http.server
import json
import re
import threading
from functools import partial
from pathlib import Path

import pytest

from support.browser import CHROMIUM, Browser

ROOT = Path(__file__).parents[2]
SITE = ROOT / "docs" / "_build" / "html"
AXE = ROOT / ".venv/npm/node_modules/axe-core/axe.min.js"
TUTORIALS = [path for path in (ROOT / "docs/tutorials").glob("*.md") if path.stem != "index"]

pytestmark = [
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="`make docs` has not been run"),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture(scope="module")
def site():
    """The address of the site, served on this machine alone."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=SITE))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def browser():
    browser = Browser()
    yield browser
    browser.close()


def visit(browser, address):
    browser.call("Page.navigate", url=address)
    browser.wait(f"location.href.startsWith({address!r}) && document.readyState === 'complete'")


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("plausible values", "how-to/abilities.html"),
        ("cohort groups growth", "how-to/cohort.html"),
        ("Matern32", "reference/generated/dynaesti.Matern32.html"),
        ("timezone", "reference/files.html"),
        ("wrong key", "tutorials/class.html"),
        ("discrimination guessing", "explanation/item-models.html"),
        ("warmup", "start/install.html"),
    ],
)
def test_the_search_finds(browser, site, words, page):
    visit(browser, f"{site}/search.html?q={words.replace(' ', '+')}")
    browser.wait("document.querySelectorAll('#search-results li a').length > 0")
    browser.wait("/found|finished/i.test(document.querySelector('#search-results').innerText)")
    found = browser.run("[...document.querySelectorAll('#search-results li a')].map(a => a.href)")
    assert any(re.match(rf"{site}/{page}", address) for address in found), found[:10]


def test_a_word_that_is_nowhere_is_not_found(browser, site):
    visit(browser, f"{site}/search.html?q=xylophone")
    browser.wait(
        "/did not match|no results/i.test(document.querySelector('#search-results').innerText)"
    )
    assert browser.run("document.querySelectorAll('#search-results li').length") == 0


def test_the_button_opens_a_search_by_keyboard(browser, site):
    visit(browser, f"{site}/index.html")
    browser.run(
        "[...document.querySelectorAll('.search-button__button')].find(b => b.offsetParent).click()"
    )
    browser.wait("document.activeElement.matches('input[type=search]')")
    browser.type("grafting")
    browser.press("Enter")
    browser.wait("location.pathname.endsWith('search.html')")
    browser.wait("document.querySelectorAll('#search-results li a').length > 0")


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed; see `make packages`")
@pytest.mark.parametrize("dark", [False, True])
def test_everyone_can_use_the_pages(site, dark):
    browser = Browser(dark=dark)
    try:
        for page in ("index", "tutorials/class", "explanation/item-models", "start/first-hour"):
            visit(browser, f"{site}/{page}.html")
            browser.run(AXE.read_text(encoding="utf-8") + "; 0")
            found = browser.run(
                "axe.run('main').then(r => r.violations.filter(v => ['serious', 'critical']"
                ".includes(v.impact)).map(v => [v.id, v.nodes.slice(0, 3).map(n => n.html)]))"
            )
            assert found == [], page
    finally:
        browser.close()


@pytest.mark.parametrize("page", sorted(path.stem for path in TUTORIALS))
def test_every_tutorial_ends_with_a_picture_and_has_a_notebook(page):
    text = (SITE / "tutorials" / f"{page}.html").read_text(encoding="utf-8")
    article = text.split("<article", 1)[1].split("</article>")[0]
    outputs = article.split('class="cell_output')[1:]
    assert "<img" in outputs[-1]
    assert article.count("<img") >= 1
    notebook = re.search(r'href="(\.\./_downloads/[^"]+\.ipynb)"', article)[1]
    cells = json.loads((SITE / "tutorials" / notebook).read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(code) >= 5
    assert all(cell["execution_count"] for cell in code)


@pytest.mark.parametrize("page", ["index", "how-to/cohort", "reference/api"])
def test_pages_ask_nobody_else_and_make_no_errors(browser, site, page):
    visit(browser, f"{site}/{page}.html")
    browser.wait("document.fonts.status === 'loaded'")
    assert [a for a in browser.requests if not a.startswith((site, "data:"))] == []
    assert browser.errors == []


def test_pages_fit_a_phone(site):
    browser = Browser(width=390, height=844)
    try:
        for page in ("index", "how-to/cohort", "reference/commands"):
            visit(browser, f"{site}/{page}.html")
            assert browser.run("document.documentElement.scrollWidth") <= 391, page
    finally:
        browser.close()


def test_no_page_names_another_host_in_what_it_loads():
    loaded = re.compile(r"<(?:script|img|link|iframe)[^>]+(?:src|href)=\"(?:https?:)?//[^\"]+")
    for path in SITE.rglob("*.html"):
        assert loaded.findall(path.read_text(encoding="utf-8")) == [], path
