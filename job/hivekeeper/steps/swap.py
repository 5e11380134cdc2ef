"""Swap one unit: live → retired, ready → live, with the looks and checks of docs/swap.md.

Invariant at every instant: the rows of the snapshot exist in live or in retired, a late file exists exactly
once, and nothing is deleted but a stage.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Mapping, Optional, Sequence, Tuple

from hivekeeper import names
from hivekeeper.errors import AskAPerson
from hivekeeper.model import FileInfo, Snapshot
from hivekeeper.plan import eligible, look
from hivekeeper.plan.records import Certificate, RecordedUnit, UnitRecord
from hivekeeper.plan.recovery import Live, Move, next_move
from hivekeeper.seams import Files, FilesError, SourceMissing, TargetExists
from hivekeeper.steps.journal import Run, fenced, read_clock

# A writer that sets up, and commits a task while live is away, is lost only if both fall between the check
# and the put-back: so the two are kept near.
MOST_MS_BETWEEN_CHECK_AND_RENAME = 100
MOST_CHECKS = 10
MOST_GLANCES = 20
MOST_TRIES = 4
MOST_ASIDES = 100


@dataclass(frozen=True)
class Checked:
    """The result of step 4: `why` is empty when the swap may begin.

    `seen` holds live and the directories above it as they were, their times read before their listings.
    `clock_ms` is the NameNode's own time from before that, `began_ms` ours, for durations.
    """

    seen: Mapping[str, Snapshot]
    clock_ms: int
    began_ms: float
    why: str = ""


def swap_unit(run: Run, unit: RecordedUnit, certificate: Certificate) -> UnitRecord:
    """Steps 4 to 7 for one unit. Undo: put_back, which happens by itself when somebody wrote in between."""
    checked = check_often(run, unit, certificate)
    if checked.why:
        return give_up(run, unit, checked.why)
    clock = run.cluster.clock
    began = clock.monotonic_ms()
    why = ""
    try:
        retire_live(run, unit)
        why = look_at_retired(run, unit, checked)
        if why:
            put_back(run, unit)
        else:
            promote_ready(run, unit)
    except FilesError:
        # Whether the rename happened is not known; where the directories lie tells.
        return settle_unit(run, unit, certificate)
    gap_ms = clock.monotonic_ms() - began
    try:
        return finish_put_back(run, unit, why, gap_ms) if why else finish_unit(run, unit, certificate, gap_ms)
    except FilesError:
        return settle_unit(run, unit, certificate)


def check_often(run: Run, unit: RecordedUnit, certificate: Certificate) -> Checked:
    """Step 4, made again until it is young enough: by listings, or by ids and times where listing takes too long."""
    clock = run.cluster.clock
    for _ in range(MOST_CHECKS):
        checked = check(run, unit, certificate)
        if checked.why or clock.monotonic_ms() - checked.began_ms <= MOST_MS_BETWEEN_CHECK_AND_RENAME:
            return checked
        for _ in range(MOST_GLANCES):
            began_ms = clock.monotonic_ms()
            if not is_still_true(run, checked):
                break
            if clock.monotonic_ms() - began_ms <= MOST_MS_BETWEEN_CHECK_AND_RENAME:
                return checked
    return replace(checked, why=f"it keeps changing, or the file system needs more than {MOST_MS_BETWEEN_CHECK_AND_RENAME} ms for one look")


def is_still_true(run: Run, checked: Checked) -> bool:
    """Whether the checked directories are certainly as they were, by their ids and times alone."""
    for directory, before in checked.seen.items():
        now = run.files.stat(directory)
        if now is None or not look.is_untouched(before, now, checked.clock_ms, run.files.clock_grain_ms):
            return False
    return True


def check(run: Run, unit: RecordedUnit, certificate: Certificate) -> Checked:
    """Step 4: is everything as the plan and the certificate say?"""
    moved = find_change_in_metastore(run, unit)
    live, ready = unit.unit.live, run.paths.ready(unit.number)
    above = _directories_above(live, run.table.location)
    if not run.lock.check():
        raise fenced(run)
    clock_ms = read_clock(run)
    began_ms = run.cluster.clock.monotonic_ms()
    seen = run.files.look([live, ready, *above])
    checked = Checked({directory: seen[directory] for directory in (live, *above)}, clock_ms, began_ms)
    writer = eligible.find_writer(entry for directory in above for entry in seen[directory].entries)
    why = moved or ("" if seen[live].exists else "its directory is gone") or look.judge(unit.manifest, seen[live].entries).why
    if why or writer:
        return replace(checked, why=why or f"a writer is at work in the table ({writer})")
    if not look.holds_exactly(certificate.files, seen[ready].entries):
        raise AskAPerson(
            f"{unit.unit.label}: {ready} does not hold what was proved",
            state="live is untouched",
            next="find out who writes below the control directory",
        )
    return checked


def find_change_in_metastore(run: Run, unit: RecordedUnit) -> str:
    """Why the metastore no longer has the unit at this place; "" where it has."""
    table, metastore = run.table, run.cluster.metastore
    if unit.unit.name:
        partition = metastore.partitions_named(table, [unit.unit.name]).get(unit.unit.name)
        location = partition.location if partition else ""
    else:
        found = metastore.tables(table.database, [table.name]).get(table.name)
        location = found.location if found else ""
    if not location:
        return "it was dropped from the metastore meanwhile"
    return "" if run.files.qualify(location) == unit.unit.live else "its location in the metastore was changed meanwhile"


def _directories_above(live: str, root: str) -> Sequence[str]:
    """The table's root and what lies between it and the unit: committers put their temporary directories there."""
    found = []
    while live != root and eligible.is_below(live, root):
        live = names.parent(live)
        found.append(live)
    return found


