"""What one run does to a table: which units go together, which codec they get, what is refused and what is left out."""

from __future__ import annotations

import time
from array import array
from dataclasses import replace

import pytest

from hivekeeper.config.settings import Settings
from hivekeeper.model import Attributes, ColumnFacts, Digest, UnitFooters, ValueCounts
from hivekeeper.names import RunPaths
from hivekeeper.plan import analysis, compaction
from hivekeeper.plan.compaction import Candidate, Rewrite
from hivekeeper.plan.engine import Engine
from hivekeeper.reasons import Code
from hivekeeper.runlog import run_files, store
from hivekeeper.runlog.run_files import Certificate, OutputForm
from support.builders import FORM, a_file, a_group, a_snapshot, a_table, a_unit

MIB = 2**20
PATHS = RunPaths("hdfs://nn/warehouse/sales/events/.hivekeeper/runs/R")
ENGINE = Engine("3.5.9", "UTC")
PLAIN = Attributes("hive", "hive", 0o755, 0o644)
SETTINGS = Settings(min_quiet_ms=0)


def a_candidate(name="dt=1", rows=(1, 1, 1), form=FORM, lengths=None, attributes=PLAIN, settings=SETTINGS):
    """A unit with one file per given number of rows."""
    unit = a_unit(name)
    lengths = lengths or [1000] * len(rows)
    files = [a_file(f"f{index:03d}", length, directory=unit.live) for index, length in enumerate(lengths)]
    judged = analysis.analyze_unit(unit, a_snapshot(*files), None, settings, 10**12)
    footers = UnitFooters((a_group({file.path: count for file, count in zip(files, rows)}, form),))
    return Candidate(judged, compaction.leave_out_rowless(footers), attributes)


def plan(*candidates, settings=SETTINGS, table=None):
    table = table or a_table(["dt"])
    return compaction.plan_compaction("R", PATHS, table, candidates, settings, Rewrite.of(table, settings, ENGINE))


SORTED = replace(SETTINGS, sort_columns=("id",))


def rewrite(table=None, settings=SETTINGS):
    return Rewrite.of(table or a_table(["dt"]), settings, ENGINE)


def batches(planned):
    return [[planned.unit(unit.number).unit.name for unit in batch.units] for batch in planned.batches]


def test_units_of_one_form_share_a_batch_and_are_numbered_from_one():
    planned = plan(a_candidate("dt=1"), a_candidate("dt=2"))
    assert batches(planned) == [["dt=1", "dt=2"]]
    assert [unit.number for unit in planned.units] == [1, 2]
    assert planned.batches[0].target == PATHS.stage(1)


@pytest.mark.parametrize(
    "other",
    [
        {"form": replace(FORM, schema="message schema {\n  optional int64 id;\n}")},
        {"form": replace(FORM, codec="gzip")},
        {"attributes": replace(PLAIN, storage_policy="COLD")},
    ],
    ids=["schema", "codec", "storage policy"],
)
def test_units_that_differ_do_not_share_a_batch_of_rows(other):
    planned = plan(a_candidate("dt=1"), a_candidate("dt=2", **other), a_candidate("dt=3"), settings=SORTED)
    assert sorted(batches(planned)) == [["dt=1", "dt=3"], ["dt=2"]]
    assert {unit.number for batch in planned.batches for unit in batch.units} == {1, 2, 3}


