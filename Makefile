# Everything a person needs, from a fresh clone with only Python and a package registry.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
WORKERS ?= 2

.DEFAULT_GOAL := help
.PHONY: help install demo test run check format bench e2e soak up lock clean

help: ## Show this help
	@grep -hE '^[a-z0-9]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

install: $(INSTALLED) ## Make .venv with everything pinned, and .venv/bin/kroshka in it

# uv where it is there (faster), plain pip otherwise; the lock file's hashes are checked either way.
$(INSTALLED): requirements.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import sys; sys.exit("Kroshka needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	@if command -v uv >/dev/null 2>&1; then \
	  echo "installing with uv"; \
	  VIRTUAL_ENV=$(CURDIR)/$(VENV) uv pip install --quiet --require-hashes -r requirements.lock && \
	  VIRTUAL_ENV=$(CURDIR)/$(VENV) uv pip install --quiet --no-deps --no-build-isolation -e . ; \
	else \
	  echo "installing with pip (a minute or two)"; \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . ; \
	fi
	@touch $@

demo: $(INSTALLED) ## Index the sample documents with the embedded engine and model, and search them
	@$(BIN)/kroshka demo --data .demo

test: $(INSTALLED) ## Run the tests
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup

run: $(INSTALLED) ## Start the service on http://127.0.0.1:8000
	@$(BIN)/kroshka serve

check: $(INSTALLED) ## Format, lint, types, import rules, migrations
	@$(BIN)/ruff format --check app tests
	@$(BIN)/ruff check app tests
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m app.store.check_migrations

format: $(INSTALLED) ## Format the code
	@$(BIN)/ruff format app tests
	@$(BIN)/ruff check --fix --quiet app tests

bench: $(INSTALLED) ## Measure the parts (ratios in one run; never part of the tests)
	@for script in tests/bench/bench_*.py; do echo "== $$script"; $(BIN)/python -m $$(echo $${script%.py} | tr / .) || exit 1; done

e2e: $(INSTALLED) ## Drive the real service from outside: processes, sockets, kill -9
	@$(BIN)/python -m pytest tests/e2e -n 0

soak: $(INSTALLED) ## Kill the server again and again while it ingests; nothing may be lost
	@$(BIN)/python -m pytest tests/e2e -n 0 -k kill --soak-rounds 10

up: ## Start the containers (needs a Docker engine)
	docker compose -f infra/docker-compose.yml up -d

lock: ## Renew requirements.lock (hashes, no index address)
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade --quiet --output-file requirements.lock

clean: ## Remove the environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
