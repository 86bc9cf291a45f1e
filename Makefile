# Everything starts here. `make demo` and `make test` need Python >= 3.11, Java >= 17 and a package registry; they make
# their own environment in .venv from locked, hashed requirements, and keep what they fetch in .cache.

SHELL := /bin/sh
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
# Without bytecode each of the suite's many processes would compile the tree anew.
unexport PYTHONDONTWRITEBYTECODE
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.14 python; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && command -v $$p && break; done)
BIN := .venv/bin
PY := $(BIN)/python
WEB := collector/strandline/web/assets
# Our own packages are installed from the tree: what is run and tested is what is here.
OURS := pyproject.toml spark_integration/pyproject.toml $(wildcard spark_integration/*.pth spark_integration/*.start)
PIP_INSTALL := $(PY) -m pip --disable-pip-version-check install --quiet --no-input
# What comes as source is built with the tools of locks/build.txt; otherwise pip would fetch newer ones.
TREE := --no-build-isolation --use-pep517
TESTS ?= tests
PYTEST_ARGS ?=
# The whole suite runs in five processes, a part of it in one.
RUN = $(if $(filter tests,$(TESTS)),$(PY) tests/run.py "$(1)" $(PYTEST_ARGS),$(PY) -m pytest -m "$(1)" $(PYTEST_ARGS) $(TESTS))
.PHONY: help demo test test-all test-slow test-matrix parts all-parts check bench soak locks wheels pyfiles clean needs docs reference audit

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1 - \2/p' Makefile

demo: .venv/$(if $(REPLAY),.run,.demo) ## the bank: five Spark jobs, Kafka, the collector; KEEP=1 stays up, HTTP=1 without Kafka, REPLAY=1 recorded
	@$(PY) -m strandline demo $(if $(KEEP),--keep) $(if $(REPLAY),--replay) $(if $(HTTP),--http) $(DEMO_ARGS)

test: parts ## the promises, in minutes, on one Spark; TESTS=tests/... for a part
	@$(call RUN,not slow and not soak)

test-all: all-parts ## the whole suite: also faults, kills, races and long histories
	@$(call RUN,not soak)

test-slow: all-parts ## what test-all has besides test
	@$(call RUN,slow and not soak)

parts: .venv/.dev ## jars and the broker of the tests into .cache, each once
	@$(PY) -m deploy.parts

all-parts: .venv/.dev
	@$(PY) -m deploy.parts --all

test-matrix: .venv/.dev ## real runs of every table format on Spark 3.5 to 4.3
	@$(PY) -m deploy.matrix $(MATRIX_ARGS)

check: .venv/.dev ## lint, format, types, import contracts, locks
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@for folder in $(sort $(dir $(wildcard examples/*/*.py))); do \
	  (cd $$folder && ../../$(BIN)/mypy --config-file ../../pyproject.toml *.py) || exit 1; done
	@$(BIN)/lint-imports
	@if command -v prettier >/dev/null && command -v tsc >/dev/null; \
	  then prettier --check $(WEB)/js $(WEB)/style.css && tsc -p .; \
	  else echo "check: no prettier and tsc here, so the page's JavaScript is not checked"; fi
	@$(BIN)/hadolint deploy/docker/Dockerfile
	@$(PY) -m deploy.locks

bench: .venv/.dev ## benchmarks: a table and bench/results.json; SHORT=1 for a minute's run
	@$(PY) -m bench $(if $(SHORT),--short) $(BENCH_ARGS)

soak: all-parts ## long runs under faults
	@$(PY) -m pytest -m soak $(PYTEST_ARGS) $(TESTS)

wheels: .venv/.run ## both distributions into dist/
	@$(PY) -m pip --disable-pip-version-check wheel --quiet --no-deps --no-build-isolation -w dist . ./spark_integration
	@ls dist

pyfiles: .venv/.dev ## the emitter as a zip for spark.submit.pyFiles, into dist/
	@$(PY) -m deploy.pyfiles

