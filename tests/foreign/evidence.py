"""What readers that are not Spark find in a directory of data files: bags of rows, each with how its file describes them.

Uses no Hivekeeper code. Two directories read the same if they have equal evidence.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq

from foreign import footers
from foreign.cases import ORC

# By reader: a bag of (description, row). A reader that cannot read the files is not there.
Evidence = Mapping[str, Counter]
# The reader that also sees what only a copy of the footers keeps.
FOOTERS = "footers"
HIVE = "hive 3.1.3"


def data_files(directory: Path) -> List[Path]:
    return sorted(path for path in directory.iterdir() if path.is_file() and not path.name.startswith((".", "_")))


def hashes(directory: Path) -> Dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in data_files(directory)}


def gather(directory: Path, format: str, columns: str = "", hive: Any = None) -> Evidence:
    """Everything that every reader finds; `columns` is the DDL of a table over the directory, for `hive`, a HiveReader."""
    readers = dict(orc_readers() if format == ORC else parquet_readers())
    if hive is not None:
        readers[HIVE] = partial(read_by_hive, hive=hive, is_orc=format == ORC, columns=columns)
    found: Dict[str, Counter] = {}
    for name, read in readers.items():
        bag: Counter = Counter()
        try:
            for path in data_files(directory):
                # Readers of directories leave empty files out.
                bag.update(read(path) if path.stat().st_size else ())
        except Exception:  # a reader may fail in any way for a file of a stranger
            continue
        found[name] = bag
    return found


def examples(before: Counter, after: Optional[Counter]) -> Any:
    """A row that is gone and a row that is new, for a message."""
    if after is None:
        return "cannot be read any more"
    return [next(iter(bag.elements()), None) for bag in (before - after, after - before)]


Rows = Iterator[Tuple[Any, str]]


def parquet_readers() -> Dict[str, Callable[[Path], Rows]]:
    return {"pyarrow": read_by_arrow, FOOTERS: read_forms, **duckdb_readers(), **pandas_readers()}


def orc_readers() -> Dict[str, Callable[[Path], Rows]]:
    return {"pyarrow": read_orc, FOOTERS: read_orc_footers}


def read_by_hive(path: Path, hive: Any, is_orc: bool, columns: str) -> Rows:
    """As a query of the table would; columns that the file lacks are NULL."""
    pairs = [column.split(" ", 1) for column in columns.lower().split(", ")]
    names, types = (separator.join(found) for separator, found in zip(",:", zip(*pairs)))
    return (("", row) for row in hive.rows(f"file:{path}", path.stat().st_size, is_orc, names, types))


# ---- Parquet


def read_by_arrow(path: Path) -> Rows:
    """Each row as it is stored, with the columns' names and types as Arrow understands them (not with whether they may be NULL)."""
    schema = pq.ParquetFile(path).schema_arrow
    types = tuple((name, str(kind).replace(" not null", "")) for name, kind in zip(schema.names, schema.types))
    return ((types, row) for row in bare_rows(path.read_bytes()))


def read_forms(path: Path) -> Rows:
    """Each row as it is stored, with its footer's own bytes."""
    content = path.read_bytes()
    form = footers.form_of(content)
    form = form._replace(key_values=labelled(content) or form.key_values)
    return ((form, row) for row in bare_rows(content))


def labelled(content: bytes) -> str:
    """The key-values of pandas' files, whatever their number of rows: a range from 0 to it is what rows without labels have."""
    file = pq.ParquetFile(pa.BufferReader(content)).metadata
    keys = dict(file.metadata or {})
    if b"pandas" not in keys:
        return ""
    schema = (
        pa.ipc.read_schema(pa.py_buffer(base64.b64decode(keys.pop(b"ARROW:schema", b"")))) if b"ARROW:schema" in keys else pa.schema([])
    )
    both = [keys, dict(schema.metadata or {})]
    for metadata in both:
        if b"pandas" in metadata:
            said = json.loads(metadata[b"pandas"])
            if said["index_columns"] == [{"kind": "range", "name": None, "start": 0, "stop": file.num_rows, "step": 1}]:
                said["index_columns"] = []
            metadata[b"pandas"] = json.dumps(said, sort_keys=True).encode()
    return repr([schema.remove_metadata().to_string(), *(sorted(metadata.items()) for metadata in both)])


