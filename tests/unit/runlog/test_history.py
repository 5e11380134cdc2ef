import json
from dataclasses import replace

import pytest

from hivekeeper.model import Digest
from hivekeeper.plan import compaction
from hivekeeper.runlog.entries import Actor, LogEntry, UnitResult, entry_to_text
from hivekeeper.runlog.manifests import ManifestFile
from hivekeeper.runlog.outcomes import Outcome
from hivekeeper.runlog.run_files import BackupPlace, PlannedUnit
from hivekeeper.runlog.strict import NewerRecord, UnreadableRecord
from support.builders import ROOT, a_file, a_group, a_table, a_unit, files_at, read_log

RUN, LATER, CLEANUP = "20260101t020304z-0000", "20260102t020304z-0000", "20260103t020304z-0000"
TABLE = a_table(["dt"], create_time=5)
UNIT = a_unit("dt=2026-01-01")
OLD = (ManifestFile.of(a_file("a b%2F'.parquet")), ManifestFile.of(a_file("_SUCCESS", length=0)))
NEW = ManifestFile("new.parquet", 1000, 9, 77)
PLANNED = PlannedUnit(1, UNIT, OLD, ("_SUCCESS",))
OUTPUT = a_group({f"{ROOT}/x/new.parquet": 7})
CERTIFICATE = compaction.certify(PLANNED, [a_group({"old": 7})], [OUTPUT], [a_file("new.parquet")], Digest(7, 1, 2))
ACTOR = Actor("etl", "edge1", "app-1", "0.1.0")
SWAPPED = UnitResult(PlannedUnit(1, UNIT, OLD, ("_SUCCESS",)), Outcome.SWAPPED, CERTIFICATE, 2.5, ("late",))
PLACE = f"runs/{RUN}.t1/retired/u00001"
UNDONE = UnitResult(PlannedUnit(1, UNIT, (NEW,), (), BackupPlace(RUN, 1, PLACE), OLD), Outcome.ROLLED_BACK, None, 3.5)


def entry(*units, first=True, run=RUN, directory=None, operation="compact-swap", now_ms=9, **more):
    record = LogEntry(run, directory or f"{run}.t1", operation, now_ms, units, **more)
    return entry_to_text(record, TABLE, ACTOR, {"x": 1}, first)


def actions(text):
    found = {}
    for line in text.splitlines():
        for kind, content in json.loads(line).items():
            found.setdefault(kind, []).append(content)
    return found


def test_an_entry_tells_where_every_old_file_lies_now_and_what_replaced_it():
    by_kind = actions(entry(SWAPPED))
    assert list(by_kind) == ["protocol", "metaData", "commitInfo", "remove", "add"]
    assert by_kind["metaData"][0]["id"] == "sales.events@5"
    assert by_kind["remove"][0]["path"] == "dt=2026-01-01/a b%2F'.parquet"
    assert by_kind["remove"][0]["retired"] == f"{PLACE}/a b%2F'.parquet"
    assert by_kind["add"][0]["path"] == "dt=2026-01-01/new.parquet"
    assert json.loads(by_kind["add"][0]["stats"]) == {"numRecords": 7}
    assert all(action["dataChange"] is False for kind in ("add", "remove") for action in by_kind[kind])


@pytest.mark.parametrize("outcome", [Outcome.PUT_BACK, Outcome.GIVEN_UP, Outcome.NOT_SWAPPED, Outcome.DIFFERS, Outcome.FAILED])
def test_a_unit_that_was_not_swapped_removes_and_adds_nothing(outcome):
    assert list(actions(entry(UnitResult(SWAPPED.planned, outcome)))) == ["protocol", "metaData", "commitInfo"]


def test_reading_the_log_finds_what_a_run_did_to_each_unit():
    history = read_log({0: entry(SWAPPED), 1: entry(UnitResult(SWAPPED.planned, Outcome.GIVEN_UP), first=False, run=LATER)})
    (effect,) = history.effects
    assert history.finished == {RUN, LATER}
    assert (history.next_version, history.table_id) == (2, "sales.events@5")
    assert (effect.key, effect.partition, effect.live, effect.place) == ((RUN, 1), "dt=2026-01-01", "dt=2026-01-01", PLACE)
    assert (effect.before, effect.digest) == (OLD, Digest(7, 1, 2))
    assert [(file.name, file.length, file.file_id) for file in effect.after] == [("new.parquet", 1000, 0)]


