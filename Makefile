# Two commands do all the set-up: `make demo` runs the main job, `make test` the tests.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
DEMO := demo-output
# The CPU build that the tests run with. Users bring their own torch, 2.8 or newer.
TORCH := torch==2.13.0

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test lint bench clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet '$(TORCH)'
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

demo: $(STAMP)
	PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/demo.sh $(DEMO)

test: $(STAMP)
	$(BIN)/python -m pytest

lint: $(STAMP)
	$(BIN)/ruff check src tests bench examples
	$(BIN)/ruff format --check src tests bench examples
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)
	$(BIN)/python bench/reading.py
	$(BIN)/python bench/coverage.py
	$(BIN)/python bench/pricing.py

clean:
	rm -rf $(VENV) $(DEMO)
