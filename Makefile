# make run: the main job.  make demo: watch HN Pal, the example bot.  make test: the checks and the everyday tests.  make test-all: every test at full volume, with new seeds.
# All set themselves up.

PYTHON ?= python3
BIN := .venv/bin
# Python may be told to keep no compiled code: then every process that a test starts would compile everything again.
export PYTHONDONTWRITEBYTECODE :=
# Each worker has its own half of the tests, so that what the tests of a file share is made once; who is done takes over.
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal
APT := -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3

.PHONY: setup run demo test everyday test-all check lint types all-types soak browser screenshots docs format bench clean

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	@echo "Setting up .venv (once) ..."
	@$(PYTHON) -c 'import sys; sys.exit("Recollect needs Python 3.11 or newer; set PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@$(BIN)/python -m compileall -q src
	@touch $@

run: setup
	@$(BIN)/recollect serve --example

# A week of HN Pal (examples/README.md), offline, in less than two minutes.
demo: setup
	@rm -rf data/hn-pal-demo
	@$(BIN)/python examples/hn_pal --folder data/hn-pal-demo

# The browser is installed while packages are, and types are checked while the tests wait for processes and databases.
test:
	@$(MAKE) --no-print-directory -j 2 setup browser
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory -j 2 types everyday

everyday: setup
	@$(PYTEST) -m "not slow"

# Each round of property tests chooses other examples; a failure prints how to repeat it.
ROUNDS ?= 10
test-all: lint all-types browser
	@HYPOTHESIS_PROFILE=search $(PYTEST) --timeout 1800
	@for round in $$(seq $(ROUNDS)); do \
	  HYPOTHESIS_PROFILE=search $(PYTEST) -m hypothesis --timeout 1800 || exit 1; done

check: lint types

lint: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python tools/names.py

types: setup
	@$(BIN)/mypy

# The same with the types of all packages: pyproject.toml says which ones the everyday check leaves out.
all-types: setup
	@grep -v '^follow_imports' pyproject.toml > .venv/mypy.toml
	@$(BIN)/mypy --config-file .venv/mypy.toml --cache-dir .mypy_cache/all

# The tests of the web console need a browser. Where one cannot be installed they fail and say so; all others run.
browser:
	@command -v chromium >/dev/null || { \
	  echo "Installing chromium (once) ..."; \
	  as=; test "$$(id -u)" = 0 || as="sudo -n"; \
	  $$as true 2>/dev/null && $$as apt-get -qq $(APT) update && \
	    $$as env DEBIAN_FRONTEND=noninteractive apt-get -qq $(APT) install -y --no-install-recommends \
	      chromium fonts-liberation >/dev/null; \
	  command -v chromium >/dev/null || \
	    echo "No chromium, and none could be installed: as root, run apt-get install chromium fonts-liberation" >&2; }

screenshots: setup browser
	@$(BIN)/python tools/screenshots.py docs/images

# The documentation as a site in site/, with search and the API reference. It needs no network.
docs: setup
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Built site/. To read it with search: $(BIN)/python -m http.server --directory site --bind 127.0.0.1 8000"

format: setup
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

# The long proofs, outside the everyday run: SEED=2 MINUTES=30 make soak
soak: setup
	@$(BIN)/python -m tests.soak all --seed $(or $(SEED),1) --minutes $(or $(MINUTES),5)

bench: setup
	@$(BIN)/python -m benchmarks.writing
	@$(BIN)/python -m benchmarks.duplicates

clean:
	rm -rf .venv site .mypy_cache .ruff_cache .pytest_cache .hypothesis