def retire_live(run: Run, unit: RecordedUnit) -> None:
    """Move live aside. Undo: put_back. Killed after it, both copies exist and recovery promotes or puts back."""
    run.files.rename_exact(unit.unit.live, run.paths.retired(unit.number))


def look_at_retired(run: Run, unit: RecordedUnit, checked: Checked) -> str:
    """Why the retired directory is not what was checked; "" when it is, or when only complete files came.

    Nobody can reach it by its old path any more, so the answer stays true.
    """
    retired = run.paths.retired(unit.number)
    now = run.files.stat(retired)
    if now is None:
        raise SourceMissing(retired)
    if look.is_untouched(checked.seen[unit.unit.live], now, checked.clock_ms, run.files.clock_grain_ms):
        return ""
    return look.judge(unit.manifest, run.files.look([retired])[retired].entries).why


def promote_ready(run: Run, unit: RecordedUnit) -> None:
    """Put the proved files in live's place. Undo: rollback."""
    bring(run, unit, run.paths.ready(unit.number))


def put_back(run: Run, unit: RecordedUnit) -> None:
    """Put the old files back: the unit is as it was."""
    bring(run, unit, run.paths.retired(unit.number))


def bring(run: Run, unit: RecordedUnit, source: str) -> None:
    """Rename to live; what a writer put there meanwhile is set aside, under a name of its own each time."""
    for _ in range(MOST_ASIDES):
        try:
            run.files.rename_exact(source, unit.unit.live)
            return
        except TargetExists:
            set_aside(run, unit)
    raise _ask(run, unit, "somebody keeps making its directory anew")


def set_aside(run: Run, unit: RecordedUnit) -> None:
    """Move what stands at live's place to recreated/uN.K. Undo: merge_recreated."""
    for nth in range(MOST_ASIDES):
        try:
            run.files.rename_exact(unit.unit.live, run.paths.recreated(unit.number, nth))
            return
        except TargetExists:
            continue
        except SourceMissing:
            return
    raise _ask(run, unit, "too many directories were set aside")


def finish_unit(run: Run, unit: RecordedUnit, certificate: Certificate, gap_ms: Optional[float] = None) -> UnitRecord:
    """Steps 6 and 7 after a promotion: carry over, then verify."""
    late = carry_over(run, unit)
    merge_recreated(run, unit)
    lift_nested(run.files, unit.unit.live)
    live = run.files.look([unit.unit.live])[unit.unit.live]
    if look.holds(certificate.files, live.entries):
        return UnitRecord(unit, "swapped", certificate, gap_ms, late)
    # Somebody overwrote the unit since: its old rows must never come back under an overwriter.
    return UnitRecord(unit, "overwritten", certificate, gap_ms, late, "somebody replaced its files after the swap")


def carry_over(run: Run, unit: RecordedUnit) -> Tuple[str, ...]:
    """Move the late files of retired into live; then retired is the snapshot."""
    retired = run.paths.retired(unit.number)
    late = look.find_late(unit.manifest, run.files.look([retired])[retired].entries)
    return tuple(move_file(run.files, file.path, unit.unit.live) for file in late)


def move_file(files: Files, source: str, directory: str) -> str:
    """Rename a file into a directory, under a new name where its own is taken; gives the name."""
    name = names.base(source)
    stem, dot, suffix = name.partition(".")
    for nth in range(MOST_ASIDES):
        candidate = name if nth == 0 else f"{stem}-late{nth}{dot}{suffix}"
        try:
            files.rename_exact(source, names.join(directory, candidate))
            return candidate
        except TargetExists:
            continue
    raise AskAPerson(f"{source}: no name is free in {directory}", state="the file is where it was", next="move it by hand")