def test_an_outcome_that_this_version_does_not_know_spoils_its_entry_unless_the_protocol_says_that_it_is_newer():
    strange = entry(SWAPPED).replace('"outcome": "swapped"', '"outcome": "moved"')
    with pytest.raises(UnreadableRecord, match="'moved' is not one of"):
        read_log({0: strange})
    with pytest.raises(NewerRecord):
        read_log({0: strange.replace('"minReaderVersion": 1', '"minReaderVersion": 3')})


def test_a_rollback_names_what_it_undoes_and_knows_the_ids_of_what_it_brings_back():
    history = read_log({0: entry(SWAPPED), 1: entry(UNDONE, first=False, run=LATER, operation="rollback")})
    effect = history.effects[1]
    assert (effect.undoes, effect.before, effect.after) == ((RUN, 1), (NEW,), OLD)
    assert effect.place == f"runs/{LATER}.t1/retired/u00001"


def test_the_first_of_a_cleanups_two_entries_does_not_finish_it():
    begun = entry(first=False, run=CLEANUP, operation="cleanup", finished=False, discarding=(PLACE,))
    history = read_log({0: entry(SWAPPED), 1: begun})
    assert CLEANUP not in history.finished
    assert (history.runs[1].discarding, dict(history.discarded)) == ((PLACE,), {})
    gone = UnitResult(PlannedUnit(1, UNIT, OLD, (), BackupPlace(RUN, 1, PLACE)), Outcome.DISCARDED)
    finished = read_log({0: entry(SWAPPED), 1: begun, 2: entry(gone, first=False, run=CLEANUP, operation="cleanup")})
    assert CLEANUP in finished.finished
    assert finished.discarded[PLACE].version == 2


def test_the_last_pin_counts():
    pinned = entry(first=False, run=LATER, operation="pin", pin=(RUN, True))
    assert read_log({0: entry(SWAPPED), 1: pinned}).pinned == {RUN}
    assert read_log({0: entry(SWAPPED), 1: pinned, 2: entry(first=False, operation="unpin", pin=(RUN, False))}).pinned == set()


def paths(found):
    return sorted(found.files), sorted(found.tombstones)


def test_the_files_at_a_version_are_replayed_from_the_first_entry():
    gone = UnitResult(PlannedUnit(1, UNIT, (NEW,), (), BackupPlace(LATER, 1, f"runs/{LATER}.t1/retired/u00001")), Outcome.DISCARDED)
    entries = {
        0: entry(SWAPPED),
        1: entry(UNDONE, first=False, run=LATER, operation="rollback"),
        2: entry(gone, first=False, run=CLEANUP, operation="cleanup"),
    }
    old = ["dt=2026-01-01/_SUCCESS", "dt=2026-01-01/a b%2F'.parquet"]
    assert paths(files_at(entries, 0)) == (["dt=2026-01-01/new.parquet"], old)
    assert paths(files_at(entries, 1)) == (old, ["dt=2026-01-01/new.parquet"])
    assert paths(files_at(entries, 2)) == (old, [])
    assert files_at(entries, 0).tombstones[old[1]][1] == f"{PLACE}/a b%2F'.parquet"


def test_an_unknown_action_is_ignored_as_long_as_the_protocol_allows_it():
    later = entry(SWAPPED) + json.dumps({"vacuum": {"x": 1}}) + "\n"
    assert read_log({0: later}).finished == {RUN}


@pytest.mark.parametrize("timestamp", [None, "yesterday", -1, 0, True, 1.5])
def test_a_date_that_cannot_be_read_is_no_date(timestamp):
    lines = [json.loads(line) for line in entry(SWAPPED).splitlines()]
    for line in lines:
        line.get("commitInfo", {})["timestamp"] = timestamp
    (run,) = read_log({0: "\n".join(map(json.dumps, lines))}).runs
    assert run.timestamp_ms is None


def test_characters_that_python_takes_for_line_ends_do_not_end_a_line():
    odd = replace(SWAPPED, planned=replace(SWAPPED.planned, unit=a_unit("dt=a\u2028b\x85c")))
    (effect,) = read_log({0: entry(odd)}).effects
    assert effect.partition == "dt=a\u2028b\x85c"


