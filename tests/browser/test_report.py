"""The report in a real browser."""

import shutil
import subprocess

import pytest

from dynaesti.report import write_report
from support.browser import AXE, CHROMIUM, Browser, violations
from support.simulated import EVIL, ODD

CHARTS = ("people", "cohort", "item", "information", "wright", "priors", "calibration", "trace")


@pytest.fixture(scope="module")
def browser(page):
    browser = Browser()
    try:
        browser.open(page[0])
        yield browser
    finally:
        browser.close()


@pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on this machine; `make packages` installs it where it may"
)
class TestInTheBrowser:
    def test_charts_are_drawn(self, browser):
        for name in CHARTS:
            shapes = browser.run(
                f"[...document.querySelectorAll('#chart-{name} svg path, #chart-{name} svg rect, "
                f"#chart-{name} svg circle:not(.hover)')].filter(s => {{ const b = s.getBBox(); "
                "return b.width + b.height > 3; }).length"
            )
            assert shapes >= 1, name
            assert browser.run(f"document.querySelectorAll('#chart-{name} .tick').length") >= 3

    def test_labels_of_axes_do_not_touch(self, browser):
        touching = browser.run(
            """[...document.querySelectorAll('.chart svg')].flatMap(svg => {
            const boxes = [...svg.querySelectorAll('.tick')].map(t => t.getBoundingClientRect());
            return boxes.flatMap((a, i) => boxes.slice(i + 1).filter(b => a.right > b.left + 0.5
                && b.right > a.left + 0.5 && a.bottom > b.top + 0.5 && b.bottom > a.top + 0.5));
            }).length"""
        )
        assert touching == 0

    def test_a_person_is_found_and_drawn(self, browser):
        browser.run("document.getElementById('clear').click()")
        assert browser.run("document.querySelectorAll('#chart-people svg').length") == 0
        browser.run("document.getElementById('who').focus()")
        browser.type("uni")  # without the accents
        assert browser.run("document.querySelectorAll('#matches button').length") >= 1
        browser.press("Enter")
        browser.wait("document.querySelectorAll('#chips li').length === 1")
        assert ODD in browser.run("document.querySelector('#chips button').textContent")
        assert browser.run("document.querySelectorAll('#chart-people svg path').length") >= 2

    def test_many_people_are_drawn_or_it_is_told(self, browser):
        browser.run("document.getElementById('clear').click()")
        browser.run(
            "document.querySelectorAll('#table-changes tbody th button')"
            ".forEach((b, k) => { if (k < 30) b.click(); })"
        )
        drawn = browser.run("document.querySelectorAll('#chips li').length")
        people = browser.run("document.querySelectorAll('#table-changes tbody tr').length")
        assert drawn == min(24, people) > 8
        told = browser.run("document.getElementById('found').textContent")
        assert ("24 people at most" in told) == (people > 24)
        looks = browser.run(
            "[...document.querySelectorAll('#chips .swatch')].map(s => s.getAttribute('style'))"
        )
        assert len(set(looks)) == drawn  # no two look alike

    def test_names_are_text(self, browser):
        browser.run("document.getElementById('clear').click()")
        browser.run("document.getElementById('who').value = ''")
        browser.run("document.getElementById('who').focus()")
        browser.type("<script>")
        browser.press("Enter")
        browser.wait("document.querySelectorAll('#chips li').length === 1")
        assert EVIL in browser.run("document.querySelector('#chips button').textContent")
        assert EVIL in browser.run("document.querySelector('h1').textContent")
        assert not browser.run("[...document.querySelectorAll('b')].some(b => b.closest('main'))")

    def test_items_are_sorted_and_shown(self, browser):
        browser.run(
            "[...document.querySelectorAll('#table-items thead button')].find(b => "
            "b.textContent.trim() === 'difficulty b').click()"
        )
        values = browser.run(
            "[...document.querySelectorAll('#table-items tbody tr')].map(r => +r.cells["
            "[...document.querySelectorAll('#table-items thead th')].findIndex(h => "
            "h.textContent.trim().startsWith('difficulty b'))].textContent.replace('−', '-'))"
        )
        assert len(set(values)) > 1
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

    def test_tooltips_hold_no_accidents(self, browser):
        for chart in CHARTS:
            seen = [
                browser.hover(f"#chart-{chart} svg", across, down)
                for across in (0.3, 0.5, 0.7)
                for down in (0.3, 0.5, 0.65)
            ]
            assert any(seen), chart
            assert not any(
                word in text
                for text in seen
                if text
                for word in ("undefined", "NaN", "null", "[object")
            ), chart

    def test_numbers_and_words_say_what_they_mean(self, browser):
        keys = browser.run(
            "[...document.querySelectorAll('#findings .term, thead .term')]"
            ".map(a => a.getAttribute('href').slice(1))"
        )
        assert len(keys) >= 8
        assert browser.run(f"{keys!r}.every(key => document.getElementById(key))")
        said = browser.hover("#findings .term", 0.5, 0.5)
        assert said
        assert len(said) > 30

    def test_who_rose_is_sorted_found_and_drawn(self, browser):
        rows = "[...document.querySelectorAll('#table-changes tbody tr')]"
        changes = browser.run(f"{rows}.map(r => r.children[1].firstChild.textContent)")
        numbers = [float(text.replace("−", "-")) for text in changes]
        assert len(numbers) > 5
        assert numbers == sorted(numbers, reverse=True)
        browser.run(
            "[...document.querySelectorAll('#table-changes thead button')]"
            ".find(b => b.textContent === 'beyond them').click()"
        )
        own = browser.run(f"{rows}.map(r => r.children[r.children.length - 2].textContent)")
        numbers = [float(text.replace("−", "-")) for text in own]
        assert numbers == sorted(numbers, reverse=True)
        browser.run("document.getElementById('clear').click()")
        name = browser.run("document.querySelector('#table-changes tbody th').textContent")
        browser.run("document.querySelector('#table-changes tbody th button').click()")
        assert name in browser.run("document.querySelector('#chips').textContent")
        browser.run("document.querySelectorAll('#verdicts button')[1].click()")
        kept = browser.run(f"{rows}.map(r => r.querySelector('.verdict').textContent)")
        assert set(kept) <= {"rose"}
        browser.run("document.querySelectorAll('#verdicts button')[0].click()")

    def test_every_row_is_printed(self, browser, page, tmp_path):
        browser.run("document.getElementById('item-filter').value = 'nothing is called so'")
        browser.run("window.dispatchEvent(new Event('beforeprint'))")
        rows = browser.run("document.querySelectorAll('#table-items tbody tr').length")
        assert rows == page[1].item_labels.size
        people = browser.run("document.querySelectorAll('#table-changes tbody tr').length")
        assert people == len(page[1].ids)
        browser.call("Emulation.setEmulatedMedia", media="print")
        clipped = browser.run(
            "[...document.querySelectorAll('.scroll')]"
            ".filter(b => b.offsetParent && b.scrollHeight > b.clientHeight + 2).length"
        )
        shown = (
            "[...document.querySelectorAll('#chips li')].filter(c => c.offsetParent)"
            ".map(c => c.innerText)"
        )
        legend = browser.run(shown)
        browser.call("Emulation.setEmulatedMedia", media="")
        assert clipped == 0
        assert len(legend) == browser.run("document.querySelectorAll('#chips li').length") > 0
        assert not any("×" in text for text in legend)  # nothing to click on paper
        assert browser.printed().startswith(b"%PDF")
        browser.run("document.getElementById('item-filter').value = ''")
        browser.run("window.dispatchEvent(new Event('afterprint'))")

    @pytest.mark.skipif(shutil.which("pdftotext") is None, reason="pdftotext is not installed")
    def test_the_pdf_has_every_person_and_item(self, page, tmp_path):
        target = write_report(page[1], tmp_path / "report.pdf")
        assert target.read_bytes().startswith(b"%PDF")
        assert [path.name for path in tmp_path.iterdir()] == ["report.pdf"]
        words = ["pdftotext", "-layout", str(target), "-"]
        text = subprocess.run(words, capture_output=True, check=True, text=True).stdout
        assert all(str(item) in text for item in page[1].item_labels)
        assert all(str(person) in text for person in page[1].ids if str(person).isalnum())
        assert "What the numbers mean" in text

    @pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed; see `make packages`")
    @pytest.mark.parametrize("dark", [False, True])
    def test_everyone_can_use_it(self, page, dark):
        browser = Browser(dark=dark)
        try:
            browser.open(page[0])
            browser.run("document.querySelectorAll('details').forEach(d => { d.open = true; })")
            assert violations(browser) == []
        finally:
            browser.close()

    def test_every_chart_has_a_caption_a_label_and_a_table(self, browser):
        assert browser.run(
            "[...document.querySelectorAll('figure')].every(f => "
            "f.querySelector('figcaption').textContent.length > 20)"
        )
        assert browser.run(
            "[...document.querySelectorAll('.chart')].every(c => "
            "c.querySelector('svg').getAttribute('aria-label').length > 10)"
        )
        assert browser.run(
            "[...document.querySelectorAll('figure ~ details')].every(d => d.querySelectorAll("
            "'tbody tr').length > 0)"
        )

    @pytest.mark.parametrize("dark", [False, True])
    def test_a_phone_needs_no_sideways_scrolling(self, page, dark):
        phone = Browser(390, 844, dark=dark)
        try:
            phone.open(page[0])
            assert phone.run("document.documentElement.scrollWidth") <= 390
            legends = phone.run(
                "[...document.querySelectorAll('.legend li, .tick')].every(l => { const b = "
                "l.getBoundingClientRect(); return b.left >= 0 && b.right <= 390; })"
            )
            assert legends
            assert phone.errors == []
        finally:
            phone.close()
