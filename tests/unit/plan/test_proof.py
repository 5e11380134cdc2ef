from dataclasses import replace

import pytest

from hivekeeper.model import ColumnFacts, Content, Digest, StageOutput, UnitFooters
from hivekeeper.plan import proof
from support.builders import FORM, a_file, a_group

COLUMN = ColumnFacts(values=30, nulls=2, low="1", high="9")
SOURCE = a_group({"old/a": 10, "old/b": 20}, columns={"id": COLUMN})
NEW = a_file("new")
OUTPUT = a_group({NEW.path: 30}, columns={"id": COLUMN})
DIGEST = Digest(30, 5, 6)
SOURCE_FILES = (a_file("a", directory="old"), a_file("b", directory="old"))


def differences(
    output=OUTPUT, listed=(NEW,), sources=(SOURCE,), codecs=("snappy",), outputs=1, digest=DIGEST, read=DIGEST, unreadable=(), failed=""
):
    groups = output if isinstance(output, tuple) else (output,)
    planned = [
        StageOutput(tuple(file for file in SOURCE_FILES if file.path in source.rows), source.form, codec)
        for source, codec in zip(sources, codecs)
    ]
    planned += [StageOutput((), FORM, "snappy")] * (outputs - len(planned))
    return proof.compare_unit(sources, UnitFooters(groups, unreadable), listed, planned, Content(read), Content(digest, failed))


def test_the_same_content_is_proved():
    assert differences() == []


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (dict(output=replace(OUTPUT, rows={NEW.path: 29})), "30 rows in the source's footers, 29 in the output's"),
        (dict(digest=Digest(30, 5, 7)), "the content digests differ"),
        (dict(read=Digest(29, 5, 6)), "29 were read from it"),
        (dict(failed="x.parquet: a wrong checksum"), "x.parquet: a wrong checksum"),
        (dict(digest=Digest(29, 5, 6)), "29 read back"),
        (
            dict(output=replace(OUTPUT, form=replace(FORM, schema=FORM.schema.replace("int32", "int64")))),
            "«optional int32 id;» became «optional int64 id;»",
        ),
        (dict(output=replace(OUTPUT, form=replace(FORM, codec="gzip"))), "the codec is gzip instead of snappy"),
        (dict(output=replace(OUTPUT, form=replace(FORM, zone="Europe/Paris"))), "time zone"),
        (dict(output=replace(OUTPUT, columns={"id": replace(COLUMN, nulls=3)})), "column id: nulls was 2, is 3"),
        (dict(output=replace(OUTPUT, columns={"id": replace(COLUMN, values=31)})), "column id: values was 30, is 31"),
        (dict(output=replace(OUTPUT, columns={"id": replace(COLUMN, high="8")})), "column id: high was 9, is 8"),
        (dict(output=replace(OUTPUT, columns={})), "the columns differ (first: id)"),
        (dict(listed=(NEW, a_file("stray"))), "other files than were read back"),
        (dict(outputs=2), "instead of the planned 2"),
        (dict(output=(OUTPUT, replace(OUTPUT, form=replace(FORM, codec="gzip")))), "2 forms, which are not the 1 of the sources"),
        (dict(unreadable=(("new", "not a Parquet file"),)), "cannot be read back"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_difference_is_found_and_said(changed, says):
    assert says in "; ".join(differences(**changed))


def test_differences_are_few_and_short_however_many_columns_there_are_and_however_long_their_names():
    """They go into the table's log. A footer of two kilobytes can have a name of two million characters."""
    columns = {f"{number}{'x' * 2_000_000}": replace(COLUMN, high="9" * 1_000_000) for number in range(20)}
    written = {name: replace(facts, values=31, high="8" * 1_000_000) for name, facts in columns.items()}
    sources = (replace(SOURCE, columns=columns),)
    schema = f"message schema {{\n  optional int32 {'x' * 2_000_000};\n}}"
    for output in (
        replace(OUTPUT, columns=written),
        replace(OUTPUT, columns={}),
        replace(OUTPUT, columns=columns, form=replace(FORM, schema=schema)),
    ):
        found = differences(output, sources=sources)
        assert found
        assert len("; ".join(found)) < 5000


def test_statistics_that_one_side_lacks_are_not_compared():
    assert differences(output=replace(OUTPUT, columns={"id": ColumnFacts(values=30)})) == []
    assert differences(sources=(replace(SOURCE, columns={"id": ColumnFacts(values=30)}),)) == []


COPIED = replace(FORM, identity="written by x")
ONE, OTHER = (
    replace(SOURCE, form=COPIED, rows={"old/a": 10}),
    replace(SOURCE, form=replace(COPIED, identity="written by y"), rows={"old/b": 20}),
)
FIRST, SECOND = a_file("first"), a_file("second")
BOTH = (replace(ONE, rows={FIRST.path: 10}), replace(OTHER, rows={SECOND.path: 20}))
TWO = dict(sources=(ONE, OTHER), codecs=("snappy", "snappy"), outputs=2, listed=(FIRST, SECOND))


def test_each_form_of_a_copied_unit_is_compared_with_its_own_output():
    assert differences(output=BOTH, **TWO) == []
    swapped = (replace(BOTH[0], rows={FIRST.path: 20}), replace(BOTH[1], rows={SECOND.path: 10}))
    assert len(differences(output=swapped, **TWO)) == 2
    alike = (BOTH[0], replace(BOTH[1], form=replace(COPIED, identity="written by z")))
    assert "2 forms, which are not the 2 of the sources" in differences(output=alike, **TWO)[0]


def test_a_copy_with_another_footer_differs():
    source, output = replace(SOURCE, form=COPIED), replace(OUTPUT, form=replace(COPIED, identity="written by z"))
    assert differences(output, sources=(source,)) == ["the bytes of the footer that say how to read the values changed"]


def test_files_that_differ_only_in_codec_may_become_one():
    gzip = replace(ONE, form=replace(COPIED, codec="gzip"), rows={"old/b": 20})
    merged = replace(OUTPUT, form=COPIED, columns={"id": replace(COLUMN, values=60, nulls=4)})
    assert differences(merged, sources=(ONE, gzip), codecs=("snappy", "snappy"), outputs=1 + 1, listed=(NEW,)) == [
        "the stage holds 1 files instead of the planned 2"
    ]


def test_the_bounds_of_a_copy_are_not_compared_with_those_of_its_sources():
    output = replace(OUTPUT, form=COPIED, columns={"id": replace(COLUMN, high="8")})
    assert differences(output, sources=(replace(SOURCE, form=COPIED),)) == []
