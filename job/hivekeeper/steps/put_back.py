"""Give back the files that a joined file T took but was not to take, because somebody had replaced a source: each gets a file of its own.

They are copied out of T below the run's directory. When all are complete T leaves live, and they go there under their old names. Who
overwrites live in between has replaced their rows as well, so they go only into the directory that T was in, while it still holds what was
beside T. Otherwise they stay as a backup of the run.

Deletes only copies of what is in T.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Callable, Dict, Mapping, Sequence, Tuple

from hivekeeper import names, quoting
from hivekeeper.errors import NeedsInvestigation
from hivekeeper.model import Block, FileInfo
from hivekeeper.plan import listings, ownership
from hivekeeper.plan.joined_parts import Part, find_parts
from hivekeeper.ports import Files, FilesUnavailable, SourceMissing, TargetExists
from hivekeeper.reasons import Code
from hivekeeper.runlog.joins import Join, JoinedFile
from hivekeeper.runlog.manifests import ManifestFile
from hivekeeper.runlog.run_files import PlannedUnit
from hivekeeper.steps.attributes import closed, dress, like, warn_narrower
from hivekeeper.steps.checks import why_too_many
from hivekeeper.steps.run_directory import Run
from hivekeeper.steps.unfinished import look_whole

# Of one run on a table, which copies them one after the other: some minutes.
MOST_RETURNED = 2**36


@dataclass(frozen=True)
class PutBack:
    """The copies of one unit, in `ready`. A copy's number is that of the name under which the concat took the file; from `_names` on it is
    not clear which one it is. Their own names are hidden, as no source's is.

    Each method can be repeated after a kill.
    """

    run: Run
    unit: PlannedUnit
    join: Join
    made: JoinedFile
    format: str

    @property
    def _ready(self) -> str:
        return self.run.paths.unit("ready", self.unit.number)

    @property
    def _aside(self) -> str:
        return self.run.paths.unit("retired", self.unit.number)

    @property
    def _names(self) -> Tuple[str, ...]:
        """The names that the concat was given, T's own first."""
        return (self.join.file, *(source.name for source in self.unit.manifest), *filter(None, [self.join.beside]), self.join.tail)

    def copy_out(self, joined: FileInfo) -> None:
        """Copy what T took to files of their own, with T's rights, and note by what live will be known again. T stays as it is."""
        files, ready, parts = self.run.files, self._ready, self._find_parts(joined)
        self._require_short(joined, [part.length for part in parts.values() if part.planned is None])
        for entry in self._look(ready):
            if names.COPY.fullmatch(entry.name) or names.BACK.fullmatch(entry.name):
                files.delete_file(entry.path)
        for number, part in parts.items():
            files.copy_part(joined, part.begin, part.length, names.join(ready, names.copy(number)))
        wanted = like(files, joined)
        if joined.file_id != self.made.file_id:
            # It is somebody's who had put it in T's place: they might not have read what it took.
            wanted = closed(wanted)
        for why in dress(files, {ready: wanted}, "try").values():
            warn_narrower(self.unit, why)
        seen = look_whole(self.run, self.unit, self.unit.live)
        if all(entry.file_id != joined.file_id for entry in seen.entries):
            # It may have left with its directory, and another one have come to its place.
            raise SourceMissing(joined.path)
        self._hold_back([number for number, part in parts.items() if part.planned is None], seen.file_id)
        copies = self._find_copies(ready)
        others = [entry.file_id for entry in listings.data_files(seen) if entry.file_id != joined.file_id]
        witness = min(others) if others else copies[min(copies)].file_id if copies else 0
        files.write_new(names.join(ready, names.back(seen.file_id, witness)), "", self.run.record_mode)

    def _hold_back(self, strange: Sequence[int], live_id: int) -> None:
        """Leave copies of strange files aside that belong to the user of the runs, as they could not be given away, if others may write to
        live. They have any bytes that somebody likes: renamed by them, one would pass for a record of ours.
        """
        files, live, users = self.run.files, self.unit.live, self.run.users_at(self.unit.live)
        own = files.attributes([live], {live: live_id}).get(live) if strange else None
        if own is not None and own.directory_id in (0, live_id) and ownership.is_closed_to_others(own, users):
            return
        copies = self._find_copies(self._ready)
        if any(copies[number].owner in users for number in strange):
            # As a backup it is where others may pass: who may write to live could take them out of there, too.
            known = files.attributes([self._ready]).get(self._ready)
            if known is None:
                raise SourceMissing(self._ready)
            files.guard({self._ready: ownership.without_write(known.mode, known.acl, users)})
        # As those of which the names are not clear.
        unclear = max([len(self._names), *(number + 1 for number in copies)])
        for nth, number in enumerate(strange):
            if number < len(self._names) and copies[number].owner in users:
                files.rename_exact(copies[number].path, names.join(self._ready, names.copy(unclear + nth)))

    def _require_short(self, joined: FileInfo, strange: Sequence[int]) -> None:
        """Raise NeedsInvestigation where the copy would keep other tables waiting for hours: rename is all that it takes to put terabytes
        in the place of a source.
        """
        returned = self.run.returned
        # It may be copied again after an error.
        returned.lengths[self.unit.number] = sum(strange)
        if sum(returned.lengths.values()) > MOST_RETURNED and not returned.is_unlimited:
            table = self.run.table.full_name
            raise NeedsInvestigation(
                f"{self.unit.label}: {joined.path} took {sum(strange)} bytes of files that came to the place of those to be joined",
                code=Code.TOO_LARGE_TO_RETURN,
                state="they are complete inside that file, but no reader sees their rows; it shows those of the files as they were planned",
                next=f"hivekeeper recover --table {quoting.shell(table)} copies them out of it, however long that takes",
            )

    def give_back(self) -> Tuple[ManifestFile, ...]:
        """Move the copies to live, after T has left it; returns those that cannot go there, which are set aside.

        Whose name is taken stays aside: if the file there has replaced it, its rows must not come back.
        """
        directory, witness = self._find_mark()
        live = _Live(self.run, self.unit, directory, witness)
        for number, copy in sorted(self._find_copies(self._ready).items()):
            if number >= len(self._names) or not live.is_known(self._is_waiting):
                break
            path = names.join(self.unit.live, self._name_of(number))
            # Never to another table's directory, which may come to live's path.
            with self.run.files.anchored({self.unit.live: directory}), suppress(TargetExists):
                self.run.files.rename_exact(copy.path, path)
            if not live.is_known(self._is_waiting, just_moved=copy.file_id):
                with self.run.files.anchored({self.unit.live: directory}):
                    self._take_back(copy, path)
                if self.run.files.stat(self.unit.live) is None:
                    # It was moved, and recovery goes on where it is.
                    raise SourceMissing(self.unit.live)
                break
        return self.set_aside()

    def _take_back(self, copy: FileInfo, path: str) -> None:
        """Live was overwritten, or another directory came to its place, just before a copy went there: it does not belong there."""
        found = self.run.files.stat(path)
        if found is not None and found.file_id == copy.file_id:
            self.run.files.rename_exact(path, copy.path)

    def set_aside(self, strange: Mapping[str, FileInfo] = MappingProxyType({})) -> Tuple[ManifestFile, ...]:
        """Make a backup of the run of the copies that are left, if there are any; returns its files. `strange`: what else belongs to it, by
        what it was taken for.
        """
        files, aside = self.run.files, self._aside
        if not self.is_set_aside():
            if not strange and not self._find_copies(self._ready):
                files.delete_tree(self._ready)
                return ()
            # In one step, and no new directory: one that this run made after another had taken it over would stay.
            files.rename_exact(self._ready, aside)
        for number, copy in self._find_copies(aside).items():
            files.rename_exact(copy.path, names.join(aside, self._name_of(number)))
        for entry in self._look(aside):
            if names.BACK.fullmatch(entry.name):
                files.delete_file(entry.path)
        for part, file in strange.items():
            files.rename_exact(file.path, names.join(aside, f"-{part}".join(names.split_suffix(self.join.file))))
        return tuple(ManifestFile.of(entry) for entry in self._look(aside))

    def is_set_aside(self) -> bool:
        """Whether that was begun: then none of the others goes to live either."""
        return self.run.files.stat(self._aside) is not None

    @property
    def directory_id(self) -> int:
        """The directory that T left, or is to leave, for copies to go there; 0 if there is none."""
        return self._find_mark()[0]

    def _look(self, directory: str) -> Tuple[FileInfo, ...]:
        return self.run.files.look([directory])[directory].entries

    def _find_copies(self, directory: str) -> Dict[int, FileInfo]:
        found = [(names.COPY.fullmatch(entry.name), entry) for entry in self._look(directory)]
        return {int(match["nth"]): entry for match, entry in found if match}

    def _is_waiting(self, file_id: int) -> bool:
        return any(copy.file_id == file_id for copy in self._find_copies(self._ready).values())

    def _find_mark(self) -> Tuple[int, int]:
        """The ids of T's directory and of the witness, 0 if they are not known."""
        mark = next(filter(None, (names.BACK.fullmatch(entry.name) for entry in self._look(self._ready))), None)
        return (int(mark["directory"]), int(mark["witness"])) if mark else (0, 0)

    def _find_parts(self, joined: FileInfo) -> Mapping[int, Part]:
        """What the concat took but for the run's own, by the number of the copy. It goes by names: T may be somebody else's file, too."""
        blocks = blocks_of(self.run.files, joined)
        planned = (self.made.head, *self.join.blocks, *filter(None, [self.made.beside]), self.made.tail)
        parts = find_parts(blocks, planned, partial(self.run.cluster.rows.find_starts, self.format, joined))
        taken = [part for part in parts if part.planned is None or 0 < part.planned <= len(self.unit.manifest)]
        unclear = len(self._names)
        return {unclear + nth if part.nth is None else part.nth: part for nth, part in enumerate(taken)}

    def _name_of(self, number: int) -> str:
        """The name that a file gets back; one of its own where it was taken for the run's, or it is not clear which one it is."""
        if 0 < number <= len(self.unit.manifest):
            return self._names[number]
        return f"-{number}".join(names.split_suffix(self.join.file))


