"""As test_kept_definitions.test_a_result_does_not_hold_the_long_locations_of_the_partitions_of_all_tables, for analyze --fsimage."""

from __future__ import annotations

from hivekeeper.commands import per_table
from hivekeeper.commands.analyze_image import analyze_image
from hivekeeper.model import Selection
from support.builders import a_partition, a_table
from support.contexts import a_context
from support.images import image
from support.world import World


def test_the_result_does_not_hold_the_long_locations_of_the_partitions_of_all_tables(monkeypatch, tmp_path):
    monkeypatch.setattr(per_table, "MOST_OF_TEXTS", 2**20)
    world, tables, partitions = World(), 16, 256
    for number in range(tables):
        table = a_table(["dt"], name=f"t{number}", location=f"hdfs://nn/warehouse/sales.db/t{number}")
        world.add_table(table, {})
        for at in range(partitions):
            location = f"hdfs://nn/elsewhere/{number}/{at}/{'x' * 4000}"
            world.catalog.add_partition(table.full_name, a_partition(f"dt={at}", location))
    path = tmp_path / "image.tsv"
    path.write_bytes(image([("/a", 1)], ["/warehouse"]))
    result = analyze_image(a_context(world.cluster, Selection(databases=("sales",)), "20260101t020304z-0000"), str(path), is_remote=False)
    assert len(result.tables) == tables
    assert len(repr(result)) < tables * partitions * 4000 / 2, f"{len(repr(result)):,} characters"
