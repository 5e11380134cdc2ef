"""Records written by somebody who may write to the table; if trusted, they would move files of any other table."""

from __future__ import annotations

import json

import pytest

from hivekeeper.runlog import strict
from hivekeeper.runlog.strict import ForeignRecord, UnreadableRecord
from support import records
from support.builders import ROOT
from support.records import GONE, LATER, PLACE, RUN, changed, lines, plan_to_json_lines

ELSEWHERE = [
    "../../../fin/salaries/dt=1",
    "/fin/salaries/dt=1",
    "hdfs://nn/fin/salaries",
    "dt=1/../../x",
    "./dt=1",
    "dt=1/.",
    "dt=1//ref=2",
    "dt=1/",
    "/",
    "",
    "..",
    "dt=1\0",
    ".hivekeeper",
    ".hivekeeper/runs",
    "a/.hivekeeper/log",
    ".hivekeeper-events/runs",
    "x" * 8001,
    "x" * 1025,
    1,
    None,
    ["dt=1"],
]
NO_FILE_NAMES = ["", ".", "..", "/", "a/b", "../a", "/etc", "a\0", "x" * 1025, 1, None]
NO_WHOLE = [None, "1", 1.0, True, -1, 2**63, [1]]
NO_RUNS = ["", "R", RUN + "\n", RUN + ".t1", "..", "٢٠٢٦0101t020304z-0000", RUN.upper(), f"x/{RUN}", 1, None]
NO_DIRECTORIES = [*(run for run in NO_RUNS if run != RUN + ".t1"), f"{RUN}.t0", f"{RUN}.t", f"{RUN}.t1/..", f"{RUN}.old"]
NO_PLACES = [
    "",
    "..",
    "runs",
    "../../fin/salaries/dt=1",
    f"runs/{RUN}.t1/retired/u00001/../../../../../../fin",
    f"runs/{RUN}.t1/retired/u00001/",
    f"runs//{RUN}.t1/retired/u00001",
    f"/runs/{RUN}.t1/retired/u00001",
    f"./runs/{RUN}.t1/retired/u00001",
    f"runs/{RUN}.t1/ready/u00001",
    f"runs/{RUN}.t1/retired/u1",
    f"runs/{RUN}.t1/retired/u00001\n",
    f"runs/{RUN}.t1/retired/u٠٠٠٠١",
    "runs/R/retired/u00001",
    1,
]
NO_PARTITIONS = [
    "",
    "dt",
    "dt=",
    "=1",
    "dt=1",
    "ref=F R/dt=2026-01-01",
    "dt=1/ref=2/x=3",
    "../x=1/ref=2",
    "dt=1/ref",
    "dt=1//ref=2",
    1,
    None,
]
NO_TABLE_NAMES = ["events", ".events", "sales.", "a.b.c", "sales.e\nvents", 1, None]
NO_TEXTS = [None, 1, ["x"], {"x": "y"}, "x" * 5000]
# Superscripts are digits for `str.isdigit`, and none for `int`; some dates are none.
NO_TABLE_IDS = [f"sales.events{end}" for end in ("", "@", "@x", "@²", "@٣", "@1.0", "@" + "9" * 11, "@5\n", "@5@²")] + [
    "events@5",
    "a.b.c@5",
    "@5",
]
UNIT = ("units", 0)


def each(*way, values):
    return [(way, value) for value in values]


