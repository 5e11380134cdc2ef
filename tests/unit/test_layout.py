"""Who may import whom: the test reads the imports from the source and executes nothing."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Dict, Iterator, Set, Tuple

import pytest

JOB = Path(__file__).parents[2] / "job"

SHARED = {"model", "names", "quoting", "errors", "codes", "reasons"}

# Part of the package → parts it may import besides itself. A part is a directory or a module.
ALLOWED: Dict[str, Set[str]] = {
    "codes": set(),
    "reasons": {"codes"},
    "errors": {"codes", "reasons"},
    "model": {"names", "quoting"},
    "names": set(),
    "quoting": set(),
    "schemas": SHARED,
    "ports": SHARED,
    "config": {"errors", "reasons"},
    "jail": SHARED | {"ports"},
    "launch": {"jail", "errors", "codes", "reasons", "ports", "config", "plan"},
    "stop_conditions": {"errors", "reasons", "ports", "launch", "config"},
    "runlog": SHARED | {"ports"},
    "plan": SHARED | {"runlog", "config", "schemas"},
    "report": SHARED | {"runlog", "plan", "config", "ports"},
    "steps": SHARED | {"runlog", "plan", "ports", "config"},
    "cluster": SHARED | {"ports", "jail", "plan", "schemas"},
    "catalogue": SHARED | {"jail", "runlog", "plan", "report", "ports", "config"},
    "commands": SHARED | {"catalogue", "jail", "runlog", "plan", "steps", "report", "ports", "config"},
    "cli": SHARED | {"commands", "stop_conditions", "launch", "config", "cluster", "report", "plan", "ports"},
}

OUTSIDE = {"yaml": {"config"}, "pyspark": {"cluster"}, "py4j": {"cluster"}}


def part_of(path: Path) -> str:
    return path.relative_to(JOB / "hivekeeper").parts[0].replace(".py", "")


def imported(path: Path) -> Iterator[Tuple[str, int, bool]]:
    """Dotted name, line, and whether the import is at the top of the module."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno, node in tree.body
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node.lineno, node in tree.body


MODULES = sorted(path for path in (JOB / "hivekeeper").rglob("*.py") if path.relative_to(JOB / "hivekeeper").parts != ("__init__.py",))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(JOB)))
def test_a_module_imports_only_in_the_allowed_directions(path):
    part = part_of(path)
    for name, line, _ in imported(path):
        top, _, rest = name.partition(".")
        if top == "hivekeeper":
            target = rest.partition(".")[0]
            if target == "__version__":
                continue
            assert target in ALLOWED[part] | {part}, f"{path}:{line}: {part} must not import {name}"
        elif top not in sys.stdlib_module_names if sys.version_info >= (3, 10) else top in OUTSIDE:
            assert part in OUTSIDE.get(top, ()), f"{path}:{line}: {part} must not import {top}"


def test_the_command_line_opens_the_cluster_lazily():
    found = [(name, top) for path in MODULES if part_of(path) == "cli" for name, _, top in imported(path) if "hivekeeper.cluster" in name]
    assert found
    assert not [name for name, top in found if top]


@pytest.mark.parametrize("path", [path for path in MODULES if part_of(path) == "plan"], ids=lambda path: path.name)
def test_a_plan_takes_no_clock_environment_or_file(path):
    names = {name.partition(".")[0] for name, _, _ in imported(path)}
    assert not names & {"os", "time", "pathlib", "subprocess", "socket", "random", "secrets", "shutil", "tempfile"}
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            assert called not in {"open", "input", "datetime.now", "datetime.utcnow", "date.today"}, f"{path}:{node.lineno}: {called}"


# These turn an unforeseen exception into an error of one table, or a finding, so that the others continue.
COMMANDS = JOB / "hivekeeper" / "commands"
KEEP_GOING = {COMMANDS / "per_table.py", COMMANDS / "doctor.py"}


@pytest.mark.parametrize("path", [path for path in MODULES if part_of(path) != "cli"], ids=lambda path: str(path.relative_to(JOB)))
def test_only_the_command_line_prints_exits_or_swallows_errors_that_it_does_not_know(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call):
            assert ast.unparse(node.func) not in {"print", "sys.exit", "exit", "os._exit"}, f"{path}:{node.lineno}"
        if isinstance(node, ast.ExceptHandler):
            everything = node.type is None or ast.unparse(node.type) in {"Exception", "BaseException"}
            passed_on = any(isinstance(each, ast.Raise) and each.exc is None for each in ast.walk(node))
            assert passed_on or not everything or path in KEEP_GOING, f"{path}:{node.lineno}: catches everything and does not pass it on"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(JOB)))
def test_a_module_says_what_it_is_for(path):
    text = path.read_text("utf-8")
    assert not text.strip() or ast.get_docstring(ast.parse(text)), f"{path} has no docstring"
