# make demo      tune a real model within five minutes and print what it gained
# make test      every test
# make targets   the tests of what is compiled, for each kind of processor: run here, or by qemu, or compiled alone
# make check     style, types, and which file imports which
#
# Each makes a virtual environment in .venv first. PYTHON=python3.12 make test picks another interpreter (3.11 or newer);
# EXTRAS=dev,bench,torch installs more of what pyproject.toml lists, so that fewer tests are skipped.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXTRAS ?= dev
INSTALLED := $(VENV)/.installed-$(EXTRAS)
PROCESSES ?= 2
PYTEST := $(BIN)/python -m pytest -n $(PROCESSES) --dist worksteal

# The levels in ansorlite/target/named.py, and the tests that compile for what ANSORLITE_TARGET names.
TARGETS ?= x86-64-v2 x86-64-v3 x86-64-v4 aarch64 aarch64+dotprod aarch64+sve
COMPILING := tests/unit/codegen tests/contracts/test_right_numbers.py tests/contracts/test_dot_products.py tests/contracts/test_conversions.py tests/golden tests/fuzz/test_computations.py
# What these test is the same for every target: loop IR, and kernels for GPUs, which this processor emulates.
ALIKE := tests/golden/test_frozen.py tests/golden/test_gpu.py tests/unit/codegen/test_nvptx.py tests/unit/codegen/test_opencl.py

.PHONY: demo test targets check clean $(TARGETS:%=target-%)

demo: $(VENV)/.demo
	$(BIN)/python -m benchmarks.demo

test: $(INSTALLED)
	$(PYTEST)

targets: $(TARGETS:%=target-%)

$(TARGETS:%=target-%): target-%: $(INSTALLED)
	ANSORLITE_TARGET=$* ANSORLITE_FUZZ=0.5 $(PYTEST) $(COMPILING) $(ALIKE:%=--ignore=%)

check: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(INSTALLED): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$(EXTRAS)]'
	touch $@

# onnxruntime is only there to be compared with: without it the demo leaves its column out.
$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]' || echo "onnxruntime could not be installed; the demo goes on without it"
	touch $@
