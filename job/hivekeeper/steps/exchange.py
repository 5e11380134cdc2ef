"""Exchange the files of one unit: the live files leave, the prepared files come in. Steps 4 to 7 of docs/swap.md.

The only dangerous code: a swap and a rollback differ only in what they prepare, what they expect and how they cancel.
Invariant at every instant: the leaving files are complete, in live or where they went; a late file exists exactly once.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from typing import Callable, ContextManager, Iterable, Iterator, Optional, Protocol, Sequence, Tuple

from hivekeeper.model import FileInfo, Unit
from hivekeeper.plan.recover import Move, next_move
from hivekeeper.ports import FilesError, FilesUnavailable, NoPermission, NoSpace
from hivekeeper.reasons import Code, Reason
from hivekeeper.runlog import manifests
from hivekeeper.runlog.entries import UnitResult
from hivekeeper.runlog.manifests import Expected, ManifestFile
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import Certificate, PlannedUnit
from hivekeeper.steps import late_directories, places
from hivekeeper.steps.checks import Checked, find_other_directory
from hivekeeper.steps.run_directory import Run, end_gap
from hivekeeper.steps.unfinished import MOST_TRIES, denied, interrupted, needs_investigation, require_answers


@dataclass(frozen=True)
class Picture:
    """Where the files of a unit are.

    `left`: the old files have left live; `departed` are the files found where they went, `departed_id` is that directory's, 0 if it is not
    known. `incoming`: the new files are not live yet; `waiting` are those that come in with their directory, and `lost` is one of them that
    cannot be read, as blocks are lost, if all old ones can, else "". `live` is what live holds, None if it is absent.
    """

    left: bool
    departed: Tuple[FileInfo, ...]
    incoming: bool
    live: Optional[Tuple[FileInfo, ...]]
    departed_id: int = 0
    waiting: Tuple[FileInfo, ...] = ()
    lost: str = ""


@dataclass(frozen=True)
class Exchanged:
    """What step 5 did: the new files are live, or `why` says why the old ones are live again.

    `nothing_late`: it is certain that no file came to the old ones since the snapshot, and that nobody re-created live in between.
    `aside`: those of the old ones that cannot go back to live, see `Means.put_back`.
    """

    why: Optional[Reason] = None
    nothing_late: bool = False
    aside: Tuple[ManifestFile, ...] = ()


@dataclass(frozen=True)
class CarriedOver:
    """The names in live of the late files that were moved there, and those of the ones that stay where the old files went. `is_merged`: all
    that others put in live's place meanwhile is in live, too.
    """

    moved: Tuple[str, ...] = ()
    left: Tuple[str, ...] = ()
    is_merged: bool = True


NOTHING_LATE = CarriedOver()


class NotItsPlace(Exception):
    """Another table is in the unit's place by now: nothing may be moved there."""

    def __init__(self, why: Reason) -> None:
        super().__init__(why.what)
        self.why = why


class Means(Protocol):
    """How the files of a unit are exchanged; only implementations know the mechanism, directory renames or another.

    Each call may fail with or without its effect (FilesError): `picture` shows which. Those that bring files to live may raise NotItsPlace.
    """

    def at_place(self) -> ContextManager[None]:
        """While it lasts, all that is done by paths is done where live was at its beginning."""

    def find_moved(self) -> Optional[Unit]:
        """The partition whose directory live is now, if somebody has moved it together with what the exchange had put there. Takes out what
        waits in a directory that is no partition's.
        """

    def rescue(self) -> Tuple[ManifestFile, ...]:
        """If live was moved out of the table, where nothing may be changed: make a backup of the run of what only the exchange could show
        again there; returns it.
        """

    def check(self) -> Checked:
        """Step 4: check that everything is as planned, and list what will come in. Changes nothing."""

    def exchange(self, checked: Checked) -> Exchanged:
        """Step 5."""

    def picture(self) -> Picture:
        """Where the files are now, and stay. Raises Fenced if another run took this one over."""

    def holds(self, expected: Expected, entries: Sequence[FileInfo]) -> bool:
        """Whether live, with these entries, still holds what came in."""

    def bring_in(self) -> None:
        """The second half of step 5, for recovery: anything written in between is set aside, never overwritten."""

    def put_back(self) -> Tuple[ManifestFile, ...]:
        """Make the old files live again, together with what a writer put in their place meanwhile.

        Returns those that do not belong there any more; they are a backup of this run then.
        """

    def keep_departed(self) -> Tuple[ManifestFile, ...]:
        """Make a backup of this run of the files that left live, without touching live; returns them."""

    def carry_over(self, expected: Expected) -> CarriedOver:
        """Step 6: move files that arrived during the exchange to live."""

    def find_unmerged(self) -> str:
        """A directory with files that came to live's place during the exchange, and are neither in live nor in the backup; "" for none.
        Removes empty ones.
        """

    def settle_live(self, since_ms: Optional[float], expected: Expected) -> Tuple[FileInfo, ...]:
        """What live holds; if it was brought in a moment ago, not before `since_ms` (monotonic), then after moving up the files of a
        directory that a late committer has renamed into it since.
        """


