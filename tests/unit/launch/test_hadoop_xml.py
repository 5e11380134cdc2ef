"""Hadoop's configuration files, as Hadoop reads them."""

from __future__ import annotations

import pytest

from hivekeeper.launch.hadoop_xml import read_hadoop_file


def prop(name, value, more=""):
    return f"<property>\n  <name> {name} </name>\n  <value>\n{value}</value>{more}\n</property>"


@pytest.fixture
def read(tmp_path):
    def read(*properties):
        path = tmp_path / "core-site.xml"
        path.write_text(f"<?xml version='1.0'?>\n<configuration>{''.join(properties)}</configuration>", "utf-8")
        return read_hadoop_file(path)

    return read


def test_values_are_read_without_blanks_and_comments(read):
    found = read(
        "<!-- " + prop("a", "commented out") + " -->", prop("a", " hdfs://nn "), prop("b", ""), "<property><name>c</name></property>"
    )
    assert (found.properties, found.error) == ({"a": "hdfs://nn", "b": "", "c": ""}, "")


def test_the_last_value_counts_unless_an_earlier_one_is_final(read):
    final = "<final>true</final>"
    assert read(prop("a", "1"), prop("a", "2")).properties == {"a": "2"}
    assert read(prop("a", "1", final), prop("a", "2")).properties == {"a": "1"}
    assert read(prop("a", "1", "<final>false</final>"), prop("a", "2", final)).properties == {"a": "2"}


def test_a_local_file_may_be_included(read, tmp_path):
    (tmp_path / "more.xml").write_text(f"<configuration>{prop('b', '2')}</configuration>", "utf-8")
    include = '<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="more.xml"/>'
    assert read(prop("a", "1"), include).properties == {"a": "1", "b": "2"}
    (tmp_path / "more.xml").unlink()
    assert "more.xml" in read(prop("a", "1"), include).error


def test_variables_stay_as_they_are_written(read):
    assert read(prop("a", "${env.NN}")).properties == {"a": "${env.NN}"}


def test_a_file_that_cannot_be_read_is_a_fact(tmp_path, read):
    assert read_hadoop_file(tmp_path / "none.xml").error
    assert read("<property>").error


def test_the_first_name_that_has_a_value_counts(read):
    found = read(prop("a", ""), prop("c", "3"), prop("b", "2"))
    assert (found.first_of(["a", "b", "c"]), found.first_of(["a", "x"])) == ("2", "")