def test_only_how_blocks_are_stored_and_what_an_owner_may_do_divides_copied_units_into_batches():
    forms = [replace(FORM, codec="gzip"), replace(FORM, identity="another")]
    unlike = [
        {"owner": "alice", "group": "staff", "file_owner": "bob", "file_group": "ops"},
        {"mode": 0o700, "file_mode": 0o600, "acl": ("user:bob:r-x",), "file_acl": ("user:bob:r--",), "xattrs": (("user.a", "1"),)},
        {"storage_policy": "COLD"},
        {"ec_policy": "RS-6-3-1024k"},
        # Its owner could not delete a copy that has a directory like this, nor could a recovery.
        {"mode": 0o555},
    ]
    others = [a_candidate(f"dt={at}", form=form) for at, form in enumerate(forms, 2)]
    others += [a_candidate(f"dt={at}", attributes=replace(PLAIN, **one)) for at, one in enumerate(unlike, 4)]
    planned = plan(a_candidate("dt=1"), *others)
    assert batches(planned) == [["dt=1", "dt=2", "dt=3", "dt=4", "dt=5"], ["dt=6"], ["dt=7"], ["dt=8"]]
    assert {batch.is_copied for batch in planned.batches} == {True}


def test_units_beyond_so_many_batches_that_are_not_full_wait_for_the_next_run(monkeypatch):
    """Each form has a batch of its own, and each batch is a job, while other tables wait. Full ones do not count."""
    monkeypatch.setattr(compaction, "MOST_PART_BATCHES", 3)
    alike = [a_candidate(f"dt=a{number}") for number in range(9)]
    schemas = [f"message schema {{\n  optional int64 id{number};\n}}" for number in range(4)]
    unlike = [a_candidate(f"dt=b{number}", form=replace(FORM, schema=schema)) for number, schema in enumerate(schemas)]
    planned = plan(*alike[:5], *unlike, *alike[5:], settings=replace(SORTED, batch_units=2))
    assert sorted(map(len, batches(planned))) == [1, 1, 1, 2, 2, 2, 2]
    assert [one.unit.name for one in planned.left] == ["dt=b2", "dt=b3"]
    assert {one.reason.code for one in planned.left} == {Code.BEYOND_ONE_RUN}


def test_batches_that_end_because_of_their_schemas_are_not_full(monkeypatch):
    monkeypatch.setattr(compaction, "MOST_PART_BATCHES", 3)
    monkeypatch.setattr(compaction, "MOST_SCHEMAS_OF_BATCH", 1)
    planned = plan(*(a_candidate(f"dt={number}") for number in range(5)))
    assert batches(planned) == [["dt=0"], ["dt=1"], ["dt=2"]]
    assert [one.unit.name for one in planned.left] == ["dt=3", "dt=4"]


def test_what_directories_have_in_common_is_held_once_whatever_else_they_have():
    acl = [f"user:{'u' * 200}{number}:r-x" for number in range(30)]
    shared = compaction.Shared()
    found = [
        shared.of(a_candidate(f"dt={n}", attributes=replace(PLAIN, acl=tuple(acl), file_acl=tuple(acl), xattrs=(("user.a", str(n)),))))
        for n in range(3)
    ]
    assert len({id(one.attributes.acl) for one in found} | {id(one.attributes.file_acl) for one in found}) == 1
    assert [one.attributes.xattrs for one in found] == [(("user.a", str(number)),) for number in range(3)]


@pytest.mark.parametrize("is_alike", [True, False])
def test_what_directories_do_not_have_in_common_is_counted(monkeypatch, is_alike):
    monkeypatch.setattr(compaction, "MOST_HELD", 500)
    shared = compaction.Shared()
    for n in range(6):
        shared.of(a_candidate(f"dt={n}", attributes=replace(PLAIN, acl=("user:b:r-x" * 10, str(1 if is_alike else n)))))
    assert shared.is_full != is_alike


@pytest.mark.parametrize("is_alike", [True, False])
def test_names_of_columns_and_schemas_that_units_have_in_common_are_counted_once(monkeypatch, is_alike):
    monkeypatch.setattr(compaction, "MOST_HELD", 6000)
    shared = compaction.Shared()
    for n in range(6):
        of_unit = 0 if is_alike else n
        columns = ValueCounts((f"{of_unit:01000d}",), array("q", [2**62 + n]))
        form = replace(FORM, schema=f"{of_unit:01000d}")
        one = a_candidate(f"dt={n}")
        found = shared.of(replace(one, footers=UnitFooters((a_group({"f": 1}, form, columns),))))
        assert found.footers.groups[0].columns == {f"{of_unit:01000d}": ColumnFacts(2**62 + n)}
    assert shared.is_full != is_alike


