"""The flow between namespaces.

How many jobs read from one and write to another, of all that was reported by a moment.

It counts jobs, not pairs of tables: inputs and outputs of two runs are never multiplied. Of the
present it is asked of `job_relations`, which is as large as the graph; of the past of every
relation.
"""

from typing import Any

from sqlalchemy import CTE, Connection, Select, func, select

from strandline.core.changes.extraction import SINK, SOURCE
from strandline.store.catalog.lists import is_shown, was_mentioned, was_named
from strandline.store.lineage.run_state import MOMENT, View, iso, run_owners
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import job_relations, relations
from strandline.store.schema.run_tables import jobs, namespaces

Answer = dict[str, Any]


def namespace_overview(connection: Connection, view: View, most: int) -> Answer:
    """Namespaces as nodes, the largest first.

    An edge says how many jobs of how many namespaces read here and write there.
    """
    moment = {"moment": view.at} if view.past else {}
    counts = _counts(connection, view)
    names = {row.id: row.name for row in connection.execute(select(namespaces))}
    shown = sorted(counts, key=lambda id_: (-sum(counts[id_].values()), names[id_]))
    shown_ids = frozenset(shown[:most])
    flows = connection.execute(_flows(view.past), moment).all()
    ids = {id_: f"namespace:{names[id_]}" for id_ in shown_ids}
    edges = [
        {"source": ids[source], "target": ids[target], "jobs": count}
        for source, target, count in flows
        if source in shown_ids and target in shown_ids
    ]
    return {
        "nodes": [
            {"id": ids[id_], "type": "namespace", "namespace": names[id_], "name": names[id_]}
            | counts[id_]
            for id_ in shown[:most]
        ],
        "edges": sorted(edges, key=lambda edge: (edge["target"], edge["source"])),
        "complete": len(shown) <= most,
        "truncatedBy": None if len(shown) <= most else "nodes",
        "asOf": iso(view.at),
        "hidden": {"nodes": max(0, len(shown) - most)},
    }


def _counts(connection: Connection, view: View) -> dict[int, dict[str, int]]:
    """Return how many datasets (each once, whatever its names) and jobs each namespace has.

    At a past moment they are those that lists of the moment show.
    """
    counts: dict[int, dict[str, int]] = {}
    own = [datasets.c.canonical_id == datasets.c.id, *([was_named(view.at)] if view.past else ())]
    ran = [is_shown, *([was_mentioned(view.at)] if view.past else ())]
    for name, of, conditions in (("datasets", datasets, own), ("jobs", jobs, ran)):
        query = select(of.c.namespace_id, func.count()).where(*conditions)
        for row in connection.execute(query.group_by(of.c.namespace_id)):
            counts.setdefault(row[0], {"datasets": 0, "jobs": 0})[name] = row[1]
    return counts


def _flows(past: bool) -> Select[Any]:
    """Of each two namespaces how many jobs read from the first and write to the second."""
    flow = _touched(past).cte("touched")
    reads, writes = flow.alias("reads"), flow.alias("writes")
    return (
        select(
            reads.c.namespace.label("source"),
            writes.c.namespace.label("target"),
            func.count().label("jobs"),
        )
        .select_from(reads.join(writes, writes.c.job == reads.c.job))
        .where(reads.c.direction == SOURCE, writes.c.direction == SINK)
        .group_by(reads.c.namespace, writes.c.namespace)
    )


def _touched(past: bool) -> Select[Any]:
    """(job that owns the run, direction, namespace of the canonical dataset), each once."""
    canonical, owning = datasets.alias("canonical"), _owning_jobs(past)
    of = relations if past else job_relations
    joined = of.join(owning, owning.c.run_id == of.c.run_id).join(
        datasets, datasets.c.id == of.c.dataset_id
    )
    joined = joined.join(canonical, canonical.c.id == datasets.c.canonical_id)
    own = (
        owning.c.job_id.label("job"),
        of.c.direction,
        canonical.c.namespace_id.label("namespace"),
    )
    return select(*own).distinct().select_from(joined).where(*_begun(past))


def _owning_jobs(past: bool) -> CTE:
    """The job that owns each run.

    Looked up once a run, which costs more than all else that is asked of its relations.
    """
    of = relations if past else job_relations
    ran = select(of.c.run_id).where(*_begun(past)).distinct().subquery("ran")
    owned = ran.join(run_owners, run_owners.c.run_id == ran.c.run_id)
    return select(run_owners.c.run_id, run_owners.c.job_id).select_from(owned).cte("owning")


def _begun(past: bool) -> list[Any]:
    return [relations.c.first_at <= MOMENT] if past else []