@dataclass(frozen=True)
class Words:
    """The outcomes of one kind of exchange: done, refused by the check, nothing exchanged; `after` names it in messages."""

    done: Outcome
    refused: Outcome
    cancelled: Outcome
    after: str


@dataclass(frozen=True)
class Exchange:
    """One unit's exchange.

    `expected` are the files that live must hold afterwards, None if unknown. `prepare` and `object_to` run before
    anything is changed in live: the first claims the incoming files or returns why they must not come in, the second returns why they are
    not as planned. `cancel` gives up the incoming files, wherever they are, and can be repeated; it returns why they are kept, if they are.
    `give_up` gives them up while the old files are not live, with the same answer, and can be repeated, and `was_given_up` tells it until
    the log has the run (a join's means tell it themselves). `describe` gives the same exchange at another place.
    """

    run: Run
    unit: PlannedUnit
    means: Means
    words: Words
    expected: Optional[Expected]
    prepare: Callable[[], Optional[Reason]]
    object_to: Callable[[Iterable[FileInfo]], Optional[Reason]]
    cancel: Callable[[], Optional[Reason]]
    give_up: Callable[[], Optional[Reason]]
    describe: Callable[[PlannedUnit], Exchange]
    was_given_up: Callable[[], bool] = lambda: False
    certificate: Optional[Certificate] = None


def carry_out(exchange: Exchange) -> UnitResult:
    """Steps 4 to 7. Undo: automatic if somebody wrote in between; later by a rollback."""
    clock = exchange.run.cluster.clock
    why: Optional[Reason] = None
    began, begun = 0.0, False
    try:
        with exchange.means.at_place():
            why = exchange.prepare()
            if why is None:
                checked = exchange.means.check()
                why = checked.why or exchange.object_to(checked.incoming)
            if why:
                return end_unbegun(exchange, exchange.words.refused, why)
            began, begun = clock.monotonic_ms(), True
            _start_gap(exchange, began)
            done = exchange.means.exchange(checked)
            why, gap_ms = done.why, clock.monotonic_ms() - began if exchange.unit.join is None else None
            if why and done.aside:
                return _keep_aside(exchange, done.aside, _why_aside(exchange, done.aside, why))
            return _end_cancelled(exchange, Outcome.PUT_BACK, why, gap_ms) if why else _finish(exchange, began, gap_ms, done.nothing_late)
    except NotItsPlace as other:
        with _telling_if_denied(exchange):
            return leave_aside(exchange, other.why)
    except FilesError as error:
        # It is unknown whether the change happened; the location of the files shows it.
        with _telling_if_denied(exchange) if begun else nullcontext():
            return settle(exchange, why or Reason(Code.CALL_FAILED, str(error)), begun)
    finally:
        # Where it ended without live; else this was done before.
        end_gap(exchange.run, exchange.unit)


def why_exactly(exchange: Exchange, why: Optional[Reason]) -> Optional[Reason]:
    """Why an exchange must not begin, where another look at live than the check's has found `why`: what the check itself tells is more
    exact. If it finds nothing, what was looked at may have been away, or another one, for a moment.
    """
    if why is None or why.code not in (Code.CHANGED_MEANWHILE, Code.DIRECTORY_GONE):
        return why
    return exchange.means.check().why or why