@pytest.mark.parametrize("columns", [ValueCounts(("a", "b"), array("q", [1, 2])), {"a": ColumnFacts(1, 0, "l" * 8, "h" * 8)}])
def test_facts_of_columns_are_counted_for_each_unit(monkeypatch, columns):
    each = 16 if isinstance(columns, ValueCounts) else 416
    monkeypatch.setattr(compaction, "MOST_HELD", len(FORM.schema) + sum(map(len, columns)) + 3 * each)
    shared = compaction.Shared()
    for n in range(3):
        assert not shared.is_full
        shared.of(replace(a_candidate(f"dt={n}"), footers=UnitFooters((a_group({"f": 1}, FORM, columns),))))
    assert shared.is_full


@pytest.mark.parametrize("rows", [(1, 1, 1), (0, 0), (1,)])
@pytest.mark.parametrize("undecodable", [(), ("codec lzo",)])
def test_of_units_that_are_not_written_a_plan_tells_the_same_without_their_footers_and_rights(rows, undecodable):
    table = a_table(["dt"])
    one = a_candidate(rows=rows, form=replace(FORM, undecodable=undecodable), attributes=replace(PLAIN, acl=("user:eve:r-x",)))
    rewrite = Rewrite.of(table, SETTINGS, ENGINE)
    if compaction.is_fit(one, rewrite):
        return
    few = compaction.set_aside(one, rewrite)
    assert (few.footers.groups, few.attributes.acl) == ((), ())
    assert plan(few) == plan(one)


def test_a_batch_ends_at_so_many_units_or_bytes():
    candidates = [a_candidate(f"dt={number}") for number in range(5)]
    assert sorted(map(len, batches(plan(*candidates, settings=replace(SETTINGS, batch_units=2))))) == [1, 2, 2]
    assert sorted(map(len, batches(plan(*candidates, settings=replace(SETTINGS, batch_bytes=6000))))) == [1, 2, 2]


def test_a_unit_larger_than_a_batch_is_a_batch_of_its_own():
    planned = plan(a_candidate("dt=1"), a_candidate("dt=2"), settings=replace(SETTINGS, batch_bytes=1))
    assert batches(planned) == [["dt=1"], ["dt=2"]]


@pytest.mark.parametrize(
    ("compression", "properties", "codec"),
    [
        ("source", {}, "snappy"),
        ("source", {"parquet.compression": "GZIP"}, "snappy"),
        ("zstd", {}, "zstd"),
        ("uncompressed", {}, "none"),
        ("table", {"parquet.compression": "GZIP"}, "gzip"),
        ("table", {"Parquet.Compression": "UNCOMPRESSED"}, "none"),
        ("table", {"orc.compress": "ZSTD"}, "zstd"),
        ("table", {"compression": "zstd"}, "zstd"),
        ("table", {}, "snappy"),
    ],
)
def test_the_codec_is_that_of_the_files_of_the_table_or_a_named_one(compression, properties, codec):
    planned = plan(a_candidate(), settings=replace(SETTINGS, compression=compression), table=a_table(["dt"], parameters=properties))
    assert [batch.first.codec for batch in planned.batches] == [codec]


