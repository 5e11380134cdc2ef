# Everything that a developer runs. Each target works alone, on a machine that has only Python 3.9 or newer.

IN_VENV = packaging/in-venv
SOURCES = $(shell find job conf packaging -type f ! -name '*.pyc') pyproject.toml $(wildcard README.md)

.PHONY: help venv dist bundle env demo check test test-sparks test-foreign nightly cluster-up cluster-down test-cluster test-matrix interleavings bench bench-callers bench-swap bench-readers bench-log bench-scale bench-fsimage bench-catalogue bench-rewrite lint format release clean

help: ## show the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 14

venv: ## make .venv with pinned versions, and get a Java if there is none
	@packaging/setup

dist: venv ## build dist/hivekeeper.py, the one file that is shipped
	@$(MAKE) --no-print-directory dist/hivekeeper.py

dist/hivekeeper.py: $(SOURCES)
	@$(IN_VENV) python packaging/build-zipapp

bundle: dist ## build dist/hivekeeper-VERSION.tar.gz, what is installed on an edge node
	@$(IN_VENV) python packaging/build-bundle

env: dist ## pack a Python for YARN into dist/hivekeeper-env.tar.gz (PYTHON chooses it)
	@packaging/build-env

demo: dist ## compact small tables of this machine, undo it, do it again, clean up
	@$(IN_VENV) tests/demo/run

check: venv ## what a change needs at once: style, types, and the tests that need neither a JVM nor a minute
	@$(IN_VENV) packaging/test --quick

test: dist ## run all tests that need no cluster, fastest first, with coverage
	@packaging/setup --tests
	@$(IN_VENV) packaging/test

test-sparks: ## run what depends on Spark's version on Spark 3.3 and 4 (VERSIONS: others; ALL=yes: the contracts, too)
	@ALL=$(ALL) packaging/test-sparks $(VERSIONS)

test-foreign: ## compact files of every writer that can be had, and compare with other readers (SPARK: another version than the pinned one)
	@SPARK=$(SPARK) packaging/test-foreign

cluster-up: venv ## start a Kerberized Hadoop on loopback (SECURE=no: without Kerberos)
	@$(IN_VENV) tests/cluster/cluster up $(if $(filter no,$(SECURE)),--unsecured)

cluster-down: venv ## stop it
	@$(IN_VENV) tests/cluster/cluster down

test-cluster: dist ## run the tests that need a cluster, starting one where none runs (ALL=yes: the slowest too)
	@$(IN_VENV) tests/cluster/with tests/cluster/run

test-matrix: venv ## kill every subcommand after every change on HDFS, and write what was seen to docs/evidence/ (an hour; ALL=no: each change once)
	@$(IN_VENV) env HKTEST_MATRIX=$(if $(filter no,$(ALL)),once,all) SECURE=no tests/cluster/with tests/faults/run

interleavings: venv ## explore every interleaving of runs and writers on the fakes, and write what was seen to docs/evidence/ (hours; NAME: only one; MOST=1: few kills, nothing written)
	@cd tests && PYTHONPATH=../job:. ../$(IN_VENV) python -m interleavings --traces $(if $(MOST),--most $(MOST),--record) --memory $(or $(MEMORY),8000) $(if $(NAME),'$(NAME)')

bench-swap: venv ## measure swaps on a cluster: UNITS=1000 partitions of FILES=3 small files; JOIN=yes: joins of files
	@$(IN_VENV) tests/cluster/with env PYTHONPATH=job:tests python tests/bench/swap.py --units $(or $(UNITS),1000) --files $(or $(FILES),3) $(if $(JOIN),--join)

bench-readers: venv ## count what readers see during SWAPS=2000 swaps of UNITS=10 partitions on a cluster; JOIN=yes: first as many joins of files; LIMIT=700: each for so many seconds at most
	@$(IN_VENV) tests/cluster/with env PYTHONPATH=job:tests python tests/bench/readers.py --swaps $(or $(SWAPS),$(if $(JOIN),600,2000)) --units $(or $(UNITS),10) $(if $(JOIN),--join) $(if $(LIMIT),--seconds $(LIMIT))

