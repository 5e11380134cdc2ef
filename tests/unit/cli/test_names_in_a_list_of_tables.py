"""A list of tables that is made from SHOW TABLES each night has the names that others gave to theirs."""

from __future__ import annotations

from hivekeeper.cli import command_line, parser


def test_a_table_whose_name_nobody_can_say_costs_the_others_in_the_list_nothing(tmp_path):
    """Hive 4 allows a dot in the name of a table; in a run over the database such a table is refused, and the others are done."""
    listed = tmp_path / "tables"
    listed.write_text("sales.events\nsales.my.own\n")
    parsed = parser.build_parser().parse_args(["compact-swap", "--tables-file", str(listed)])
    assert "sales.events" in command_line.read_selection(parsed).tables
