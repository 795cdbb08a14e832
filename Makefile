# Two commands for a newcomer: `make demo` and `make test`. Each sets up what it needs in .venv.

PYTHON ?= python3
PORT ?= 8080
BIN := .venv/bin
PINS := pyproject.toml constraints.txt

# or each process of the tests compiles every library again
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test fast lint fix typecheck migration pictures licences bench torture clean

demo: .venv/run
	@$(BIN)/nod demo --port $(PORT) $(ARGS)

test: .venv/dev
	@$(BIN)/python -m pytest -n auto $(ARGS)

fast: .venv/dev
	@$(BIN)/python -m pytest -n auto -m "not slow and not browser and not platform" $(ARGS)

lint: .venv/dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

fix: .venv/dev
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

typecheck: .venv/dev
	@$(BIN)/mypy

migration: .venv/dev
	@test -n "$(NAME)" || { echo "Name it: make migration NAME='what changes'"; exit 2; }
	@$(BIN)/python -m bot.store.migrations $(NAME)

pictures: .venv/dev
	@$(BIN)/python docs/pictures.py

licences: .venv/dev
	@$(BIN)/python docs/licences.py

bench: .venv/dev
	@$(BIN)/python -m benchmarks $(ARGS)

torture: .venv/dev
	@$(BIN)/python -m tests.torture $(ARGS)

clean:
	rm -rf .venv

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("Nod needs Python 3.11 or newer; say which: make demo PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv .venv

.venv/run: .venv/bin/python $(PINS)
	@echo "Installing Nod into .venv, this first time only: about 250 MB, one or two minutes ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

.venv/dev: .venv/bin/python $(PINS)
	@echo "Installing Nod and its test tools into .venv, this first time only: about 600 MB, three minutes ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@ .venv/run
