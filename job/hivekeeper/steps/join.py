"""Make a proved copy of some files into the file that is joined with them: a footer without rows goes behind it. See concat_exchange.py.

Works in a stage only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Sequence

from hivekeeper import names
from hivekeeper.model import FileInfo
from hivekeeper.plan import eligibility
from hivekeeper.ports import NotPossible, RowsError, SourceMissing
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog.joins import JoinedFile, length_of
from hivekeeper.runlog.run_files import Certificate, PlannedUnit
from hivekeeper.steps.run_directory import Run

_EMPTY = "empty"


class NotJoinable(Exception):
    """These files cannot be joined; live is unchanged."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.reason = Reason(Code.JOB_FAILED, what)


def make_joined(
    run: Run, unit: PlannedUnit, format: str, directory: str, sources: Sequence[FileInfo], certificate: Certificate
) -> Certificate:
    """The certificate of a unit whose copy, the only file of a stage's directory, has become what the plan says. Raises NotJoinable."""
    join = unit.join
    assert join is not None
    files, rows = run.files, run.cluster.rows
    name, *others = certificate.files
    if others:
        # Footers may be read again after the files were chosen.
        raise NotJoinable("its files have several forms by now: some were replaced")
    copy = files.stat(names.join(directory, name))
    if copy is None:
        raise SourceMissing(names.join(directory, name))
    refuse_attributes(copy, sources)
    empty, tail, file = (names.join(directory, each) for each in (_EMPTY, join.tail, join.file))
    try:
        # Otherwise a rollback could not bring them back.
        rows.require_alike(format, sources)
        rows.write_ends(format, copy, empty, tail, names.join(directory, join.beside) if join.beside else None)
        files.concat(copy.path, [empty])
        files.rename_exact(copy.path, file)
        entries, blocks = files.look([directory])[directory].entries, files.blocks(directory)
    except (RowsError, NotPossible) as error:
        raise NotJoinable(str(error)) from error
    found = {entry.name: entry for entry in entries}
    if not (found.keys() & blocks.keys()) >= {join.file, join.tail, *filter(None, [join.beside])}:
        raise SourceMissing(file)
    made, end = found[join.file], found[join.tail]
    joined = JoinedFile(
        copy.length, made.file_id, end.file_id, blocks[join.file], blocks[join.tail], blocks[join.beside] if join.beside else ()
    )
    refuse_rows(run, format, made, certificate)
    whole = length_of(join.planned_blocks(joined))
    return replace(certificate, files={join.file: whole}, file_rows={join.file: certificate.rows}, join=joined)


def refuse_attributes(copy: FileInfo, sources: Sequence[FileInfo]) -> None:
    """Raise NotJoinable if the blocks of the sources would lose copies, or are larger than those of the copy: concat refuses these."""
    copies, block_bytes = max(source.replication for source in sources), max(source.block_size for source in sources)
    if copy.replication < copies:
        raise NotJoinable(f"some of its files have {copies} copies on disk, a new one has {copy.replication}")
    if copy.block_size < block_bytes:
        raise NotJoinable(f"some of its files have blocks of {block_bytes} bytes, a new one has {copy.block_size}")


def refuse_rows(run: Run, format: str, made: FileInfo, certificate: Certificate) -> None:
    """Raise NotJoinable unless the file shows no rows, in the copy's form."""
    copy, groups = certificate.forms[0], run.cluster.rows.footers(format, {0: [made]}, by_identity=True)[0].groups
    # The time zone is part of an identity in ORC, and without a stripe there is none.
    identities = [group.form.identity if format == eligibility.PARQUET else copy.identity for group in groups]
    forms = [(group.form.schema, identity, group.row_count) for group, identity in zip(groups, identities)]
    if forms != [(copy.schema, copy.identity, 0)]:
        raise NotJoinable(f"{made.name} is not as planned: it should show no rows")
