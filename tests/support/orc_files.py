"""Directories of ORC files as Arrow and ORC's own Java library write them; the library can write what Arrow and Spark cannot."""

from __future__ import annotations

import decimal
from pathlib import Path
from typing import Any, Mapping, Sequence

import pyarrow as pa
import pyarrow.orc as po

from hivekeeper.cluster.java_classes import JavaPackage, JavaSource, compiled
from support.foreign_files import ROWS

# Every kind of type that a struct may hold.
SCHEMA = (
    "struct<id:bigint,flag:boolean,tiny:tinyint,small:smallint,real:float,wide:double,name:string,raw:binary,fixed:char(5),"
    "limited:varchar(10),at:timestamp,moment:timestamp with local time zone,day:date,price:decimal(10,2),huge:decimal(38,10),"
    "either:uniontype<int,string>,tags:map<string,array<int>>,inner:struct<a:int,b:struct<c:array<timestamp>,d:char(3)>>>"
)

_JAVA = """
package fixture;
import java.nio.ByteBuffer;
import java.util.TimeZone;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.hadoop.hive.ql.exec.vector.BytesColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DecimalColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.DoubleColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.ListColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.LongColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.MapColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.StructColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.TimestampColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.UnionColumnVector;
import org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatch;
import org.apache.orc.CompressionKind;
import org.apache.orc.OrcFile;
import org.apache.orc.OrcProto;
import org.apache.orc.Reader;
import org.apache.orc.RecordReader;
import org.apache.orc.StripeInformation;
import org.apache.orc.TypeDescription;
import org.apache.orc.Writer;
import org.apache.orc.impl.RecordReaderImpl;

public class OrcFixture {
  public OrcFixture() {}

  /** Values depend on `first` and the row. Timestamps are instants from `start` (ms) in steps of `step`. */
  public void write(String path, String schema, String zone, boolean proleptic, String blooms, long start, long step, int first, int rows)
      throws Exception {
    TimeZone before = TimeZone.getDefault();
    TimeZone.setDefault(TimeZone.getTimeZone(zone));
    try {
      TypeDescription type = TypeDescription.fromString(schema);
      ((TypeDescription) type.getChildren().get(0)).setAttribute("note", "k=v; \\u00e9");
      OrcFile.WriterOptions how = OrcFile.writerOptions(new Configuration()).setSchema(type).compress(CompressionKind.ZLIB);
      how.setProlepticGregorian(proleptic).bloomFilterColumns(blooms).rowIndexStride(2000);
      Writer writer = OrcFile.createWriter(new Path(path), how);
      writer.addUserMetadata("owner", ByteBuffer.wrap(new byte[] {0, 1, (byte) 200}));
      VectorizedRowBatch batch = type.createRowBatch();
      for (int row = first; row < first + rows; row++) {
        int at = batch.size++;
        for (int i = 0; i < batch.cols.length; i++) set(batch.cols[i], at, row, i, start + step * row);
        if (batch.size < batch.getMaxSize() && row < first + rows - 1) continue;
        writer.addRowBatch(batch);
        batch.reset();
      }
      writer.close();
    } finally {
      TimeZone.setDefault(before);
    }
  }

  private void set(ColumnVector vector, int at, int row, int salt, long instant) {
    if ((row + salt) % 13 == 0 && salt != 0) {
      vector.noNulls = false;
      vector.isNull[at] = true;
    } else if (vector instanceof LongColumnVector) {
      ((LongColumnVector) vector).vector[at] = salt == 1 ? row % 2 : salt == 2 ? row % 100 : salt == 12 ? row * 7 - 719000 : row;
    } else if (vector instanceof DoubleColumnVector) {
      ((DoubleColumnVector) vector).vector[at] = row / 1024 % 2 == 0 ? (row % 2 == 0 ? 0.0 : -0.0) : row % 5 == 0 ? Double.NaN : row / 4.0;
    } else if (vector instanceof BytesColumnVector) {
      ((BytesColumnVector) vector).setVal(at, ("v" + row % 50 + (row % 3 == 0 ? "  " : "")).getBytes());
    } else if (vector instanceof TimestampColumnVector) {
      ((TimestampColumnVector) vector).time[at] = instant;
      ((TimestampColumnVector) vector).nanos[at] = (int) (((instant % 1000) + 1000) % 1000 * 1000000 + row % 1000);
    } else if (vector instanceof DecimalColumnVector) {
      ((DecimalColumnVector) vector).set(at, HiveDecimal.create((row - 300) + "." + row % 100));
    } else {
      nested(vector, at, row, instant);
    }
  }

  private void nested(ColumnVector vector, int at, int row, long instant) {
    if (vector instanceof UnionColumnVector) {
      ((UnionColumnVector) vector).tags[at] = row % 2;
      set(((UnionColumnVector) vector).fields[row % 2], at, row, 30, instant);
    } else if (vector instanceof StructColumnVector) {
      ColumnVector[] fields = ((StructColumnVector) vector).fields;
      for (int i = 0; i < fields.length; i++) set(fields[i], at, row, 40 + i, instant);
    } else if (vector instanceof ListColumnVector) {
      ListColumnVector lists = (ListColumnVector) vector;
      lists.offsets[at] = lists.childCount;
      lists.lengths[at] = row % 4;
      lists.childCount += row % 4;
      lists.child.ensureSize(lists.childCount, true);
      for (int i = 0; i < row % 4; i++) set(lists.child, (int) lists.offsets[at] + i, row + i, 50, instant);
    } else {
      MapColumnVector maps = (MapColumnVector) vector;
      maps.offsets[at] = maps.childCount;
      maps.lengths[at] = row % 3;
      maps.childCount += row % 3;
      maps.keys.ensureSize(maps.childCount, true);
      maps.values.ensureSize(maps.childCount, true);
      for (int i = 0; i < row % 3; i++) {
        ((BytesColumnVector) maps.keys).setVal((int) maps.offsets[at] + i, ("k" + (9 - i)).getBytes());
        set(maps.values, (int) maps.offsets[at] + i, row + i, 60, instant);
      }
    }
  }

  /** Every row as text, as a reader in this zone sees it; one path a line. */
  public String read(String paths, String zone) throws Exception {
    TimeZone before = TimeZone.getDefault();
    TimeZone.setDefault(TimeZone.getTimeZone(zone));
    try {
      StringBuilder out = new StringBuilder();
      for (String path : paths.split("\\n")) {
        Reader reader = OrcFile.createReader(new Path(path), OrcFile.readerOptions(new Configuration()));
        RecordReader rows = reader.rows();
        VectorizedRowBatch batch = reader.getSchema().createRowBatch();
        while (rows.nextBatch(batch)) {
          for (ColumnVector column : batch.cols) {
            // The library takes 0.0 and -0.0 as one repeated value, but has read each in its place.
            if (column instanceof DoubleColumnVector && column.noNulls) column.isRepeating = false;
          }
          for (int row = 0; row < batch.size; row++) {
            for (int i = 0; i < batch.cols.length; i++) batch.cols[i].stringifyValue(out, row);
            out.append('\\n');
          }
        }
        rows.close();
        reader.close();
      }
      return out.toString();
    } finally {
      TimeZone.setDefault(before);
    }
  }

  /** What a footer says of its values and how they are stored: types, metadata, calendar, zones, codec, stride, columns with blooms. */
  public String describe(String path) throws Exception {
    Reader reader = OrcFile.createReader(new Path(path), OrcFile.readerOptions(new Configuration()));
    OrcProto.Footer footer = reader.getFileTail().getFooter();
    StringBuilder out = new StringBuilder();
    for (int i = 0; i < footer.getTypesCount(); i++) out.append(footer.getTypes(i));
    for (int i = 0; i < footer.getMetadataCount(); i++) out.append(footer.getMetadata(i));
    out.append(footer.hasCalendar() ? footer.getCalendar().name() : "no calendar");
    out.append(' ').append(reader.getCompressionKind()).append(' ').append(reader.getRowIndexStride());
    RecordReaderImpl rows = (RecordReaderImpl) reader.rows();
    for (Object stripe : reader.getStripes()) {
      OrcProto.StripeFooter one = rows.readStripeFooter((StripeInformation) stripe);
      out.append(" [").append(one.getWriterTimezone());
      for (int i = 0; i < one.getStreamsCount(); i++) {
        if (one.getStreams(i).getKind().name().startsWith("BLOOM")) out.append(" ").append(one.getStreams(i).getColumn());
      }
      out.append("]");
    }
    rows.close();
    reader.close();
    return out.toString();
  }

  public String statistics(String path, int column) throws Exception {
    Reader reader = OrcFile.createReader(new Path(path), OrcFile.readerOptions(new Configuration()));
    String found = String.valueOf(reader.getOrcProtoFileStatistics().get(column));
    reader.close();
    return found;
  }
}
"""

