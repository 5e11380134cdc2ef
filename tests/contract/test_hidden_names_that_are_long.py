"""A NameNode may take names of more than 255 bytes (dfs.namenode.fs-limits.max-component-length), which lie behind all that a listing of
hidden names passes over: it came back to the same place for ever.
"""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.jvm

LAST = b"\x7f"


@pytest.mark.parametrize("length", [1, 254, 255, 300])
@pytest.mark.parametrize("first", [b",", b"A", b"^", b"_", b"."])
def test_a_listing_of_hidden_names_goes_on_behind_the_last_one(gateway: Any, first: bytes, length: int) -> None:
    last = first + LAST * length
    assert bytes(gateway.helper("Listing", gateway.hadoop_conf).nextAfter(last)) >= last


@pytest.mark.parametrize(("last", "jumps_to"), [(b",x", b","), (b"A=1", b"^")])
def test_it_passes_over_names_that_are_not_hidden(gateway: Any, last: bytes, jumps_to: bytes) -> None:
    assert bytes(gateway.helper("Listing", gateway.hadoop_conf).nextAfter(last)) == jumps_to + LAST * 254
