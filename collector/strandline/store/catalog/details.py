"""One dataset, job or run with everything that is stored about it, facets as they came."""

from functools import cache
from typing import Any

from sqlalchemy import BigInteger, Connection, Integer, TextClause, bindparam, func, select, text

from strandline.core.changes.extraction import SINK, SOURCE, relation_id_of
from strandline.core.openlineage.facets import DATASET, INPUT, JOB, OUTPUT, RUN
from strandline.errors import AmbiguousError, NotFoundError
from strandline.store.catalog.lists import Answer, dataset_answer, groups_of, latest_run_answers
from strandline.store.catalog.runs import newest_run_ids, run_answer, runs_called
from strandline.store.lineage.dropped import drop_answers
from strandline.store.lineage.facets import facets_of, merged_facets, quarantined, quarantined_each
from strandline.store.lineage.failures import outcomes
from strandline.store.lineage.hierarchy import children_answer, query_answer, runs_below, touched_by
from strandline.store.lineage.lookup import Node, labels_of, node_text
from strandline.store.lineage.table_snapshots import newest_snapshot_rows, snapshot_answer
from strandline.store.schema.dataset_tables import dataset_aliases, datasets
from strandline.store.schema.relation_tables import relations
from strandline.store.schema.run_tables import runs
from strandline.store.schema.snapshot_views import snapshot_lineage_from

MOST_SNAPSHOTS = 5  # of each dataset of a run
# A stream that ran for a month has made millions: only its newest barriers are looked at.
MOST_USES = 500


def dataset_detail(connection: Connection, dataset: Node, now: int) -> Answer:
    """A dataset under all its names; `droppedAt` where it was dropped."""
    rows = connection.execute(select(datasets).where(datasets.c.canonical_id == dataset.id)).all()
    ids = [row.id for row in rows]
    canonical = next(row for row in rows if row.id == dataset.id)
    newest = newest_snapshot_rows(connection, [dataset.id]).get(dataset.id)
    return dataset_answer(canonical) | {
        "createdAt": _least(rows),
        "names": _names(connection, rows),
        "facets": merged_facets(connection, DATASET, ids),
        "quarantined": quarantined(connection, DATASET, ids),
        "newestSnapshot": None if newest is None else snapshot_answer(newest),
        **drop_answers(connection, [dataset.id], now)[dataset.id],
    }


def _least(rows: Any) -> str | None:
    return min(
        (row_at for row in rows if (row_at := dataset_answer(row)["createdAt"])), default=None
    )


def _names(connection: Connection, rows: Any) -> list[Answer]:
    """Return the names of a dataset, each with its kinds (TABLE, LOCATION, ...).

    The kinds are those that a symlinks facet or a pattern states.
    """
    types: dict[int, set[str]] = {}
    aliases = select(dataset_aliases).where(
        dataset_aliases.c.alias_id.in_([row.id for row in rows])
    )
    for alias in connection.execute(aliases):
        types.setdefault(alias.alias_id, set()).add(alias.type)
    named = sorted(rows, key=lambda row: (row.namespace, row.name))
    return [
        {"namespace": row.namespace, "name": row.name, "types": sorted(types.get(row.id, ()))}
        for row in named
    ]


def job_detail(connection: Connection, job: Node, now: int) -> Answer:
    """Return a job with its latest run, the runs below that, and its group.

    A streaming query also says how far it is.
    """
    newest = latest_run_answers(connection, [job.id], now).get(job.id)
    run = newest_run_ids(connection, [job.id]).get(job.id)
    return {
        "id": str(job),
        "type": "job",
        "namespace": job.namespace,
        "name": job.name,
        "group": groups_of(connection, [job.id]).get(job.id),
        "latestRun": newest,
        "query": query_answer(connection, job.id),
        **(_declared(connection, job.id) if run is None else _with_children(connection, run)),
        "facets": merged_facets(connection, JOB, [job.id]),
        "quarantined": quarantined(connection, JOB, [job.id]),
    }


def run_detail(connection: Connection, run_id: str, now: int, job: Node | None = None) -> Answer:
    """A run with its inputs and outputs, and the runs below it.

    An id that is no UUID may need its job.
    """
    rows = [row for row in runs_called(connection, run_id) if job is None or row.job_id == job.id]
    if not rows:
        raise NotFoundError(f"unknown run: {run_id!r}")
    if len(rows) > 1:
        jobs = [node_text("job", row.job_namespace, row.job_name) for row in rows]
        raise AmbiguousError(f"several jobs have a run {run_id!r}", jobs)
    shown = run_answer(rows[0], now)
    return shown | {
        "facets": merged_facets(connection, RUN, [rows[0].id]),
        "quarantined": quarantined(connection, RUN, [rows[0].id]),
        "inputs": _links(connection, rows[0].id, SOURCE),
        "outputs": _links(connection, rows[0].id, SINK),
        **outcomes(connection, {rows[0].id: shown["state"] == "FAIL"})[rows[0].id],
        **_with_children(connection, rows[0].id),
    }


