# Two commands for a newcomer: `make demo` and `make test`. Each sets up what it needs in .venv.

PYTHON ?= python3
PORT ?= 8080
BIN := .venv/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check install --no-deps
HASHED := $(PIP) --require-hashes -r
# an environment that another tool made may have no pip
WITH_PIP := $(BIN)/python -m pip --version > /dev/null 2>&1 || $(BIN)/python -m ensurepip > /dev/null
# a file's tests in one process, so that what they share is made once; in the order of the files
SPREAD := -n auto --dist loadfile --no-loadscope-reorder
UV = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate

# or each process of the tests compiles every library again
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-more fast lint fix typecheck migration pictures licences configuration docs coverage sample audit notes pins bench torture recordings agentdojo real-model clean

demo: .venv/run
	@$(BIN)/nod demo --port $(PORT) $(ARGS)

test: .venv/dev
	@$(BIN)/python -m pytest $(SPREAD) -m "not more and not lint" $(ARGS)

# what a night is for: long torture, packages, benchmarks, public suites, the rest of each kind
test-more: .venv/dev
	@$(BIN)/python -m pytest $(SPREAD) -m more $(ARGS)

fast: .venv/dev
	@$(BIN)/python -m pytest $(SPREAD) -n $$(getconf _NPROCESSORS_ONLN) -m "not slow and not browser and not platform and not more and not lint" $(ARGS)

lint: .venv/dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest -n 0 -m lint tests/test_*.py

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

configuration: .venv/dev
	@$(BIN)/python docs/configuration.py

docs: .venv/upkeep
	@$(BIN)/python -m sphinx -q -W --keep-going -c docs/site -d build/doctrees . build/site
	@echo "Read build/site/index.html."

coverage: .venv/dev
	@$(BIN)/python -m coverage erase
	@$(BIN)/python -m coverage run -m pytest $(SPREAD) $(ARGS)
	@$(BIN)/python -m coverage combine -q
	@$(BIN)/python -m coverage report

# 24 small random changes of bot/, one at a time: which do the tests notice? ARGS="--seed 7 --folder"
sample: .venv/dev
	@$(BIN)/python -m tests.sample $(ARGS)

# known vulnerabilities; asks the network's databases, so it is no part of the check
audit: .venv/upkeep
	@$(BIN)/pip-audit --strict --progress-spinner off --disable-pip --require-hashes -r requirements/run.txt 2>.venv/audit.log || { \
		if grep -q -e Traceback -e "could not be audited" .venv/audit.log; then \
			echo "The audit needs what PyPI knows of each library, and couldn't read it all: .venv/audit.log says why."; \
		else cat .venv/audit.log; fi >&2; exit 1; }

notes: .venv/bin/python
	@$(BIN)/python docs/notes.py $(VERSION)

# the versions of constraints.txt stay as they are unless they must change; ARGS=--upgrade takes the newest
pins: .venv/upkeep
	@$(UV) pyproject.toml --all-extras --group build --group upkeep -o constraints.txt $(ARGS)
	@mkdir -p requirements
	@$(UV) --generate-hashes -c constraints.txt pyproject.toml --extra all --group build -o requirements/run.txt
	@$(UV) --generate-hashes -c constraints.txt pyproject.toml --extra dev --group build -o requirements/dev.txt
	@$(UV) --generate-hashes -c constraints.txt pyproject.toml --extra evaluation --group build -o requirements/evaluation.txt
	@$(UV) --generate-hashes -c constraints.txt --group upkeep -o requirements/upkeep.txt

bench: .venv/dev
	@$(BIN)/python -m benchmarks $(ARGS)

torture: .venv/dev
	@$(BIN)/python -m tests.torture $(ARGS)

# what the model is sent in ten conversations: read what changed before you commit it
recordings: .venv/dev
	@$(BIN)/python -m tests.conversations $(ARGS)

# AgentDojo's four suites behind the gate: half an hour, no network; ARGS=slack for one of them
agentdojo: .venv/evaluation
	@$(BIN)/python -m tests.agentdojo $(ARGS)

# a small real model on a real server, for 200 turns
real-model: .venv/evaluation
	@$(BIN)/python -m tests.real_model $(ARGS)

clean:
	rm -rf .venv

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit("Nod needs Python 3.11 or newer; say which: make demo PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	@$(PYTHON) -m venv .venv

.venv/run: .venv/bin/python pyproject.toml requirements/run.txt
	@echo "Installing Nod into .venv, this first time only: about 250 MB, one or two minutes ..."
	@$(WITH_PIP)
	@$(HASHED) requirements/run.txt
	@$(PIP) --no-build-isolation -e .
	@touch $@

.venv/dev: .venv/bin/python pyproject.toml requirements/dev.txt
	@echo "Installing Nod and its test tools into .venv, this first time only: about 600 MB, three minutes ..."
	@$(WITH_PIP)
	@$(HASHED) requirements/dev.txt
	@$(PIP) --no-build-isolation -e .
	@touch $@ .venv/run

.venv/evaluation: .venv/dev requirements/evaluation.txt
	@echo "Installing what the evaluation needs into .venv, this first time only: 500 MB; a library is compiled, half an hour ..."
	@$(HASHED) requirements/evaluation.txt
	@touch $@

.venv/upkeep: .venv/bin/python pyproject.toml requirements/upkeep.txt
	@echo "Installing what maintainers need into .venv, this first time only ..."
	@$(WITH_PIP)
	@$(HASHED) requirements/upkeep.txt
	@touch $@
