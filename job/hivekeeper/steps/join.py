"""Make a proved copy of some files into the file that is joined with them: a footer without rows goes behind it. See concat_exchange.py.

Works in a stage only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Dict, Iterable, Mapping, NamedTuple, Sequence, TypeVar

from hivekeeper import names
from hivekeeper.model import Ends, FileInfo, FooterGroup
from hivekeeper.names import UnitNumber
from hivekeeper.plan import eligibility
from hivekeeper.ports import NotPossible, SourceMissing
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog.joins import Join, JoinedFile, length_of
from hivekeeper.runlog.run_files import Certificate, OutputForm, PlannedUnit
from hivekeeper.steps.run_directory import Run

_EMPTY = "empty"

Result = TypeVar("Result")


class NotJoinable(Exception):
    """These files cannot be joined; live is unchanged."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.reason = Reason(Code.JOB_FAILED, what)


class ToJoin(NamedTuple):
    """A unit to be joined with `sources`: its proved copy, with this certificate, is the only file in a directory of a stage."""

    unit: PlannedUnit
    directory: str
    sources: Sequence[FileInfo]
    certificate: Certificate

    @property
    def join(self) -> Join:
        assert self.unit.join is not None
        return self.unit.join

    def place(self, name: str) -> str:
        return names.join(self.directory, name)


class Joining:
    """Makes the copies of some units into the files that are to be joined, in a few calls for all of them.

    `certificates` are of the units whose copies have become what the plan says, `failed` says why others have not. Raises SourceMissing,
    and RowsError if a call fails as a whole, which says nothing of a single unit.
    """

    def __init__(self, run: Run, format: str, wanted: Iterable[ToJoin]) -> None:
        self._run, self._format, self._rows = run, format, run.cluster.rows
        self._left = {one.unit.number: one for one in wanted}
        self.certificates: Dict[int, Certificate] = {}
        self.failed: Dict[int, Reason] = {}

    def make(self) -> None:
        copies = self._find_copies()
        # Otherwise a rollback could not bring them back.
        self._leave(lambda: self._rows.find_unlike(self._format, {number: one.sources for number, one in self._left.items()}))
        self._leave(lambda: self._rows.write_ends(self._format, {number: _ends(one, copies[number]) for number, one in self._left.items()}))
        self._each(lambda one: self._lengthen(one, copies[one.unit.number]))
        # Listed once more: the new files have got their lengths and times.
        made = self._look()
        joined = self._each(lambda one: self._describe(one, copies[one.unit.number], made[one.unit.number]))
        self._leave(lambda: self._find_with_rows({number: made[number][one.join.file] for number, one in self._left.items()}))
        for number, one in self._left.items():
            file, length = one.join.file, length_of(one.join.planned_blocks(joined[number]))
            rows = {file: one.certificate.rows}
            self.certificates[number] = replace(one.certificate, files={file: length}, file_rows=rows, join=joined[number])

    def _leave(self, find_failed: Callable[[], Mapping[UnitNumber, str]]) -> None:
        """Go on without the units that are found."""
        if not self._left:
            return
        for number, why in find_failed().items():
            self._drop(number, why)

    def _drop(self, number: UnitNumber, why: str) -> None:
        self.failed[number] = Reason(Code.JOB_FAILED, why)
        del self._left[number]

    def _each(self, act: Callable[[ToJoin], Result]) -> Dict[UnitNumber, Result]:
        """Do this with every unit that is left, and go on without those where it fails."""
        done: Dict[UnitNumber, Result] = {}
        for number, one in list(self._left.items()):
            try:
                done[number] = act(one)
            except (NotJoinable, NotPossible) as error:
                self._drop(number, str(error))
        return done

    def _find_copies(self) -> Mapping[UnitNumber, FileInfo]:
        entries = self._look()

        def find(one: ToJoin) -> FileInfo:
            name, *others = one.certificate.files
            if others:
                # Footers may be read again after the files were chosen.
                raise NotJoinable("its files have several forms by now: some were replaced")
            copy = entries[one.unit.number].get(name)
            if copy is None:
                raise SourceMissing(one.place(name))
            refuse_attributes(copy, one.sources)
            return copy

        return self._each(find)

    def _look(self) -> Mapping[UnitNumber, Mapping[str, FileInfo]]:
        """The entries of the units' directories, by name."""
        directories = [one.directory for one in self._left.values()]
        seen = self._run.files.look(directories) if directories else {}
        return {number: {entry.name: entry for entry in seen[one.directory].entries} for number, one in self._left.items()}

    def _lengthen(self, one: ToJoin, copy: FileInfo) -> None:
        self._run.files.concat(copy.path, [one.place(_EMPTY)])
        self._run.files.rename_exact(copy.path, one.place(one.join.file))

    def _describe(self, one: ToJoin, copy: FileInfo, made: Mapping[str, FileInfo]) -> JoinedFile:
        join, live = one.join, self._run.files.stat(one.unit.live)
        if live is None:
            raise NotJoinable(f"{one.unit.live} is gone")
        blocks = self._run.files.blocks(one.directory, ids={name: file.file_id for name, file in made.items()})
        if not (made.keys() & blocks.keys()) >= {join.file, join.tail, *filter(None, [join.beside])}:
            raise SourceMissing(one.place(join.file))
        ids = made[join.file].file_id, made[join.tail].file_id, live.file_id
        beside = (blocks[join.beside], made[join.beside].file_id) if join.beside else ()
        return JoinedFile(copy.length, *ids, blocks[join.file], blocks[join.tail], *beside)

    def _find_with_rows(self, files: Mapping[UnitNumber, FileInfo]) -> Mapping[UnitNumber, str]:
        """The new files that show rows, or are not of their copies' form."""
        footers = self._rows.footers(self._format, {number: [file] for number, file in files.items()}, by_identity=True)
        return {
            number: f"{file.name} is not as planned: it should show no rows"
            for number, file in files.items()
            if not self._shows_no_rows(footers[number].groups, self._left[number].certificate.forms[0])
        }

    def _shows_no_rows(self, groups: Sequence[FooterGroup], copy: OutputForm) -> bool:
        # The time zone is part of an identity in ORC, and without a stripe there is none.
        identities = [group.form.identity if self._format == eligibility.PARQUET else copy.identity for group in groups]
        forms = [(group.form.schema, identity, group.row_count) for group, identity in zip(groups, identities)]
        return forms == [(copy.schema, copy.identity, 0)]


def make_joined(run: Run, format: str, wanted: Iterable[ToJoin]) -> Joining:
    """One that cannot be made costs only itself. Raises like `Joining`."""
    joining = Joining(run, format, wanted)
    joining.make()
    return joining


def _ends(one: ToJoin, copy: FileInfo) -> Ends:
    return Ends(copy, one.place(_EMPTY), one.place(one.join.tail), one.place(one.join.beside) if one.join.beside else None)


def refuse_attributes(copy: FileInfo, sources: Sequence[FileInfo]) -> None:
    """Raise NotJoinable if the blocks of the sources would lose copies, or are larger than those of the copy: concat refuses these."""
    copies, block_bytes = max(source.replication for source in sources), max(source.block_size for source in sources)
    if copy.replication < copies:
        raise NotJoinable(f"some of its files have {copies} copies on disk, a new one has {copy.replication}")
    if copy.block_size < block_bytes:
        raise NotJoinable(f"some of its files have blocks of {block_bytes} bytes, a new one has {copy.block_size}")
