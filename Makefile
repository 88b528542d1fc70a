# Everything that is done to this project, by hand and in CI.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

# the lock file decides alone: a machine's own constraints or user folder do not change what is installed
PIP := PIP_CONSTRAINT=/dev/null PIP_USER=0 PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip

.DEFAULT_GOAL := help
.PHONY: help setup demo test check lint types docs-fresh changelog wheel format docs bench bench-peer zoo logs conformance hooks fuzz lock image image-test push

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(INSTALLED) ## make .venv with all extras from the lock file (PYTHON=python3.12 chooses the Python)

$(INSTALLED): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, $(PYTHON) is " + sys.version.split()[0] + "; try: make setup PYTHON=python3.12")'
	@echo "installing into $(VENV), this takes about a minute"
	$(PYTHON) -m venv --clear $(VENV)
	$(PIP) install --quiet --quiet --require-hashes -r requirements.lock
	PIP_REQUIRE_HASHES=0 $(PIP) install --quiet --quiet --no-deps --no-build-isolation -e .
	@touch $@

demo: setup ## evaluate the bundled trial and show the verdicts
	$(BIN)/rule-evaluator run evaluator/demo_trial --exit-zero --output demo-output

test: setup ## run the tests
	$(BIN)/python -m pytest -n auto --maxprocesses 4

check: lint types docs-fresh changelog wheel test ## all that CI checks

lint: setup ## style and format of the code
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: setup ## types, strictly
	$(BIN)/mypy

docs-fresh: setup ## the generated pages are those that the code makes
	$(BIN)/python docs/generate.py --check

# a commit that no user notices says so with a line "Changelog: none" in its message
changelog: ## the last change of the program is in CHANGELOG.md
	@grep -q '^## \[Unreleased\]' CHANGELOG.md || { echo "CHANGELOG.md: no heading '## [Unreleased]'"; exit 1; }
	@git rev-parse --quiet --verify HEAD >/dev/null 2>&1 || exit 0; \
	code=$$(git log -1 --format=%H --invert-grep --grep='^Changelog: none' -- evaluator builtin_rules); \
	log=$$(git log -1 --format=%H -- CHANGELOG.md); \
	test -z "$$code" || { test -n "$$log" && git merge-base --is-ancestor "$$code" "$$log"; } || \
	{ echo "CHANGELOG.md: no line about $$(git log -1 --format='%h %s' $$code)"; exit 1; }

wheel: setup ## build the wheel and run the program from it
	rm -rf build
	$(BIN)/python -m build --quiet --wheel --no-isolation --outdir build
	$(BIN)/python -m zipfile -e build/*.whl build/unpacked
	cd build/unpacked && $(abspath $(BIN))/python -m evaluator run evaluator/demo_trial --exit-zero --json --output ../output >/dev/null
	cd build/unpacked && $(abspath $(BIN))/python -m evaluator new-rule TooLarge --output ../too_large.py >/dev/null && \
	$(abspath $(BIN))/python -m evaluator test ../too_large.py

format: setup ## put the code in form
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: setup ## make the generated pages anew
	$(BIN)/python docs/generate.py

bench: setup ## measure the speed of the program on generated trials (some 6 GB in a temporary folder)
	$(BIN)/python -m benchmarks.speed

bench-peer: setup ## the same beside smdebug 1.0.34, and write the tables into docs/performance.md (half an hour or so)
	$(BIN)/python -m benchmarks.speed --peer --write docs/performance.md

zoo: setup ## run the rules over healthy and faulty training programs, and write the table into docs/detection.md
	$(BIN)/python -m benchmarks.zoo --write docs/detection.md

logs: setup ## run the rules over labelled public training logs (../shared/logs), and write the table into docs/detection.md
	$(BIN)/python -m benchmarks.logs --write docs/detection.md

conformance: setup ## run the same calls through smdebug 1.0.34 and through what we serve in its place
	$(BIN)/python -m tests.conformance --write docs/smdebug-compatibility.md

FUZZ_SECONDS ?= 600

fuzz: setup ## fuzz everything that reads a trial for FUZZ_SECONDS; a failing case is written to .fuzz
	PIP_CONSTRAINT=/dev/null PIP_USER=0 $(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS)

hooks: .hooks/.installed ## test the hooks with PyTorch, XGBoost and Keras, in an environment of their own (.hooks)
	.hooks/bin/python -m pytest tests/hooks

# the machine's own pip settings hold here, so that they can offer a CPU build of PyTorch
.hooks/.installed: tests/hooks/requirements.txt pyproject.toml
	$(PYTHON) -m venv .hooks
	.hooks/bin/python -m pip install --quiet --quiet -r tests/hooks/requirements.txt -e .
	@touch $@

# a laptop without docker does without these: nothing else needs them
image: ## build the images rule-evaluator and rule-evaluator-builtin (BASE_IMAGE=... to build on another one)
	docker/build.sh

image-test: setup ## run the images: any user, read-only, without network; prints their size and start time
	IMAGE_TESTS=1 $(BIN)/python -m pytest tests/docker

IMAGE ?= rule-evaluator

push: setup ## push IMAGE to ECR (REGION=...), or to REGISTRY=host:port/name, and print its digest
	@$(BIN)/python docker/push.py $(IMAGE) $(if $(REGISTRY),--registry $(REGISTRY)) $(if $(REGION),--region $(REGION))

LOCK := --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --quiet

lock: ## choose the newest packages anew and write requirements.lock, and from it what the images hold
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --all-extras --group dev --upgrade $(LOCK) --output-file requirements.lock
	$(BIN)/uv pip compile pyproject.toml --extra s3 --extra report --extra dask --constraints requirements.lock $(LOCK) \
	  --output-file docker/requirements.lock
	echo hatchling | $(BIN)/uv pip compile - --constraints requirements.lock $(LOCK) --output-file docker/build.lock