def _start_gap(exchange: Exchange, began_ms: float) -> None:
    """Live is never away while files of it are joined."""
    exchange.run.away_since_ms.clear()
    if exchange.unit.join is None:
        exchange.run.away_since_ms[exchange.unit.number] = began_ms


@contextmanager
def _telling_if_denied(exchange: Exchange) -> Iterator[None]:
    """A table that one may not read is refused, and passed over: but not while a unit of it may be away."""
    try:
        yield
    except NoPermission as error:
        raise denied(exchange.run, exchange.unit, error) from error


def settle(exchange: Exchange, cause: Reason, begun: bool = True) -> UnitResult:
    """Finish or undo one unit, based on where its files are.

    `cause` says why it was interrupted. `begun`: its files may have left live.
    """
    try:
        aside = exchange.means.rescue()
        if aside:
            return _keep_aside(exchange, aside, _why_aside(exchange, aside, cause))
        found = _find(exchange)
        with found.means.at_place():
            return _settle(found, cause, begun)
    except NotItsPlace as other:
        return leave_aside(exchange, other.why)
    except FilesUnavailable as error:
        raise interrupted(exchange.run, exchange.unit, error, begun) from error


def _find(exchange: Exchange) -> Exchange:
    """The exchange where its unit is now."""
    moved = exchange.means.find_moved()
    return exchange.describe(replace(exchange.unit, unit=moved)) if moved else exchange


def leave_aside(exchange: Exchange, why: Reason, after: Outcome = Outcome.MISPLACED) -> UnitResult:
    """End an interrupted exchange without touching live, because the unit no longer belongs there.

    Files that left live stay as a backup; incoming files are given up. Changes nothing if the old files never left. `after`: the outcome if
    the new files had been live, and had with them all that came meanwhile: somebody may have renamed the unit with just those.
    """
    left = _rescue_or_leave(exchange, why, after)
    return replace(left, why=places.explain(exchange.run, left, left.why or why)) if left.outcome.is_astray else left


def _rescue_or_leave(exchange: Exchange, why: Reason, after: Outcome) -> UnitResult:
    aside = exchange.means.rescue()
    if aside:
        return _keep_aside(exchange, aside, why)
    exchange = _find(exchange)
    with exchange.means.at_place():
        return _leave_aside(exchange, why, after)


def _leave_aside(exchange: Exchange, why: Reason, after: Outcome) -> UnitResult:
    picture = exchange.means.picture()
    unmerged = exchange.means.find_unmerged()
    why = _with_unmerged(why, unmerged)
    if not picture.left:
        outcome, why = _cancel(exchange, Outcome.MISPLACED if unmerged else exchange.words.cancelled, why)
        return UnitResult(exchange.unit, outcome, why=why)
    if picture.incoming or exchange.was_given_up():
        aside = exchange.means.keep_departed()
        return _keep_aside(exchange, aside, why) if aside else UnitResult(exchange.unit, exchange.words.cancelled, why=why)
    late = _names_of_late(exchange, picture)
    if late:
        why = _with_late(why, late)
    return UnitResult(exchange.unit, Outcome.MISPLACED if late or unmerged else after, exchange.certificate, why=why, has_backup=True)


def _names_of_late(exchange: Exchange, picture: Picture) -> Tuple[str, ...]:
    """None of another table's directory, which somebody may have put in the place of the old files."""
    is_own = exchange.unit.lay_in(picture.departed_id, picture.departed)
    late = manifests.find_late(exchange.unit.manifest, picture.departed) if is_own else ()
    return tuple(file.name for file in late)


def _with_late(why: Reason, late: Sequence[str]) -> Reason:
    return replace(why, what=f"{why.what}; {late[0]} came late, and was not carried over")


def _with_unmerged(why: Reason, place: str) -> Reason:
    came = "what came to its place while it was away, perhaps another table's, or copies of its own files that would double rows"
    return replace(why, what=f"{why.what}; {came}, is in {place}") if place else why


