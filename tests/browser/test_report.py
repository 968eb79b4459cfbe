"""The report in a real browser."""

import pytest

from support.browser import CHROMIUM, Browser
from support.simulated import EVIL, ODD


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
            inked = browser.run(f"""(() => {{
                const c = document.querySelector('#chart-{name} canvas');
                const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
                let n = 0; for (let k = 3; k < d.length; k += 4) if (d[k] > 0) n++;
                return n; }})()""")
            assert inked > 500, name

    def test_a_person_is_found_and_drawn(self, browser):
        blue = """(() => { const c = document.querySelector('#chart-people canvas');
            if (!c || !c.offsetParent) return 0;
            const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
            let n = 0; for (let k = 0; k < d.length; k += 4)
                if (d[k + 3] > 0 && d[k + 2] > 100 && d[k + 2] > d[k] + 25) n++;
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
            "[...document.querySelectorAll('#table-items tbody tr')].map(r => +r.cells["
            "[...document.querySelectorAll('#table-items thead th')].findIndex(h => "
            "h.textContent.trim().startsWith('b'))].textContent)"
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

    def test_the_cohort_says_when_and_how_wide(self, browser):
        seen = [
            browser.hover("#chart-cohort canvas", across, 0.5) for across in (0.2, 0.4, 0.6, 0.8)
        ]
        told = [text for text in seen if text]
        assert len(told) >= 3
        for text in told:
            lines = dict(line.split(" ", 1) for line in text.splitlines())
            assert {"when", "mean", "70"} <= set(lines)

    def test_who_rose_is_sorted_found_and_drawn(self, browser):
        rows = "[...document.querySelectorAll('#table-changes tbody tr')]"
        changes = browser.run(f"{rows}.map(r => r.children[1].textContent)")
        numbers = [float(text.replace("−", "-")) for text in changes]
        assert len(numbers) > 5
        assert numbers == sorted(numbers, reverse=True)
        browser.run("[...document.querySelectorAll('#table-changes thead button')].at(-1).click()")
        own = browser.run(f"{rows}.map(r => r.lastChild.textContent)")
        numbers = [float(text.replace("−", "-")) for text in own]
        assert numbers == sorted(numbers, reverse=True)
        browser.run("document.getElementById('clear').click()")
        name = browser.run("document.querySelector('#table-changes tbody th').textContent")
        browser.run("document.querySelector('#table-changes tbody th button').click()")
        assert browser.run("document.querySelector('#chips').textContent").startswith(name)

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
