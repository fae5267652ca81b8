# Two commands on a fresh machine: `make demo` and `make test`, in at most twelve minutes on two cores. They need Python >= 3.10 and Java 17 or 21.
.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-more test-minutes test-slow test-places test-places-quick test-stores test-spark test-core test-floors test-floors-core test-floors-spark test-continuation wheels check bench docs clean
SHELL := /bin/sh
VENV ?= .venv
PY := $(VENV)/bin/python
SPARK ?= 4.1
SPARK_VENV := .venvs/spark-$(SPARK)
FLOORS_VENV := .venvs/floors
# Spark starts its workers with this Python, not with whatever python3 is first on PATH. Each is a process of its own, so
# compiled modules must be kept.
RUN = env -u PYTHONDONTWRITEBYTECODE PYSPARK_PYTHON=$(CURDIR)/$(1)/bin/python PYSPARK_DRIVER_PYTHON=$(CURDIR)/$(1)/bin/python SPARK_LOCAL_IP=127.0.0.1
# Tests make their tables in memory if there is room; the demos and the benchmarks use the disk.
TEST_RUN = TMPDIR=$$(.ci/scratch) $(call RUN,$(1))
# The tests of Spark that the oldest versions repeat; a Spark between the oldest and the newest repeats fewer.
ELSEWHERE = (versions or (everywhere and not more)) and not slow
BETWEEN = versions and not slow

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1  -  \2/p' Makefile

$(VENV)/.demo: pyproject.toml .ci/venv
	@.ci/venv $(VENV) '.[demo]'
	@touch $@

$(VENV)/.test: pyproject.toml .ci/venv
	@.ci/venv $(VENV) '.[test,demo]'
	@touch $@ $(VENV)/.demo $(VENV)/.docs

$(SPARK_VENV)/.test: pyproject.toml .ci/venv
	@.ci/venv $(SPARK_VENV) '.[test]' 'pyspark==$(SPARK).*'
	@touch $@

# What users need at its oldest, on the oldest Python; the tools of the tests are the newest that go with it.
$(FLOORS_VENV)/.test: pyproject.toml .ci/venv .ci/python
	@python=$$(.ci/python 3.10) && PYTHON=$$python RESOLUTION=lowest-direct .ci/venv $(FLOORS_VENV) '.[s3,connect,sketches,notebook,otel,frames,sql]'
	@.ci/venv $(FLOORS_VENV) '.[test]'
	@touch $@

demo: $(VENV)/.demo  ## 336 776 flights through Spark into Paimon tables: corrected, deleted, read merged; in SQL; then as streams
	@.ci/java
	@$(call RUN,$(VENV)) $(PY) demo/flights.py
	@$(call RUN,$(VENV)) $(PY) demo/sql.py
	@$(call RUN,$(VENV)) $(PY) demo/pipeline.py

# Four files at a time, those that take long first: tests of Spark wait more than they compute.
PROCESSES ?= 4
PART ?= 1/1
PYTEST = $(call TEST_RUN,$(VENV)) $(PY) -m pytest --numprocesses $(PROCESSES) --dist loadfile --no-loadscope-reorder

test: $(VENV)/.test  ## every feature once, every property with few draws: at most 12 minutes; T='path -k name' picks
	@.ci/java
	@$(PYTEST) --durations=20 $(T)

test-all: $(VENV)/.test  ## what `make test` leaves out: marked more, Python 3.10, other Sparks, oldest dependencies
	@.ci/test-all

test-more: $(VENV)/.test  ## the tests marked more; PART=1/4 a quarter of them, as of the other targets below
	@.ci/java
	@$(PYTEST) --durations=30 -m "more and not (slow or places)" --part $(PART) $(T)

test-minutes: $(VENV)/.test  ## 200 random programs, three minutes of killed processes, a minute of hostile bytes
	@.ci/java
	@$(call TEST_RUN,$(VENV)) $(PY) -m pytest tests/spark/sql/test_random_sql.py tests/processes tests/fuzz -m minutes --part $(PART) --durations=0 $(T)

test-places: $(VENV)/.test  ## stores and catalogs with their servers, which the first run builds or downloads (Go, npm, Maven)
	@.ci/java
	@$(call TEST_RUN,$(VENV)) $(PY) -m pytest -m "places and not slow" --durations=30 $(T)

