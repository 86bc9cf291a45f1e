"""Views that a catalog keeps.

Reading one is reading the tables below it; only making one mentions the view.
"""

from __future__ import annotations

from strandline_spark.formats.catalog_tables import (
    SESSION_CATALOG,
    session_catalog,
    warehouse_namespace,
)
from strandline_spark.formats.contract import Format
from strandline_spark.formats.mention import Mention
from strandline_spark.jvm.client import Jvm
from strandline_spark.model.statement import Dataset


class Views(Format):
    """CREATE VIEW."""

    name = "view"
    rank = 20

    def dataset_of(self, mention: Mention, jvm: Jvm) -> Dataset | None:
        if mention.provider != "view" or "view" not in mention.options:
            return None
        name = f"{mention.options['database']}.{mention.options['view']}"
        catalog = session_catalog(jvm)
        return Dataset(
            warehouse_namespace(jvm),
            name,
            self.name,
            mention.schema,
            catalog,
            f"{SESSION_CATALOG}.{name}",
        )


FORMAT = Views()
