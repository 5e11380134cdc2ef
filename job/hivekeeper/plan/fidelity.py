"""Decide whether files of one form can be rewritten with the same physical schema and the same meaning, by a copy or by Spark SQL.

Pure: a form in, None or the reason why not out. Anything not understood is a reason. Each rule stands for a
measured change in values or in what another engine reads.
"""

from __future__ import annotations

import re
from typing import Iterable, Iterator, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.config.codecs import list_writable, read_version
from hivekeeper.model import Form
from hivekeeper.reasons import Code, Reason
from hivekeeper.schemas import (
    ORC,
    PARQUET,
    OrcType,
    ParquetField,
    SchemaTextError,
    needs_legacy_decimals,
    parse_orc,
    parse_parquet,
    timestamp_encoding,
)

# Keys that do not affect how values are read.
_IDLE_KEYS = frozenset(["writer.model.name"])
# Spark rewrites its own row metadata, from the schema that it took from one of the files.
_KEPT_KEYS = ("org.apache.spark.sql.parquet.row.metadata#",)
_VARIABLE = Reason(
    Code.VARIABLE_IN_SCHEMA,
    "its footers have ${ in a column's name or comment, or in other row metadata, where Hadoop's configuration would put in other text",
)
# Footers of which Spark must make no schema, by what ParquetFooters.java and OrcFooters.java have found in them.
_UNFIT = {
    "org.apache.spark.sql.parquet.row.metadata#udt#": Reason(
        Code.USER_DEFINED_TYPE, "its footers name a user-defined type, for which Spark would run code that they name"
    ),
    "org.apache.spark.sql.parquet.row.metadata#sql#": Reason(
        Code.USER_DEFINED_TYPE,
        "its footers have an expression for the value of a missing column (EXISTS_DEFAULT), which Spark would evaluate",
    ),
    "org.apache.spark.sql.parquet.row.metadata#variable#": _VARIABLE,
    "org.apache.spark.sql.parquet.row.metadata#columns#": Reason(
        Code.OTHER_COLUMNS, "its footers' row metadata names other columns than the files have"
    ),
    "orc.column.name#back-quote#": Reason(
        Code.OTHER_COLUMNS, "a column's name has a back-quote, at which ORC's Java library cuts it, so that Spark sees another name"
    ),
}
# Hive 3.1.2 and later use them to read dates and timestamps; Spark cannot write them.
_TIME_KEYS = frozenset(["writer.time.zone", "writer.date.proleptic", "writer.zone.conversion.legacy"])
_UTC = frozenset(["UTC", "Etc/UTC", "UCT", "Etc/UCT", "GMT", "Etc/GMT", "Zulu", "Etc/Zulu", "Universal", "Etc/Universal", "Z"])
_ACID = ("operation", "originaltransaction", "bucket", "rowid", "currenttransaction", "row")
_LIBRARIES = {PARQUET: "Parquet", ORC: "ORC"}
_IS_ACID = "its files are those of a transactional (ACID) table"
_ORC_PLAIN = frozenset(["boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date", "timestamp"])
# Hive's and Spark's limit; a footer may claim two billion, with which no number can be computed.
_MOST_DIGITS = 38
_SURPRISING = re.compile(r"[\x00-\x1f]")


def unfaithful(form: Form, format: str, spark_version: str, time_zone: str) -> Optional[str]:
    """Why files of this form cannot be rewritten faithfully; `time_zone` is that of the driver's and executors' JVM."""
    try:
        unfit = refuse_as_rows(form)
        if unfit:
            return unfit.what
        if format == PARQUET:
            return _refuse_codec(form, format, spark_version) or _refuse_parquet(form, spark_version)
        if format == ORC:
            return _refuse_codec(form, format, spark_version) or _refuse_orc(form, spark_version, time_zone)
    except SchemaTextError as error:
        return f"its schema is not understood ({error})"
    return f"its format is {format}"


def refuse_as_rows(form: Form) -> Optional[Reason]:
    """Why Spark must not make rows of files of this form: it would run what their footers name, see another schema than was looked at
    (RowSchema.java says how), or not see their columns.
    """
    if "${" in form.schema:
        return _VARIABLE
    return next((why for mark, why in _UNFIT.items() if any(key.startswith(mark) for key in form.keys)), None)


