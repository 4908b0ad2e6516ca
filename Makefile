# make run: the main job.  make test: everything the tests need, and the tests.  Both set themselves up.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup run test check format bench clean

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	@echo "Setting up .venv (once) ..."
	@$(PYTHON) -c 'import sys; sys.exit("Recollect needs Python 3.11 or newer; set PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@$(BIN)/python -m compileall -q src
	@touch $@

run: setup
	@$(BIN)/recollect tour

test: check
	@$(BIN)/python -m pytest -n auto

check: setup
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: setup
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: setup
	@$(BIN)/python benchmarks/writing.py
	@$(BIN)/python benchmarks/duplicates.py

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
