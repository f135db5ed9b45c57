# make demo   compile a sample program with tracekit, record it, print its dependence profile
# make test   run every test
# make lint   ruff, mypy --strict, import directions
#
# Each sets up what it needs: clang and LLVM's headers through apt-get where it may, and a virtual
# environment with the Python packages in .venv. What is there already is not done again.

# The first Python that runs and is new enough (a name on PATH may be a shim of one that is not installed).
NEW_ENOUGH := -c 'import sys; sys.exit(sys.version_info < (3, 11))'
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	$$python $(NEW_ENOUGH) 2>/dev/null && echo $$python && break; done || echo python3)
VENV ?= .venv
BIN := $(VENV)/bin
DEMO := build/demo
JOBS ?= 2

.PHONY: demo test lint clean
.DELETE_ON_ERROR:

demo: $(VENV)/.installed
	mkdir -p $(DEMO)
	cat formats/SPEC.md docs/*.md > $(DEMO)/input.txt
	$(BIN)/tracekit cc -O2 -fno-inline fixtures/demo/wordpack.c -o $(DEMO)/wordpack
	$(BIN)/tracekit record -f -o $(DEMO)/trace.zst -- $(DEMO)/wordpack $(DEMO)/input.txt
	$(BIN)/tracekit analyze -m camp $(DEMO)/trace.zst

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -q -n $(JOBS) $(PYTEST_OPTIONS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

$(VENV)/.installed: pyproject.toml $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.installed-dev: pyproject.toml $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@ $(VENV)/.installed

$(VENV)/bin/python:
	PYTHON=$(PYTHON) .ci/system-packages
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf build .venv *.egg-info