def refuse_copy(form: Form, format: str, codec: str, spark_version: str) -> Optional[str]:
    """Why the stored values of files of this form cannot be copied into a file with this codec. A copy interprets no value, so only
    what cannot be read or written at all is a reason.
    """
    why = _refuse_undecodable(form, format)
    if why:
        return why
    if codec not in list_writable(format, spark_version):
        return f"Spark {spark_version} cannot write the codec {codec}"
    try:
        return _refuse_same_names(parse_parquet(form.schema)) if format == PARQUET else _refuse_orc_copy(form)
    except SchemaTextError as error:
        return f"its schema is not understood ({error})"


def _refuse_orc_copy(form: Form) -> Optional[str]:
    root, _ = parse_orc(form.schema)
    return _refuse_orc_rows(root) or _refuse_acid_keys(form) or _first(_refuse_same_fields(kind) for kind in root.all)


def _refuse_same_fields(kind: OrcType) -> Optional[str]:
    return "two of its columns have the same name" if len(set(kind.names)) < len(kind.names) else None


def _refuse_same_names(fields: Sequence[ParquetField]) -> Optional[str]:
    """Refuse two columns of one name: a footer's statistics and a reader's choice are then ambiguous."""
    if not fields:
        return "its files have no columns"
    if len({field.name for field in fields}) < len(fields):
        return "two of its columns have the same name"
    return _first(_refuse_same_names(field.children) for field in fields if field.physical == "group")


def _refuse_undecodable(form: Form, format: str) -> Optional[str]:
    return f"this cluster's {_LIBRARIES[format]} library cannot read {form.undecodable[0]}" if form.undecodable else None


def _refuse_codec(form: Form, format: str, spark_version: str) -> Optional[str]:
    if "+" in form.codec:
        return f"one file mixes the codecs {form.codec.replace('+', ' and ')}"
    if form.codec not in list_writable(format, spark_version):
        return f"Spark {spark_version} cannot write the codec {form.codec}"
    return None


# ---- Parquet


def _refuse_parquet(form: Form, spark_version: str) -> Optional[str]:
    fields = parse_parquet(form.schema)
    leaves = [leaf for field in fields for leaf in field.leaves]
    return (
        _refuse_undecodable(form, PARQUET)
        or _refuse_names([field.name for field in fields])
        or _first(_refuse_field(field, spark_version) for field in fields)
        or _refuse_mixture(fields, leaves)
        or _refuse_times(form, leaves)
        or _refuse_keys(form, leaves)
        or _refuse_plain_types(form, leaves)
        or _refuse_dotted_blooms(fields, form.blooms)
    )


def _first(reasons: Iterable[Optional[str]]) -> Optional[str]:
    return next((reason for reason in reasons if reason), None)


def _refuse_names(found: Sequence[str]) -> Optional[str]:
    if not found:
        return "its files have no columns"
    for name in found:
        if name.lower().startswith(names.UNIT_COLUMN):
            return f"the column {name} has a name that Hivekeeper itself uses"
        if _SURPRISING.search(name):
            return f"the column name {name!r} holds a control character"
    if len(set(found)) < len(found):
        return "two of its columns have the same name"
    return None


def _refuse_field(field: ParquetField, spark_version: str) -> Optional[str]:
    if field.repetition == "repeated":
        return f"the column {field.name} is a list without the LIST annotation"
    if field.physical != "group":
        return _refuse_leaf(field, spark_version)
    if field.annotation == "LIST":
        return _refuse_list(field, spark_version)
    if field.annotation == "MAP":
        return _refuse_map(field, spark_version)
    if field.annotation:
        return f"the column {field.name} is of the type {field.annotation}, which Spark does not write"
    children = field.children
    return _refuse_names([child.name for child in children]) or _first(_refuse_field(child, spark_version) for child in children)


def _refuse_list(field: ParquetField, spark_version: str) -> Optional[str]:
    """Refuse lists except in the three-level form, which Spark writes back unchanged: `repeated group list { optional T element }`."""
    level = field.children[0] if len(field.children) == 1 else None
    if level is None or (level.repetition, level.physical, level.name, level.annotation) != ("repeated", "group", "list", ""):
        return f"the list {field.name} does not have the three-level form that Spark writes"
    if [child.name for child in level.children] != ["element"]:
        return f"the list {field.name} does not have the three-level form that Spark writes"
    return _refuse_inner_ids(field) or _refuse_field(level.children[0], spark_version)


def _refuse_map(field: ParquetField, spark_version: str) -> Optional[str]:
    level = field.children[0] if len(field.children) == 1 else None
    if level is None or (level.repetition, level.physical, level.name, level.annotation) != ("repeated", "group", "key_value", ""):
        return f"the map {field.name} does not have the form that Spark writes"
    if [child.name for child in level.children] != ["key", "value"]:
        return f"the map {field.name} does not have the form that Spark writes"
    return _refuse_inner_ids(field) or _first(_refuse_field(child, spark_version) for child in level.children)


