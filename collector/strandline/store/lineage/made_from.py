"""The inputs of each snapshot of a table, by the runs and barriers that made it."""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sqlalchemy import BigInteger, Connection, TextClause, bindparam, text

from strandline.core.changes.extraction import SINK, SOURCE
from strandline.core.changes.snapshots import NOT_THE_LAST, marked
from strandline.core.openlineage.names import id_of
from strandline.core.versions.facts import Table
from strandline.store.lineage.stated_inputs import stated_inputs
from strandline.store.lineage.unknown_inputs import reading_other_tables_unknown
from strandline.store.schema.snapshot_views import snapshot_lineage_from

# An earlier commit of a micro-batch shows a part of what it wrote only: it is no checkpoint.
_OF_MAKERS = f"""
SELECT * FROM snapshot_uses WHERE (flags & {NOT_THE_LAST}) = 0 AND run_id IN (
       SELECT run_id FROM snapshot_uses WHERE direction = 1 AND dataset_id IN (
              SELECT id FROM datasets WHERE canonical_id IN (SELECT canonical_id FROM datasets WHERE id = :id)))"""


@dataclass(slots=True)
class Checkpoint:
    """The output of one barrier of a run, or of a batch run, in a table, and the snapshot of
    each source up to which it read.

    observed: some of this is not proven.
    """

    written: list[str] = field(default_factory=list)
    read: dict[Table, str] = field(default_factory=dict)
    observed: bool = False


def checkpoints_of(connection: Connection, table: Table) -> list[Checkpoint]:
    """The checkpoints that made snapshots of a table, whatever they call it."""
    found: dict[tuple[int, int], Checkpoint] = {}
    rows = connection.execute(_uses(), {"id": id_of("dataset", *table)}).all()
    own = {row.dataset_id for row in rows if (row.namespace, row.name) == table}
    stated = stated_inputs(connection, {row.run_id for row in rows})
    for row in rows:
        if row.direction == SOURCE and not all(
            stated.admit(row.run_id, id_, row.dataset_id) for id_ in own
        ):
            continue  # the run read it for another of its outputs
        _add(found.setdefault((row.run_id, row.told_barrier), Checkpoint()), table, row)
    makers = {place: one for place, one in found.items() if one.written}
    unsure = reading_other_tables_unknown(connection, {run for run, _ in makers}, table)
    for (run, _), one in makers.items():
        one.observed |= run in unsure
    return list(makers.values())


def _add(checkpoint: Checkpoint, table: Table, row: Any) -> None:
    source, own = (row.namespace, row.name), row.direction == SINK
    if own == (source == table):
        checkpoint.observed |= bool(row.observed)
        snapshot = row.snapshot_id if row.approximate_id is None else marked(row.approximate_id)
        if own:
            checkpoint.written.append(snapshot)
        else:
            checkpoint.read[source] = snapshot


@cache
def _uses() -> TextClause:
    columns = "used.run_id, used.told_barrier, used.direction, used.dataset_id, used.snapshot_id, used.approximate_id, used.observed"
    query = f"""SELECT {columns}, place.namespace, place.name
                  FROM ({snapshot_lineage_from(_OF_MAKERS)}) AS used JOIN datasets place ON place.id = used.dataset_id
                 ORDER BY used.at"""
    return text(query).bindparams(bindparam("id", type_=BigInteger))
