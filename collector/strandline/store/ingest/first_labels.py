"""Labels of datasets that are new with all of their group: made from what the batch says, and written with the rows.

What others said of a dataset stands beside its row. So where the row is not there, and nobody else may label now, the batch
knows everything. Whoever only names a dataset waits for nobody and may be first after all: `labelled_otherwise` finds those.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Any

import msgspec
from sqlalchemy import Connection, Select, select

from strandline.core.changes.compact import Row, Rows
from strandline.core.changes.rows import DatasetAlias, DatasetSeen, FacetSeen
from strandline.core.identity import BY_HAND, PATTERN, Alias, Label, Name, groups_of, labels_of
from strandline.core.openlineage.facets import DATASET, Catalog
from strandline.core.openlineage.names import place_id
from strandline.store.schema.tables import datasets
from strandline.store.sql.id_lists import among_given
from strandline.store.sql.pg_arrays import unnested
from strandline.store.sql.upsert import values_of

PAGE = 5000
CHECKED = ("id", "canonical_id", "place_id")
_CATALOG = msgspec.json.Decoder(Catalog)


def label_first(connection: Connection, rows: Rows, touched: Collection[int]) -> list[Row]:
    """Label the rows of new groups among the touched datasets; gives these rows. Under the lock of labels."""
    aliases = [Alias(*row) for row in rows.get(DatasetAlias, ())]
    named: dict[int, Row] = {row[0]: row for row in rows.get(DatasetSeen, ())}
    ids = {*touched, *(id_ for alias in aliases for id_ in alias[:2])}
    held = _held(connection, ids)
    new = {
        id_ for group in groups_of(ids, aliases) if group.isdisjoint(held) and group <= named.keys() for id_ in group
    }
    if not new:
        return []
    labels = _labels(rows, [named[id_] for id_ in new], aliases)
    labelled = {id_: _labelled(named[id_], labels[id_]) for id_ in new}
    rows[DatasetSeen] = [labelled.get(row[0], row) for row in rows[DatasetSeen]]
    return list(labelled.values())


def labelled_otherwise(connection: Connection, labelled: Iterable[Row]) -> set[int]:
    """Which of these rows somebody else had written before, without this label."""
    checked = sorted([(row[0], row[4], row[5]) for row in labelled])
    if not checked or connection.dialect.name != "postgresql":
        return set()  # SQLite has one writer at a time
    query = (
        f"SELECT held.id FROM ({unnested(datasets, CHECKED)}) AS wanted({', '.join(CHECKED)})"
        " JOIN datasets held ON held.id = wanted.id"
        " WHERE held.canonical_id <> wanted.canonical_id OR held.place_id <> wanted.place_id"
    )
    return {row[0] for row in connection.exec_driver_sql(query, values_of(connection, datasets, CHECKED, checked))}


def _labels(rows: Rows, named: Iterable[Row], aliases: Iterable[Alias]) -> Mapping[int, Label]:
    """What identity.py reads from the store, from the rows of the batch."""
    catalogs, without_symlinks = _catalogs_and_deleted_symlinks(rows)
    names = [Name(row[0], row[2], row[3], catalogs.get(row[0])) for row in named]
    ids = {name.id for name in names}
    believed = [one for one in aliases if one.type in (PATTERN, BY_HAND) or one.dataset_id not in without_symlinks]
    return labels_of(names, [one for one in believed if one.dataset_id in ids])


def _catalogs_and_deleted_symlinks(rows: Rows) -> tuple[dict[int, str], set[int]]:
    """The catalogs that facets of the batch name, by dataset, and the datasets whose symlinks it takes back."""
    catalogs: dict[int, str] = {}
    without_symlinks = set[int]()
    for entity_id, key, kind, _, _, body, deleted, problem in rows.get(FacetSeen, ()):
        if kind != DATASET:
            continue
        if key == "symlinks" and deleted:
            without_symlinks.add(entity_id)
        if key == "catalog" and not deleted and not problem and body is not None:
            catalogs[entity_id] = _CATALOG.decode(body).name.replace("\0", "\ufffd")
    return catalogs, without_symlinks


def _labelled(row: Row, label: Label) -> Row:
    place = row[5] if tuple(row[6:9]) == label.place else place_id(label.place)
    return (*row[:4], label.canonical_id, place, *label.place, *row[9:])


def _held(connection: Connection, ids: Iterable[int]) -> set[int]:
    ordered: list[Any] = sorted(ids)
    pages = (ordered[start : start + PAGE] for start in range(0, len(ordered), PAGE))
    return {id_ for page in pages for id_ in connection.scalars(_stored_ids(), {"ids": page})}


@cache
def _stored_ids() -> Select[Any]:
    return select(datasets.c.id).where(among_given(datasets.c.id, "ids"))
