"""Quoting, without a cluster. tests/contract/test_quoting.py proves that Spark and Hive agree."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hivekeeper import quoting
from hivekeeper.report import screen
from support.builders import a_table
from support.desk import Desk
from support.world import World

SOURCE = Path(quoting.__file__).parent

NASTY = ("it's", 'a"b', "a`b", "a\\b", "F R", "a/b", "a%2Fb", "a:b", "a=b", "été 日本 😀", "[x]{y}^*?#", "${env:HOME}", "\\'", "%", "")
COLUMN = st.from_regex(r"[a-z_][a-z0-9_]*", fullmatch=True)


def undo_literal(sql: str) -> str:
    """What Spark's parser does with the escapes that literal() uses."""
    assert sql[0] == sql[-1] == "'"
    found, rest = [], iter(sql[1:-1])
    for char in rest:
        assert char != "'", "the literal ends too early"
        found.append(next(rest) if char == "\\" else char)
    return "".join(found)


@given(st.text())
@example("\\")
@example("'")
@example("\\'; drop table x --")
def test_a_literal_holds_any_text_and_ends_where_it_should(text):
    assert undo_literal(quoting.literal(text)) == text


@given(st.text())
def test_an_identifier_ends_only_at_its_own_back_quote(name):
    quoted = quoting.identifier(name)
    assert quoted[0] == quoted[-1] == "`"
    assert "`" not in quoted[1:-1].replace("``", "")
    assert quoted[1:-1].replace("``", "`") == name


@given(st.text())
@example("a%2Fb")
@example("%")
@example("%25%")
def test_what_is_escaped_is_unescaped_to_the_same_text(text):
    assert quoting.unescape(quoting.escape(text)) == text


@given(st.text())
def test_an_escaped_component_is_one_directory_name_without_an_equals_sign(text):
    assert not set(quoting.escape(text)) & set('/=:*?"#\\{[]^')


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("2026-01-01", "dt=2026-01-01"),
        ("F R", "dt=F R"),
        ("a/b", "dt=a%2Fb"),
        ("a%2Fb", "dt=a%252Fb"),
        ("12:30", "dt=12%3A30"),
        ("a=b", "dt=a%3Db"),
        ("it's", "dt=it%27s"),
        ("a\\b", "dt=a%5Cb"),
        ("a`b", "dt=a`b"),
        ("{[x]}", "dt=%7B%5Bx%5D}"),
        ("été 日本", "dt=été 日本"),
        ("\x00\t\x7f", "dt=%00%09%7F"),
        ("", "dt=__HIVE_DEFAULT_PARTITION__"),
        (quoting.HIVE_NULL, "dt=__HIVE_DEFAULT_PARTITION__"),
    ],
)
def test_a_partition_name_is_hives_own(value, name):
    assert quoting.partition_name(["dt"], [value]) == name


def test_a_partition_name_spells_columns_in_lower_case():
    assert quoting.partition_name(["DT", "Ref"], ["A", "B"]) == "dt=A/ref=B"


@given(st.lists(st.tuples(COLUMN, st.text(min_size=1)), min_size=1, max_size=4, unique_by=lambda pair: pair[0]))
def test_values_come_back_from_a_partition_name_in_its_order(pairs):
    name = quoting.partition_name([column for column, _ in pairs], [value for _, value in pairs])
    assert list(quoting.partition_values(name).items()) == pairs


def test_a_table_in_a_command_to_copy_is_quoted_for_a_shell():
    """With metastore.support.special.characters.tablename, Hive's default, a name may hold such characters, and its owner chooses it."""
    world = World()
    world.add_table(a_table(name="e;id"), {"": [1000] * 3})
    desk = Desk(world, table="sales.e;id")
    desk.compact()
    (table,) = desk.rollback("20200101t000000z-0000").tables
    assert table.problem.next.startswith("hivekeeper history --table 'sales.e;id' ")
    assert shlex.split(screen.render(desk.rollback()).splitlines()[-1])[-3:-2] == ["sales.e;id"]


def test_each_command_to_copy_quotes_its_table():
    sources = [path.read_text("utf-8") for path in SOURCE.rglob("*.py")]
    told = [line for text in sources for line in text.splitlines() if "--table {" in line or '--table "' in line]
    assert len(told) > 10
    assert [line for line in told if "--table {quoting.shell(" not in line] == []


CONTROLS = ("cus\tomers", "a\nb'c", "\x07\\t$(id)", "\u202eb\x85", "\udc80", "{a,\tb}*?[c]\\")


@pytest.mark.parametrize("text", [*NASTY, *CONTROLS], ids=ascii)
def test_what_a_message_shows_is_one_argument_for_a_shell(text):
    """Also what cannot be printed, which every output would replace by escapes that are other characters to a shell."""
    shown = quoting.shell(text)
    assert shown.isprintable()
    found = subprocess.run(["bash", "-c", f"printf %s {shown}"], stdout=subprocess.PIPE, check=True)
    assert found.stdout == text.encode("utf-8", "surrogatepass")


def test_an_argument_is_not_ended_by_a_zero_in_a_name():
    assert quoting.shell("/w/orders\0/x") == "'/w/orders\ufffd/x'"


def test_each_path_of_an_hdfs_command_to_copy_is_no_pattern():
    told = [found for path in SOURCE.rglob("*.py") for found in re.findall(r"hdfs dfs -[^{`]*\{(.*)", path.read_text("utf-8"))]
    assert len(told) == 13
    assert [line for line in told if not line.startswith("quoting.hdfs(") or "quoting.shell(control" in line] == []
