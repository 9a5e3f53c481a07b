# What a person does here; `make help` lists it. Each step stops at the first failure.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory
.PHONY: help venv demo demo-burst test check bench tables clean

PYTHON ?= python3
BIN := $(CURDIR)/.venv/bin
# Newer than pyproject.toml when all is installed; removed first, so a broken install is redone.
INSTALLED := .venv/installed

# pyright would ask for a newer version of itself on every call.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export DEBIAN_FRONTEND := noninteractive
# Hundreds of programs start here: each would compile anew what it imports.
export PYTHONDONTWRITEBYTECODE :=

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

venv: $(INSTALLED)  ## .venv with cloudwhale and every tool; nothing to do when it is there

$(INSTALLED): pyproject.toml
	@rm -f $@
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "cloudwhale needs Python 3.11 or newer; name one with PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || $(MAKE) -s python3-venv
	@[ -x $(BIN)/pip ] || { echo "Making .venv"; $(PYTHON) -m venv --clear .venv; }
	@echo "Installing cloudwhale and its tools into .venv (some minutes)"
	@$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@

.PHONY: python3-venv
python3-venv:
	@if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
	    echo "$(PYTHON) cannot make virtual environments here."; \
	    echo "On Debian and Ubuntu: sudo apt-get install python3-venv"; exit 1; fi
	@echo "Installing Debian's python3-venv, which $(PYTHON) lacks"
	@said=$$( (apt-get update && apt-get install -y python3-venv) 2>&1 </dev/null ) || \
	    { echo "$$said"; exit 1; }

demo: venv  ## the set-up, then examples/train.yaml under a budget of 50 dollars (state: .demo)
	@PATH="$(BIN):$$PATH" CLOUDWHALE_HOME=$(CURDIR)/.demo/home \
	    cloudwhale run examples/train.yaml --budget 50 -y

demo-burst: venv  ## examples/burst.yaml: three of four jobs on machines rented in a cloud in a box
	@export PATH="$(BIN):$$PATH" CLOUDWHALE_HOME=$(CURDIR)/.demo/home; \
	    cloudwhale run examples/burst.yaml --budget 50 --sandbox -y && \
	    cloudwhale leaks --sandbox && cloudwhale sandbox stop

test: check  ## every check and every test
	@echo "== tests"
	@# A third worker works while the others wait for what they have started.
	@PATH="$(BIN):$$PATH" pytest -q -n 3 --dist=worksteal

check: venv  ## the guards alone: format, lint, types, imports
	@echo "== format"
	@$(BIN)/ruff format --check --quiet . || { echo "Mend it: .venv/bin/ruff format ."; exit 1; }
	@echo "== lint"
	@$(BIN)/ruff check --quiet .
	@$(MAKE) --jobs=2 --output-sync=target pyright mypy imports

.PHONY: pyright mypy imports
pyright:
	@echo "== types, pyright"
	@$(BIN)/pyright

mypy:
	@echo "== types, mypy"
	@$(BIN)/mypy

imports:
	@echo "== imports"
	@$(BIN)/lint-imports --no-logo

bench: venv  ## the figures that cloudwhale must reach, measured on this machine
	@missed=; for name in run match holds seeds offers sandbox endpoint machines bundle inputs boots notices costs nights_value; do \
	    PATH="$(BIN):$$PATH" python tests/benchmarks/$$name.py || missed=1; done; [ -z "$$missed" ]

tables: venv  ## the tables of docs/measured.md (hours; traces in CLOUDWHALE_TRACES)
	@for name in openb burst philly rentals spot spot_zones ablation; do \
	    PATH="$(BIN):$$PATH" python tests/benchmarks/$$name.py || exit 1; done

clean:  ## remove .venv, .demo and what the tools left behind
	@rm -rf .venv .demo results build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache \
	    .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
