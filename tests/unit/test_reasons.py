"""The catalogue of reasons against the source: every code is used, and every error has a code with its exit code."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Iterator, List, Tuple

import pytest

from hivekeeper.codes import Exit
from hivekeeper.errors import NeedsInvestigation
from hivekeeper.reasons import MOST_CHARACTERS, SHORT, Code, Reason, Topic

JOB = Path(__file__).parents[2] / "job" / "hivekeeper"
TREES = {path: ast.parse(path.read_text("utf-8")) for path in JOB.rglob("*.py") if path.name != "reasons.py"}

# Error → its exit code. The second group has a default code, used if none is given.
NEED_A_CODE = {"Refused": Exit.REFUSED, "Locked": Exit.LOCKED, "Fenced": Exit.LOCKED, "NeedsInvestigation": Exit.INVESTIGATE}
MAY_HAVE_A_CODE = {"UsageError": Exit.USAGE, "Stopped": Exit.PARTIAL, "Unusable": Exit.UNUSABLE, "HivekeeperError": Exit.BUG}


def codes_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Code":
            yield node.attr


def test_a_text_with_what_a_tenant_wrote_is_shortened_in_the_middle():
    what = "begin" + "x" * 8_000_000 + "end"
    for reason in (Reason(Code.PROOF_FAILED, what), NeedsInvestigation(what, next=what, state=what, code=Code.PROOF_FAILED).reason):
        assert len(reason.what) == MOST_CHARACTERS
        assert (reason.what[:5], reason.what[-3:]) == ("begin", "end")
        assert len(reason.state) <= MOST_CHARACTERS
        assert len(reason.about(what).what) == MOST_CHARACTERS


@pytest.mark.parametrize("length", [*range(195, 206), *range(MOST_CHARACTERS - 5, MOST_CHARACTERS + 6), 8_000_000])
def test_what_to_do_is_told_whole_or_not_at_all(length):
    """It may be a command to copy: a part of one with names in quotes is another one."""
    command = "x" * length
    whole = Reason(Code.LEFT_BEHIND, "left", command)
    short = whole.shortened()
    assert whole.dispensable == len(whole.next) - len(short.next)
    for reason, most in ((whole, MOST_CHARACTERS), (short, SHORT)):
        assert reason.next == command if length <= most else "x" not in reason.next and "look for left-behind in" in reason.next
        assert len(reason.next) <= most


@pytest.mark.parametrize("code", Code)
def test_an_answer_that_is_shortened_twice_says_the_same(code):
    short = Reason(code, "w" * 8000, "n" * 500, "s" * 8000).shortened()
    assert short.shortened() is short
    assert short.dispensable == 0


def test_every_code_of_the_catalogue_is_given_by_something_and_every_given_one_is_in_it():
    given = {code for tree in TREES.values() for code in codes_in(tree)}
    assert given == {code.name for code in Code}


def errors_raised() -> List[Tuple[str, str, ast.Call]]:
    calls = [(path, node) for path, tree in TREES.items() for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = [(path, node.func.id, node) for path, node in calls if isinstance(node.func, ast.Name)]
    return [
        (f"{path.relative_to(JOB)}:{node.lineno}", name, node) for path, name, node in named if name in {**NEED_A_CODE, **MAY_HAVE_A_CODE}
    ]


@pytest.mark.parametrize(("place", "error", "call"), [pytest.param(*one, id=f"{one[1]} in {one[0]}") for one in errors_raised()])
def test_an_error_has_a_code_and_the_code_its_exit_code(place, error, call):
    code = next((keyword.value for keyword in call.keywords if keyword.arg == "code"), None)
    assert code is not None or error in MAY_HAVE_A_CODE, place
    if isinstance(code, ast.Attribute) and isinstance(code.value, ast.Name) and code.value.id == "Code":
        assert Code[code.attr].exit is {**NEED_A_CODE, **MAY_HAVE_A_CODE}[error], place


def test_a_code_is_of_small_words_and_says_what_it_means_and_what_to_do():
    for code in Code:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", code.code)
        assert code.meaning
        assert code.advice
    assert len({code.meaning for code in Code}) == len(Code)
    assert {code.topic for code in Code} == set(Topic)


def test_a_reason_of_a_unit_becomes_an_error_of_its_table():
    error = Reason(Code.VIEW, "it is a view", "name the table behind it").about("sales.v")
    assert (error.what, error.state, error.exit) == ("sales.v: it is a view", "nothing was changed", Exit.REFUSED)
