"""Each dataset's group and place, kept in step with symlinks and catalog facets.

core/identity.py decides. Only groups that something new was said about are labelled again;
`relabel` does all, and leaves the same labels.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, and_, func, or_, select, text

from strandline.core.changes.compact import Rows
from strandline.core.changes.datasets import other_names
from strandline.core.changes.extraction import SINK
from strandline.core.changes.memory import Memory
from strandline.core.changes.rows import DatasetAlias, DatasetSeen
from strandline.core.identity import (
    APART,
    OF_RENAMES,
    RENAMED,
    UNTIL,
    Alias,
    Label,
    Name,
    Rename,
    StatedNames,
    believed,
    ids_that_state,
    labels_of,
    used_again,
)
from strandline.core.openlineage.facets import DATASET, Catalog, Facets
from strandline.core.openlineage.names import TableName, place_id
from strandline.store.ingest.first_labels import label_first, labelled_otherwise
from strandline.store.lineage.graph_log import note_renamed
from strandline.store.schema.dataset_tables import dataset_aliases, datasets
from strandline.store.schema.relation_tables import job_relations
from strandline.store.search.changed_facets import NAMING, FacetPlace
from strandline.store.search.upkeep import index_renamed
from strandline.store.sql.compression import expand
from strandline.store.sql.facet_rows import any_value, facet_rows, newest_rows, one_of
from strandline.store.sql.id_lists import among, among_given
from strandline.store.sql.shared_settings import agreed_naming
from strandline.store.sql.upsert import unnested, values_of

IDENTITY_LOCK = 0x6964_656E
PAGE = 5000
LABEL = ("id", "canonical_id", "place_id", "catalog", "database_name", "table_name")
_CATALOG = msgspec.json.Decoder(Catalog)


@contextmanager
def label(
    connection: Connection, rows: Rows, changed: Iterable[FacetPlace], *, has_renames: bool
) -> Iterator[None]:
    """Around applying rows: afterwards label again what they may have changed.

    The lock is taken before any row's. changed: the facets that say something else than what is
    stored. has_renames: whether the store has renamed datasets. Where several tables had a name,
    the time of a facet counts as well.
    """
    ids = {
        id_
        for dataset_alias in rows.of(DatasetAlias)
        for id_ in (dataset_alias.dataset_id, dataset_alias.alias_id)
    }
    ids |= {place.entity_id for place in changed if (place.kind, place.key) in NAMING}
    if has_renames:
        ids |= names_of_several(connection, rows)
    first: list[DatasetSeen] = []
    if ids:
        lock(connection)
        first = label_first(connection, rows, ids)
    yield
    ids -= {label.id for label in first}
    ids |= labelled_otherwise(connection, first)
    if ids:
        relabel(connection, ids)


def lock(connection: Connection) -> None:
    """Wait until no other writer labels."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": IDENTITY_LOCK})


def relabel(connection: Connection, ids: Collection[int] | None = None) -> int:
    """Label the groups of these datasets, or all of them; return how many rows changed."""
    aliases = aliases_around(connection, ids)
    wanted = None if ids is None else {*ids, *(id_ for alias in aliases for id_ in alias[:2])}
    changes = relabelled(connection, wanted, aliases)
    if changes:
        _update(connection, changes)
    return len(changes)


def relabelled(
    connection: Connection, ids: Collection[int] | None, aliases: Sequence[Alias]
) -> list[tuple[int, Label]]:
    """Return the datasets that would get another label, with that label."""
    names, held = _names(connection, ids)
    links = _believed(connection, aliases, ids)
    labels = labels_of(
        names, [link for link in links if link.dataset_id in held and link.alias_id in held]
    )
    return sorted((id_, wanted) for id_, wanted in labels.items() if held[id_] != wanted)


def label_names(names: Iterable[Name], aliases: Sequence[Alias]) -> dict[int, int]:
    """Return the id of the group of each name."""
    return {id_: wanted.canonical_id for id_, wanted in labels_of(list(names), aliases).items()}


