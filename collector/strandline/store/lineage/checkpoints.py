"""The inputs of each snapshot of a table, by the runs and barriers that made it.

Tables in which a micro-batch looked rows up are read as they were then, and not as streams. Of some
inputs nobody knows the snapshot.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import orjson
from sqlalchemy import BigInteger, Connection, Select, TextClause, bindparam, select, text

from strandline.core.changes.extraction import SINK, SOURCE
from strandline.core.changes.snapshots import COMPLETES, NOT_THE_LAST, REPLACES, marked
from strandline.core.openlineage.names import id_of
from strandline.core.versions.facts import Table
from strandline.store.lineage.hidden_nodes import seen_datasets
from strandline.store.lineage.stated_edges import stated_inputs
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import relations
from strandline.store.schema.snapshot_tables import job_barriers, snapshot_uses, snapshots
from strandline.store.schema.snapshot_views import snapshot_lineage_from
from strandline.store.sql.compression import expand
from strandline.store.sql.id_lists import among, among_given

# An earlier commit of a micro-batch shows a part of what it wrote only: it is no checkpoint.
_OF_MAKERS = f"""
SELECT * FROM snapshot_uses WHERE (flags & {NOT_THE_LAST}) = 0 AND run_id IN (
       SELECT run_id FROM snapshot_uses WHERE direction = 1 AND dataset_id IN (
              SELECT id FROM datasets WHERE canonical_id IN (
                     SELECT canonical_id FROM datasets WHERE id = :id)))"""


_RESTORES = """
SELECT snapshot_id FROM snapshots WHERE operation = 'restore' AND dataset_id IN (
       SELECT id FROM datasets WHERE canonical_id IN (
              SELECT canonical_id FROM datasets WHERE id = :id))"""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The output of a barrier of a run, or of a batch run, in a table, and what it was made from.

    That is the snapshot of each source up to which it read, without what a stream looked up,
    and without what a batch run read that corrected a stream's table.

    observed: some of this is not proven.
    whole: those of the output that show nothing but what this read.
    restored: the snapshot of the table that each restore of the output names, None where that is
    not known.
    """

    written: list[str]
    read: dict[Table, str]
    observed: bool
    whole: set[str]
    restored: dict[str, str | None]


def checkpoints_of(connection: Connection, table: Table) -> list[Checkpoint]:
    """The checkpoints that made snapshots of a table, whatever they call it."""
    dataset = {"id": id_of("dataset", *table)}
    rows = connection.execute(_uses(), dataset).all()
    restores = set(connection.execute(_restores(), dataset).scalars())
    own = {row.dataset_id for row in rows if (row.namespace, row.name) == table}
    stated = stated_inputs(connection, {row.run_id for row in rows})
    uses: dict[tuple[int, int], list[Any]] = {}
    for row in rows:
        # a run may have read it for another of its outputs
        if row.direction == SINK or all(
            stated.admit(row.run_id, id_, row.dataset_id) for id_ in own
        ):
            uses.setdefault((row.run_id, row.told_barrier), []).append(row)
    makers = {run for run, _ in uses}
    unsure = reading_other_tables_unknown(connection, makers, table)
    looked_up = lookups_of(connection, {run for run, barrier in uses if barrier})
    streams = {row.run_id for row in rows if row.told_barrier and _is_written(row, table)}
    checkpoints = []
    for mark, of_mark in uses.items():
        lookups = looked_up.get(mark, ())
        counted = [row for row in of_mark if row.direction == SINK or row.named_id not in lookups]
        checkpoint = _checkpoint(counted, table, unsure, restores)
        if streams and mark[0] not in streams and not _is_anew(counted, table):
            checkpoint.read.clear()
        checkpoints.append(checkpoint)
    return [checkpoint for checkpoint in checkpoints if checkpoint.written]


def _is_written(row: Any, table: Table) -> bool:
    return row.direction == SINK and _name(row) == table


def _is_anew(uses: Sequence[Any], table: Table) -> bool:
    """Return whether a run wrote the table anew: then it corrected nothing."""
    written = [row for row in uses if _is_written(row, table)]
    return any(row.flags & (REPLACES | COMPLETES) for row in written)


def _checkpoint(
    uses: Sequence[Any], table: Table, unsure: Collection[int], restores: Collection[str]
) -> Checkpoint:
    """Return how a table was made, by the uses of one barrier or of a batch run."""
    sinks = [row for row in uses if _is_written(row, table)]
    reads = [row for row in uses if row.direction == SOURCE]
    sources = [row for row in reads if _name(row) != table]
    reads_of_itself = [_id(row) for row in reads if _name(row) == table]
    named = max(reads_of_itself, default=None)  # by a restore
    is_observed = any(row.observed for row in (*sinks, *sources))
    return Checkpoint(
        written=[_id(row) for row in sinks],
        read={_name(row): _id(row) for row in sources},
        observed=is_observed or uses[0].run_id in unsure,
        whole={_id(row) for row in sinks if _shows_only(row, reads, table)},
        restored={_id(row): named for row in sinks if _id(row) in restores},
    )