PLAN = [
    *each("version", values=[0, "1", None, True, 1.0, GONE]),
    *each("run", values=[LATER, *NO_RUNS, GONE]),
    *each("operation", values=["pin", "unpin", "rebalance", "", 1, None]),
    *each("created", values=NO_WHOLE),
    *each("table", values=["sales.other", *NO_TABLE_NAMES]),
    *each("location", values=["hdfs://nn/fin/salaries", 1, None]),
    *each("backupTable", values=NO_TABLE_NAMES),
    *each("record", values=[run for run in NO_RUNS if run != ""]),
    *each("discard", values=["delete", "trash", "keep", 1, None]),
    *each("records", values=[None, RUN, {"0": RUN}, *([bad] for bad in NO_DIRECTORIES)]),
    *each("runKey", values=["-x", "a b", "a\n", "x" * 201, "ä", 1, None, GONE]),
    *each("units", values=[None, {}, "u", [1], [None], [[]], GONE]),
    *each("unknown", values=[1]),
    *each("definition", values=[None, [], GONE]),
    *each("definition", "name", values=["other", "", "a.b", *NO_TEXTS]),
    *each("definition", "database", values=["other", "", "a.b", *NO_TEXTS]),
    *each("definition", "location", values=["", "x", "hdfs://nn/other", 1, None]),
    *each("definition", "kind", values=NO_TEXTS),
    *each("definition", "owner", values=NO_TEXTS),
    *each("definition", "buckets", values=[None, "1", True, 2**31]),
    *each("definition", "createTime", values=[None, "1", True, 2**31]),
    *each(
        "definition", "columns", values=[None, {}, [1], [{"name": "x"}], [{"name": 1, "type": "int"}], [{"name": "x", "type": "y", "z": 1}]]
    ),
    *each("definition", "partitionColumns", values=[None, [], [{"name": "dt", "type": "string"}]]),
    *each("definition", "parameters", values=[None, [], {"k": 1}, {"k": None}]),
    *each("definition", "bucketColumns", values=[None, "x", [1], {}]),
    *each("definition", "sortColumns", values=[None, "x", [1], {}]),
    *each("definition", "skewedColumns", values=[None, "x", [1], {}]),
    *each("definition", "storage", values=[None, {}, "x"]),
    *each("definition", "storage", "serde", values=NO_TEXTS),
    *each("definition", "unknown", values=[1]),
    *each(*UNIT, "unit", values=[0, 2, 10**7, *NO_WHOLE]),
    *each(*UNIT, "partition", values=["dt=2026-01-02/ref=F R", *NO_PARTITIONS]),
    *each(*UNIT, "values", values=[None, [], ["2026-01-01"], ["2026-01-02", "F R"], ["2026-01-01", "F R", ""], [1, 2], "x"]),
    *each(*UNIT, "live", values=[".", *ELSEWHERE]),
    *each(*UNIT, "storage", values=[None, {}, "x"]),
    *each(*UNIT, "storage", "serdeParameters", values=[None, [], {"path": 1}]),
    *each(*UNIT, "parameters", values=[None, [], {"k": 1}]),
    *each(*UNIT, "markers", values=[None, "_SUCCESS", *([bad] for bad in NO_FILE_NAMES)]),
    *each(*UNIT, "files", values=[None, {}, "x", [1], [[]], [["a", 1, 1]], [["a", 1, 1, 1, 1]], [["a", 1, 1, 1]] * 2]),
    *each(*UNIT, "files", 0, 0, values=NO_FILE_NAMES),
    *each(*UNIT, "files", 0, 1, values=NO_WHOLE),
    *each(*UNIT, "files", 0, 2, values=[None, "1", 1.0, True, 2**63]),
    *each(*UNIT, "files", 0, 3, values=[None, "1", 1.0, True, 2**63]),
    *each(*UNIT, "backup", values=[{"run": RUN, "unit": 1, "place": PLACE}, "x", 1, [], {}]),
    *each(*UNIT, "expected", values=[None, {}, [1], [["../a", 1, 1, 1]]]),
    *each(
        *UNIT, "digest", values=[[], {}, "x", {"rows": 1, "high": 1}, {"rows": -1, "high": 1, "low": 1}, {"rows": 1, "high": "1", "low": 1}]
    ),
    *each(*UNIT, "unknown", values=[1]),
    *each(*UNIT, "live", values=[GONE]),
]
PLAN_OF_A_BACKUP = [
    *each(*UNIT, "backup", values=[None, "x", 1, [], {}, {"run": RUN, "unit": 1}]),
    *each(*UNIT, "backup", "run", values=[LATER, *NO_RUNS]),
    *each(*UNIT, "backup", "unit", values=[2, 0, *NO_WHOLE]),
    *each(*UNIT, "backup", "place", values=[None, f"runs/{RUN}", *NO_PLACES]),
    *each(*UNIT, "expected", 0, 0, values=NO_FILE_NAMES),
]
CERTIFICATE = [
    *each("unit", values=[0, *NO_WHOLE]),
    *each("partition", values=[None, 1, "x" * 9000]),
    *each("files", values=[None, [], "x", *({bad: 1} for bad in NO_FILE_NAMES if isinstance(bad, str)), *({"a": bad} for bad in NO_WHOLE)]),
    *each("fileRows", values=[None, [], "x", {"../a": 1}, {"a": -1}, {"a": True}]),
    *each("rows", values=NO_WHOLE),
    *each("digest", values=[None, [], {}, {"rows": 1, "high": 1, "low": 1, "x": 1}]),
    *each("digest", "rows", values=NO_WHOLE),
    *each("digest", "high", values=[None, "1", 1.0, True, 2**63]),
    *each("codec", values=NO_TEXTS),
    *each("schema", values=[None, 1, []]),
    *each("sourceFiles", values=NO_WHOLE),
    *each("sourceBytes", values=NO_WHOLE),
    *each("unknown", values=[1]),
    *each("rows", values=[GONE]),
]
# The actions of an entry: protocol, metaData, commitInfo, then removes and adds.
META, INFO, FILE = (1, "metaData"), (2, "commitInfo"), (3, "remove")
ENTRY = [
    *each(0, values=[1, None, "x", [], {}, {"protocol": {}, "x": 1}]),
    *each(0, "protocol", values=[1, None, {}, {"minReaderVersion": 1}, {"minReaderVersion": "1", "minWriterVersion": 1}]),
    *each(*META, values=[1, None, {}]),
    *each(*META, "id", values=["", *NO_TEXTS, *NO_TABLE_IDS]),
    *each(*META, "partitionColumns", values=[None, "dt", [1], [], ["dt"]]),
    *each(*INFO, values=[1, None, {}]),
    *each(*INFO, "operation", values=["rebalance", "", 1, None]),
    *each(*INFO, "operationParameters", values=[None, 1, [], {"a": {"b": {"c": {"d": {"e": 1}}}}}, {"a": list(range(5000))}]),
    *each(*INFO, "run", values=[LATER, *NO_RUNS]),
    *each(*INFO, "directory", values=[f"{LATER}.t1", f"{RUN}.t2", *NO_DIRECTORIES]),
    *each(*INFO, "finished", values=[None, 0, 1, "true"]),
    *each(*INFO, "recoveredBy", values=[run for run in NO_RUNS if run is not None]),
    *each(*INFO, "backupTable", values=NO_TABLE_NAMES),
    *each(*INFO, "userName", values=NO_TEXTS),
    *each(*INFO, "host", values=NO_TEXTS),
    *each(*INFO, "applicationId", values=NO_TEXTS),
    *each(*INFO, "units", values=[None, {}, "x", [1]]),
    *each(*INFO, *UNIT, "unit", values=[0, 2, *NO_WHOLE]),
    *each(*INFO, *UNIT, "partition", values=NO_PARTITIONS),
    *each(*INFO, *UNIT, "live", values=ELSEWHERE),
    *each(*INFO, *UNIT, "outcome", values=["moved", "failed", "", 1, None]),
    *each(*INFO, *UNIT, "reason", values=[None, 1, []]),
    *each(*INFO, *UNIT, "reasonCode", values=[1, [], "x" * 5000]),
    *each(*INFO, *UNIT, "gapMs", values=["1", True, []]),
    *each(*INFO, *UNIT, "lateFiles", values=[None, "x", *([bad] for bad in NO_FILE_NAMES)]),
    *each(*INFO, *UNIT, "place", values=[None, f"runs/{RUN}/retired/u00001", f"runs/{RUN}.t1/retired/u00002", *NO_PLACES]),
    *each(*INFO, *UNIT, "rows", values=["1", True, -1, []]),
    *each(*INFO, *UNIT, "digest", values=[[], {}, "x", {"rows": 1, "high": 1}]),
    *each(*INFO, "units", 1, "source", values=[1, [], {}, {"files": -1, "size": 1, "modificationTime": 1}]),
    *each(*INFO, "units", 1, "place", values=[f"runs/{RUN}.t1/retired/u00002"]),
    *each(*FILE, values=[1, None, [], {}]),
    *each(*FILE, "unit", values=[2, 3, 0, *NO_WHOLE]),
    *each(*FILE, "path", values=["a", "dt=2026-01-01/ref=F R", "dt=2026-01-01/ref=F R/../a", "dt=2026-01-01/ref=F R/x/a", *ELSEWHERE]),
    *each(*FILE, "size", values=NO_WHOLE),
    *each(*FILE, "modificationTime", values=[None, "1", 1.0, True]),
    *each(*FILE, "fileId", values=[None, "1", 1.0, True]),
    *each(*FILE, "retired", values=["/fin/salaries", f"{PLACE}/other", f"{PLACE}/../x", 1, None]),
    *each(5, "add", "path", values=["../new.parquet", 1]),
    *each(4, values=records.compaction_entry()[1:4]),
]


