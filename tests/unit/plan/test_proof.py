from dataclasses import replace

import pytest

from hivekeeper.model import ColumnFacts, Digest, UnitFooters
from hivekeeper.plan import proof
from support.builders import FORM, a_file, a_group

COLUMN = ColumnFacts(values=30, nulls=2, low="1", high="9")
SOURCE = a_group({"old/a": 10, "old/b": 20}, columns={"id": COLUMN})
NEW = a_file("new")
OUTPUT = a_group({NEW.path: 30}, columns={"id": COLUMN})
DIGEST = Digest(30, 5, 6)


def differences(output=OUTPUT, listed=(NEW,), codec="snappy", outputs=1, digest=DIGEST, unreadable=()):
    groups = output if isinstance(output, tuple) else (output,)
    return proof.compare_unit(SOURCE, UnitFooters(groups, unreadable), listed, codec, outputs, digest)


def test_the_same_content_is_proved():
    assert differences() == []


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (dict(output=replace(OUTPUT, rows={NEW.path: 29})), "30 rows in the source's footers, 29 in the output's"),
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
        (dict(output=replace(OUTPUT, columns={})), "the columns differ: id"),
        (dict(listed=(NEW, a_file("stray"))), "other files than were read back"),
        (dict(outputs=2), "instead of the planned 2"),
        (dict(output=(OUTPUT, OUTPUT)), "2 forms instead of one"),
        (dict(unreadable=(("new", "not a Parquet file"),)), "cannot be read back"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_difference_is_found_and_said(changed, says):
    assert says in "; ".join(differences(**changed))


def test_statistics_that_one_side_lacks_are_not_compared():
    assert differences(output=replace(OUTPUT, columns={"id": ColumnFacts(values=30)})) == []


def test_batch_digests_with_equal_counts_can_differ():
    assert proof.compare_batch(DIGEST, DIGEST) == []
    assert proof.compare_batch(DIGEST, Digest(30, 5, 7)) == ["the content digests differ, with the same number of rows"]
    assert proof.compare_batch(DIGEST, Digest(29, 5, 6)) == ["30 rows were read, 29 were written"]