def _shows_only(sink: Any, reads: Sequence[Any], table: Table) -> bool:
    """Return whether a commit shows nothing but what its run read."""
    if sink.flags & COMPLETES or not sink.flags & REPLACES:
        return bool(sink.flags & COMPLETES)
    is_first_of_stream = sink.told_barrier <= 1  # 0: a batch run
    whole_reads = all(row.from_snapshot_id is None and _name(row) != table for row in reads)
    return is_first_of_stream and whole_reads


def _name(row: Any) -> Table:
    return row.namespace, row.name


def _id(row: Any) -> str:
    return row.snapshot_id if row.approximate_id is None else marked(row.approximate_id)


@cache
def _uses() -> TextClause:
    columns = """used.run_id, used.told_barrier, used.direction, used.dataset_id,
                 used.snapshot_id, used.approximate_id, used.observed, used.from_snapshot_id,
                 used.flags, used.named_id"""
    query = f"""SELECT {columns}, place.namespace, place.name
                  FROM ({snapshot_lineage_from(_OF_MAKERS)}) AS used
                  JOIN datasets place ON place.id = used.dataset_id
                 ORDER BY used.at"""
    return text(query).bindparams(bindparam("id", type_=BigInteger))


@cache
def _restores() -> TextClause:
    return text(_RESTORES).bindparams(bindparam("id", type_=BigInteger))


def lookups_in(facet: bytes) -> frozenset[Table]:
    """Return the lookups that a stored barrier facet names."""
    try:
        lookups = orjson.loads(expand(facet)).get("lookups") or ()
        return frozenset((str(lookup["namespace"]), str(lookup["name"])) for lookup in lookups)
    except (ValueError, TypeError, KeyError, AttributeError):
        return frozenset()


def lookups_of(connection: Connection, runs: Collection[int]) -> dict[tuple[int, int], set[int]]:
    """Return the datasets that these runs looked up, as named, by run and barrier."""
    stored = job_barriers.c
    query = select(stored.run_id, stored.barrier, stored.facet)
    rows = connection.execute(query.where(among_given(stored.run_id, "runs")), {"runs": list(runs)})
    datasets_of: dict[tuple[int, int], set[int]] = {}
    for run, barrier, facet in rows:
        if tables := lookups_in(facet):
            datasets_of[run, barrier] = {id_of("dataset", *table) for table in tables}
    return datasets_of


def inputs_of_unknown_snapshots(
    connection: Connection, runs: Collection[int], moment: int | None = None
) -> Mapping[int, set[int]]:
    """Map each run to the datasets that it read (by `moment`) without reporting a snapshot.

    Datasets by their canonical ids. What the connection's key does not see is not among them.
    """
    inputs: dict[int, set[int]] = defaultdict(set)
    rows = connection.execute(_unknown(), {"runs": list(runs)}).all() if runs else []
    visible = seen_datasets(connection, {row.canonical_id for row in rows})
    for run, dataset, first_at in rows:
        if dataset in visible and (moment is None or first_at <= moment):
            inputs[run].add(dataset)
    return inputs


def reading_other_tables_unknown(
    connection: Connection, runs: Collection[int], table: Table
) -> set[int]:
    """Those of the runs that read another dataset with snapshots, of none of which they told."""
    unknown = inputs_of_unknown_snapshots(connection, runs)
    wanted = {dataset for ids in unknown.values() for dataset in ids}
    own = (
        select(datasets.c.canonical_id)
        .where(datasets.c.id == id_of("dataset", *table))
        .scalar_subquery()
    )
    held = (
        select(datasets.c.canonical_id)
        .distinct()
        .join(snapshots, snapshots.c.dataset_id == datasets.c.id)
        .where(among(datasets.c.canonical_id, wanted), datasets.c.canonical_id != own)
    )
    with_snapshots = set(connection.scalars(held)) if wanted else set()
    return {run for run, ids in unknown.items() if ids & with_snapshots}


@cache
def _unknown() -> Select[Any]:
    named = datasets.alias("named")
    uses = (
        select(snapshot_uses.c.run_id)
        .join(named, named.c.id == snapshot_uses.c.dataset_id)
        .where(
            snapshot_uses.c.run_id == relations.c.run_id,
            snapshot_uses.c.direction == SOURCE,
            named.c.canonical_id == datasets.c.canonical_id,
        )
    )
    return (
        select(relations.c.run_id, datasets.c.canonical_id, relations.c.first_at)
        .join(datasets, datasets.c.id == relations.c.dataset_id)
        .where(
            among_given(relations.c.run_id, "runs"), relations.c.direction == SOURCE, ~uses.exists()
        )
    )
