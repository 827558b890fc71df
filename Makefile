# make demo, make test: what each needs goes into .venv, on first use.

PYTHON      ?= python3
VENV        := .venv
BIN         := $(VENV)/bin
DEMO_EXTRAS := pictures,plots
EXTRAS      ?= dev
STAMP       := $(VENV)/.ready$(subst /,-,-$(PYTHON))
DEMO_READY  := $(STAMP)-$(DEMO_EXTRAS)
READY       := $(STAMP)-$(EXTRAS)
PIP         := $(BIN)/python -m pip --disable-pip-version-check
ARGS        ?=

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format docs dist clean
.NOTPARALLEL:

help: ## show this list
	@echo "roadict: make <target> [PYTHON=python3.12] [ARGS=...]"
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## make .venv and install roadict with its tools (other targets do this themselves)

demo: $(DEMO_READY) ## learn a planted dictionary and draw the result
	@$(BIN)/roadict demo $(ARGS)

test: $(READY) ## run the tests (ARGS="-k prox -x" is passed to pytest)
	@$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder $(ARGS)

lint: $(READY) ## ruff (lint, format), mypy, import-linter
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(READY) ## let ruff mend and format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(READY) ## build the site in docs/_build/html, run its gallery and check its links
	@echo "Building the site (the gallery is run when it has changed: a minute) ..."
	@$(BIN)/python -m sphinx -q -E -W --keep-going -b html -d docs/_build/doctrees docs docs/_build/html
	@$(BIN)/python docs/check_site.py docs/_build/html

dist: $(READY) ## build sdist and wheel in dist/, check them, and try the wheel in fresh environments
	@$(BIN)/python .ci/dist.py $(ARGS)

clean: ## remove .venv, caches, builds and the demo's files
	@rm -rf $(VENV) build dist docs/_build docs/_figures docs/gallery roadict-demo .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is written last, and all are removed first, so without one of this Python the .venv is missing, half made or
# another Python's: start afresh. With one, more is wanted, or pyproject.toml has changed: install into the .venv there.
# -qq silences pip's chatter and warnings; its errors show.
define install
	@command -v "$(PYTHON)" >/dev/null || { echo "roadict needs Python 3.11 or newer; there is no '$(PYTHON)'. Try: make PYTHON=/path/to/python3 $(MAKECMDGOALS)" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "roadict needs Python 3.11 or newer; '$(PYTHON)' is $$("$(PYTHON)" --version 2>&1). Try: make PYTHON=/path/to/newer/python3 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Setting up $(VENV) ($(2), once) ..."
	@if ! ls $(STAMP)-* >/dev/null 2>&1 || ! $(BIN)/python -c '' 2>/dev/null; then "$(PYTHON)" -m venv --clear $(VENV); fi
	@rm -f $(VENV)/.ready-*
	@$(PIP) install -qq -e '.[$(1)]'
endef

$(DEMO_READY): pyproject.toml
	$(call install,$(DEMO_EXTRAS),half a minute)
	@touch $(DEMO_READY)

$(READY): pyproject.toml
	$(call install,$(EXTRAS),a minute or two)
	@touch $(READY) $(if $(filter dev,$(EXTRAS)),$(DEMO_READY))
