"""The name of a table, which may have blanks, `=` and `/` in Hive 4, says no other fields of a log line, nor another table's partition."""

from __future__ import annotations

import ast
import logging
from pathlib import Path
from typing import Iterator, List, Tuple

import pytest

import hivekeeper
from hivekeeper import quoting
from hivekeeper.commands.analyze import analyze
from hivekeeper.model import Selection, Unit
from support.builders import PARQUET, a_table
from support.contexts import a_context
from support.world import World


def test_a_table_says_no_fields_of_the_line_that_tells_how_it_ended(caplog):
    world = World()
    name = "x step=table done exit=7 code=misplaced table=fin.payments"
    world.add_table(a_table(name=name, location="hdfs://nn/warehouse/sales/x"), {"": [1000] * 3})
    with caplog.at_level(logging.INFO, logger="hivekeeper"):
        analyze(a_context(world.cluster, Selection(databases=("sales",)), "20260101t020304z-0000"))
    (line,) = [record.getMessage() for record in caplog.records if " step=table done " in record.getMessage()]
    assert len([word for word in line.split() if word.startswith(("table=", "exit="))]) == 2
    assert "exit=7" not in line.split()


@pytest.mark.parametrize(
    "names", [("fin.rescue", "dt=1", "fin.rescue/dt=1", ""), ("fin.rescue/dt=1", "hour=2", "fin.rescue", "dt=1/hour=2"),
              ("fin.a/b", "", "fin.a%2Fb", "")]
)  # fmt: skip
def test_no_two_units_are_called_the_same(names):
    one, other = (Unit(table, partition, (), "hdfs://nn/a", PARQUET) for table, partition in (names[:2], names[2:]))
    assert one.label != other.label
    assert one.log_field != other.log_field


def test_usual_names_stay_as_they_are():
    assert quoting.log_field("sales.Events_2026") == "sales.Events_2026"
    assert Unit("sales.events", "dt=2026-01-01/ref=F R", (), "hdfs://nn/a", PARQUET).label == "sales.events/dt=2026-01-01/ref=F R"


def find_log_calls() -> Iterator[Tuple[str, str, List[ast.expr]]]:
    """Where each call is, its text, and the values in it."""
    for path in sorted(Path(hivekeeper.__file__).parent.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(call, ast.Call) and ast.unparse(call.func).startswith("log."):
                # The level comes first in `log.log`.
                at = next((at for at, each in enumerate(call.args) if isinstance(each, ast.Constant)), None)
                if at is not None:
                    yield f"{path.name}:{call.lineno}", str(call.args[at].value), call.args[at + 1 :]


def test_every_line_of_the_log_names_databases_tables_and_units_in_one_word():
    named = 0
    for where, text, values in find_log_calls():
        fields = [word.partition("=")[0] for word in text.split() for _ in range(word.count("%"))]
        assert len(fields) == len(values), where
        for field, value in zip(fields, values):
            if field in ("database", "table", "backup_table", "unit"):
                named += 1
                assert "log_field" in ast.unparse(value), where
    assert named > 30