def _keep_aside(exchange: Exchange, files: Tuple[ManifestFile, ...], why: Reason) -> UnitResult:
    """End an exchange with these old files as a backup that nothing replaced; what a rollback had claimed is a backup again."""
    kept = exchange.give_up()
    why = replace(why, what=f"{why.what}; {kept.what} ({kept.next})") if kept else why
    unit = replace(exchange.unit, manifest=files, backup=None, expected=(), digest=None, join=None, inside=None)
    return UnitResult(unit, Outcome.MISPLACED, why=why, has_backup=True)


def _why_aside(exchange: Exchange, files: Sequence[ManifestFile], why: Reason) -> Reason:
    place = exchange.run.paths.unit("retired", exchange.unit.number)
    because = "live was replaced or moved before, it is not clear what they are, or could be renamed by others"
    what = f"{why.what}; {len(files)} files did not go back, because {because}"
    return Reason(why.code, f"{what}: they are in {place}", places.ADVICE)


def _settle(exchange: Exchange, cause: Reason, begun: bool, tries: int = 0, is_full: bool = False) -> UnitResult:
    """`is_full`: a quota between the table's directory and the unit's has no room for the new files. It had some for the old ones."""
    if tries >= MOST_TRIES:
        raise needs_investigation(exchange.run, exchange.unit, Code.RENAME_KEEPS_FAILING, f"a rename keeps failing ({cause.what})")
    picture = exchange.means.picture()
    move = next_move(picture.left, picture.incoming, _holds(exchange, picture))
    if (move is Move.DECIDE and is_full) or (move is Move.OVERWRITTEN and exchange.was_given_up()):
        move = Move.PUT_BACK
    try:
        return _take(exchange, move, picture, cause, begun)
    except FilesError as error:
        require_answers(error, tries + 1)
        return _settle(exchange, Reason(Code.CALL_FAILED, str(error)), begun, tries + 1, is_full or isinstance(error, NoSpace))


def _holds(exchange: Exchange, picture: Picture) -> bool:
    """Asked only where it decides what is to be done: somebody may have put millions of files into live."""
    if not picture.left or picture.incoming or picture.live is None or exchange.expected is None:
        return False
    return exchange.means.holds(exchange.expected, picture.live)


def _take(exchange: Exchange, move: Move, picture: Picture, cause: Reason, begun: bool) -> UnitResult:
    if move is Move.CANCEL:
        return _end_cancelled(exchange, exchange.words.cancelled, cause) if begun else end_unbegun(exchange, exchange.words.refused, cause)
    if exchange.expected is None:
        raise needs_investigation(exchange.run, exchange.unit, Code.NO_CERTIFICATE, "it was retired without a certificate")
    if move is Move.OVERWRITTEN:
        left = CarriedOver(left=_names_of_late(exchange, picture))
        return _overwritten(exchange, f"somebody replaced or removed its files after the {exchange.words.after}", carried=left)
    if move is Move.PUT_BACK:
        return _put_back(exchange, cause)
    if move is Move.DECIDE:
        why = _why_not_in(exchange.unit, exchange.expected, picture)
        if why:
            return _put_back(exchange, why)
        began = exchange.run.cluster.clock.monotonic_ms()
        exchange.means.bring_in()
        return _finish(exchange, began)
    # After a kill, or a call that failed, nobody knows how long its files have been live.
    return _finish(exchange, None)


def _why_not_in(unit: PlannedUnit, expected: Expected, picture: Picture) -> Optional[Reason]:
    """Why the new files of a unit in its gap are not to come in: the old ones are not as planned, the new ones not all there, or only the
    old ones can be read.
    """
    why = find_other_directory(unit, picture.departed_id) or manifests.judge(unit.manifest, picture.departed).why
    if why:
        return why
    if not manifests.holds(expected, picture.waiting):
        return Reason(Code.CHANGED_MEANWHILE, "not all new files are there any more that were to come in")
    if picture.lost:
        return Reason(Code.LOST_BLOCKS, f"no DataNode has some blocks of {picture.lost}, which was to come to live")
    return None


