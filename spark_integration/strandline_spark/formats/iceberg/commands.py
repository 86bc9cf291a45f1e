"""The outputs of Iceberg's own commands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from strandline_spark.formats.mention import Mention
from strandline_spark.formats.writes import Described, Write
from strandline_spark.jvm.client import JavaObject, Jvm
from strandline_spark.plans.schemas import fields_of
from strandline_spark.plans.tree import Node


def _view(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """CREATE VIEW in a catalog of Iceberg's."""
    named, schema, names = (
        plan.child(),
        fields_of(plan.query().schema()),
        jvm.sequence(plan.columnAliases()),
    )
    if len(names) == len(schema):
        schema = tuple(
            replace(field, name=str(name)) for field, name in zip(schema, names, strict=True)
        )
    return [
        Write(
            Mention(
                schema, catalog=named.catalog(), identifier=named.identifier(), provider="view"
            ),
            "create",
        )
    ]


def _dropped_view(plan: JavaObject, root: Node, jvm: Jvm) -> list[Write]:
    """DROP VIEW in a catalog of Iceberg's."""
    named = plan.child()
    mention = Mention(catalog=named.catalog(), identifier=named.identifier(), provider="view")
    return [Write(mention, "drop")]


WRITES: Mapping[str, Described] = {"CreateIcebergView": _view, "DropIcebergView": _dropped_view}
