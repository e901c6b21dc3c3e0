# make demo   tune a real model within five minutes and print what it gained
# make test   every test
# make check  style and types
#
# Both make a virtual environment in .venv first. PYTHON=python3.12 make test picks another interpreter (3.11 or newer).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PROCESSES ?= 2

.PHONY: demo test check clean

demo: $(VENV)/.demo
	$(BIN)/python -m benchmarks.demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(PROCESSES) --dist worksteal

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

# onnxruntime is only there to be compared with: without it the demo leaves its column out.
$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]' || echo "onnxruntime could not be installed; the demo goes on without it"
	touch $@