def merge_recreated(run: Run, unit: RecordedUnit) -> None:
    """Merge what was set aside into live as a tree, directories whole where their name is free, so that a committer finds its own."""
    top = run.paths.state("recreated")
    for aside in run.files.look([top])[top].entries:
        match = names.RECREATED.fullmatch(aside.name)
        if match and int(match["number"]) == unit.number:
            _merge(run, aside.path, unit.unit.live)


def _merge(run: Run, source: str, target: str) -> None:
    for entry in run.files.look([source])[source].entries:
        if not entry.is_dir:
            move_file(run.files, entry.path, target)
            continue
        inner = names.join(target, entry.name)
        try:
            run.files.rename_exact(entry.path, inner)
        except TargetExists:
            _merge(run, entry.path, inner)
    run.files.remove_empty(source)


def lift_nested(files: Files, live: str) -> None:
    """Files of a directory that a committer renamed *into* live, which it took for its target, belong in live itself."""
    for entry in files.look([live])[live].entries:
        if is_committed_directory(entry):
            _lift(files, entry, live)


def is_committed_directory(entry: FileInfo) -> bool:
    return entry.is_dir and not names.is_hidden(entry.name) and not names.is_hive_subdirectory(entry.name)


def _lift(files: Files, directory: FileInfo, live: str) -> None:
    for entry in files.look([directory.path])[directory.path].entries:
        if is_committed_directory(entry):
            _lift(files, entry, live)
        elif not entry.is_dir:
            move_file(files, entry.path, live)
    files.remove_empty(directory.path)


def give_up(run: Run, unit: RecordedUnit, why: str) -> UnitRecord:
    """Leave a unit that was not touched as it is, and drop what was staged for it."""
    drop_ready(run, unit)
    return UnitRecord(unit, "given up", reason=why)


def finish_put_back(run: Run, unit: RecordedUnit, why: str, gap_ms: Optional[float] = None, outcome: str = "put back") -> UnitRecord:
    """After live was away and is back: return what was put at its place meanwhile."""
    merge_recreated(run, unit)
    lift_nested(run.files, unit.unit.live)
    drop_ready(run, unit)
    return UnitRecord(unit, outcome, gap_ms=gap_ms, reason=why)


def drop_ready(run: Run, unit: RecordedUnit) -> None:
    """Delete the proved copy of a unit whose old files are live."""
    run.files.delete_tree(run.paths.ready(unit.number))


def settle_unit(run: Run, unit: RecordedUnit, certificate: Optional[Certificate], tries: int = 0) -> UnitRecord:
    """Bring one unit to its end or back to its start, from where its directories lie."""
    if tries >= MOST_TRIES:
        raise _ask(run, unit, "a rename keeps failing")
    live, ready, retired = unit.unit.live, run.paths.ready(unit.number), run.paths.retired(unit.number)
    seen = run.files.look([live, ready, retired, run.paths.top])
    if not seen[run.paths.top].exists:
        raise fenced(run)
    move = next_move(picture_live(seen, live, certificate), seen[ready].exists, seen[retired].exists)
    try:
        return _carry_out(run, unit, certificate, move, seen)
    except FilesError:
        return settle_unit(run, unit, certificate, tries + 1)


def picture_live(seen: Mapping[str, Snapshot], live: str, certificate: Optional[Certificate]) -> Live:
    if not seen[live].exists:
        return Live.ABSENT
    ours = certificate is not None and look.holds(certificate.files, seen[live].entries)
    return Live.OURS if ours else Live.OTHER


def _carry_out(run: Run, unit: RecordedUnit, certificate: Optional[Certificate], move: Move, seen: Mapping[str, Snapshot]) -> UnitRecord:
    if move is Move.NOTHING_SWAPPED:
        return finish_put_back(run, unit, "the run ended before its swap", outcome="not swapped")
    if certificate is None:
        raise _ask(run, unit, "it was retired without a certificate")
    if move is Move.OVERWRITTEN:
        return UnitRecord(unit, "overwritten", certificate, reason="somebody replaced or removed its files after the swap")
    if move is Move.FINISH_GAP:
        why = look.judge(unit.manifest, seen[run.paths.retired(unit.number)].entries).why
        if why:
            put_back(run, unit)
            return finish_put_back(run, unit, why)
        promote_ready(run, unit)
    return finish_unit(run, unit, certificate)


def _ask(run: Run, unit: RecordedUnit, why: str) -> AskAPerson:
    places = {
        "live": unit.unit.live,
        "ready": run.paths.ready(unit.number),
        "retired": run.paths.retired(unit.number),
        "recreated": run.paths.state("recreated"),
    }
    seen = run.files.look(list(places.values()))
    state = "; ".join(f"{name}: {path} {'is there' if seen[path].exists else 'is not there'}" for name, path in places.items())
    return AskAPerson(
        f"{unit.unit.label}: {why}",
        state=state,
        next="compare the directories with plan.json of the run; the old files are in retired, or else still in live",
    )