# Their servers start within seconds, and are packages of npm and Maven: nothing is built.
QUICK_PLACES = $(addprefix tests/places/,stores/test_races.py stores/test_network_faults.py stores/test_methods.py hdfs/test_hdfs_storage.py rest/test_rest.py rest/test_rest_java.py)
test-places-quick: $(VENV)/.test  ## of these, Azure, HDFS and Java's REST server, as in CI: races, kills, lost answers
	@.ci/java
	@$(call TEST_RUN,$(VENV)) $(PY) -m pytest $(QUICK_PLACES) -m "places and not slow" -k "(azure or hdfs or rest) and not (reset or 503 or 412 or delay or cut or pages)" --draws few --durations=30 $(T)

# Every MemoryIO of the fault tests has its files on the store, so every call of the engine reaches its server.
STORES ?= s3 gcs azure oss hdfs
test-stores: $(VENV)/.test  ## the engine's fault tests, with the tables on each store; STORES='s3 gcs' picks
	@for store in $(STORES); do \
		PAIMON_TEST_STORE=$$store $(call TEST_RUN,$(VENV)) $(PY) -m pytest tests/fault -m "not (more or slow)" --draws few $(T) || exit 1; \
	done

test-slow: $(VENV)/.test  ## hours: the tests marked slow, and every property and random game at full length, with new seeds
	@.ci/java
	@$(PYTEST) -m "slow or drawn or hypothesis" --draws full --new-seeds $(T)

test-spark: $(SPARK_VENV)/.test  ## Spark tests on another version: make test-spark SPARK=4.1
	@.ci/java
	@$(call TEST_RUN,$(SPARK_VENV)) $(SPARK_VENV)/bin/python -m pytest tests/spark -m "$(BETWEEN)" --draws few --part $(PART) --durations=30 $(T)

test-core: $(SPARK_VENV)/.test  ## core tests in the same environment: make test-core SPARK=4.2
	@$(call TEST_RUN,$(SPARK_VENV)) $(SPARK_VENV)/bin/python -m pytest --numprocesses 2 --dist loadfile tests/core --draws few --part $(PART) $(T)

# A stream's checkpoint of one Spark is continued by the others.
test-continuation: $(VENV)/.test $(FLOORS_VENV)/.test
	@$(MAKE) --no-print-directory .venvs/spark-4.2/.test SPARK=4.2
	@PAIMON_OTHER_SPARKS=$(CURDIR)/$(FLOORS_VENV)/bin/python:$(CURDIR)/.venvs/spark-4.2/bin/python \
		$(call TEST_RUN,$(VENV)) $(PY) -m pytest tests/spark/test_stream_read.py -k next_version -m "not slow" $(T)

test-floors: test-floors-core test-floors-spark  ## Python 3.10, every dependency at its floor: core tests without pandas, Spark tests

test-floors-core: $(FLOORS_VENV)/.test
	@$(call TEST_RUN,$(FLOORS_VENV)) $(FLOORS_VENV)/bin/python -m pytest -p tests.support.without_pandas --numprocesses 2 --dist loadfile tests/core --draws few --part $(PART) $(T)

test-floors-spark: $(FLOORS_VENV)/.test
	@.ci/java
	@$(call TEST_RUN,$(FLOORS_VENV)) $(FLOORS_VENV)/bin/python -m pytest tests/spark -m "$(ELSEWHERE)" --draws few --part $(PART) --durations=60 $(T)

wheels: $(VENV)/.test  ## every dependency has a wheel for each Python; asks the package registry
	@.ci/wheels $(PY)

check: $(VENV)/.test  ## ruff, formatting, mypy --strict, layers, titles of commits, prose of changed files: seconds; BASE=main
	@.ci/check $(PY) $(BASE)

bench: $(VENV)/.test  ## every benchmark, with its opponents in the same run; redraws the page, fails if a row became slower
	@.ci/java
	@$(call RUN,$(VENV)) $(PY) -m benchmarks --keep

$(VENV)/.docs: pyproject.toml .ci/venv
	@.ci/venv $(VENV) '.[docs]'
	@touch $@

docs: $(VENV)/.docs  ## the docs as a site that needs no network: build/docs/index.html
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict

clean:  ## remove the virtual environments and caches
	rm -rf .venv .venvs .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist *.egg-info
