"""What readers that are not Spark find in a directory of data files: bags of rows, each with how its file describes them.

Uses no Hivekeeper code. Two directories read the same if they have equal evidence.
"""

from __future__ import annotations

import hashlib
import struct
from collections import Counter
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


def data_files(directory: Path) -> List[Path]:
    return sorted(path for path in directory.iterdir() if path.is_file() and not path.name.startswith((".", "_")))


def hashes(directory: Path) -> Dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in data_files(directory)}


def gather(directory: Path, format: str) -> Evidence:
    """Everything that every reader finds."""
    readers = orc_readers() if format == ORC else parquet_readers()
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
    return {"pyarrow": read_by_arrow, FOOTERS: read_forms, **duckdb_readers()}


def orc_readers() -> Dict[str, Callable[[Path], Rows]]:
    return {"pyarrow": read_orc, FOOTERS: read_orc_footers}


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
    return ((form, row) for row in bare_rows(content))


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