def _put_back(exchange: Exchange, why: Reason) -> UnitResult:
    aside = exchange.means.put_back()
    if aside:
        return _keep_aside(exchange, aside, _why_aside(exchange, aside, why))
    return _end_cancelled(exchange, Outcome.PUT_BACK, why)


def _finish(exchange: Exchange, since_ms: Optional[float], gap_ms: Optional[float] = None, nothing_late: bool = False) -> UnitResult:
    """Steps 6 and 7, after the new files are live: carry over, then verify. `since_ms`: as for `Means.settle_live`."""
    assert exchange.expected is not None
    end_gap(exchange.run, exchange.unit)
    carried = NOTHING_LATE if nothing_late else exchange.means.carry_over(exchange.expected)
    entries = exchange.means.settle_live(since_ms, exchange.expected)
    if exchange.means.holds(exchange.expected, entries):
        # They may have been brought back since.
        exchange.run.taken_out.discard(exchange.unit.number)
        nested = late_directories.find_nested(entries, [exchange.unit.directory_id])
        done = UnitResult(exchange.unit, exchange.words.done, exchange.certificate, gap_ms, carried.moved, nested=nested)
        unmerged = "" if carried.is_merged else exchange.means.find_unmerged()
        if carried.left or unmerged:
            why = Reason(Code.LATE_IN_BACKUP, f"not all that came during the {exchange.words.after} is in live", places.ADVICE)
            why = _with_unmerged(_with_late(why, carried.left) if carried.left else why, unmerged)
            done = replace(done, outcome=Outcome.MISPLACED, why=why, has_backup=True)
        return done
    # Somebody has overwritten the unit since: its old rows must never come back.
    return _overwritten(exchange, f"somebody replaced its files after the {exchange.words.after}", gap_ms, carried)


def _overwritten(exchange: Exchange, what: str, gap_ms: Optional[float] = None, carried: CarriedOver = NOTHING_LATE) -> UnitResult:
    """Somebody's files are live. What others wrote in the exchange may have been replaced too; or the directory was only moved. Who rewrote
    live's files since may never have seen the late ones that are left.
    """
    unmerged = exchange.means.find_unmerged()
    is_told = bool(unmerged or carried.left)
    why = Reason(Code.REPLACED_AFTER, what, places.ADVICE if is_told else "")
    why = _with_unmerged(_with_late(why, carried.left) if carried.left else why, unmerged)
    outcome = Outcome.MISPLACED if is_told else Outcome.OVERWRITTEN
    return UnitResult(exchange.unit, outcome, exchange.certificate, gap_ms, carried.moved, why, has_backup=is_told)


def end_unbegun(exchange: Exchange, outcome: Outcome, why: Reason) -> UnitResult:
    """End an exchange for which live was never away."""
    outcome, why = _cancel(exchange, outcome, why)
    return UnitResult(exchange.unit, outcome, why=why)


def _cancel(exchange: Exchange, outcome: Outcome, why: Reason) -> Tuple[Outcome, Reason]:
    """Give up the incoming files; returns what to tell. Those that are kept no later command tells of."""
    kept = exchange.cancel()
    return (Outcome.MISPLACED, replace(kept, what=f"{why.what}; {kept.what}")) if kept else (outcome, why)


def _end_cancelled(exchange: Exchange, outcome: Outcome, why: Reason, gap_ms: Optional[float] = None) -> UnitResult:
    """End an exchange with the old files live, which may have been away: what others put at its place may be aside still, although an
    earlier try, or one that was killed, has put it back. A directory in it may have come before it left.
    """
    end_gap(exchange.run, exchange.unit)
    outcome, why = _cancel(exchange, outcome, why)
    unmerged = exchange.means.find_unmerged()
    if unmerged:
        outcome, why = Outcome.MISPLACED, replace(_with_unmerged(why, unmerged), next=places.ADVICE)
    # Where enough was listed, the last look at all units tells it (late_directories.tell_all).
    is_enough = exchange.run.has_listed_enough and not unmerged
    nested = "" if is_enough else late_directories.find_nested(exchange.means.settle_live(None, {}), [exchange.unit.directory_id])
    return UnitResult(exchange.unit, outcome, gap_ms=gap_ms, why=why, nested=nested)