@pytest.mark.parametrize(
    ("compression", "properties", "spark", "codec"),
    [
        ("lz4_raw", {}, "3.3.2", "lz4_raw"),
        ("table", {"parquet.compression": "LZO"}, "3.5.9", "lzo"),
        ("zlib", {}, "4.0.1", "zlib"),
        ("lz4_raw", {}, "3.5.9", None),
        ("lz4_raw", {}, "4.0.1", None),
        ("uncompressed", {}, "3.3.2", None),
        ("table", {"parquet.compression": "UNCOMPRESSED"}, "3.3.2", None),
        ("table", {}, "3.3.2", None),
        ("source", {"parquet.compression": "LZO"}, "3.3.2", None),
    ],
)
def test_a_codec_that_spark_cannot_write_is_refused_for_the_table(compression, properties, spark, codec):
    reason = compaction.refuse_compression(a_table(["dt"], parameters=properties), replace(SETTINGS, compression=compression), spark)
    assert (reason and reason.what) == (codec and f"Spark {spark} cannot write parquet with the codec {codec}")


def test_a_refused_codec_comes_with_those_that_can_be_written():
    reason = compaction.refuse_compression(a_table(["dt"]), replace(SETTINGS, compression="lz4_raw"), "3.3.2")
    assert reason.next == "set compression to one of gzip, none, snappy, zstd"


def test_a_refused_unit_does_not_leave_a_hole_in_the_numbers():
    planned = plan(a_candidate("dt=1", form=replace(FORM, codec="lzo")), a_candidate("dt=2"))
    assert [(unit.number, unit.name) for unit in planned.units] == [(1, "dt=2")]


def test_many_unreadable_files_are_counted_and_the_first_is_named():
    footers = UnitFooters((), (("hdfs://nn/t/a", "no magic"), ("hdfs://nn/t/b", "gone")))
    reason = compaction.refuse_candidate(replace(a_candidate(), footers=footers), rewrite())
    assert reason.what == "2 files cannot be read (first: a: no magic)"


def test_an_unreadable_file_refuses_a_unit_even_if_the_others_hold_no_rows():
    candidate = a_candidate(rows=(0, 0))
    planned = plan(replace(candidate, footers=replace(candidate.footers, unreadable=(("hdfs://nn/t/a", "no magic"),))))
    assert (planned.rowless, len(planned.refused)) == ((), 1)


def test_a_hazard_refuses_a_unit():
    reason = compaction.refuse_candidate(replace(a_candidate(), hazard="nanoseconds"), rewrite(settings=SORTED))
    assert (reason.code, reason.what) == (Code.NOT_FAITHFUL, "nanoseconds")


def test_files_without_rows_are_counted_and_recorded_but_not_read():
    planned = plan(a_candidate(rows=(5, 0, 7)))
    staged = planned.batches[0].units[0]
    assert [file.name for file in staged.files] == ["f000", "f002"]
    assert [file.name for file in planned.units[0].manifest] == ["f000", "f001", "f002"]
    assert (planned.units[0].data_files, planned.units[0].data_bytes) == (3, 3000)
    assert [source.row_count for source in planned.sources[1]] == [12]


def test_an_output_file_is_never_planned_for_files_without_rows_alone():
    """Spark writes no file for zero rows, so one output file would be missing."""
    lengths = [128 * MIB, *[100] * 10]
    planned = plan(a_candidate(rows=(9, *[0] * 10), lengths=lengths))
    assert planned.outputs[1] == 1


def test_a_group_without_rows_does_not_make_a_second_form():
    with_rows, without = a_group({"a": 3, "b": 0}), a_group({"c": 0}, replace(FORM, codec="none"))
    assert compaction.leave_out_rowless(UnitFooters((without, with_rows))).groups == (a_group({"a": 3}),)


def test_a_unit_without_rows_is_neither_planned_nor_refused():
    planned = plan(a_candidate("dt=1", rows=(0, 0)), a_candidate("dt=2"))
    assert [unit.name for unit in planned.rowless] == ["dt=1"]
    assert [unit.name for unit in planned.units] == ["dt=2"]
    assert planned.refused == ()