bench-log: venv ## measure the memory and time that a log of ENTRIES=150 entries of FILES=4800 files takes, and a run over OWN=1000000 files
	@$(IN_VENV) env PYTHONPATH=job:tests python tests/bench/log.py --entries $(or $(ENTRIES),150) --files $(or $(FILES),4800) --kept $(or $(KEPT),3) --own $(or $(OWN),1000000)

bench-scale: venv ## measure the memory and time until a table of FILES=1000000 files in UNITS=100000 partitions is planned
	@$(IN_VENV) env PYTHONPATH=job:tests python tests/bench/scale.py --files $(or $(FILES),1000000) --units $(or $(UNITS),100000)

bench: dist ## measure whole commands beside other programs on a cluster: SHAPES="quick …", PEERS="joins lakekeeper iceberg delta floor", TURNS=3
	@HKTEST_CLUSTER_DIR=$(CURDIR)/.cluster/bench BENCH=yes $(IN_VENV) tests/cluster/with env PYTHONPATH=job:tests python -m bench.whole \
	  --shapes $(or $(SHAPES),quick) --peers $(or $(PEERS),joins lakekeeper iceberg delta floor) --turns $(or $(TURNS),3)

bench-callers: dist ## list which code makes a COMMAND=compact-swap's calls to the NameNode, on a cluster, for a table of SHAPE=quick
	@HKTEST_CLUSTER_DIR=$(CURDIR)/.cluster/bench BENCH=yes $(IN_VENV) tests/cluster/with env PYTHONPATH=job:tests python -m bench.whole.callers \
	  --shape $(or $(SHAPE),quick) --command $(or $(COMMAND),compact-swap)

bench-fsimage: venv ## measure how fast an image of LINES=10000000 lines is summed up by UNITS=100000 partitions, beside awk and a bare split
	@$(IN_VENV) env PYTHONPATH=job:tests python tests/bench/fsimage.py --lines $(or $(LINES),10000000) --units $(or $(UNITS),100000) --times $(or $(TIMES),1)

bench-catalogue: venv ## measure what the catalogue adds to a command: TABLES=1000 tables of PARTITIONS=100 partitions, beside pyarrow
	@$(IN_VENV) env PYTHONPATH=job:tests python tests/bench/catalogue.py --tables $(or $(TABLES),1000) --partitions $(or $(PARTITIONS),100) --row-groups $(or $(ROW_GROUPS),8) --turns $(or $(TURNS),5)

bench-rewrite: venv ## measure how fast FILES=5000 small files in UNITS=100 partitions are copied, and rewritten as rows
	@$(IN_VENV) env PYTHONPATH=job:tests python tests/bench/rewrite.py --files $(or $(FILES),5000) --units $(or $(UNITS),100) --turns $(or $(TURNS),3)

nightly: ## run what takes hours, all that CI leaves out: the whole matrix, full interleavings, every contract on other Sparks …
	@packaging/nightly

lint: venv ## check style and types: ruff, shellcheck and mypy
	@$(IN_VENV) packaging/lint

format: venv ## write every Python file as ruff formats it
	@$(IN_VENV) packaging/lint --fix

release: venv ## make a release here: version, changelog, bundle, checksum (VERSION: another one; TAG=yes: commit and tag); pushes nothing
	@packaging/release $(if $(filter yes,$(TAG)),--tag) $(VERSION)

clean: ## remove what was built; .venv stays
	@rm -rf build dist .coverage .coverage.* .pytest_cache .ruff_cache .mypy_cache .hypothesis

.PHONY: generated
generated: venv ## write the files that are made from the program: conf/defaults.yaml, docs/configuration.md, docs/cli.md
	@$(IN_VENV) python packaging/make_generated.py