def believed_aliases(connection: Connection) -> list[Alias]:
    """Return every link between names but those that were taken back."""
    return _believed(connection, _all_aliases(connection), None)


def _believed(
    connection: Connection, aliases: Sequence[Alias], ids: Collection[int] | None
) -> list[Alias]:
    return believed(aliases, _taken_back(connection, ids), _stated_names(connection, aliases))


def renames_used_again(connection: Connection, ids: Collection[int]) -> list[Rename]:
    """Return the renames around these datasets whose former name another table had since."""
    aliases = aliases_around(connection, ids)
    written = _last_written(connection, {id_ for alias in aliases for id_ in alias[:2]})
    return used_again(aliases, written, _stated_names(connection, aliases))


def _last_written(connection: Connection, ids: Collection[int]) -> dict[int, int]:
    """Map each of these datasets to the last moment at which a run wrote it under this name."""
    of = job_relations.c
    query = select(of.dataset_id, func.max(of.at)).group_by(of.dataset_id)
    query = query.where(among(of.dataset_id, ids), of.direction == SINK, of.ran == 1)
    return {row.dataset_id: row[1] for row in connection.execute(query)}


def _stated_names(connection: Connection, aliases: Sequence[Alias]) -> dict[int, StatedNames]:
    """Map datasets to their names by their newest symlinks facets, where a name was renamed."""
    ids = ids_that_state(aliases)
    if not ids:
        return {}
    query = select(datasets.c.id, datasets.c.namespace).where(among(datasets.c.id, ids))
    namespaces = {row.id: row.namespace for row in connection.execute(query)}
    memory = Memory(agreed_naming(connection))
    stated: dict[int, StatedNames] = {}
    for key in ("symlink", "symlinks"):
        for row in _newest(connection, key, ids):
            if row.deleted or row.content is None or row.entity_id not in namespaces:
                continue
            facets = Facets({key: memory.facet(DATASET, key, expand(row.content))})
            names = other_names(facets, namespaces[row.entity_id])
            other_ids = frozenset([memory.dataset(space, name).id for space, name, _ in names])
            stated[row.entity_id] = StatedNames(row.at, other_ids)
    return stated


def renamed_before(connection: Connection, rows: Rows) -> set[int]:
    """Return the names before renames that the batch uses, or that a dataset of it is called."""
    return _names_used(connection, rows, dataset_aliases.c.type == RENAMED)


def names_of_several(connection: Connection, rows: Rows) -> set[int]:
    """Return those of these names that several tables had."""
    links = dataset_aliases.c
    return _names_used(connection, rows, and_(links.type == UNTIL, links.at == APART))


def _names_used(connection: Connection, rows: Rows, which: ColumnElement[bool]) -> set[int]:
    used = {dataset.id for dataset in rows.of(DatasetSeen) if dataset.first_at is not None}
    used |= {alias.dataset_id for alias in rows.of(DatasetAlias)}
    if not used:
        return set()
    links, called = dataset_aliases.c, dataset_aliases.alias("called")
    names = select(called.c.alias_id).where(
        among(called.c.dataset_id, used), called.c.type.not_in(OF_RENAMES)
    )
    is_used = or_(among(links.alias_id, used), links.alias_id.in_(names))
    return set(connection.scalars(select(links.alias_id).where(which, is_used)))


def _all_aliases(connection: Connection) -> list[Alias]:
    return [Alias(*row) for row in connection.execute(select(dataset_aliases))]


def aliases_around(connection: Connection, ids: Collection[int] | None) -> list[Alias]:
    """Return all links of the groups of these datasets: outwards until no link is new."""
    if ids is None:
        return _all_aliases(connection)
    aliases: set[Alias] = set()
    visited: set[int] = set()
    frontier = set(ids)
    while frontier:
        visited |= frontier
        for end in ("dataset_id", "alias_id"):
            for page in _pages(frontier):
                aliases.update(
                    Alias(*row) for row in connection.execute(_aliases_at(end), {"ids": page})
                )
        frontier = {id_ for alias in aliases for id_ in alias[:2]} - visited
    return sorted(aliases)