# uv, for pip resolves for the machine it runs on: a universal lock holds for all systems and Pythons.
locks: .venv/.dev ## resolve the dependencies anew (for whoever changes them; needs uv)
	@$(BIN)/uv --version >/dev/null 2>&1 || $(PIP_INSTALL) uv
	@$(LOCK) $(BOTH) --group build --group demo --group test -o locks/dev.txt
	@$(LOCK) $(BOTH) --group build --group demo -c locks/dev.txt -o locks/demo.txt
	@$(LOCK) pyproject.toml --group build -c locks/dev.txt -o locks/run.txt
	@$(LOCK) --group build -c locks/dev.txt -o locks/build.txt
	@echo 'acryl-datahub>=1.7' | $(LOCK) --no-annotate - -o locks/datahub.txt
	@$(LOCK) pyproject.toml --extra oidc -c locks/dev.txt -o locks/image.txt
	@$(LOCK) --group docs -o locks/docs.txt
	@$(LOCK) --group audit -o locks/audit.txt

BOTH := pyproject.toml spark_integration/pyproject.toml
LOCK := $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links --no-header \
  --python-version 3.11

docs: .venv/.docs .venv/.dev ## the site of docs/ into .cache/site, with every link checked
	@NO_MKDOCS_2_WARNING=1 .venv/docs/bin/mkdocs build --strict
	@echo ".cache/site/index.html"

reference: .venv/.dev ## the tables of settings, metrics and Spark conf in docs/reference, from the program
	@$(PY) -m docs.generated --write

audit: .venv/.audit ## known vulnerabilities of what is locked; the image's bill of materials into dist/
	@mkdir -p dist
	@PYTHONWARNINGS=ignore .venv/audit/bin/cyclonedx-py requirements locks/image.txt --pyproject pyproject.toml --output-reproducible \
	  --output-format JSON --output-file dist/strandline.cdx.json && echo "dist/strandline.cdx.json"
	@for lock in image dev docs audit; do .venv/audit/bin/pip-audit --require-hashes --disable-pip --progress-spinner off \
	  $(AUDIT_ARGS) -r locks/$$lock.txt || exit 1; done

.venv/.docs .venv/.audit: .venv/.%: locks/%.txt | $(PY)
	@"$(PY)" -m venv .venv/$*
	@.venv/$*/bin/pip --disable-pip-version-check install --quiet --no-input --require-hashes -r locks/$*.txt
	@touch $@

clean: ## removes what was made here, but not what was downloaded (.cache)
	rm -rf .venv .demo dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

needs:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: install it, or name it: make PYTHON=/path/to/python3" >&2; exit 1; }
	@"$(PYTHON)" -m deploy.needs $(if $(REPLAY),--without-java)

$(PY): | needs
	@echo "making .venv with $(PYTHON)"
	@"$(PYTHON)" -m venv .venv

.venv/.run: locks/build.txt locks/run.txt pyproject.toml | $(PY)
	@echo "installing locked packages (the first time about 60 MB are downloaded)"
	@$(PIP_INSTALL) --require-hashes -r locks/build.txt
	@$(PIP_INSTALL) $(TREE) --require-hashes -r locks/run.txt
	@$(PIP_INSTALL) $(TREE) --no-deps -e .
	@touch $@

.venv/.demo: locks/build.txt locks/demo.txt $(OURS) | $(PY)
	@echo "installing locked packages (the first time about 450 MB are downloaded)"
	@$(PIP_INSTALL) --require-hashes -r locks/build.txt
	@$(PIP_INSTALL) $(TREE) --require-hashes -r locks/demo.txt
	@$(PIP_INSTALL) $(TREE) --no-deps -e . -e ./spark_integration
	@touch $@ .venv/.run

.venv/.dev: locks/build.txt locks/dev.txt $(OURS) | $(PY)
	@echo "installing locked packages and test tools (the first time about 700 MB are downloaded)"
	@$(PIP_INSTALL) --require-hashes -r locks/build.txt
	@$(PIP_INSTALL) $(TREE) --require-hashes -r locks/dev.txt
	@$(PIP_INSTALL) $(TREE) --no-deps -e . -e ./spark_integration
	@touch $@ .venv/.demo .venv/.run