def bare_rows(content: bytes) -> Iterator[str]:
    """Whole numbers, bytes and NULLs: the bits of every float, the twelve bytes of INT96, the nanoseconds of times."""
    file = pq.ParquetFile(pa.BufferReader(footers.bare(content)), page_checksum_verification=True)
    for batch in file.iter_batches(batch_size=2**20):
        yield from map(repr, zip(*(column.to_pylist() for column in batch.columns)))


def duckdb_readers() -> Dict[str, Callable[[Path], Rows]]:
    """None without the package: `make test` does not need it, `make test-foreign` installs it."""
    try:
        import duckdb
    except ImportError:
        return {}
    connection = duckdb.connect()

    def read(path: Path) -> Rows:
        files = f"read_parquet('{path}', hive_partitioning = false)"
        described = connection.sql(f"DESCRIBE SELECT * FROM {files}").fetchall()
        types = tuple((name, kind) for name, kind, *_ in described)
        # As text, because Python's values lack nanoseconds.
        texts = ", ".join('"{}"::VARCHAR'.format(name.replace('"', '""')) for name, _ in types)
        return ((types, repr(row)) for row in connection.sql(f"SELECT {texts} FROM {files}").fetchall())

    return {"duckdb": read}


def pandas_readers() -> Dict[str, Callable[[Path], Rows]]:
    """What pandas makes of a file's labels: the names of columns and index, and each label, unless they only count the rows.

    Only of files that have some: fastparquet crashes at pages of some other writers.
    """
    try:
        import fastparquet  # noqa: F401
        import pandas
    except ImportError:
        return {}

    def read(path: Path, engine: str) -> Rows:
        if b"pandas" not in (pq.read_metadata(path).metadata or {}):
            return iter(())
        frame = (
            pandas.read_parquet(path, engine=engine, partitioning=None) if engine == "pyarrow" else pandas.read_parquet(path, engine=engine)
        )
        index = frame.index
        counts = index.equals(pandas.RangeIndex(len(frame))) and index.names == [None]
        described = (tuple(frame.columns), tuple(index.names))
        return ((described, "" if counts else repr(label)) for label in index)

    return {f"pandas-{engine}": partial(read, engine=engine) for engine in ("pyarrow", "fastparquet")}


# ---- ORC


def read_orc(path: Path) -> Rows:
    """Each row with the columns' names, types and attributes."""
    file = po.ORCFile(path)
    table = file.read()
    described = table.schema.remove_metadata().to_string()
    columns = [exact_values(column) for column in table.columns]
    return ((described, repr(row)) for row in zip(*columns))


def read_orc_footers(path: Path) -> Rows:
    """Each row with the file's own metadata."""
    described = tuple(sorted((po.ORCFile(path).schema.metadata or {}).items()))
    return ((described, row) for _, row in read_orc(path))


def exact_values(column: Any) -> List[Any]:
    return [value for chunk in column.chunks for value in exact(chunk)]


def exact(array: Any) -> List[Any]:
    """The values of an array, floats as their bits and timestamps as whole numbers."""
    kind = array.type
    if pa.types.is_timestamp(kind):
        return list(array.cast(pa.int64()).to_pylist())
    if pa.types.is_floating(kind):
        return [None if value is None else struct.pack("<d", value).hex() for value in array.to_pylist()]
    if pa.types.is_map(kind):
        return _nested(array, list(zip(exact(array.keys), exact(array.items))))
    if pa.types.is_list(kind):
        return _nested(array, exact(array.values))
    if pa.types.is_struct(kind):
        fields = [exact(array.field(index)) for index in range(kind.num_fields)]
        return [row if valid else None for row, valid in zip(zip(*fields), array.is_valid().to_pylist())]
    if pa.types.is_union(kind):
        tags = array.type_codes.to_pylist()
        fields = [exact(array.field(index)) for index in range(kind.num_fields)]
        return [(tag, fields[tag][row]) for row, tag in enumerate(tags)]
    return list(array.to_pylist())


def _nested(array: Any, values: List[Any]) -> List[Any]:
    """Lists of these values; a map's entries keep their order."""
    offsets = array.offsets.to_pylist()
    pairs = zip(offsets, offsets[1:], array.is_valid().to_pylist())
    return [tuple(values[begin:end]) if valid else None for begin, end, valid in pairs]
