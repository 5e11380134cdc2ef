"""Compare what was read with what was written, using evidence independent of the code that copied or rewrote the values.

Pure: footers and digests in, one sentence per difference out. No difference means proved.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, Sequence, Tuple

from hivekeeper.model import ColumnFacts, Content, FileInfo, FooterGroup, Form, StageOutput, UnitFooters
from hivekeeper.reasons import shorten

# What is said of a unit: a file may have a hundred thousand columns, with names of megabytes.
MOST_DIFFERENCES = 10
MOST_QUOTED = 100

# How readers understand the values (`Form.identity`), and the codec.
Kind = Tuple[str, str]


def compare_unit(
    sources: Sequence[FooterGroup],
    output: UnitFooters,
    listed: Iterable[FileInfo],
    planned: Sequence[StageOutput],
    read: Content,
    written: Content,
) -> List[str]:
    """The differences between a unit's sources and its staged output.

    `listed` is an independent listing of the stage. `read` is what the sources held, `written` what the whole output holds, read back.
    """
    if written.failed:
        return [f"the output cannot be read back: {written.failed}"]
    if output.unreadable:
        path, reason = output.unreadable[0]
        return [f"an output file cannot be read back: {path}: {reason}"]
    if not output.groups:
        return ["nothing of it was written"]
    return [
        *_compare_files(output.groups, listed, len(planned)),
        *_compare_groups(sources, output.groups, planned),
        *_compare_contents(sum(source.row_count for source in sources), read, written),
    ]


def _compare_files(written: Sequence[FooterGroup], listed: Iterable[FileInfo], outputs: int) -> List[str]:
    found, read = {entry.path for entry in listed}, {path for group in written for path in group.rows}
    differences = []
    if found != read:
        differences.append(f"the stage holds other files than were read back (first: {min(found ^ read)})")
    if len(found) != outputs:
        differences.append(f"the stage holds {len(found)} files instead of the planned {outputs}")
    return differences


def _compare_groups(sources: Sequence[FooterGroup], written: Sequence[FooterGroup], planned: Sequence[StageOutput]) -> List[str]:
    """Compare what is of one kind on both sides: sources that differ only in codec may have become one file."""
    codecs = {file.path: output.codec for output in planned for file in output.files}
    before, after = _by_kind(sources, codecs), _by_kind(written, {})
    if len(before) == len(after) == 1:
        ((_, codec), source), output = next(iter(before.items())), next(iter(after.values()))
        return [*_compare_form(source[0].form, output[0].form, codec), *_compare_facts(source, output)]
    if set(before) != set(after):
        return [f"the output has {len(after)} forms, which are not the {len(before)} of the sources"]
    return [difference for kind, source in before.items() for difference in _compare_facts(source, after[kind])]


def _by_kind(groups: Sequence[FooterGroup], codecs: Dict[str, str]) -> Dict[Kind, List[FooterGroup]]:
    """`codecs` are those that files become, by path; files that are not in it keep theirs."""
    found: Dict[Kind, List[FooterGroup]] = {}
    for group in groups:
        codec = codecs.get(next(iter(group.rows)), group.form.codec)
        found.setdefault((group.form.identity, codec), []).append(group)
    return found


def _compare_form(source: Form, written: Form, codec: str) -> List[str]:
    differences = []
    if written.schema != source.schema:
        differences.append(f"the physical schema changed: {_first_change(source.schema, written.schema)}")
    if written.identity != source.identity:
        differences.append("the bytes of the footer that say how to read the values changed")
    if written.codec != codec:
        differences.append(f"the codec is {written.codec} instead of {codec}")
    if written.zone != source.zone:
        differences.append(f"the time zone of the writer changed from {source.zone} to {written.zone}")
    return differences


def _first_change(before: str, after: str) -> str:
    for old, new in zip(before.splitlines(), after.splitlines()):
        if old != new:
            return f"«{shorten(old.strip(), MOST_QUOTED)}» became «{shorten(new.strip(), MOST_QUOTED)}»"
    return "a column more or less"


def _compare_facts(source: Sequence[FooterGroup], written: Sequence[FooterGroup]) -> List[str]:
    rows, rows_written = (sum(group.row_count for group in groups) for groups in (source, written))
    differences = [f"{rows} rows in the source's footers, {rows_written} in the output's"] if rows != rows_written else []
    before, after = _add_columns(source), _add_columns(written)
    if set(before) != set(after):
        return [*differences, f"the columns differ (first: {shorten(min(set(before) ^ set(after)), MOST_QUOTED)})"]
    for name, facts in before.items():
        for what in ("values", "nulls", "low", "high"):
            old, new = getattr(facts, what), getattr(after[name], what)
            if old is not None and new is not None and old != new and len(differences) < MOST_DIFFERENCES:
                quoted = [shorten(str(text), MOST_QUOTED) for text in (name, old, new)]
                differences.append("column {}: {what} was {}, is {}".format(*quoted, what=what))
    return differences


def _add_columns(groups: Sequence[FooterGroup]) -> Dict[str, ColumnFacts]:
    """The columns' totals. NULLs and bounds only where Spark SQL wrote the rows: those that a copy's sources state may be missing,
    truncated or wrong (Arrow counts no NULL inside a NULL struct). What the copy states is compared with its values when it is read back.
    """
    found: Dict[str, ColumnFacts] = {}
    for group in groups:
        for name, facts in group.columns.items():
            if group.form.identity:
                known = found.get(name, ColumnFacts(0))
                found[name] = ColumnFacts(None if known.values is None or facts.values is None else known.values + facts.values)
            else:
                found[name] = facts
    return found


def _compare_contents(rows: int, read: Content, written: Content) -> List[str]:
    if written.digest.rows != rows:
        return [f"{rows} rows in the source's footers, {written.digest.rows} read back"]
    if read.digest.rows != rows:
        return [f"{rows} rows in the source's footers, {read.digest.rows} were read from it"]
    return ["the content digests differ, with the same number of rows"] if read.digest != written.digest else []