def blocks_of(files: Files, file: FileInfo) -> Tuple[Block, ...]:
    """The blocks of a file that was just looked at. Raises FilesUnavailable if it is not at its path any more."""
    blocks = files.blocks(file.path, ids={file.name: file.file_id}).get(file.name, ())
    if file.length and not blocks:
        raise FilesUnavailable(f"{file.path}: it was moved just now")
    return blocks


class _Live:
    """Tells whether live is the directory that T left, and nobody has replaced what was beside T there, or the copies that are back.

    If nothing was beside T, the first copy is the witness: until it is there itself, whatever else is in live has come since. Live may have
    a million files, so it is listed only until the witness is found in it. From then on that is asked for by its name.
    """

    def __init__(self, run: Run, unit: PlannedUnit, directory: int, witness: int) -> None:
        self._run, self._unit, self._path, self._directory, self._witness = run, unit, unit.live, directory, witness
        self._name = ""

    def is_known(self, is_waiting: Callable[[int], bool], just_moved: int = 0) -> bool:
        """`is_waiting` tells whether a copy with this id has not gone to live yet."""
        if not self._directory or not self._witness:
            return False
        if self._name:
            return self._is_at(self._path, self._directory) and self._is_at(names.join(self._path, self._name), self._witness)
        seen = self._run.files.look([self._path], self._run.most_listed([self._unit]))[self._path]
        if seen.file_id != self._directory or why_too_many(self._run, self._unit, len(seen.entries)):
            return False
        found = next((entry.name for entry in seen.entries if entry.file_id == self._witness), "")
        if not found:
            return is_waiting(self._witness) and not listings.data_files(seen)
        if self._witness == just_moved and len(listings.data_files(seen)) != 1:
            return False
        self._name = found
        return True

    def _is_at(self, path: str, file_id: int) -> bool:
        found = self._run.files.stat(path)
        return found is not None and found.file_id == file_id
