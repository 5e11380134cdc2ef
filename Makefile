# Everything that a developer runs. Each target works alone, on a machine that has only Python 3.9 or newer.

IN_VENV = packaging/in-venv
SOURCES = $(shell find job conf packaging -type f ! -name '*.pyc') pyproject.toml $(wildcard README.md)

.PHONY: help venv dist demo test test-unit lint clean

help: ## show the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

venv: ## make .venv with pinned versions, and get a Java if there is none
	@packaging/setup

dist: venv ## build dist/hivekeeper.py, the one file that is shipped
	@$(MAKE) --no-print-directory dist/hivekeeper.py

dist/hivekeeper.py: $(SOURCES)
	@$(IN_VENV) python packaging/build-zipapp

demo: dist ## compact small tables of this machine, undo it, do it again, clean up
	@$(IN_VENV) tests/demo/run

test: dist ## run all tests that need no cluster, with coverage
	@packaging/setup --bats
	@$(IN_VENV) packaging/test

test-unit: venv ## run the tests that need no JVM
	@$(IN_VENV) python -m pytest -q tests/unit tests/crash

lint: venv ## check style: ruff and shellcheck
	@$(IN_VENV) packaging/lint

clean: ## remove what was built; .venv stays
	@rm -rf build dist .coverage .pytest_cache .ruff_cache .hypothesis