def _declared(connection: Connection, job_id: int) -> Answer:
    """Return the inputs and outputs that a job that never ran declared last."""
    of_job = select(runs.c.id).where(runs.c.job_id == job_id, runs.c.design == 1)
    newest = of_job.order_by(runs.c.newest_at.desc(), runs.c.id.desc()).limit(1)
    reads, writes = touched_by(connection, connection.scalars(newest).all())
    return {"children": None, "reads": reads, "writes": writes}


def _with_children(connection: Connection, run: int) -> Answer:
    """Return the runs below a run, and all that it and they read and wrote."""
    reads, writes = touched_by(connection, [run, *runs_below(connection, [run])])
    return {"children": children_answer(connection, run), "reads": reads, "writes": writes}


def _links(connection: Connection, run: int, direction: int) -> list[Answer]:
    """Return the datasets of a run as it named them.

    Each has the id of its canonical name, or of its own where a key does not see that. With it come
    its newest snapshots in the run and its own input or output facets.
    """
    canonical = datasets.alias("canonical")
    query = (
        select(
            relations.c.dataset_id,
            datasets.c.namespace,
            datasets.c.name,
            func.coalesce(canonical.c.namespace, datasets.c.namespace).label("canonical_namespace"),
            func.coalesce(canonical.c.name, datasets.c.name).label("canonical_name"),
        )
        .join(datasets, datasets.c.id == relations.c.dataset_id)
        .outerjoin(canonical, canonical.c.id == datasets.c.canonical_id)
        .where(relations.c.run_id == run, relations.c.direction == direction)
        .order_by(datasets.c.namespace, datasets.c.name)
    )
    rows = connection.execute(query).all()
    labels = labels_of(connection, [(row.namespace, row.name) for row in rows])
    snapshots = _snapshots_of_run(connection, run, direction)
    kind, name = (OUTPUT, "outputFacets") if direction == SINK else (INPUT, "inputFacets")
    ids = {row.dataset_id: relation_id_of(run, direction, row.dataset_id) for row in rows}
    own_facets = facets_of(connection, kind, [*ids.values()])
    bad = quarantined_each(connection, kind, [*ids.values()])
    return [
        {
            "id": node_text("dataset", row.canonical_namespace, row.canonical_name),
            "namespace": row.namespace,
            "name": row.name,
            "label": labels[row.namespace, row.name],
            "snapshots": snapshots.get(row.dataset_id, []),
            name: own_facets.get(ids[row.dataset_id], {}),
            **({"quarantined": bad[ids[row.dataset_id]]} if ids[row.dataset_id] in bad else {}),
        }
        for row in rows
    ]


def _snapshots_of_run(
    connection: Connection, run: int, direction: int
) -> dict[int, list[dict[str, Any]]]:
    """Return the newest snapshots that a run read or made, by the dataset as the run named it.

    A snapshot that was only reported as a rounded number and fits none of the table has no id, so
    it is not among them.
    """
    snapshots_of: dict[int, list[dict[str, Any]]] = {}
    for row in connection.execute(_uses_of_run(), {"run": run, "direction": direction}):
        of_dataset = snapshots_of.setdefault(row.named_id, [])
        if len(of_dataset) < MOST_SNAPSHOTS:
            of_dataset.append(
                {
                    "snapshotId": row.snapshot_id,
                    "barrierId": row.barrier,
                    "observed": bool(row.observed),
                }
            )
    return snapshots_of


@cache
def _uses_of_run() -> TextClause:
    newest = f"""
        SELECT * FROM snapshot_uses WHERE run_id = :run AND direction = :direction
         ORDER BY barrier DESC LIMIT {MOST_USES}"""
    query = f"""
        SELECT named_id, snapshot_id, barrier, observed
          FROM ({snapshot_lineage_from(newest)}) AS used
         WHERE snapshot_id IS NOT NULL ORDER BY told_barrier DESC, snapshot_id"""
    return text(query).bindparams(
        bindparam("run", type_=BigInteger), bindparam("direction", type_=Integer)
    )
