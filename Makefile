# Everything from a fresh clone: only Python >= 3.11, Rust and make have to be there.
#   make demo    analyse a profile of a real training step
#   make test    all tests
# Each verb sets up what it needs, and does nothing twice.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
# What is built goes into the environment of this clone, whichever one is active.
export VIRTUAL_ENV := $(CURDIR)/.venv
unexport CONDA_PREFIX
export PIP_QUIET := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

PYTHON ?= python3
BIN := .venv/bin
# Passed on: make test PYTEST="-k dispatch"
PYTEST ?=
WORKERS ?= 2
TRACE ?= reference/h200/kineto/train_eager.json.gz

SETUP := .venv/.requirements
RELEASE := .venv/.release
SOURCES := $(shell find rust -name '*.rs' -o -name '*.toml') Cargo.toml Cargo.lock pyproject.toml

.PHONY: help
help:  ## Show what can be done
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-9s %s\n", $$1, $$2}'

# The environment: what the lock files name, and nothing else.
$(SETUP): requirements-dev.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "wavesim needs Python 3.11 or newer; set PYTHON=..."; exit 1; }
	@command -v cargo > /dev/null || { echo "wavesim is built with Rust; cargo is not on PATH"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --require-hashes -r $<
	@touch $@

$(RELEASE): $(SETUP) $(SOURCES)
	$(BIN)/maturin develop --release --quiet
	@touch $@

.PHONY: develop
develop: $(SETUP)  ## Build the extension for work on it (quick to build, slower to run)
	$(BIN)/maturin develop --quiet
	@rm -f $(RELEASE)

.PHONY: test
test: test-rust test-python test-wheel  ## All tests: Rust, Python, the documents, the wheel

.PHONY: test-rust
test-rust:
	if cargo nextest --version > /dev/null 2>&1; then cargo nextest run --workspace --exclude wavesim-python; \
	else cargo test --workspace --exclude wavesim-python --all-targets; fi
	cargo test --doc --package wavesim

.PHONY: test-python
test-python: $(RELEASE) browser
	$(BIN)/python -m pytest -n $(WORKERS) $(PYTEST)

# The report's tests open it in a browser where there is one.
.PHONY: browser
browser:
	@if ! command -v chromium > /dev/null && command -v apt-get > /dev/null && [ "$$(id -u)" = 0 ]; then \
		{ apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends chromium; } \
		> /dev/null 2>&1 || echo "no chromium: the tests that need a browser are skipped"; fi

# The wheel as a stranger gets it: in an environment of its own, away from the sources.
.PHONY: test-wheel
test-wheel: wheel
	rm -rf .venv/wheel && $(PYTHON) -m venv .venv/wheel
	.venv/wheel/bin/python -m pip install --require-hashes -r requirements.lock
	.venv/wheel/bin/python -m pip install --no-deps dist/*.whl
	cd .venv/wheel && bin/python -I "$(CURDIR)/examples/first_run.py" && bin/wavesim devices > /dev/null
	@rm -rf .venv/wheel

.PHONY: fast
fast: $(RELEASE)  ## The quick tests, for every save
	cargo test --quiet --package wavesim --lib
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow and not browser" -q $(PYTEST)

.PHONY: lint
lint: $(RELEASE)  ## Formats, lints, types, and the stubs against the extension
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- --deny warnings
	$(BIN)/ruff format --check --quiet
	$(BIN)/ruff check --quiet
	$(BIN)/mypy
	PYTHONPATH=python $(BIN)/python -m mypy.stubtest wavesim._wavesim

.PHONY: format
format: $(SETUP)  ## Format and sort all sources
	cargo fmt --all
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format --quiet

.PHONY: bench
bench: $(RELEASE) wheel  ## Speed and size: the engine, what Python adds, and what one would write instead
	cargo run --quiet --profile bench --package wavesim-benches
	$(BIN)/python benches/python/compare.py

.PHONY: demo
demo: $(RELEASE)  ## Analyse a profile of a real training step on an H200: demo-output/
	@mkdir -p demo-output
	$(BIN)/wavesim analyze $(TRACE) --report demo-output/report.html --perfetto demo-output/trace.perfetto.json.gz

.PHONY: wheel
wheel: $(SETUP)  ## Build the wheel into dist/
	rm -rf dist
	$(BIN)/maturin build --release --quiet --out dist
	@ls -l dist

.PHONY: docs
docs:  ## The Rust API's pages into target/doc/
	RUSTDOCFLAGS="--deny warnings" cargo doc --no-deps --package wavesim

.PHONY: lock
lock: $(SETUP)  ## Lock the newest versions that the requirements allow
	$(BIN)/pip-compile $(LOCK) --output-file requirements.lock pyproject.toml
	$(BIN)/pip-compile $(LOCK) --output-file requirements-dev.lock pyproject.toml requirements-dev.in
	cargo update

LOCK := --quiet --upgrade --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url --no-emit-find-links \
	--no-emit-trusted-host --no-header

.PHONY: clean
clean:  ## Remove what was built
	rm -rf .venv target dist demo-output .pytest_cache .hypothesis .ruff_cache .mypy_cache .benchmarks
	rm -f python/wavesim/*.so
