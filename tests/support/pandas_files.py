"""Parquet files whose footers label their rows as pandas does."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import List, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from foreign import footers


def counted(rows: int, **changed: object) -> dict:
    return {"kind": "range", "name": None, "start": 0, "stop": rows, "step": 1, **changed}


def write_labelled(directory: Path, rows: int, labels: Sequence[object], schema: bool = True, creator: object = "pyarrow") -> None:
    """A file as pandas writes it through Arrow, or without Arrow's copy of the schema through fastparquet."""
    directory.mkdir(exist_ok=True)
    said = json.dumps({"index_columns": labels, "columns": [{"name": "a"}], "creator": creator, "pandas_version": "2.3.3"})
    keys, path = {"own": "x", "pandas": said}, directory / f"{rows}.parquet"
    table = pa.table({"a": pa.array(range(rows), pa.timestamp("ns", "UTC"))})
    pq.write_table(table.replace_schema_metadata(keys), path, store_schema=schema)
    if not schema:
        footers.sign(path, "fastparquet-python version 2024.11.0 (build 0)", keys)


def said_of(path: Path) -> List[dict]:
    """What a footer says to pandas, in each place."""
    keys = dict(pq.read_metadata(path).metadata)
    places = [keys]
    if b"ARROW:schema" in keys:
        places.append(pa.ipc.read_schema(pa.py_buffer(base64.b64decode(keys[b"ARROW:schema"]))).metadata)
    assert all(place[b"own"] == b"x" for place in places)
    return [json.loads(place[b"pandas"]) for place in places]
