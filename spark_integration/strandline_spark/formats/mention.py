"""A mention of data in a plan, as the value that formats look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from strandline_spark.jvm.client import JavaObject, known
from strandline_spark.model.statement import Field


@dataclass(frozen=True, slots=True)
class Mention:
    """One mention of data. Which of the JVM's objects there are depends on how Spark reached it.

    A table of a catalog (v2) has `table`, and `catalog` with `identifier` if it was named. A
    relation (v1) has `relation`, and `catalog_table` if it was named. A write to a path or address
    has `provider` and `options`.
    """

    schema: tuple[Field, ...] = ()
    columns: tuple[tuple[int, str], ...] = ()  # ids and names of the plan's attributes for it
    table: JavaObject = None
    catalog: JavaObject = None
    identifier: JavaObject = None
    relation: JavaObject = None
    catalog_table: JavaObject = None
    provider: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    offsets: tuple[str | None, str | None] | None = (
        None  # a stream's micro-batch: from, to; None if it is no stream
    )
    rows: JavaObject = None  # a LogicalRDD, of whose rows the plan says nothing more
    unread: str | None = None  # why nothing more is known of it
    within: Mention | None = None  # the innermost view whose query mentions it
    slot: int = 0  # which of a streaming query's sources it is, in the order of its offset log

    def __post_init__(self) -> None:
        """Keep what the objects answer beside them: many formats ask the same."""
        for name in ("table", "catalog", "identifier", "relation", "catalog_table"):
            object.__setattr__(self, name, known(getattr(self, name)))
