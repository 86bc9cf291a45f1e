"""Facets of many entities at once: decoded, or as they came."""

from collections.abc import Collection, Mapping
from typing import Any

import orjson
from sqlalchemy import Connection, select

from strandline.core.changes.extraction import relation_id_of
from strandline.core.openlineage.facets import INPUT, OUTPUT
from strandline.store.lineage.facets import Facets, newest_facet_rows
from strandline.store.schema.relation_tables import job_relations
from strandline.store.schema.run_tables import jobs
from strandline.store.sql.compression import expander
from strandline.store.sql.id_lists import among

MOST_USES = 100  # of one dataset
Values = dict[int, dict[str, dict[str, Any]]]


def facet_values(
    connection: Connection, kind: int, groups: Mapping[int, int], keys: Collection[str]
) -> Values:
    """The newest facet of each of these keys by entity, decoded.

    `groups` leads from each id to the entity's own.
    """
    values: Values = {}
    expanded = expander()
    for (entity, key), row in newest_facet_rows(connection, (kind,), groups, keys).items():
        value = orjson.loads(expanded(row.content))
        if isinstance(value, dict):
            values.setdefault(entity, {})[key] = value
    return values


def all_facets(connection: Connection, kind: int, groups: Mapping[int, int]) -> dict[int, Facets]:
    """The newest facet of each key by entity, as it came."""
    facets: dict[int, Facets] = {}
    expanded = expander()
    for (entity, key), row in newest_facet_rows(connection, (kind,), groups).items():
        facets.setdefault(entity, {})[key] = orjson.Fragment(expanded(row.content))
    return facets


def facets_of_last_uses(connection: Connection, groups: Mapping[int, int]) -> dict[int, Facets]:
    """Return the input and output facets that each dataset had when a job last used it.

    Of several of one name the newest. What jobs state that the key does not see is left out.
    """
    query = (
        select(job_relations.c.dataset_id, job_relations.c.direction, job_relations.c.run_id)
        .join(jobs, jobs.c.id == job_relations.c.job_id)
        .where(among(job_relations.c.dataset_id, groups))
        .order_by(job_relations.c.at.desc())
    )
    uses: dict[int, list[int]] = {}
    for row in connection.execute(query):
        of_dataset = uses.setdefault(groups[row.dataset_id], [])
        if len(of_dataset) < MOST_USES:
            of_dataset.append(relation_id_of(row.run_id, row.direction, row.dataset_id))
    datasets = {use: dataset for dataset, of_dataset in uses.items() for use in of_dataset}
    by_dataset = all_facets(connection, OUTPUT, datasets)
    for dataset, facets in all_facets(connection, INPUT, datasets).items():
        by_dataset[dataset] = by_dataset.get(dataset, {}) | facets
    return by_dataset
