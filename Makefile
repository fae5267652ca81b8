# Two commands on a fresh machine: `make demo` and `make test`. They need Python >= 3.10 and Java 17 or 21.
.DEFAULT_GOAL := help
.PHONY: help demo test test-spark test-floors test-floors-core test-floors-spark wheels check bench clean
SHELL := /bin/sh
VENV ?= .venv
PY := $(VENV)/bin/python
SPARK ?= 4.1
SPARK_VENV := .venvs/spark-$(SPARK)
FLOORS_VENV := .venvs/floors
# Spark starts its workers with this Python, not with whatever python3 is first on PATH. Each is a process of its own, so
# compiled modules must be kept.
RUN = env -u PYTHONDONTWRITEBYTECODE PYSPARK_PYTHON=$(CURDIR)/$(1)/bin/python PYSPARK_DRIVER_PYTHON=$(CURDIR)/$(1)/bin/python SPARK_LOCAL_IP=127.0.0.1

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1  -  \2/p' Makefile

$(VENV)/.demo: pyproject.toml .ci/venv
	@.ci/venv $(VENV) '.[demo]'
	@touch $@

$(VENV)/.test: pyproject.toml .ci/venv
	@.ci/venv $(VENV) '.[test,demo]'
	@touch $@ $(VENV)/.demo

$(SPARK_VENV)/.test: pyproject.toml .ci/venv
	@.ci/venv $(SPARK_VENV) '.[test]' 'pyspark==$(SPARK).*'
	@touch $@

# What users need at its oldest, on the oldest Python; the tools of the tests are the newest that go with it.
$(FLOORS_VENV)/.test: pyproject.toml .ci/venv .ci/python
	@python=$$(.ci/python 3.10) && PYTHON=$$python RESOLUTION=lowest-direct .ci/venv $(FLOORS_VENV) '.[s3,connect,sketches]'
	@.ci/venv $(FLOORS_VENV) '.[test]'
	@touch $@

demo: $(VENV)/.demo  ## 336 776 flights through Spark into Paimon tables: corrected, deleted, read merged; then as streams
	@.ci/java
	@$(call RUN,$(VENV)) $(PY) demo/flights.py
	@$(call RUN,$(VENV)) $(PY) demo/pipeline.py

test: $(VENV)/.test  ## every test but the slow ones, two files at a time; T='path -k name' picks
	@.ci/java
	@$(call RUN,$(VENV)) $(PY) -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder $(T)

test-spark: $(SPARK_VENV)/.test  ## the Spark tests on another version: make test-spark SPARK=4.1
	@.ci/java
	@$(call RUN,$(SPARK_VENV)) $(SPARK_VENV)/bin/python -m pytest tests/spark $(T)

test-floors: test-floors-core test-floors-spark  ## Python 3.10, every dependency at its floor: core tests without pandas, Spark tests

test-floors-core: $(FLOORS_VENV)/.test
	@$(call RUN,$(FLOORS_VENV)) $(FLOORS_VENV)/bin/python -m pytest -p tests.support.without_pandas --numprocesses 2 --dist loadfile tests/core $(T)

test-floors-spark: $(FLOORS_VENV)/.test
	@.ci/java
	@$(call RUN,$(FLOORS_VENV)) $(FLOORS_VENV)/bin/python -m pytest tests/spark -m "(everywhere or versions) and not slow" $(T)

wheels: $(VENV)/.test  ## every dependency has a wheel for each Python; asks the package registry
	@.ci/wheels $(PY)

check: $(VENV)/.test  ## ruff, mypy --strict, layers
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-cache

bench: $(VENV)/.test  ## every benchmark, with its opponents in the same run
	@.ci/java
	@$(call RUN,$(VENV)) $(PY) -m benchmarks

clean:  ## remove the virtual environments and caches
	rm -rf .venv .venvs .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist *.egg-info
