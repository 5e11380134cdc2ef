"""The tables of docs/swap.md that say what a kill leaves, against the changes that the commands really make."""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path
from typing import Callable, Dict, List, Optional, Set, Tuple

import pytest

from hivekeeper.plan.recover import Move, next_move
from support.builders import a_table
from support.desk import Desk
from support.fakes.rows import DataFile
from support.world import World

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "swap.md").read_text("utf-8")


def rows_of(command: str) -> List[List[str]]:
    text = re.search(rf"^### {command}\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)[1]
    return [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")][2:]


def told_changes(command: str) -> Set[str]:
    """The first cells that are code: renames, and files that are written aside first."""
    return {cell[0].strip("`") for cell in rows_of(command) if cell[0].startswith("`")}


@pytest.fixture
def desk() -> Desk:
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3})
    return Desk(world)


def told_name(name: str) -> Optional[str]:
    """A change in the words of the first column; None if it is neither a rename nor the deletion of a backup."""
    is_renamed = " → " in name and not name.endswith(" → nothing")
    return name if is_renamed or name in ("plan.json", "certificates-N.jsonl", "discarding → nothing") else None


def changes_of(desk: Desk, act: Callable[[], object], late_at: str = "") -> Set[str]:
    """What a command changes, with a writer that adds a file just before the step that ends with `late_at`."""
    seen: Set[str] = set()

    def watch(name: str) -> None:
        seen.update([name] if told_name(name) else [])
        if name == late_at:
            desk.world.files.writer.add(f"{desk.live('dt=1')}/late-{len(desk.runs)}.parquet", DataFile(("late",)), 10)

    desk.world.watch(desk.table, watch)
    act()
    desk.world.files.before_step = None
    return seen


def test_every_lasting_change_of_a_compaction_has_a_row(desk):
    assert changes_of(desk, desk.compact, "live → retired") == told_changes("compact-swap")


def test_every_lasting_change_of_a_rollback_has_a_row(desk):
    desk.compact()
    assert changes_of(desk, desk.rollback, "live → retired") == told_changes("rollback")


def test_undoing_a_rollback_makes_the_same_changes(desk):
    desk.compact()
    desk.rollback()
    seen = changes_of(desk, lambda: desk.rollback(desk.runs[1]), "live → retired")
    assert seen == told_changes("rollback")


def test_every_lasting_change_of_a_cleanup_has_a_row(desk):
    seen: Set[str] = set()
    for how in ("delete", "trash"):
        desk.compact()
        place = desk.control.run(desk.runs[-1]).unit("retired", 1)
        desk.world.files.writer.add(f"{place}/late-{how}.parquet", DataFile((how,)), 10)
        seen |= changes_of(desk, lambda how=how: desk.cleanup(how=how))
        for nth in range(3):
            desk.world.add_file(f"{desk.live('dt=1')}/{how}{nth}.parquet", [f"{how}{nth}"])
        desk.world.files.namespace.advance(3_600_000)
    assert seen == told_changes("cleanup")


def named_tests() -> List[Tuple[str, str]]:
    return sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)))


def test_every_row_names_a_test():
    for command in ("compact-swap", "rollback", "cleanup"):
        assert rows_of(command)
        for row in rows_of(command):
            assert len(row) == 4
            assert re.fullmatch(r"`[\w/]+\.py::\w+`", row[3]), row


@pytest.mark.parametrize(("path", "name"), named_tests())
def test_every_test_that_the_page_names_exists(path, name):
    tree = ast.parse((ROOT / "tests" / path).read_text("utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


HOLDS = {"any": (False, True), "holds the new files": (True,), "absent, or without them": (False,)}
ANSWERS = {"any": (False, True), "yes": (True,), "no": (False,)}


def test_the_recovery_table_of_the_docs_is_that_of_the_program():
    rows = re.search(r"\| old files have left \| new files wait \| live \| next \|\n\|[- |]+\|\n((?:\|.*\n)+)", PAGE)[1].splitlines()
    told: Dict[Tuple[bool, bool, bool], str] = {}
    for row in rows:
        left, incoming, live, move = row.strip("| ").split(" | ")
        for picture in itertools.product(ANSWERS[left], ANSWERS[incoming], HOLDS[live]):
            assert picture not in told, f"two rows speak of {picture}"
            told[picture] = move
    assert len(told) == 8
    for picture, move in told.items():
        assert move.partition(":")[0] == next_move(*picture).value.partition(":")[0], picture
    assert len({move.value.partition(":")[0] for move in Move}) == len(Move)


def refusals() -> List[str]:
    """Fragments of the refusal messages in the rollback table, without the parts that the program fills in."""
    table = re.search(r"\| message \| why \|\n\|[- |]+\|\n((?:\|.*\n)+)", PAGE)[1]
    messages = [message for row in table.splitlines() for message in re.findall(r"`([^`]+)`", row.partition(" | ")[0])]
    return [fragment.strip(" :") for message in messages for fragment in message.split("…") if fragment.strip(" :")]


@pytest.mark.parametrize("fragment", refusals())
def test_every_refusal_of_a_rollback_is_one_of_the_programs(fragment):
    sources = [ROOT / "job" / "hivekeeper" / name for name in ("plan/rollback.py", "commands/rollback.py")]
    assert any(fragment in source.read_text("utf-8") for source in sources)
