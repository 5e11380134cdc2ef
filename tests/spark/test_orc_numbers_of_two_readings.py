"""Numbers of ORC that ORC in C++ (Arrow, Impala) takes differently: decimals with zeros at their ends, which it cuts to 64 or 128 bits
before it divides by them, runs of a single number, and a second or more of nanoseconds.
"""

from __future__ import annotations

import pytest

from hivekeeper.cluster.physical_copy import PhysicalCopy
from spark.test_orc_copy import DECIMAL, arrow_rows, copy_all, output_of
from support import hostile_files, orc_bombs


@pytest.mark.parametrize(
    ("zeros", "scale", "digits", "too_long"),
    [(18, 18, (18, 2), ""), (20, 20, (18, 2), "more than 64 bits"), (39, 38, (38, 2), "more than 128 bits")],
)
def test_a_copy_has_the_decimals_that_arrow_found_in_its_source_or_is_not_made(gateway, tmp_path, zeros, scale, digits, too_long):
    """For ORC in Java they are 1 and 10, whatever zeros are stored behind the point; Arrow finds 0.07 and 1.49 in the sources."""
    source = tmp_path / "u"
    source.mkdir()
    streams = {orc_bombs.DATA: hostile_files.zigzag(10**zeros) * 3, orc_bombs.SECONDARY: b"\x00\x00" + hostile_files.zigzag(scale)}
    (source / "a").write_bytes(orc_bombs.file_of(DECIMAL, streams, digits=digits))
    (answer,) = copy_all(PhysicalCopy(gateway), [source])
    if too_long:
        assert too_long in answer.failed
    else:
        assert arrow_rows(output_of(source)) == arrow_rows(source / "a")


def test_a_run_of_deltas_with_a_single_number_is_not_copied(gateway, tmp_path):
    """ORC in C++ refuses it; ORC in Java finds two numbers in it."""
    source = tmp_path / "u"
    source.mkdir()
    run = bytes([3 << 6 | 7 << 1, 0]) + hostile_files.varint(2) + hostile_files.zigzag(1)
    content = orc_bombs.file_of(orc_bombs.BIGINT, {orc_bombs.DATA: run * 2}, encoding=orc_bombs.DIRECT_V2)
    (source / "a").write_bytes(content)
    with pytest.raises(OSError, match="Illegal run length"):
        arrow_rows(source / "a")
    (answer,) = copy_all(PhysicalCopy(gateway), [source])
    assert "differences in a run of one number" in answer.failed


@pytest.mark.parametrize("nanos", [10**9, 2 * 10**9], ids=["a second", "two"])
def test_a_second_of_nanoseconds_costs_its_own_output_and_is_no_difference(gateway, tmp_path, nanos):
    """ORC in Java reads such a time, and writes one that it reads as a later one: the proof says that the copy differs (exit code 5)."""
    source = tmp_path / "u"
    source.mkdir()
    streams = {orc_bombs.DATA: orc_bombs.lengths(2, 4, 6), orc_bombs.SECONDARY: orc_bombs.lengths(*[nanos << 3] * 3)}
    (source / "a").write_bytes(orc_bombs.file_of(orc_bombs.TIMESTAMP_INSTANT, streams))
    (answer,) = copy_all(PhysicalCopy(gateway), [source])
    assert "nanoseconds" in answer.failed