def without(text, kind, key):
    lines = [json.loads(line) for line in text.splitlines()]
    for line in lines:
        line.get(kind, {}).pop(key, None)
    return "\n".join(map(json.dumps, lines))


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ({0: entry(SWAPPED), 2: entry(SWAPPED)}, "entry 1 is missing"),
        ({1: entry(SWAPPED)}, "entry 0 is missing"),
        ({0: ""}, "log entry 0 cannot be read"),
        ({0: entry(SWAPPED)[:50]}, "log entry 0 cannot be read"),
        ({0: "[]"}, "log entry 0 is not what Hivekeeper writes"),
        ({0: '{"protocol": {}}'}, "log entry 0 is not what Hivekeeper writes"),
        ({0: '{"protocol": 1}'}, "log entry 0 is not what Hivekeeper writes"),
        ({0: without(entry(SWAPPED), "commitInfo", "run")}, "log entry 0 is not what Hivekeeper writes"),
        ({0: without(entry(SWAPPED), "remove", "size")}, "log entry 0 is not what Hivekeeper writes"),
        ({0: without(entry(SWAPPED), "metaData", "id")}, "log entry 0 is not what Hivekeeper writes"),
    ],
)
def test_a_log_that_cannot_be_trusted_is_refused(entries, says):
    with pytest.raises(UnreadableRecord, match=says) as raised:
        read_log(entries)
    assert not isinstance(raised.value, NewerRecord)


@pytest.mark.parametrize("protocol", [{"minReaderVersion": 3, "minWriterVersion": 1}, {"minReaderVersion": 1, "minWriterVersion": 3}])
def test_a_newer_protocol_is_refused_even_where_the_rest_is_not_understood(protocol):
    with pytest.raises(NewerRecord, match="log entry 1 needs a newer Hivekeeper"):
        read_log({0: entry(SWAPPED), 1: json.dumps({"commitInfo": "of another shape"}) + "\n" + json.dumps({"protocol": protocol})})


def test_a_discarded_backup_takes_no_tombstone_of_a_unit_whose_number_begins_like_its_own():
    def of_unit(number, name):
        unit = PlannedUnit(number, a_unit(name), (ManifestFile("old", 1, 1, 1),))
        return UnitResult(unit, Outcome.SWAPPED, replace(CERTIFICATE, unit=number))

    gone = PlannedUnit(1, a_unit("dt=1"), (), (), BackupPlace(RUN, 10000, f"runs/{RUN}.t1/retired/u10000"))
    entries = {
        0: entry(of_unit(10000, "dt=1"), of_unit(100000, "dt=2")),
        1: entry(UnitResult(gone, Outcome.DISCARDED), first=False, run=CLEANUP, operation="cleanup"),
    }
    assert sorted(files_at(entries, 1).tombstones) == ["dt=2/old"]


def test_a_cleanup_is_known_by_its_last_entry():
    begun = entry(first=False, run=CLEANUP, operation="cleanup", finished=False)
    history = read_log({0: entry(SWAPPED), 1: begun, 2: entry(first=False, run=CLEANUP, operation="cleanup")})
    assert (history.find(CLEANUP).version, history.find("another")) == (2, None)


def test_an_entry_without_a_table_is_about_that_of_the_entry_before():
    lines = [line for line in entry(SWAPPED, first=False, run=LATER).splitlines() if "metaData" not in line]
    history = read_log({0: entry(SWAPPED), 1: "\n".join(lines)})
    assert (history.table_id, history.effects[1].table_id) == ("sales.events@5", "sales.events@5")


def names_had(history, partition, *present):
    return {file.name for file in history.find_had(partition, present)}


def test_a_unit_has_had_what_runs_did_to_it_under_a_former_name():
    """The log names the partition as it was then; a run's new files tell that it is the same one."""
    history = read_log({0: entry(SWAPPED)})
    everything = {"a b%2F'.parquet", "_SUCCESS", "new.parquet"}
    assert names_had(history, UNIT.name) == names_had(history, "dt=9", NEW) == everything
    assert names_had(history, "dt=9") == names_had(history, "dt=9", NEW._replace(length=999)) == set()


def test_what_was_taken_out_later_leads_to_what_had_been_taken_out_before():
    planned = PlannedUnit(1, a_unit("dt=9"), (NEW,), ())
    newer = compaction.certify(planned, [OUTPUT], [a_group({f"{ROOT}/x/newer.parquet": 7})], [a_file("newer.parquet")], Digest(7, 1, 2))
    history = read_log({0: entry(SWAPPED), 1: entry(UnitResult(planned, Outcome.SWAPPED, newer), first=False, run=LATER)})
    assert OLD[0].name in names_had(history, "dt=7", NEW._replace(name="newer.parquet"))


def test_files_of_writers_tell_a_former_name_only_by_their_ids():
    """Hive's `000000_0`, or a `_SUCCESS`, is the same in many partitions."""
    history = read_log({0: entry(SWAPPED), 1: entry(UNDONE, first=False, run=LATER, operation="rollback")})
    assert names_had(history, "dt=9", *(file._replace(file_id=file.file_id + 1000) for file in OLD)) == set()
    assert names_had(history, "dt=9", OLD[1]) == set()
    assert NEW.name in names_had(history, "dt=9", OLD[0])
