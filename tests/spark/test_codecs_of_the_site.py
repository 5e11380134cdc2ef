"""Codecs of Parquet that a site adds to the class path (hadoop-lzo, Brotli), of which nobody knows what they make of a damaged page."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hivekeeper.cluster.rows import SparkRows
from support.data_files import form_of

# The name that Parquet has for it. It only has to be there.
CODEC = "package org.apache.hadoop.io.compress; public class BrotliCodec extends DefaultCodec {}"


@pytest.fixture
def installed(gateway):
    conf, compiler = gateway.hadoop_conf, gateway.jvm.org.codehaus.janino.SimpleCompiler()
    before = conf.getClassLoader()
    compiler.setParentClassLoader(before)
    compiler.cook(CODEC)
    conf.setClassLoader(compiler.getClassLoader())
    yield
    conf.setClassLoader(before)


@pytest.mark.usefixtures("installed")
def test_no_file_is_read_by_a_codec_that_was_not_tried(gateway, tmp_path):
    (tmp_path / "u").mkdir()
    pq.write_table(pa.table({"id": [1, 2, 3]}), tmp_path / "u" / "a.parquet", compression="brotli")
    assert form_of(SparkRows(gateway), "parquet", tmp_path / "u").undecodable == ("the codec BROTLI",)