@cache
def _aliases_at(end: str) -> Select[Any]:
    return select(dataset_aliases).where(among_given(dataset_aliases.c[end], "ids"))


def _names(
    connection: Connection, ids: Collection[int] | None
) -> tuple[list[Name], dict[int, Label]]:
    """Return the datasets with their catalogs, and the labels that they have now."""
    catalogs = _catalogs(connection, ids)
    held: dict[int, Label] = {}
    names = []
    columns = (datasets.c.id, datasets.c.namespace, datasets.c.name, datasets.c.canonical_id)
    query = select(*columns, datasets.c.catalog, datasets.c.database_name, datasets.c.table_name)
    for id_, namespace, name, canonical_id, *place in _among(connection, query, datasets.c.id, ids):
        names.append(Name(id_, namespace, name, catalogs.get(id_)))
        held[id_] = Label(canonical_id, TableName(*place))
    return names, held


def _catalogs(connection: Connection, ids: Collection[int] | None) -> dict[int, str]:
    catalogs = {}
    for row in _newest(connection, "catalog", ids):
        if not row.deleted and row.content is not None:
            catalogs[row.entity_id] = _CATALOG.decode(expand(row.content)).name.replace(
                "\0", "\ufffd"
            )
    return catalogs


def _taken_back(connection: Connection, ids: Collection[int] | None) -> set[int]:
    """Return the datasets whose newest symlinks facet is deleted.

    The names that it joined are separate again.
    """
    return {row.entity_id for row in _newest(connection, "symlinks", ids) if row.deleted}


def _newest(connection: Connection, key: str, ids: Collection[int] | None) -> Iterator[Any]:
    """Yield the newest facet of a key of each of these datasets, or of all."""
    if ids is None:
        yield from newest_rows(
            connection.execute(select(facet_rows(any_value, (DATASET,), one_of([key]))))
        )
        return
    for page in _pages(ids):
        yield from newest_rows(connection.execute(_facets_of(), {"ids": page, "keys": [key]}))


@cache
def _facets_of() -> Select[Any]:
    return select(
        facet_rows(partial(among_given, name="ids"), (DATASET,), partial(among_given, name="keys"))
    )


def _update(connection: Connection, changes: Sequence[tuple[int, Label]]) -> None:
    rows = [
        (id_, label.canonical_id, place_id(label.place), *label.place) for id_, label in changes
    ]
    if connection.dialect.name == "postgresql":
        sets = ", ".join(f"{name} = label.{name}" for name in LABEL[1:])
        labels = f"({unnested(datasets, LABEL)}) AS label({', '.join(LABEL)})"
        statement = f"UPDATE datasets SET {sets} FROM {labels} WHERE datasets.id = label.id"
    else:
        sets = ", ".join(f"{name} = ?{number}" for number, name in enumerate(LABEL[1:], 2))
        statement = f"UPDATE datasets SET {sets} WHERE id = ?1"
    connection.exec_driver_sql(statement, values_of(connection, datasets, LABEL, rows))
    index_renamed(connection, [row[0] for row in rows])
    note_renamed(connection, [row[0] for row in rows])


def _among(
    connection: Connection,
    query: Select[Any],
    column: ColumnElement[Any],
    ids: Collection[int] | None,
) -> Iterator[Any]:
    """Yield the rows with these ids in the column, or all rows."""
    if ids is None:
        yield from connection.execute(query)
        return
    chosen = query.where(among_given(column, "ids"))
    for page in _pages(ids):
        yield from connection.execute(chosen, {"ids": page})


def _pages(ids: Iterable[int]) -> Iterator[list[int]]:
    """Yield ids in sorted pages."""
    ordered = sorted(ids)
    for start in range(0, len(ordered), PAGE):
        yield ordered[start : start + PAGE]