def a_mixed_candidate(forms, lengths=None):
    """A unit with one file for each of these forms."""
    candidate = a_candidate(rows=(1,) * len(forms), lengths=lengths)
    groups = [a_group({file.path: 1}, form) for file, form in zip(candidate.analysis.files, forms)]
    merged = {form: a_group({path: 1 for group in groups if group.form == form for path in group.rows}, form) for form in forms}
    return replace(candidate, footers=UnitFooters(tuple(merged.values())))


X, Y = replace(FORM, identity="x"), replace(FORM, identity="y")


def test_each_form_of_a_copied_unit_gets_files_of_its_own():
    planned = plan(a_mixed_candidate([X, Y, X, Y]))
    outputs = planned.batches[0].units[0].outputs
    assert [([file.name for file in output.files], output.form) for output in outputs] == [(["f000", "f002"], X), (["f001", "f003"], Y)]
    assert planned.outputs == {1: 2}


def test_forms_that_differ_only_in_codec_become_one_if_they_get_the_same():
    gzip = replace(X, codec="gzip")
    assert plan(a_mixed_candidate([X, gzip, X, gzip])).outputs == {1: 2}
    planned = plan(a_mixed_candidate([X, gzip, X, gzip]), settings=replace(SETTINGS, compression="zstd"))
    assert [(len(output.files), output.codec) for output in planned.batches[0].units[0].outputs] == [(4, "zstd")]


@pytest.mark.parametrize(
    ("wish", "may_grow"), [("source", False), ("table", False), ("zstd", False), ("none", True), ("uncompressed", True)]
)
def test_only_the_site_may_wish_for_files_without_compression_that_grow(wish, may_grow):
    """Files without compression, and a property that asks for them, may come from anyone who may write to the table."""
    table = replace(a_table(["dt"]), parameters={"parquet.compression": "UNCOMPRESSED"})
    planned = plan(a_candidate(form=replace(FORM, codec="none")), table=table, settings=replace(SETTINGS, compression=wish))
    assert planned.batches[0].first.may_grow == may_grow


@pytest.mark.parametrize(("replications", "copies"), [((3, 3, 3), 3), ((3, 5, 2), 5), ((2, 2, 2), 2), ((3, 512, 3), 10)])
def test_a_copy_has_as_many_copies_of_its_blocks_as_the_file_with_the_most(replications, copies):
    """As `hdfs dfs -setrep` has set them; the cluster's default is the least. A file of a byte must not ask for 512 of all others."""
    candidate = a_candidate()
    files = [file._replace(replication=number) for file, number in zip(candidate.analysis.snapshot.entries, replications)]
    candidate = replace(candidate, analysis=replace(candidate.analysis, snapshot=a_snapshot(*files)))
    (output,) = plan(candidate).batches[0].units[0].outputs
    assert (output.copies, output.block_bytes) == (copies, 0)


def test_a_file_that_mixes_codecs_is_copied_with_the_first():
    planned = plan(a_candidate(form=replace(FORM, codec="gzip+snappy")))
    assert planned.batches[0].first.codec == "gzip"


def test_a_unit_whose_forms_allow_no_fewer_files_is_left_as_it_is():
    planned = plan(a_mixed_candidate([X, Y]), a_candidate("dt=2"))
    assert [unit.name for unit in planned.fewest] == ["dt=1"]
    assert ([unit.name for unit in planned.units], planned.refused) == (["dt=2"], ())


def test_files_whose_footers_speak_of_their_own_rows_are_never_merged():
    own = replace(X, single=True)
    planned = plan(a_mixed_candidate([own, Y, own, Y, Y]))
    assert [[file.name for file in output.files] for output in planned.batches[0].units[0].outputs] == [
        ["f000"],
        ["f002"],
        ["f001", "f003", "f004"],
    ]
    assert (planned.outputs, planned.forms) == ({1: 3}, {1: 3})
    assert [unit.name for unit in plan(a_mixed_candidate([own, own])).fewest] == ["dt=1"]