def _refuse_inner_ids(field: ParquetField) -> Optional[str]:
    """Refuse field ids on elements, keys and values, which Spark cannot represent."""
    level = field.children[0]
    if any(inner.field_id is not None for inner in (level, *level.children)):
        return f"the elements of {field.name} have field ids, which Spark cannot write"
    return None


# Types that Spark writes back unchanged: physical type and annotation.
_FAITHFUL_LEAVES = frozenset(
    [
        ("boolean", ""),
        ("int32", ""),
        ("int32", "INTEGER(8,true)"),
        ("int32", "INTEGER(16,true)"),
        ("int32", "DATE"),
        ("int64", ""),
        ("int64", "TIMESTAMP(MICROS,true)"),
        ("int64", "TIMESTAMP(MILLIS,true)"),
        ("int64", "TIMESTAMP(MICROS,false)"),
        ("int96", ""),
        ("float", ""),
        ("double", ""),
        ("binary", ""),
        ("binary", "STRING"),
    ]
)


def _refuse_leaf(field: ParquetField, spark_version: str) -> Optional[str]:
    decimal = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", field.annotation)
    if decimal:
        return _refuse_decimal(field, int(decimal[1]))
    if (field.physical, field.annotation) not in _FAITHFUL_LEAVES:
        what = f"{field.physical} {field.annotation}".strip()
        return f"the column {field.name} is of the type {what}, which Spark does not write back as it is"
    if field.annotation.endswith(",false)") and read_version(spark_version) < (3, 4):
        return f"the column {field.name} is a timestamp without time zone, which Spark {spark_version} would shift"
    return None


def _refuse_decimal(field: ParquetField, precision: int) -> Optional[str]:
    if precision > _MOST_DIGITS:
        return f"the decimal {field.name} has {precision} digits, and Spark writes at most {_MOST_DIGITS}"
    expected = [f"fixed_len_byte_array({decimal_bytes(precision)})"]
    if precision <= 9:
        expected.append("int32")
    elif precision <= 18:
        expected.append("int64")
    if field.physical in expected:
        return None
    return f"the decimal {field.name} is stored as {field.physical}, which Spark does not write for {precision} digits"


def decimal_bytes(precision: int) -> int:
    """The fewest bytes for this many decimal digits and a sign; all writers choose this size."""
    size = 1
    while 2 ** (8 * size - 1) < 10**precision:
        size += 1
    return size


def _refuse_mixture(fields: Sequence[ParquetField], leaves: Sequence[ParquetField]) -> Optional[str]:
    """Refuse columns that need opposite writer settings: Spark's settings apply to a whole file."""
    encodings = {timestamp_encoding(leaf) for leaf in leaves} - {""}
    if len(encodings) > 1:
        return f"its timestamps have several encodings ({', '.join(sorted(encodings))})"
    if not needs_legacy_decimals(leaves):
        return None
    if any(leaf.physical in ("int32", "int64") and leaf.annotation.startswith("DECIMAL") for leaf in leaves):
        return "its decimals are stored in two ways (whole numbers and fixed-length bytes)"
    if any(_has_repetition(field) for field in fields):
        return "it has both lists or maps and decimals in fixed-length bytes, of which Spark can keep only one"
    return None


def _has_repetition(field: ParquetField) -> bool:
    return field.repetition == "repeated" or any(_has_repetition(child) for child in field.children)


def _refuse_times(form: Form, leaves: Sequence[ParquetField]) -> Optional[str]:
    if form.calendar == "legacy":
        return "its dates or timestamps are written in the old (Julian) calendar of Spark 2 or of the LEGACY mode"
    if form.calendar not in ("none", "corrected", "unknown"):
        return f"the calendar of its dates is not understood ({form.calendar})"
    if any(leaf.physical == "int96" for leaf in leaves) and form.writer not in ("spark", "parquet-mr"):
        return f"its INT96 timestamps were written by {form.writer}, and Hive shifts those of Spark by the time zone"
    return None


def _refuse_keys(form: Form, leaves: Sequence[ParquetField]) -> Optional[str]:
    timed = any(leaf.physical == "int96" or leaf.annotation.startswith(("DATE", "TIMESTAMP")) for leaf in leaves)
    for key in form.keys:
        if key in _IDLE_KEYS or key.startswith(_KEPT_KEYS) or (key in _TIME_KEYS and not timed):
            continue
        if key in _TIME_KEYS:
            return f"its footers use {key} to say how to read dates and timestamps, which Spark cannot write"
        return f"its footers carry metadata that Spark would drop ({key})"
    return None


