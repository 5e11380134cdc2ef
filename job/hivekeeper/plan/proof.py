"""Compare what was read with what was written, using evidence independent of Spark's readers.

Pure: footers and digests in, one sentence per difference out. No difference means proved.
"""

from __future__ import annotations

from typing import Iterable, List, Mapping

from hivekeeper.model import ColumnFacts, Digest, FileInfo, FooterGroup, UnitFooters


def compare_unit(
    source: FooterGroup, output: UnitFooters, listed: Iterable[FileInfo], codec: str, outputs: int, digest: Digest
) -> List[str]:
    """The differences between a unit's source footers and its staged output.

    `listed` is an independent listing of the stage; `digest` comes from reading the whole output back.
    """
    if output.unreadable:
        path, reason = output.unreadable[0]
        return [f"an output file cannot be read back: {path}: {reason}"]
    if not output.groups:
        return ["nothing of it was written"]
    if len(output.groups) != 1:
        return [f"the output has {len(output.groups)} forms instead of one"]
    written = output.groups[0]
    return [
        *_compare_files(written, listed, outputs),
        *_compare_form(source, written, codec),
        *_compare_counts(source, written, digest),
        *_compare_columns(source.columns, written.columns),
    ]


def _compare_files(written: FooterGroup, listed: Iterable[FileInfo], outputs: int) -> List[str]:
    found = {entry.path for entry in listed}
    differences = []
    if found != set(written.rows):
        stray = sorted(found ^ set(written.rows))
        differences.append(f"the stage holds other files than were read back (first: {stray[0]})")
    if len(found) != outputs:
        differences.append(f"the stage holds {len(found)} files instead of the planned {outputs}")
    return differences


def _compare_form(source: FooterGroup, written: FooterGroup, codec: str) -> List[str]:
    differences = []
    if written.form.schema != source.form.schema:
        differences.append(f"the physical schema changed: {_first_change(source.form.schema, written.form.schema)}")
    if written.form.codec != codec:
        differences.append(f"the codec is {written.form.codec} instead of {codec}")
    if written.form.zone != source.form.zone:
        differences.append(f"the time zone of the writer changed from {source.form.zone} to {written.form.zone}")
    return differences


def _first_change(before: str, after: str) -> str:
    for old, new in zip(before.splitlines(), after.splitlines()):
        if old != new:
            return f"«{old.strip()}» became «{new.strip()}»"
    return "a column more or less"


def _compare_counts(source: FooterGroup, written: FooterGroup, digest: Digest) -> List[str]:
    differences = []
    if written.row_count != source.row_count:
        differences.append(f"{source.row_count} rows in the source's footers, {written.row_count} in the output's")
    if digest.rows != source.row_count:
        differences.append(f"{source.row_count} rows in the source's footers, {digest.rows} read back")
    return differences


def _compare_columns(source: Mapping[str, ColumnFacts], written: Mapping[str, ColumnFacts]) -> List[str]:
    if set(source) != set(written):
        return [f"the columns differ: {', '.join(sorted(set(source) ^ set(written)))}"]
    differences = []
    for name, before in source.items():
        after = written[name]
        for what in ("values", "nulls", "low", "high"):
            old, new = getattr(before, what), getattr(after, what)
            if old is not None and new is not None and old != new:
                differences.append(f"column {name}: {what} was {old}, is {new}")
    return differences


def compare_batch(read: Digest, written: Digest) -> List[str]:
    """The differences between what the writing job read and what was read back from its output."""
    if read == written:
        return []
    if read.rows != written.rows:
        return [f"{read.rows} rows were read, {written.rows} were written"]
    return ["the content digests differ, with the same number of rows"]