def test_large_files_of_one_form_count_when_files_are_to_become_fewer():
    """One block each: only the two small files of the other form become one."""
    planned = plan(a_mixed_candidate([X, X, Y, Y], lengths=[128 * MIB, 128 * MIB, 100, 100]))
    assert planned.outputs == {1: 3}


def test_a_unit_of_more_forms_than_a_driver_can_hold_is_refused(monkeypatch):
    monkeypatch.setattr(compaction, "MOST_FORMS", 1)
    planned = plan(a_mixed_candidate([X, Y, X, Y]), a_candidate("dt=2"))
    assert [reason.code for _, reason in planned.refused] == [Code.MIXED_FORMS]
    assert [unit.name for unit in planned.units] == ["dt=2"]


def test_sorted_units_of_several_forms_are_refused():
    planned = plan(a_mixed_candidate([FORM, replace(FORM, codec="gzip")]), settings=SORTED)
    assert [reason.code for _, reason in planned.refused] == [Code.MIXED_FORMS]


def test_the_difference_between_schemas_of_very_many_columns_is_found_in_no_time():
    same = "".join(f"  optional int32 c{number};\n" for number in range(100_000))
    one, other = (replace(FORM, schema=f"message schema {{\n{same}  optional int32 {last};\n}}") for last in "xy")
    started = time.monotonic()
    said = compaction.describe_difference([a_group({"a": 1}, one), a_group({"b": 1}, other)])
    assert said == "1 and 1 files differ in schema (schema «optional int32 x;» / «optional int32 y;»)"
    assert time.monotonic() - started < 10


def with_long_schemas(characters, forms=1, name="dt=1"):
    """A unit with two files of each form. Columns are called by control characters, as Jackson writes them, which JSON makes longer."""
    column = "\\u0001" * (characters // forms // 6)
    found = [replace(FORM, schema=f'message schema {{\n  optional int32 "{n}{column}";\n}}', identity=str(n)) for n in range(forms)]
    made, renamed = a_mixed_candidate(found * 2), a_candidate(name, rows=(1,) * 2 * forms)
    groups = [replace(group, rows={path.replace("dt=1", name): 1 for path in group.rows}) for group in made.footers.groups]
    return replace(renamed, footers=UnitFooters(tuple(groups)))


def certificates_of(planned):
    """As a run writes them, a text for each batch."""
    forms = {number: tuple(OutputForm(group.form.schema, "snappy") for group in groups) for number, groups in planned.sources.items()}
    return [
        run_files.certificates_to_text(
            Certificate(unit.number, planned.unit(unit.number).name, {"f": 1}, 1, Digest(1, 0, 0), 2, 2, forms[unit.number])
            for unit in batch.units
        )
        for batch in planned.batches
    ]


@pytest.mark.repeating
@pytest.mark.parametrize("forms", [1, 2])
def test_a_unit_whose_certificate_a_recovery_would_refuse_is_not_begun(forms):
    planned = plan(with_long_schemas(3 * 2**23, forms, "dt=1"), with_long_schemas(2**23 - 1000, forms, "dt=2"))
    assert [(unit.name, reason.code) for unit, reason in planned.refused] == [("dt=1", Code.MIXED_FORMS)]
    (text,) = certificates_of(planned)
    assert [one.partition for one in run_files.certificates_from_lines(text.split("\n"), "certificates-1.jsonl")] == ["dt=2"]


def test_a_batch_ends_before_its_certificates_are_too_large_for_a_recovery(monkeypatch):
    # A character takes four bytes of UTF-8, or becomes two in JSON.
    assert 4 * compaction.MOST_SCHEMAS_OF_BATCH <= store.MOST_RECORD_BYTES
    monkeypatch.setattr(compaction, "MOST_SCHEMAS_OF_BATCH", 10_000)
    texts = certificates_of(plan(*(with_long_schemas(3_000, name=f"dt={number}") for number in range(7))))
    assert [text.count("\n") for text in texts] == [3, 3, 1]