def names_of(rows):
    return [f"{'.'.join(map(str, way))}={'gone' if value is GONE else ascii(value)[:40]}" for way, value in rows]


@pytest.mark.parametrize(("way", "value"), PLAN, ids=names_of(PLAN))
def test_a_forged_plan_is_known_for_one(way, value):
    with pytest.raises(ForeignRecord, match=r"plan\.json is not what Hivekeeper writes: "):
        records.read_plan(plan_to_json_lines(changed(records.compaction_plan(), way, value)))


@pytest.mark.parametrize("good", [records.rollback_plan, records.cleanup_plan])
@pytest.mark.parametrize(("way", "value"), PLAN_OF_A_BACKUP, ids=names_of(PLAN_OF_A_BACKUP))
def test_a_forged_plan_about_a_backup_is_known_for_one(way, value, good):
    with pytest.raises(ForeignRecord, match=r"units\[0\]"):
        records.read_plan(plan_to_json_lines(changed(good(), way, value)))


@pytest.mark.parametrize("discard", ["", "keep", None, 1])
def test_a_cleanup_says_how_it_discards(discard):
    with pytest.raises(ForeignRecord, match="discard"):
        records.read_plan(plan_to_json_lines(changed(records.cleanup_plan(), ["discard"], discard)))


@pytest.mark.parametrize(("way", "value"), CERTIFICATE, ids=names_of(CERTIFICATE))
def test_a_forged_certificate_is_known_for_one(way, value):
    with pytest.raises(ForeignRecord, match=r"certificates-1\.jsonl is not what Hivekeeper writes: "):
        records.read_certificates(json.dumps(changed(records.certificate(), way, value)))


