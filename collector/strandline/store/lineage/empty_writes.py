"""Writes that brought no rows: of failed and lost runs, and those that only changed a definition.

The conditions are for queries that join `relations` with their `runs` and `datasets`, and with the
`owners` of the runs.
"""

from sqlalchemy import (
    ColumnElement,
    and_,
    case,
    exists,
    false,
    func,
    literal_column,
    or_,
    true,
)

from strandline.core.changes.extraction import SINK
from strandline.core.changes.rows import CREATES
from strandline.core.changes.snapshot_claims import STATED
from strandline.core.openlineage import run_states as states
from strandline.store.lineage.run_state import (
    MOMENT,
    canonical_ids,
    run_ends,
    run_silences,
)
from strandline.store.schema.conditions import CREATED_NOTHING, ONLY_DEFINED
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import relations
from strandline.store.schema.run_tables import runs
from strandline.store.schema.snapshot_tables import snapshot_uses, snapshots

FAILED = (states.ABORT, states.FAIL)
UNFINISHED = (states.START, states.RUNNING)

owners = runs.alias("owners")
stated_as = canonical_ids.alias("stated_as")
snapshot_of = canonical_ids.alias("snapshot_of")


def created_nothing(past: bool = False) -> ColumnElement[bool]:
    """Return the condition that a relation is the output of a failed CREATE TABLE AS.

    Neither the table nor the edge exists. A streaming job's table stays.
    """
    failed: ColumnElement[bool] = literal_column(
        CREATED_NOTHING.format(sink=relations.name, run=runs.name)
    )
    return and_(failed, _has_ended(past))


def is_batch_write() -> ColumnElement[bool]:
    """Return the condition that a relation is a write by a batch run.

    The next micro-batch of a streaming query repeats what a failed one began, so its writes stay.
    """
    is_query = func.coalesce(owners.c.query, 0) == 1
    return and_(relations.c.direction == SINK, runs.c.streaming == 0, ~is_query)


def wrote_nothing(past: bool) -> ColumnElement[bool]:
    """Return the condition that a relation is a write that brought no rows.

    It came to nothing, or it only changed the table's definition.
    """
    return or_(came_to_nothing(past), only_defined(past))


def only_defined(past: bool, table: str = datasets.name) -> ColumnElement[bool]:
    """Return the condition that a batch run has only altered, renamed, dropped or emptied a table.

    The query joins `relations` with their `runs`, and with their dataset under the name `table`.
    """
    rule: ColumnElement[bool] = literal_column(
        ONLY_DEFINED.format(sink=relations.name, run=runs.name, table=table, stated=STATED)
    )
    return and_(rule, _has_ended(past))


def came_to_nothing(past: bool) -> ColumnElement[bool]:
    """Return the condition that a relation is a write that came to nothing.

    A batch run that failed wrote nothing. One that was lost, or failed with the run above it, wrote
    nothing into a table with snapshots, unless its own snapshot facet says that it did.
    """
    failed = and_(runs.c.state == states.FAIL, _has_ended(past))
    has_snapshots = exists().where(
        snapshot_of.c.canonical_id == datasets.c.canonical_id,
        snapshots.c.dataset_id == snapshot_of.c.dataset_id,
    )
    commits = or_(relations.c.creates == CREATES, has_snapshots)
    given_up = and_(runs.c.state.in_(UNFINISHED), commits, _is_lost_or_failed_above(past))
    may_be = and_(is_batch_write(), runs.c.state.in_((states.FAIL, *UNFINISHED)))
    # CASE keeps SQLite from looking at snapshots and ends of all other runs.
    return case((may_be, and_(or_(failed, given_up), ~_states_snapshot())), else_=false())


def _states_snapshot() -> ColumnElement[bool]:
    """Return the condition that the run states itself which snapshot of the table it made."""
    return exists().where(
        snapshot_uses.c.run_id == relations.c.run_id,
        snapshot_uses.c.direction == SINK,
        snapshot_uses.c.rank == STATED,
        stated_as.c.dataset_id == snapshot_uses.c.dataset_id,
        stated_as.c.canonical_id == datasets.c.canonical_id,
    )


def _has_ended(past: bool) -> ColumnElement[bool]:
    """Return the condition that a run that failed had done so by the moment."""
    return runs.c.ended_at <= MOMENT if past else true()


def _is_lost_or_failed_above(past: bool) -> ColumnElement[bool]:
    """Return the condition that a run without its own end is LOST, or failed with its parent.

    A subquery, because few runs are open and only those need it.
    """
    ended_at = run_ends.c.ended_at
    has_ended = ended_at <= MOMENT if past else ended_at.is_not(None)
    failed = and_(has_ended, run_ends.c.state == states.FAIL)
    open_end = or_(ended_at.is_(None), ended_at > MOMENT) if past else ended_at.is_(None)
    lost = and_(open_end, run_silences.c.silent_at < MOMENT)
    of_run = and_(run_ends.c.run_id == runs.c.id, run_silences.c.run_id == runs.c.id)
    return exists().where(of_run, or_(failed, lost)).correlate(runs)
