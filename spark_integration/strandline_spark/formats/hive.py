"""Tables in Hive's own formats: named by their location, with the metastore's name as a symlink.

No snapshots.
"""

from __future__ import annotations

from strandline_spark.formats.catalog_tables import (
    location_of,
    provider_of,
    session_catalog,
    symlink_of,
    table_name,
)
from strandline_spark.formats.contract import Format
from strandline_spark.formats.mention import Mention
from strandline_spark.jvm.client import Jvm
from strandline_spark.model.statement import Dataset


class Hive(Format):
    """HiveTableRelation, and CREATE TABLE ... STORED AS."""

    name = "hive"
    rank = 60

    def dataset_of(self, mention: Mention, jvm: Jvm) -> Dataset | None:
        """The Hive table at its location."""
        table = mention.catalog_table
        if table is None or provider_of(table) != "hive":
            return None
        location = location_of(table) or mention.options.get("path")
        if location is None:
            return None
        namespace, name = jvm.path(location)
        catalog, symlinks = session_catalog(jvm), (symlink_of(table, jvm),)
        return Dataset(
            namespace, name, self.name, mention.schema, catalog, table_name(table), symlinks
        )


FORMAT = Hive()