@pytest.mark.parametrize(("way", "value"), ENTRY, ids=names_of(ENTRY))
def test_a_forged_log_entry_is_known_for_one(way, value):
    with pytest.raises(ForeignRecord, match=r"0\.json is not what Hivekeeper writes: "):
        records.read_entry(lines(changed(records.compaction_entry(), way, value)))


@pytest.mark.parametrize("kind", ["discarding", "discarded"])
@pytest.mark.parametrize("place", [None, *NO_PLACES])
def test_a_forged_place_of_a_cleanup_is_known_for_one(kind, place):
    (at,) = (number for number, action in enumerate(records.cleanup_entry()) if PLACE in json.dumps(action.get(kind)))
    with pytest.raises(ForeignRecord, match=f"{kind}.place"):
        records.read_entry(lines(changed(records.cleanup_entry(), [at, kind, "place"], place)))


@pytest.mark.parametrize(("key", "value"), [("run", "R"), ("run", None), ("pinned", 1), ("pinned", None), ("pinned", GONE)])
def test_a_forged_pin_is_known_for_one(key, value):
    with pytest.raises(ForeignRecord):
        records.read_entry(lines(changed(records.pin_entry(), [3, "pin", key], value)))


@pytest.mark.parametrize(
    ("key", "value"),
    [*(("appId", key) for key in ("", "-x", "a b", "x" * 201, 1, None, GONE)), *(("exitCode", code) for code in (-1, 9, "0", True, 0.0))],
)
def test_a_forged_run_key_is_known_for_one(key, value):
    with pytest.raises(ForeignRecord, match=r"0\.json is not what Hivekeeper writes: "):
        records.read_entry(lines(changed(records.keyed_entry(), [3, "txn", key], value)))