_PACKAGES: dict = {}


def fixture(gateway: Any) -> Any:
    """The Java side: it writes, reads and describes ORC files."""
    key = gateway.java_gateway._gateway_client
    if key not in _PACKAGES:
        core = compiled(gateway.java_gateway)
        package = JavaPackage(gateway.jvm, "hivekeeper.fixture", [JavaSource("OrcFixture.java", _JAVA)], core.loader)
        _PACKAGES[key] = core.factory.make(package.find("OrcFixture"))
    return _PACKAGES[key]


def write_java(gateway: Any, directory: Path, files: int = 2, rows: int = 3000, **more: Any) -> None:
    """Files of equal meaning. A step of 37 minutes makes every wall clock of a year come up, with those that come twice."""
    directory.mkdir(parents=True, exist_ok=True)
    usual = {"schema": SCHEMA, "zone": "UTC", "proleptic": False, "blooms": "id", "start": 1_600_000_000_123, "step": 37 * 60_000}
    for number in range(files):
        path = f"file:{directory / f'{number}.orc'}"
        fixture(gateway).write(path, *{**usual, **more}.values(), number * rows, rows)


def arrow_columns() -> Mapping[str, pa.Array]:
    rows = range(ROWS)
    return {
        "i8": pa.array([row % 128 for row in rows], pa.int8()),
        "i64": pa.array([None if row % 11 == 0 else row * 2654435761 for row in rows]),
        "f32": pa.array([-0.0 if row % 2 else 0.0 for row in rows], pa.float32()),
        "f64": pa.array([float("nan") if row % 19 == 0 else row / 3 for row in rows]),
        "b": pa.array([None if row % 7 == 0 else row % 2 == 0 for row in rows]),
        "at": pa.array([(row - 200) * 10**15 + row for row in rows], pa.timestamp("ns")),
        "day": pa.array([row * 100 - 20000 for row in rows], pa.int32()).cast(pa.date32()),
        "price": pa.array([decimal.Decimal(row) / 100 for row in rows], pa.decimal128(7, 2)),
        "huge": pa.array([decimal.Decimal(-row) * 10**30 for row in rows], pa.decimal128(38, 2)),
        "text": pa.array([None if row % 5 == 0 else f"é{row % 50} " for row in rows]),
        "bytes": pa.array([bytes([row % 256]) * (row % 9) for row in rows]),
        "nothing": pa.array([None] * ROWS, pa.int32()),
        "nested": pa.array(
            [None if row % 4 == 0 else [{"a": row, "m": [("z", 1.5), ("a", None)][: row % 3]}, None] for row in rows],
            pa.list_(pa.struct([("a", pa.int64()), ("m", pa.map_(pa.string(), pa.float64()))])),
        ),
        "a.b": pa.array(rows),
        "a`c": pa.array(rows),
        "__hivekeeper_unit": pa.array(rows),
    }


def write_arrow(directory: Path, columns: Mapping[str, pa.Array], slices: Sequence[int] = (0, 300), **options: Any) -> None:
    """The rows of a table in several files, each from its slice's start to the next."""
    directory.mkdir(parents=True, exist_ok=True)
    table = pa.table(dict(columns))
    for number, (start, end) in enumerate(zip(slices, [*slices[1:], len(table)])):
        po.write_table(table.slice(start, end - start), directory / f"{number}.orc", **{"compression": "zlib", **options})
