# Every target sets up what it needs in .venv; nothing else on the machine is touched.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: demo test test-slow lint format bench clean
.DELETE_ON_ERROR:

$(READY): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --group dev --editable ".[report]"
	touch $@

demo: $(READY)  ## the whole job on an embedded example
	$(BIN)/dualquery demo --out demo-release --overwrite

test: $(READY)  ## the tests, under ten minutes on two cores
	$(BIN)/python -m pytest -n auto

test-slow: $(READY)  ## what takes minutes rather than seconds
	$(BIN)/python -m pytest -m slow

lint: $(READY)  ## style, types, and the privacy boundary
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)  ## what is claimed to be fast, against what a user would do instead
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) demo-release