def test_an_entry_has_one_run_key():
    with pytest.raises(ForeignRecord, match="it is the second one of its kind"):
        records.read_entry(lines([*records.keyed_entry(), records.keyed_entry()[3]]))


@pytest.mark.parametrize(("key", "value"), [("run", "../x"), ("run", 1), ("unit", 0), ("unit", True)])
def test_what_a_rollback_undoes_is_a_unit_of_a_run(key, value):
    with pytest.raises(ForeignRecord, match=r"commitInfo\.units\[0\]\.backup"):
        records.read_entry(lines(changed(records.rollback_entry(), [*INFO, *UNIT, "backup", key], value)))


def test_a_message_names_the_file_the_field_and_why():
    forged = changed(records.rollback_plan(), [*UNIT, "backup", "place"], "../../../fin/salaries/dt=1")
    with pytest.raises(ForeignRecord) as raised:
        records.read_plan(plan_to_json_lines(forged))
    assert str(raised.value) == (
        "plan.json is not what Hivekeeper writes: units[0].backup.place: '../../../fin/salaries/dt=1' is no place of a backup of unit 1 "
        f"of run {RUN}"
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 200_000 + "]" * 200_000, "nested too deeply"),
        ('{"a":' * 200_000, "nested too deeply"),
        ('{"version": NaN}', "NaN is no number"),
        ('{"version": -Infinity}', "-Infinity is no number"),
        ('{"version": 1e999}', "not finite"),
        (f'{{"version": {"9" * 1_000_000}}}', "a number of 1000000 digits"),
        ('{"version": 1, "version": 1}', "a key stands twice"),
        ('{"version": 1, "run": "\\ud800"}', "half a character"),
        ('{"\\udfff": 1}', "half a character"),
        ('{"version": 1, "run": "\ud800"}', "half a character"),
    ],
    ids=["lists", "objects", "NaN", "Infinity", "1e999", "digits", "twice", "surrogate", "surrogate key", "bare surrogate"],
)
@pytest.mark.parametrize("read", [records.read_plan, records.read_certificates, records.read_entry])
def test_what_json_allows_and_we_never_write_ends_nothing_but_its_table(text, why, read):
    with pytest.raises(UnreadableRecord, match=why):
        read(text)


@pytest.mark.parametrize(
    ("number", "found"),
    [("9" * 20, 10**20 - 1), ("-" + "9" * 19, 1 - 10**19), ("9" * 21, None), ("-" + "9" * 20, None), ("-0" + "9" * 20, None)],
    ids=lambda value: str(value)[:30],
)
@pytest.mark.parametrize("beside", ["x", "7" * 40, "é" * 2**20], ids=["short", "digits", "long"])
def test_a_number_has_as_many_digits_as_it_may_have(number, found, beside):
    text = f'{{"beside": "{beside}", "more": [1, {number}]}}'
    if found is None:
        with pytest.raises(UnreadableRecord):
            strict.parse(text, "x")
    else:
        assert strict.parse(text, "x")["more"][1] == found


