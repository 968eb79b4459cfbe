# `make demo` and `make test` need only Python 3.11+ and make: the rest is set up on first use, in .venv-demo what users install, in .venv
# the developers' tools too.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# what the demonstrations run in: the developers' environment where there is one
USERS := $(if $(wildcard $(READY)),$(VENV),.venv-demo)
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11) and 'dynaesti needs Python 3.11 or newer; set PYTHON=')

.PHONY: demo demo-live check quick test lint types contract tests nojit packages examples docs screenshot attack bench bench-scale bench-live bench-peers gold wheel clean

# A class over a term is simulated, fitted and reported: open demo/report.html.
demo: $(USERS)/.ready
	$(USERS)/bin/dynaesti demo --out demo

# A simulated class answers in real time: open the address it prints, and watch.
demo-live: $(USERS)/.ready
	$(USERS)/bin/dynaesti serve --demo

examples: $(USERS)/.ready
	$(USERS)/bin/python examples/polling.py
	$(USERS)/bin/python examples/learning.py

.venv-demo/.ready: pyproject.toml
	$(PYTHON) -c "$(NEW_ENOUGH)"
	$(PYTHON) -m venv .venv-demo
	.venv-demo/bin/python -m pip install -q --upgrade pip
	.venv-demo/bin/pip install -q -e '.[cli,serve]'
	touch $@

# The documentation site, in an environment of its own: docs/_build/html/index.html. Every page is executed (the cells of tutorials while the
# site is built, the blocks of the others by the tests), warnings are errors, and the search is tried where there is a Chromium.
DOCS := .venv-docs
docs: $(DOCS)/.ready
	$(DOCS)/bin/python -m pytest tests/docs/test_pages.py -k "not tutorials"
	$(DOCS)/bin/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	$(DOCS)/bin/python -m pytest tests/browser/test_site.py

$(DOCS)/.ready: pyproject.toml
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/bin/python -m pip install -q --upgrade pip
	$(DOCS)/bin/pip install -q -e '.[docs]'
	touch $@

# What to run after every change: under a minute on two cores once compiled code is cached.
check: lint types contract quick

# Everything that must hold.
test: lint types contract tests nojit

lint: $(READY)
	$(BIN)/ruff check . && $(BIN)/ruff format --check -q .

types: $(READY)
	$(BIN)/mypy

contract: $(READY)
	$(BIN)/lint-imports

# Unit tests, contracts, and the glossary; what is long, drawn by simulation or needs a browser is left out.
quick: $(READY)
	$(BIN)/pytest -n 2 tests/unit tests/contracts tests/docs/test_architecture.py tests/docs/test_glossary.py tests/docs/test_doctests.py \
	  -m "not slow and not statistical and not browser"

tests: $(READY) packages
	$(BIN)/pytest -n 2 --dist worksteal

# The report's tests need a browser, those of databases a server: Debian's Chromium and PostgreSQL, installed where that is allowed,
# else their tests are skipped. axe-core, by npm, judges whether everyone can use the page.
packages: $(READY)
	@{ command -v chromium >/dev/null && command -v pdftotext >/dev/null && { command -v postgres || ls /usr/lib/postgresql/*/bin/postgres; } >/dev/null 2>&1; } \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core poppler-utils postgresql >/dev/null; } \
	  || echo "no Chromium, pdftotext or PostgreSQL, and no right to install them: their tests will be skipped"
	@test -e $(VENV)/npm/node_modules/axe-core || npm install --silent --no-fund --no-audit --prefix $(VENV)/npm axe-core \
	  || echo "no npm: whether everyone can use the page is not tested"

screenshot: demo packages
	$(BIN)/python tests/support/browser.py demo/report.html docs/img

nojit: $(READY)
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest -m nojit

# Bad input, damaged and crafted files, kills and pairs of commands by the hundred, drawn by a seed; 15 minutes. ATTACK="--seed 3 --part files".
ATTACK ?=
attack: $(READY)
	$(BIN)/python tests/slow/attack $(ATTACK)

bench: $(READY)
	$(BIN)/pip install -q -e '.[bench]'
	$(BIN)/python -m benchmarks accuracy
	$(BIN)/python -m benchmarks recovery
	$(BIN)/python -m benchmarks cohort

# Fits of shards against size: SIZES="1e5 1e6 1e7 1e8". Writes docs/evidence/scale.json, which docs/evidence/scale.md speaks of.
SIZES ?= 1e5 1e6 1e7
bench-scale: $(READY)
	$(BIN)/python -m benchmarks sharded --sizes $(SIZES) --dask 1e7 --kills 20 --out docs/evidence/scale.json

# States, the service under load, kills, refits and the page; an hour, on loopback. LIVE="--parts kills --kills 5" for some of it, LIVE=--realtime on
# a machine that others share. Writes docs/evidence/live.json, which docs/evidence/live.md speaks of.
LIVE ?=
bench-live: $(READY) packages
	$(BIN)/python -m benchmarks live --data $(DATA) --pictures docs/img $(LIVE)

# Ours beside other packages, in an environment of its own; hours. DATA: folder of the real logs. PARTS="truth speed" for some of it.
DATA ?= ../shared/data
PARTS ?= prediction next truth speed growth
PEERS := .venv-peers
bench-peers: $(PEERS)/.ready
	$(PEERS)/bin/python -m benchmarks peers --data $(DATA) --parts $(PARTS) --out docs/evidence/benchmarks.json

$(PEERS)/.ready: benchmarks/peers/requirements.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install -q --upgrade pip
	$(PEERS)/bin/pip install -q -r benchmarks/peers/requirements.txt -e .
	touch $@

gold: $(READY)
	$(BIN)/python -m benchmarks gold

# A wheel in clean environments, bare and with each extra alone. EXTRAS="excel xarray" for some of them.
EXTRAS ?=
wheel: $(READY)
	rm -rf dist && $(BIN)/python -m build --wheel
	$(BIN)/python tests/wheel $(EXTRAS)

$(READY): pyproject.toml
	$(PYTHON) -c "$(NEW_ENOUGH)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip
	$(BIN)/pip install -q -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) .venv-demo $(PEERS) $(DOCS) dist build demo docs/_build docs/reference/generated
