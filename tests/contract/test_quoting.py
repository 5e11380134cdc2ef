"""Names of partitions and texts of SQL, judged by Hive's and Spark's own code."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hivekeeper import quoting
from support.metastore_worlds import NASTY
from support.storage import local_only


@local_only
def test_every_character_is_escaped_as_hive_does(gateway):
    hive = gateway.jvm.org.apache.hadoop.hive.common.FileUtils
    text = "".join(map(chr, range(0x250))) + "日😀"
    assert quoting.escape(text) == str(hive.escapePathName(text))
    assert quoting.unescape(quoting.escape(text)) == str(hive.unescapePathName(hive.escapePathName(text)))


@local_only
@pytest.mark.parametrize("value", [*NASTY, quoting.HIVE_NULL, ""])
def test_a_partition_name_is_the_one_that_hive_makes(gateway, value):
    name = gateway.jvm.org.apache.hadoop.hive.common.FileUtils.makePartName(["DT", "ref"], [value, "x"])
    assert quoting.partition_name(["DT", "ref"], [value, "x"]) == str(name)


@local_only
@given(texts=st.lists(st.text(st.characters(blacklist_categories=["Cs"])), min_size=1, max_size=20))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_spark_reads_back_every_literal_and_identifier(guarded, texts):
    texts = [*texts, *NASTY, "\\%", "\\_", "\\u0041", "\\101", "a;--", "\n"]
    columns = ", ".join(f"{quoting.literal(text)} AS {quoting.identifier(f'{number}{text}')}" for number, text in enumerate(texts))
    found = guarded.sql(f"SELECT {columns}")
    assert found.columns == [f"{number}{text}" for number, text in enumerate(texts)]
    assert list(found.first()) == texts
