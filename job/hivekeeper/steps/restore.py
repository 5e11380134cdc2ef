"""Make, aside, what a rollback of joined files brings in: one file with the bytes of the old ones and a footer over all their rows.

Never touches live. The old files lie inside a file of live (concat_exchange.py); they are copied out of it byte for byte, not rewritten:
a rollback must not rest on the code whose work it undoes. After a kill anywhere here recovery drops stage and ready.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, List, Optional, Sequence

from hivekeeper import names
from hivekeeper.model import FileInfo
from hivekeeper.plan import eligibility
from hivekeeper.ports import NoPermission, RowsError, SourceMissing
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog.run_files import Certificate, OutputForm, PlannedUnit, certificates_to_text
from hivekeeper.runlog.store import write_durably
from hivekeeper.steps.attributes import dress, like, warn_narrower
from hivekeeper.steps.cut import find_blocks
from hivekeeper.steps.join import NotJoinable, ToJoin, make_joined
from hivekeeper.steps.run_directory import Run, require_lock

# All of them are made one after the other, in one directory for each.
BATCH = 1


@dataclass
class Restored:
    """What became of the joined units of a rollback: those that are ready, and why others cannot be rolled back. `holders`: the files that
    had the old ones inside, as they were when the copies got their rights.
    """

    certificates: Dict[int, Certificate] = field(default_factory=dict)
    holders: Dict[int, FileInfo] = field(default_factory=dict)
    failed: Dict[int, Reason] = field(default_factory=dict)


def restore_joined(run: Run, units: Sequence[PlannedUnit], owner: str) -> Restored:
    """Make the joined units ready. One that cannot be made costs only itself."""
    restored = Restored()
    made: List[Certificate] = []
    joined = [unit for unit in units if unit.join]
    for unit in joined:
        directory = run.paths.staged(BATCH, unit.number)
        try:
            require_lock(run)
            holder = restored.holders[unit.number] = _find_holder(run, unit)
            attributes = like(run.files, holder)
            run.files.make_directory(directory)
            # Before the first byte: default ACLs and policies apply when a file is created.
            dress(run.files, {directory: attributes}, owner)
            made.append(_restore(run, unit, directory, holder))
            for why in dress(run.files, {directory: attributes}, owner).values():
                warn_narrower(unit, why)
        except (NotJoinable, RowsError, NoPermission) as error:
            run.files.delete_tree(directory)
            code = Code.NO_PERMISSION if isinstance(error, NoPermission) else Code.JOB_FAILED
            restored.failed[unit.number] = error.reason if isinstance(error, NotJoinable) else Reason(code, str(error))
    if made:
        write_durably(run.files, run.paths.certificates(BATCH), certificates_to_text(made), run.record_mode)
    for certificate in made:
        run.files.rename_exact(run.paths.staged(BATCH, certificate.unit), run.paths.unit("ready", certificate.unit))
    restored.certificates.update({certificate.unit: certificate for certificate in made})
    return restored


def _find_holder(run: Run, unit: PlannedUnit) -> FileInfo:
    """The file that has the old ones inside. Raises NotJoinable."""
    assert unit.inside is not None
    holder = run.files.stat(names.join(unit.live, unit.inside.file))
    if holder is None or find_blocks(run.files, holder, unit.inside) is None:
        raise NotJoinable(f"{unit.inside.file}, which has the old files inside, was changed meanwhile")
    return holder


def why_other_rights(run: Run, holder: FileInfo) -> Optional[Reason]:
    """Why a copy must not come in: the others are made before, and in these hours somebody may have closed the file that it is from."""
    now = run.files.stat(holder.path)
    if now is None or now.file_id != holder.file_id:
        return Reason(Code.CHANGED_MEANWHILE, f"{holder.name} is gone, or another file")
    is_same = (now.owner, now.group, now.mode) == (holder.owner, holder.group, holder.mode)
    return None if is_same else Reason(Code.CHANGED_MEANWHILE, f"the rights of {holder.name} were changed")


def _restore(run: Run, unit: PlannedUnit, directory: str, holder: FileInfo) -> Certificate:
    """Raises RowsError, NotJoinable."""
    assert unit.inside is not None
    format, rows = eligibility.format_of(run.table.storage) or "", run.cluster.rows
    path = names.join(directory, f"restored.{format}")
    rows.write_restored(format, holder, unit.inside.begin, [file.length for file in unit.expected], path)
    copy = run.files.stat(path)
    if copy is None:
        raise SourceMissing(path)
    certificate = _prove(run, unit, format, holder, copy)
    joining = make_joined(run, format, [ToJoin(unit, directory, [holder], certificate)])
    for reason in joining.failed.values():
        raise NotJoinable(reason.what)
    return joining.certificates[unit.number]


def _prove(run: Run, unit: PlannedUnit, format: str, holder: FileInfo, copy: FileInfo) -> Certificate:
    """Read the copy in full: it must hold the rows that the undone run had counted and digested. Raises NotJoinable."""
    content = run.cluster.rows.digests(format, {unit.number: [copy]})[unit.number]
    if content.failed:
        raise NotJoinable(content.failed)
    if content.digest != unit.digest:
        raise NotJoinable("its old files do not hold the rows that the run had found in them")
    footers = run.cluster.rows.footers(format, {unit.number: [copy]}, by_identity=True)[unit.number]
    if footers.unreadable:
        # It is over the rows of all old files: it may take more memory than the driver has, which reads it alone.
        raise NotJoinable(footers.unreadable[0][1])
    return Certificate(
        unit=unit.number,
        partition=unit.name,
        files={copy.name: copy.length},
        rows=content.digest.rows,
        digest=content.digest,
        source_files=1,
        source_bytes=holder.length,
        forms=tuple(OutputForm(group.form.schema, group.form.codec, group.form.identity) for group in footers.groups),
        file_rows={copy.name: content.digest.rows},
    )