def test_a_name_that_looks_like_half_a_character_is_a_name():
    plan = changed(records.compaction_plan(), [*UNIT, "files", 0, 0], "a\\ud800")
    assert records.read_plan(plan_to_json_lines(plan)).units[0].manifest[0].name == "a\\ud800"


@pytest.mark.parametrize("good", records.PLANS.values(), ids=list(records.PLANS))
def test_a_plan_that_we_wrote_is_taken(good):
    plan = records.read_plan(plan_to_json_lines(good()))
    assert plan.units[0].live == f"{ROOT}/dt=2026-01-01/ref=F R"
    assert plan.operation == good()["operation"]


@pytest.mark.parametrize("good", records.ENTRIES.values(), ids=list(records.ENTRIES))
def test_an_entry_that_we_wrote_is_taken(good):
    assert records.read_entry(lines(good())).operation == good()[2]["commitInfo"]["operation"]


@pytest.mark.parametrize("kind", ["metaData", "commitInfo", "remove", "add"])
def test_unknown_keys_of_an_action_are_a_later_versions(kind):
    entry = [
        {name: {**content, "more": [1]} if name == kind else content for name, content in action.items()}
        for action in records.compaction_entry()
    ]
    assert records.read_entry(lines(entry)) == records.read_entry(lines(records.compaction_entry()))


@pytest.mark.parametrize("again", range(1, 6))
def test_an_action_that_stands_twice_is_not_ours(again):
    entry = records.compaction_entry()
    with pytest.raises(ForeignRecord):
        records.read_entry(lines([*entry, entry[again]]))


def test_a_value_that_is_empty_in_the_metastore_is_null_in_the_partitions_name():
    plan = changed(records.compaction_plan(), [*UNIT, "values"], ["2026-01-01", ""])
    plan = changed(plan, [*UNIT, "partition"], "dt=2026-01-01/ref=__HIVE_DEFAULT_PARTITION__")
    assert records.read_plan(plan_to_json_lines(plan)).units[0].unit.values == ("2026-01-01", "")


OF_FORMER = {"partition": "region=eu", "values": ["eu"], "expected": []}


@pytest.mark.parametrize(
    ("good", "fields", "taken"),
    [
        (records.cleanup_plan, {}, True),
        (records.cleanup_plan, {"expected": records.cleanup_plan()["units"][0]["expected"]}, False),
        (records.cleanup_plan, {"partition": "region=", "values": [""]}, False),
        (records.cleanup_plan, {"partition": "eu"}, False),
        (records.cleanup_plan, {"partition": "", "values": [], "live": "."}, False),
        (records.rollback_plan, {}, False),
        (records.compaction_plan, {}, False),
    ],
)
def test_only_a_cleanup_that_leaves_live_alone_may_be_about_partitions_of_a_former_table(good, fields, taken):
    plan = good()
    plan["units"][0].update({**OF_FORMER, **fields})
    if taken:
        assert records.read_plan(plan_to_json_lines(plan)).units[0].name == "region=eu"
    else:
        with pytest.raises(ForeignRecord):
            records.read_plan(plan_to_json_lines(plan))


@pytest.mark.parametrize("good", records.ENTRIES.values(), ids=list(records.ENTRIES))
def test_only_the_entry_of_a_cleanup_may_be_about_partitions_of_a_former_table(good):
    entry = good()
    for unit in entry[2]["commitInfo"]["units"]:
        unit["partition"] = "region=eu"
    if good in (records.cleanup_entry, records.pin_entry):
        assert records.read_entry(lines(entry)).operation == entry[2]["commitInfo"]["operation"]
    else:
        with pytest.raises(ForeignRecord):
            records.read_entry(lines(entry))
