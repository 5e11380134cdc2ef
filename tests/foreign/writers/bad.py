"""Files that nobody can or should rewrite: each is refused by name, and its unit stays as it is."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Callable

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe

from foreign import footers
from foreign.cases import EMPTY, ORC, PARQUET, Case
from foreign.writers import arrow, orc, parquet_mr

COLUMNS = "i64 BIGINT, s STRING, f64 DOUBLE"
UNREADABLE, UNFIT = "unreadable-file", "not-faithful"
# Pages are read only when they are copied.
FAILED = "failed"
# parquet.thrift ends at 7.
NO_CODEC = 42


class KeptKeys(pe.KmsClient):  # type: ignore[misc]
    """The master key wraps nothing: who has the file's key material can read it, which no reader in these tests has."""

    def wrap_key(self, key_bytes: bytes, _master_key_identifier: str) -> str:
        return key_bytes.hex()

    def unwrap_key(self, wrapped_key: str, _master_key_identifier: str) -> bytes:
        return bytes.fromhex(wrapped_key)


def write_encrypted(directory: Path, _tools: Any, plaintext_footer: bool) -> None:
    factory = pe.CryptoFactory(lambda _configuration: KeptKeys())
    wanted = pe.EncryptionConfiguration(footer_key="f", column_keys={"c": ["s"]}, plaintext_footer=plaintext_footer, double_wrapping=False)
    for file in range(arrow.FILES):
        table = arrow.plain(file)
        properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), wanted)
        with pq.ParquetWriter(directory / f"{file}.parquet", table.schema, encryption_properties=properties) as writer:
            writer.write_table(table)


def damaged(change: Callable[[Path], None], **options: Any) -> Callable[[Path, Any], None]:
    """Good files, of which the second is changed."""

    def write(directory: Path, tools: Any) -> None:
        arrow.write(arrow.plain, directory, tools, **{"store_schema": False, **options})
        change(directory / "arrow-1.parquet")

    return write


def flip_a_byte(path: Path) -> None:
    """In a value of the column of doubles' last page, which still can be decoded."""
    _, footer = footers.split(path.read_bytes())
    chunk = list(footers.chunks(footer))[2]
    end = chunk[footers.DATA_PAGE][1] + chunk[7][1]
    content = bytearray(path.read_bytes())
    content[end - 1] ^= 1
    path.write_bytes(bytes(content))


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def cut_in_the_middle(path: Path) -> None:
    """The footer is there, but some bytes of the pages are not, as after a copy that lost a block."""
    content = path.read_bytes()
    path.write_bytes(content[:40] + content[90:])


def write_same_names(directory: Path, _tools: Any) -> None:
    for file in range(arrow.FILES):
        table = pa.Table.from_arrays([arrow.cycle([1], file, pa.int32()), arrow.cycle([2], file, pa.int32())], ["twice", "twice"])
        pq.write_table(table, directory / f"{file}.parquet", store_schema=False)


def write_same_names_inside(directory: Path, _tools: Any) -> None:
    for file in range(arrow.FILES):
        inner = pa.StructArray.from_arrays([pa.array([1, 2]), pa.array([3, 4])], ["x", "x"])
        pq.write_table(pa.table({"st": inner}), directory / f"{file}.parquet", store_schema=False)


def write_orc_truncated(directory: Path, tools: Any) -> None:
    orc.write(directory, tools)
    path = directory / "1.orc"
    path.write_bytes(path.read_bytes()[:-7])


def write_orc_no_rows(directory: Path, _tools: Any) -> None:
    for file in range(arrow.FILES):
        po.write_table(arrow.plain(file).slice(0, 0), directory / f"{file}.orc")


def _case(name: str, write: Any, expected: str, format: str = PARQUET, is_quick: bool = False) -> Case:
    return Case(f"bad.{name}", format, COLUMNS, write, expected, is_quick)


CASES = (
    _case("encrypted-footer", partial(write_encrypted, plaintext_footer=False), UNREADABLE),
    _case("encrypted-columns", partial(write_encrypted, plaintext_footer=True), UNREADABLE, is_quick=True),
    _case(
        "page-checksum",
        damaged(flip_a_byte, write_page_checksum=True, compression="none", use_dictionary=False),
        FAILED,
        is_quick=True,
    ),
    _case("truncated", damaged(truncate), UNREADABLE, is_quick=True),
    _case("bytes-lost", damaged(cut_in_the_middle), FAILED),
    _case("no-bytes-of-a-footer", damaged(lambda path: path.write_bytes(b"PAR1")), UNREADABLE),
    _case("unknown-codec", damaged(partial(footers.set_codec, codec=NO_CODEC)), UNREADABLE, is_quick=True),
    _case("same-names", write_same_names, UNFIT, is_quick=True),
    _case("same-names-inside", write_same_names_inside, UNFIT),
    _case("hadoops-lz4", partial(parquet_mr.write, schema=parquet_mr.PLAIN, row=parquet_mr.plain_row, codec="LZ4"), UNFIT),
    _case("orc-truncated", write_orc_truncated, UNREADABLE, ORC),
    _case("orc-no-rows", write_orc_no_rows, EMPTY, ORC),
)
