# make demo   compile a sample program with tracekit, record it, print its dependence profile
# make test   run every test; what is skipped stands at the end, with the command that brings it
# make lint   format, ruff, mypy --strict, import directions
# make lowest the kernels and the command line with the oldest packages that pyproject.toml takes, in build/lowest
# make format brings the sources into the format that lint asks for
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
C_SOURCES = $(wildcard recorder/pass/*.cpp recorder/pass/*.h recorder/runtime/*.c recorder/runtime/*.h recorder/runtime/mpi/*.[ch] \
            recorder/runtime/musl/*.[ch] recorder/include/*.h)
DOCUMENTS = $(wildcard *.md) docs formats fixtures tests

.PHONY: demo test lint lowest format clean
.DELETE_ON_ERROR:

demo: $(VENV)/.installed
	mkdir -p $(DEMO)
	cat formats/SPEC.md docs/*.md > $(DEMO)/input.txt
	$(BIN)/tracekit cc -O2 -fno-inline fixtures/demo/wordpack.c -o $(DEMO)/wordpack
	$(BIN)/tracekit record -f -o $(DEMO)/trace.zst -- $(DEMO)/wordpack $(DEMO)/input.txt
	$(BIN)/tracekit analyze -m camp $(DEMO)/trace.zst

test: $(VENV)/.asked-for-packages
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadfile --no-loadscope-reorder $(PYTEST_OPTIONS)

lint: $(VENV)/.installed-dev
	$(BIN)/ruff format --check --quiet .
	$(BIN)/clang-format --dry-run --Werror $(C_SOURCES)
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pymarkdown --strict-config scan --recurse $(DOCUMENTS)

lowest: $(VENV)/bin/python
	$(PYTHON) -m venv build/lowest
	sed -n '/^dependencies = /{s/.*\[//; s/\].*//; s/"//g; s/, */\n/g; s/>=/==/g; p}' pyproject.toml > build/lowest/oldest.txt
	build/lowest/bin/python -m pip install --quiet --constraint build/lowest/oldest.txt --editable . hypothesis pytest pytest-xdist
	build/lowest/bin/python -m pytest -q -n $(JOBS) tests/jit/test_kernel.py tests/commands/test_cli.py

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix --quiet --select I .
	$(BIN)/ruff format --quiet .
	$(BIN)/clang-format -i $(C_SOURCES)
	$(BIN)/python -m tracekit.manual_page > docs/tracekit.1

$(VENV)/.installed: pyproject.toml $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.installed-dev: pyproject.toml $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@ $(VENV)/.installed

# What some tests need of the system is asked for once: the end of each run says what is missing still.
$(VENV)/.asked-for-packages: tests/needs.py .ci/system-packages $(VENV)/.installed-dev
	packages=$$($(BIN)/python -m tests.needs) && { [ -z "$$packages" ] || .ci/system-packages $$packages; }
	touch $@

$(VENV)/bin/python:
	PYTHON=$(PYTHON) .ci/system-packages
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf build .venv *.egg-info
