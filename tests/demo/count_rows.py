"""Count the rows of tables and fingerprint their content, without Spark and without any Hivekeeper code.

Reads local files with pyarrow, each with its own schema; takes partition values from directory names and skips
hidden names, as Hive does. The fingerprint does not depend on the order of rows or how they are split into files.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import Any, Dict, Iterator, List, Sequence, Tuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.orc
import pyarrow.parquet

FINGERPRINT_BITS = 128
FILES_A_TASK = 50

File = Tuple[str, Tuple[Tuple[str, str], ...]]


def find_files(root: str) -> Iterator[File]:
    """The data files below a table's root, each with its partition values."""
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        steps = os.path.relpath(folder, root).split(os.sep)
        values = tuple((step.partition("=")[0].lower(), unquote(step.partition("=")[2])) for step in steps if "=" in step)
        for name in names:
            if not name.startswith((".", "_")) and os.path.getsize(os.path.join(folder, name)):
                yield os.path.join(folder, name), values


def read_rows(path: str) -> pa.Table:
    """By the first bytes, not by the name: a compacted file may have another name."""
    with open(path, "rb") as file:
        magic = file.read(4)
    if magic == b"PAR1":
        return pyarrow.parquet.ParquetFile(path).read()
    if magic[:3] == b"ORC":
        return pyarrow.orc.ORCFile(path).read()
    raise SystemExit(f"count_rows.py: {path} is neither Parquet nor ORC")


def write_text(column: pa.Array) -> pa.Array:
    """Each value as a text that no other value of the column shares: NULL, '' and [] all differ."""
    kind = column.type
    if pa.types.is_map(kind):
        text = join_items(column.offsets, pa.StructArray.from_arrays([column.keys, column.items], names=["key", "value"]))
    elif pa.types.is_list(kind):
        text = join_items(column.offsets, column.values)
    elif pa.types.is_struct(kind):
        text = join_fields([field.name for field in kind], column.flatten())
    elif pa.types.is_binary(kind):
        text = pa.array([None if value is None else value.hex() for value in column.to_pylist()], pa.string())
    else:
        plain = column.cast(pa.string())
        text = pc.binary_join_element_wise(pc.binary_length(plain).cast(pa.string()), plain, ":")
    return pc.if_else(column.is_valid(), text, "null")


def join_items(offsets: pa.Array, items: pa.Array) -> pa.Array:
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, write_text(items)), ",")
    return pc.binary_join_element_wise("[", joined, "]", "")


def join_fields(names: Sequence[str], columns: Sequence[pa.Array]) -> pa.Array:
    by_name = sorted(zip(names, columns), key=lambda pair: pair[0])
    texts = [pc.binary_join_element_wise(name, write_text(column), "=") for name, column in by_name]
    return pc.binary_join_element_wise("{", *texts, "}", " ")


def fingerprint(files: Sequence[File]) -> Tuple[int, int]:
    """The number of rows, and the sum of a hash of each row with its partition values."""
    alike: Dict[Tuple[Any, pa.Schema], List[pa.Table]] = {}
    for path, values in files:
        rows = read_rows(path).replace_schema_metadata(None)
        alike.setdefault((values, rows.schema), []).append(rows)
    count, total = 0, 0
    for (values, _), tables in alike.items():
        # Files with the same schema are concatenated, only for speed; none is cast to another's.
        rows = pa.concat_tables(tables).combine_chunks()
        count += rows.num_rows
        total += sum_hashes(rows, repr(sorted(values)).encode()) if rows.num_rows else 0
    return count, total % 2**FINGERPRINT_BITS


def sum_hashes(rows: pa.Table, place: bytes) -> int:
    texts = join_fields(rows.column_names, [column.chunk(0) for column in rows.columns])
    digests = (hashlib.blake2b(text.encode() + place, digest_size=FINGERPRINT_BITS // 8).digest() for text in texts.to_pylist())
    return sum(int.from_bytes(digest, "big") for digest in digests)


def count_table(root: str, pool: ProcessPoolExecutor) -> Dict[str, Any]:
    files = sorted(find_files(root))
    shares = pool.map(fingerprint, [files[start : start + FILES_A_TASK] for start in range(0, len(files), FILES_A_TASK)])
    rows, total = 0, 0
    for share_rows, share_total in shares:
        rows += share_rows
        total += share_total
    return {
        "rows": rows,
        "digest": f"{total % 2**FINGERPRINT_BITS:032x}",
        "files": len(files),
        "bytes": sum(os.path.getsize(path) for path, _ in files),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("location", help="local directory that holds the tables' directories")
    parser.add_argument("--output", metavar="FILE", help="write the JSON there, and one line for each table to stdout")
    options = parser.parse_args()
    location = options.location
    tables = sorted(name for name in os.listdir(location) if not name.startswith((".", "_")))
    with ProcessPoolExecutor() as pool:
        counts = {name: count_table(os.path.join(location, name), pool) for name in tables}
    document = json.dumps(counts, indent=1) + "\n"
    if options.output is None:
        sys.stdout.write(document)
        return
    with open(options.output, "w", encoding="utf-8") as file:
        file.write(document)
    for name, count in counts.items():
        files = f"{count['files']:>4} {'file, ' if count['files'] == 1 else 'files,'}"
        sys.stdout.write(f"{name:<20} {count['rows']:>9,} rows in {files} content {count['digest'][:12]}\n")


if __name__ == "__main__":
    main()
