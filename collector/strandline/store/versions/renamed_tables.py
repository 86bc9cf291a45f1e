"""Renames of tables, as facts for the model of versions."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, insert, select, true

from strandline.core.identity import RENAMED, Alias, Name, labels_of
from strandline.core.openlineage.names import id_of
from strandline.core.versions.facts import Table, TableRenamed
from strandline.store.schema.dataset_tables import dataset_aliases, datasets
from strandline.store.schema.version_tables import domain_roots, version_news
from strandline.store.sql.id_lists import among
from strandline.store.versions.fact_log import RENAME, ROOT, VersionNews

MICRO = 1_000_000


def renames_in_news(connection: Connection, news: Iterable[VersionNews]) -> list[TableRenamed]:
    """Return the renames of the datasets that news tell of, in the order in which they were done."""
    ids = {one.entity_id for one in news if one.kind == RENAME}
    return _renames(connection, among(dataset_aliases.c.dataset_id, ids)) if ids else []


def all_renames(connection: Connection) -> list[TableRenamed]:
    """Return all renames, in the order in which they were done."""
    return _renames(connection, true())


def _renames(connection: Connection, which: ColumnElement[bool]) -> list[TableRenamed]:
    """Return renames, but those that leave a table the name by which facts call it.

    That is so where only a name in a catalog moved, and the table stays at its place.
    """
    links = dataset_aliases.c
    query = select(dataset_aliases).where(which, links.type == RENAMED)
    moves = [Alias(*row) for row in connection.execute(query.order_by(links.at))]
    if not moves:
        return []
    groups = _groups(
        connection, {id_ for move in moves for id_ in (move.dataset_id, move.alias_id)}
    )
    return [
        TableRenamed(groups.named[move.alias_id], groups.named[move.dataset_id], move.at / MICRO)
        for move in moves
        if move[:2] not in groups.links
        and groups.named[move.alias_id]
        not in (groups.named[move.dataset_id], groups.called_now[move.dataset_id])
    ]


def former_names(connection: Connection, table: Table) -> set[Table]:
    """Return all names that a table ever had before a rename, also those that others have now."""
    links, found, new = dataset_aliases.c, set[int](), {id_of("dataset", *table)}
    while new:
        found |= new
        groups = select(datasets.c.canonical_id).where(among(datasets.c.id, new))
        names = select(datasets.c.id).where(datasets.c.canonical_id.in_(groups))
        query = select(links.alias_id).where(links.dataset_id.in_(names), links.type == RENAMED)
        new = set(connection.scalars(query)) - found
    rows = connection.execute(
        select(datasets.c.namespace, datasets.c.name).where(among(datasets.c.id, found))
    )
    return {(row.namespace, row.name) for row in rows} - {table}


class _Groups(NamedTuple):
    """Datasets with their names.

    `named`: what facts call each apart from renames; `called_now`: what they call it now; `links`:
    the names that symlinks join, as pairs of ids.
    """

    named: dict[int, Table]
    called_now: dict[int, Table]
    links: set[tuple[int, int]]


def _groups(connection: Connection, ids: Collection[int]) -> _Groups:
    """Return the groups of these datasets, of names that are believed to be one."""
    ends = select(datasets.c.canonical_id).where(among(datasets.c.id, ids))
    columns = datasets.c.id, datasets.c.namespace, datasets.c.name, datasets.c.canonical_id
    rows = connection.execute(select(*columns).where(datasets.c.canonical_id.in_(ends))).all()
    names = {row.id: Name(row.id, row.namespace, row.name) for row in rows}
    now = {row.id: row.canonical_id for row in rows}
    stated = dataset_aliases.c
    query = select(dataset_aliases).where(among(stated.dataset_id, names), stated.type != RENAMED)
    aliases = [Alias(*row) for row in connection.execute(query)]
    believed = [one for one in aliases if now[one.dataset_id] == now.get(one.alias_id)]
    labels = labels_of(names.values(), believed)
    return _Groups(
        {id_: names[labels[id_].canonical_id][1:3] for id_ in names},
        {id_: names[now[id_]][1:3] for id_ in names},
        {alias[:2] for alias in aliases},
    )


def follow_base_tables(connection: Connection, renames: Sequence[TableRenamed]) -> None:
    """Let the snapshots of a base table become barriers under its new name, too."""
    for rename in renames:
        before, after = id_of("dataset", *rename.before), id_of("dataset", *rename.table)
        query = select(domain_roots.c.domain).where(domain_roots.c.dataset_id == before)
        domain = connection.scalar(query)
        known = select(domain_roots.c.domain).where(domain_roots.c.dataset_id == after)
        if domain is None or connection.scalar(known) is not None:
            continue
        connection.execute(insert(domain_roots).values(dataset_id=after, domain=domain))
        connection.execute(insert(version_news).values(kind=ROOT, entity_id=after, barrier=0))
