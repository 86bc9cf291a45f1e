"""Labels of datasets that are new with all of their group.

Made from what the batch says, and written with the rows.

What others said of a dataset stands beside its row. So where the row is not there, and nobody else
may label now, the batch knows everything. Whoever only names a dataset waits for nobody and may be
first after all: `labelled_otherwise` finds those.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Any

import msgspec
from sqlalchemy import Connection, Select, select

from strandline.core.changes.compact import Rows
from strandline.core.changes.rows import DatasetAlias, DatasetSeen, FacetSeen
from strandline.core.identity import RENAMED, Alias, Label, Name, believed, groups_of, labels_of
from strandline.core.openlineage.facets import DATASET, Catalog
from strandline.core.openlineage.names import place_id
from strandline.store.schema.dataset_tables import datasets
from strandline.store.sql.id_lists import among_given
from strandline.store.sql.upsert import unnested, values_of

PAGE = 5000
CHECKED = ("id", "canonical_id", "place_id")
_CATALOG = msgspec.json.Decoder(Catalog)


def label_first(
    connection: Connection, rows: Rows, ids_touched: Collection[int]
) -> list[DatasetSeen]:
    """Label the rows of new groups among the touched datasets; gives these rows.

    Under the lock of labels.
    """
    aliases = [Alias(*dataset_alias) for dataset_alias in rows.of(DatasetAlias)]
    named = {dataset_seen.id: dataset_seen for dataset_seen in rows.of(DatasetSeen)}
    ids = {*ids_touched, *(id_ for alias in aliases for id_ in (alias.dataset_id, alias.alias_id))}
    held = _held(connection, ids)
    # Whether a rename holds depends on what is written later.
    held |= {alias.dataset_id for alias in aliases if alias.type == RENAMED}
    new = {
        id_
        for group in groups_of(ids, aliases)
        if group.isdisjoint(held) and group <= named.keys()
        for id_ in group
    }
    if not new:
        return []
    labels = _labels(rows, [named[id_] for id_ in new], aliases)
    labelled = {id_: _labelled(named[id_], labels[id_]) for id_ in new}
    rows.put(
        DatasetSeen,
        [labelled.get(dataset_seen.id, dataset_seen) for dataset_seen in rows.of(DatasetSeen)],
    )
    return list(labelled.values())


def labelled_otherwise(connection: Connection, labelled: Iterable[DatasetSeen]) -> set[int]:
    """Return the rows that somebody else had written before, without this label."""
    checked = sorted([(label.id, label.canonical_id, label.place_id) for label in labelled])
    if not checked or connection.dialect.name != "postgresql":
        return set()  # SQLite has one writer at a time
    query = (
        f"SELECT held.id FROM ({unnested(datasets, CHECKED)}) AS wanted({', '.join(CHECKED)})"
        " JOIN datasets held ON held.id = wanted.id"
        " WHERE held.canonical_id <> wanted.canonical_id OR held.place_id <> wanted.place_id"
    )
    return {
        row[0]
        for row in connection.exec_driver_sql(
            query, values_of(connection, datasets, CHECKED, checked)
        )
    }


def _labels(
    rows: Rows, named: Iterable[DatasetSeen], aliases: Iterable[Alias]
) -> Mapping[int, Label]:
    """Return the labels of these rows by what the rows of the batch say."""
    catalogs, without_symlinks = _catalogs_and_deleted_symlinks(rows)
    names = [
        Name(dataset.id, dataset.namespace, dataset.name, catalogs.get(dataset.id))
        for dataset in named
    ]
    ids = {name.id for name in names}
    links = believed(aliases, without_symlinks, {})
    return labels_of(names, [link for link in links if link.dataset_id in ids])


def _catalogs_and_deleted_symlinks(rows: Rows) -> tuple[dict[int, str], set[int]]:
    """Return the catalogs of datasets, and the datasets whose symlinks the batch takes back."""
    catalogs: dict[int, str] = {}
    without_symlinks = set[int]()
    for facet in rows.of(FacetSeen):
        if facet.kind != DATASET:
            continue
        if facet.key == "symlinks" and facet.deleted:
            without_symlinks.add(facet.entity_id)
        if (
            facet.key == "catalog"
            and not facet.deleted
            and not facet.problem
            and facet.body is not None
        ):
            catalogs[facet.entity_id] = _CATALOG.decode(facet.body).name.replace("\0", "\ufffd")
    return catalogs, without_symlinks


def _labelled(row: DatasetSeen, label: Label) -> DatasetSeen:
    catalog, database, table = label.place
    place = (
        row.place_id
        if (row.catalog, row.database_name, row.table_name) == label.place
        else place_id(label.place)
    )
    return row._replace(
        canonical_id=label.canonical_id,
        place_id=place,
        catalog=catalog,
        database_name=database,
        table_name=table,
    )


def _held(connection: Connection, ids: Iterable[int]) -> set[int]:
    ordered: list[Any] = sorted(ids)
    pages = (ordered[start : start + PAGE] for start in range(0, len(ordered), PAGE))
    return {id_ for page in pages for id_ in connection.scalars(_stored_ids(), {"ids": page})}


@cache
def _stored_ids() -> Select[Any]:
    return select(datasets.c.id).where(among_given(datasets.c.id, "ids"))
