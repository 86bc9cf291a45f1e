"""How namespaces feed each other: how many jobs read from one and write to another, of all that was reported by a moment.

It counts jobs, not pairs of tables: inputs and outputs of two runs are never multiplied. Of the present it is asked of
`job_relations`, which is as large as the graph; of the past of every relation.
"""

from typing import Any

from sqlalchemy import BigInteger, Connection, Select, bindparam, distinct, func, select

from strandline.core.changes.extraction import SINK, SOURCE
from strandline.store.catalog.lists import is_shown
from strandline.store.lineage.relations import View
from strandline.store.lineage.run_states import iso
from strandline.store.lineage.touches import run_owners
from strandline.store.schema.tables import datasets, job_relations, jobs, namespaces, relations

Answer = dict[str, Any]

MOMENT = bindparam("moment", type_=BigInteger)


def namespace_overview(connection: Connection, view: View, most: int) -> Answer:
    """Namespaces as nodes, the largest first; an edge says how many jobs of how many namespaces read here and write there."""
    moment = {"moment": view.at} if view.past else {}
    counts = _counts(connection, moment)
    names = {row.id: row.name for row in connection.execute(select(namespaces))}
    shown = sorted(counts, key=lambda id_: (-sum(counts[id_].values()), names[id_]))
    kept = frozenset(shown[:most])
    flows = connection.execute(_flows(view.past), moment).all()
    edges = [
        {"source": f"namespace:{names[row.source]}", "target": f"namespace:{names[row.target]}", "jobs": row.jobs}
        for row in flows
        if row.source in kept and row.target in kept
    ]
    return {
        "nodes": [
            {"id": f"namespace:{names[id_]}", "type": "namespace", "namespace": names[id_], "name": names[id_]}
            | counts[id_]
            for id_ in shown[:most]
        ],
        "edges": sorted(edges, key=lambda edge: (edge["target"], edge["source"])),
        "complete": len(shown) <= most,
        "truncatedBy": None if len(shown) <= most else "nodes",
        "asOf": iso(view.at),
        "hidden": {"nodes": max(0, len(shown) - most)},
    }


def _counts(connection: Connection, moment: dict[str, int]) -> dict[int, dict[str, int]]:
    """How many datasets (each once, whatever its names) and jobs each namespace has."""
    found: dict[int, dict[str, int]] = {}
    own = datasets.c.canonical_id == datasets.c.id
    for name, query in (
        ("datasets", select(datasets.c.namespace_id, func.count()).where(own, *_heard(datasets.c.first_at, moment))),
        ("jobs", select(jobs.c.namespace_id, func.count()).where(is_shown, *_heard(jobs.c.first_at, moment))),
    ):
        for row in connection.execute(query.group_by(query.selected_columns[0]), moment):
            found.setdefault(row[0], {"datasets": 0, "jobs": 0})[name] = row[1]
    return found


def _heard(first_at: Any, moment: dict[str, int]) -> list[Any]:
    return [first_at <= MOMENT] if moment else []


def _flows(past: bool) -> Select[Any]:
    reads, writes = (
        _touched(direction, past).subquery(name) for direction, name in ((SOURCE, "reads"), (SINK, "writes"))
    )
    pairs = reads.join(writes, writes.c.job == reads.c.job)
    return (
        select(reads.c.namespace.label("source"), writes.c.namespace.label("target"),
               func.count(distinct(reads.c.job)).label("jobs"))
        .select_from(pairs)
        .group_by(reads.c.namespace, writes.c.namespace)
    )  # fmt: skip


def _touched(direction: int, past: bool) -> Select[Any]:
    """(job that owns the run, namespace of the canonical dataset), each once."""
    canonical = datasets.alias("canonical")
    of = relations if past else job_relations
    joined = of.join(run_owners, run_owners.c.run_id == of.c.run_id).join(datasets, datasets.c.id == of.c.dataset_id)
    joined = joined.join(canonical, canonical.c.id == datasets.c.canonical_id)
    begun = [relations.c.first_at <= MOMENT] if past else []
    query = select(run_owners.c.job_id.label("job"), canonical.c.namespace_id.label("namespace")).distinct()
    return query.select_from(joined).where(of.c.direction == direction, *begun)
