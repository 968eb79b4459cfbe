# `make demo` and `make test` need only Python 3.11+ and make: the rest is set up in .venv on first use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test lint types contract tests nojit bench gold wheel clean

demo: $(READY)
	$(BIN)/python examples/polling.py
	$(BIN)/python examples/learning.py

test: lint types contract tests nojit

lint: $(READY)
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

contract: $(READY)
	$(BIN)/lint-imports

tests: $(READY)
	$(BIN)/pytest -n 2

nojit: $(READY)
	NUMBA_DISABLE_JIT=1 $(BIN)/pytest -m nojit

bench: $(READY)
	$(BIN)/pip install -q -e '.[bench]'
	$(BIN)/python benchmarks/curvfife.py
	$(BIN)/python benchmarks/abilities.py

gold: $(READY)
	$(BIN)/python benchmarks/gold.py

# A wheel, installed into an environment of its own and used once.
wheel: $(READY)
	rm -rf dist $(VENV)/wheel && $(BIN)/python -m build --wheel
	$(PYTHON) -m venv $(VENV)/wheel && $(VENV)/wheel/bin/pip install -q dist/*.whl
	cd $(VENV)/wheel && bin/python -c "import dynaesti as dy; c = dy.CurvFiFE().fit([0, 1, 2, 3], dy.Bernoulli([0, 1, 1, 1])); print(dy.__version__, c.median([1.5]))"

$(READY): pyproject.toml
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'dynaesti needs Python 3.11 or newer; set PYTHON=')"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip
	$(BIN)/pip install -q -e '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) dist build demo
