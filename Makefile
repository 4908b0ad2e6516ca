# make run: the main job.  make test: everything the tests need, and the tests.  make test-long: the long proofs, and property tests
# with new seeds.  All set themselves up.

PYTHON ?= python3
BIN := .venv/bin
APT := -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3

.PHONY: setup run test test-long check soak browser screenshots format bench clean

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

test: check browser
	@$(BIN)/python -m pytest -n auto -m "not slow"

# Each round of property tests chooses other examples; a failure prints how to repeat it.
ROUNDS ?= 10
test-long: setup
	@$(BIN)/python -m pytest -n auto -m slow --timeout 1800
	@for round in $$(seq $(ROUNDS)); do \
	  HYPOTHESIS_PROFILE=search $(BIN)/python -m pytest -n auto -m hypothesis --timeout 1800 || exit 1; done

check: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

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
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
