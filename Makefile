# Every target sets up what it needs in .venv; nothing else on the machine is touched.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PLAIN  := $(VENV)/.plain
READY  := $(VENV)/.ready
# What reaches compiled code: all of it runs once with NUMBA_BOUNDSCHECK=1.
CHECKED := tests/base tests/model tests/oracles tests/privacy/test_noise.py tests/privacy/test_shards.py \
           tests/rows/test_counting_kernels.py tests/rows/test_text_kernels.py tests/workloads \
           tests/release/test_gate.py tests/release/test_fuzz.py

.PHONY: demo test test-slow lint format bench bench-guard docs browser screenshots notebooks peers boundscheck mutants coverage upgrade release-check clean
.DELETE_ON_ERROR:

# The package alone, for those who only want to see it run.
$(PLAIN): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

# And what its tests, checks and documents need.
$(READY): $(PLAIN) constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group dev --editable .
	touch $@

demo: $(PLAIN)  ## the whole job on an embedded example
	$(BIN)/dualquery demo --out demo-release --overwrite

# Each core begins with a half of the files, so that few kernels and fixtures are made by both.
test: $(READY)  ## the tests, about eleven minutes on two cores
	$(BIN)/python -m pytest -n auto --dist worksteal

test-slow: $(READY)  ## what takes minutes rather than seconds
	$(BIN)/python -m pytest -m slow

lint: $(READY)  ## style, types, and the privacy boundary
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(READY)  ## the documents into build/docs; a warning is an error
	$(BIN)/python -m tools.documents

# The tests of pages need Chromium with its driver; without them they are skipped, and say so.
browser:  ## installs Debian's Chromium, the one thing here that is installed outside .venv
	@if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then :; \
	elif command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	  (apt-get update -qq && apt-get install -y -qq chromium chromium-driver) >/dev/null 2>&1 \
	    || echo "no Chromium could be installed: the browser tests will be skipped"; \
	else echo "no Chromium with its driver: the browser tests will be skipped"; fi

screenshots: $(READY) browser  ## the pictures of README and documents, from a fresh demo
	$(BIN)/python -m tools.screenshots

notebooks: $(READY)  ## runs the examples and stores what they print
	$(BIN)/python -m tools.notebooks

peers: $(READY)  ## environments with other people's methods, for `python -m tools.peers adult`
	$(BIN)/python -m tools.peers build

boundscheck: $(READY)  ## the tests of kernels and of what calls them, with every index checked
	NUMBA_BOUNDSCHECK=1 $(BIN)/python -m pytest -n auto --dist worksteal $(CHECKED)

mutants: $(READY)  ## mistakes made on purpose: every one must fail the tests named beside it
	$(BIN)/python -m tools.mutants

coverage: $(READY)  ## which lines the tests run; fails below the floor in pyproject.toml
	$(BIN)/python -m pytest -n auto --dist worksteal --cov --cov-report=term

upgrade: $(READY)  ## the newest versions of everything into .venv and constraints.txt
	$(BIN)/python -m pip install --quiet --upgrade --upgrade-strategy eager --group dev --editable .
	head -1 constraints.txt > build-constraints && $(BIN)/python -m pip freeze --exclude-editable >> build-constraints
	mv build-constraints constraints.txt

release-check: $(READY)  ## builds sdist and wheel, and tries both in clean environments
	$(BIN)/python -m tools.release_check

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)  ## what is claimed to be fast, against what a user would do instead
	$(BIN)/python -m benchmarks

bench-guard: $(READY)  ## fails if a kernel or a small release lost a third of its speed against NumPy
	$(BIN)/python -m benchmarks.guard

clean:
	rm -rf $(VENV) demo-release build
