# The ways in. Each target first brings what it needs and is not there yet.

PYTHON := .venv/bin/python
PYTEST := $(PYTHON) -m pytest
PIP_COMPILE := $(PYTHON) -m piptools compile --quiet --generate-hashes --strip-extras --allow-unsafe \
	--no-header --no-emit-index-url --no-emit-trusted-host --no-emit-find-links

.DEFAULT_GOAL := help
.PHONY: help run test check format bench simulate chaos lock clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1	/p' Makefile | expand -t 12

run: ## run everything on this machine: stores, a local model, the page (PORT, HOST, DATA_DIR, LITE=1, see .env.example)
	@scripts/set-up run
	@# On a leash: were make killed, the stack would stop too.
	@exec "$$PWD/$(PYTHON)" -I -S chatsite/supervisor/leash.py 15 "$$PPID" - 0 "$$PWD/$(PYTHON)" manage.py run_all

test: ## run all tests but the slow ones; ARGS are pytest's
	@scripts/set-up test
	@if command -v chromium || command -v chromium-browser; then browser=; else browser='not browser'; fi >/dev/null; \
	$(PYTEST) --ignore=tests/chaos --ignore=tests/benchmarks -m "$$browser" $(ARGS)

check: ## check format, types, layers, migrations, templates, scripts, locks
	@scripts/set-up test
	@scripts/check

format: ## format the code
	@scripts/set-up test
	@.venv/bin/ruff format .
	@.venv/bin/ruff check --fix .
	@npm run --silent format

bench: ## measure the added delays; ARGS="cancels", overload, known_answers or warmth measure other promises
	@scripts/set-up test
	$(PYTHON) -m tests.benchmarks $(ARGS)

simulate: ## compare ways to choose a replica, in virtual time (an hour at full size)
	@scripts/set-up test
	$(PYTHON) -m inference.simulation $(ARGS)

chaos: ## kill processes and stores under load, again and again
	@scripts/set-up test
	$(PYTEST) tests/chaos $(ARGS)

lock: ## lock the newest packages that requirements*.in allow, with hashes
	@scripts/set-up test
	$(PIP_COMPILE) --upgrade -o requirements.txt requirements.in
	$(PIP_COMPILE) --upgrade -o requirements-dev.txt requirements-dev.in
	@for name in requirements requirements-dev; do \
		{ echo "# Locked from $$name.in by \`make lock\`."; cat "$$name.txt"; } >"$$name.lock" && mv "$$name.lock" "$$name.txt"; \
	done

clean: ## remove what was installed and built; the data in var/ stays
	rm -rf .venv node_modules .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
