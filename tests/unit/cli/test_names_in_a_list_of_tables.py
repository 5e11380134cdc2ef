"""A list of tables that is made from SHOW TABLES each night has the names that others gave to theirs."""

from __future__ import annotations

import json

import pytest

from hivekeeper.cli import command_line, parser
from hivekeeper.codes import Exit
from hivekeeper.commands.analyze import analyze
from hivekeeper.errors import UsageError
from hivekeeper.model import Selection
from hivekeeper.report import document, screen
from support.builders import a_table
from support.contexts import QUIET, a_context
from support.world import World


def select(*words):
    return command_line.read_selection(parser.build_parser().parse_args(["compact-swap", *words]))


def write(path, *lines):
    path.write_text("".join(f"{line}\n" for line in lines))
    return ["--tables-file", str(path)]


@pytest.mark.parametrize("name", ["sales.my.own", "sales.", "own", "@hive#sales.own", "sales.o\x1bn"])
def test_a_table_whose_name_nobody_can_say_costs_the_others_in_the_list_nothing(tmp_path, name):
    """Hive 4 allows a dot in the name of a table; in a run over the database such a table is refused, and the others are done."""
    listed = ["sales.events", name]
    assert select(*write(tmp_path / "tables", *listed)).tables == select("--tables", ",".join(listed)).tables == tuple(listed)


@pytest.mark.parametrize("name", ["sales.my.own", "own", "@hive#sales.own"])
def test_where_no_table_is_left_or_somebody_has_typed_it_the_command_line_is_wrong(tmp_path, name):
    for words in (["--table", name, "--tables", "sales.events"], ["--tables", name], write(tmp_path / "tables", name)):
        with pytest.raises(UsageError, match=name):
            select(*words)


@pytest.mark.parametrize("name", ["sales.my.own", "own", "@hive#sales.own", "sales.o\x1bn"])
def test_such_a_name_is_told_as_a_table_that_is_not_there(name):
    world = World()
    world.add_table(a_table(["dt"]), {"dt=1": [1000] * 3})
    result = analyze(a_context(world.cluster, Selection(tables=(name, "sales.events")), "20260101t020304z-0000", QUIET))
    assert [(table.table, table.code) for table in result.tables] == [(name, Exit.REFUSED), ("sales.events", Exit.DONE)]
    assert result.tables[0].problem.code.code == "no-such-table"
    assert all("\x1b" not in told for told in (screen.render(result), document.to_json(document.build(result))))
    assert [table["table"] for table in json.loads(document.to_json(document.build(result)))["tables"]] == [name, "sales.events"]