def _refuse_plain_types(form: Form, leaves: Sequence[ParquetField]) -> Optional[str]:
    """Spark's row metadata in the output would say what files of other writers leave to the settings of readers by path: `binary`, where
    these take Impala's and Hive's texts for strings (spark.sql.parquet.binaryAsString), and `timestamp_ntz`, where they take a time without
    zone for a `timestamp` (spark.sql.parquet.inferTimestampNTZ.enabled).
    """
    if form.writer == "spark":
        return None
    for leaf in leaves:
        by = f"{leaf.name} was written by {form.writer}"
        if leaf.physical == "binary" and not leaf.annotation:
            return f"the column {by} without saying whether it is text, and Spark would say that it is not"
        if leaf.annotation == "TIMESTAMP(MICROS,false)":
            return f"the column {by} and leaves the type of its times without zone to readers, and Spark would not"
    return None


def _refuse_dotted_blooms(fields: Sequence[ParquetField], blooms: Sequence[str]) -> Optional[str]:
    """The bloom filter option names a column by its path and treats every dot as a nesting level."""
    # There may be a million of each.
    filtered = frozenset(blooms)
    for path in _paths(fields):
        if ".".join(path) in filtered and any("." in part for part in path):
            return f"the column {path[-1]} has a bloom filter and a dot in its name, for which Spark has no option"
    return None


def _paths(fields: Sequence[ParquetField], above: Tuple[str, ...] = ()) -> Iterator[Tuple[str, ...]]:
    """The paths of all columns, including nested ones."""
    for field in fields:
        path = (*above, field.name)
        yield from [path] if field.physical != "group" else _paths(field.children, path)


# ---- ORC


def _refuse_orc(form: Form, spark_version: str, time_zone: str) -> Optional[str]:
    root, attributes = parse_orc(form.schema)
    for attribute in attributes:
        if not re.fullmatch(r"\d+\.spark\.sql\.catalyst\.type=\w+", attribute) or read_version(spark_version) < (3, 4):
            return f"its columns carry attributes that Spark may not write back ({attribute})"
    return (
        _refuse_undecodable(form, ORC)
        or _refuse_orc_rows(root)
        or _first(_refuse_orc_type(kind) for kind in root.all)
        or _refuse_zone(form, root, time_zone)
        or _refuse_orc_keys(form)
        or _first(_refuse_orc_bloom(column) for column in form.blooms)
    )


def _refuse_orc_rows(root: OrcType) -> Optional[str]:
    if root.kind != "struct":
        return f"its rows are of the type {root.kind}, not a struct"
    if not root.names:
        return "its files have no columns"
    if tuple(name.lower() for name in root.names) == _ACID:
        return _IS_ACID
    return None


def _refuse_acid_keys(form: Form) -> Optional[str]:
    """Keys such as hive.acid.key.index speak of the file's own stripes."""
    return _IS_ACID if any(key.startswith("hive.acid.") for key in form.keys) else None


def _refuse_orc_type(kind: OrcType) -> Optional[str]:
    if kind.kind == "struct":
        return _refuse_names(kind.names)
    children = {"array": 1, "map": 2}.get(kind.kind, 0)
    if len(kind.children) != children:
        return f"the type {kind.kind} is not written by Spark"
    if kind.kind in _ORC_PLAIN or children or re.fullmatch(r"decimal\(\d+,\d+\)", kind.kind):
        return None
    return f"the type {kind.kind} is not written back by Spark as it is"


def _refuse_zone(form: Form, root: OrcType, time_zone: str) -> Optional[str]:
    """Refuse another writer's zone: ORC stores wall clock and zone, so a rewrite in another zone shifts times in its DST gaps."""
    if not any(kind.kind == "timestamp" for kind in root.all) or not form.zone:
        return None
    ours = "UTC" if time_zone in _UTC else time_zone
    if form.zone != ours:
        return f"its timestamps were written in the time zone {form.zone}, and this job runs in {ours}"
    return None


def _refuse_orc_keys(form: Form) -> Optional[str]:
    return f"its footers carry metadata that Spark would drop ({form.keys[0]})" if form.keys else None


def _refuse_orc_bloom(column: str) -> Optional[str]:
    """The bloom filter option is a comma-separated list."""
    return f"the column {column} has a bloom filter and a comma in its name, for which ORC has no option" if "," in column else None
