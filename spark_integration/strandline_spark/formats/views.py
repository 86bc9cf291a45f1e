"""Views that the session catalog keeps: they are called as Spark calls them."""

from __future__ import annotations

from strandline_spark.formats.catalog_tables import (
    SESSION_CATALOG,
    session_catalog,
    warehouse_namespace,
)
from strandline_spark.formats.contract import Format
from strandline_spark.formats.mention import Mention
from strandline_spark.jvm.class_names import TABLE_IDENTIFIER
from strandline_spark.jvm.client import JAVA_FAILED, Jvm
from strandline_spark.model.statement import Dataset, Symlink


class Views(Format):
    """A view that is made or read."""

    name = "view"
    rank = 20

    def dataset_of(self, mention: Mention, jvm: Jvm) -> Dataset | None:
        """The view of the session's catalog."""
        if mention.provider != "view" or "view" not in mention.options:
            return None
        name = f"{mention.options['database']}.{mention.options['view']}"
        whole_name = f"{SESSION_CATALOG}.{name}"
        namespace = warehouse_namespace(jvm)
        return Dataset(
            namespace,
            whole_name,
            self.name,
            mention.schema,
            session_catalog(jvm),
            whole_name,
            (Symlink(namespace, name, "TABLE"),),
        )

    def made_at(self, mention: Mention, jvm: Jvm) -> int | None:
        """Return when the view was made, in milliseconds since 1970; None if it is not there."""
        database = jvm.static("scala.Option", "apply")(mention.options["database"])
        identifier = jvm.new(TABLE_IDENTIFIER, mention.options["view"], database)
        try:
            view = jvm.session.sessionState().catalog().getTableMetadata(identifier)
        except JAVA_FAILED:
            return None
        return int(view.createTime())


FORMAT = Views()
