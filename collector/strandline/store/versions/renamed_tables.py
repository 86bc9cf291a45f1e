"""Renames of tables, as facts for the model of versions."""

from collections.abc import Collection, Iterable, Sequence

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
    """Return renames; one that leaves the table the name by which facts call it is none."""
    links = dataset_aliases.c
    query = select(dataset_aliases).where(which, links.type == RENAMED)
    moves = [Alias(*row) for row in connection.execute(query.order_by(links.at))]
    if not moves:
        return []
    ends = {id_ for move in moves for id_ in (move.dataset_id, move.alias_id)}
    named, joined = _named(connection, ends)
    return [
        TableRenamed(named[move.alias_id], named[move.dataset_id], move.at / MICRO)
        for move in moves
        if named[move.alias_id] not in (named[move.dataset_id], joined[move.dataset_id])
    ]


def _named(
    connection: Connection, ids: Collection[int]
) -> tuple[dict[int, Table], dict[int, Table]]:
    """Return by id what facts call datasets apart from renames, and what they call them now."""
    groups = select(datasets.c.canonical_id).where(among(datasets.c.id, ids))
    columns = datasets.c.id, datasets.c.namespace, datasets.c.name, datasets.c.canonical_id
    rows = connection.execute(select(*columns).where(datasets.c.canonical_id.in_(groups))).all()
    names = {row.id: Name(row.id, row.namespace, row.name) for row in rows}
    links = dataset_aliases.c
    query = select(dataset_aliases).where(among(links.dataset_id, names), links.type != RENAMED)
    aliases = [Alias(*row) for row in connection.execute(query)]
    labels = labels_of(names.values(), [one for one in aliases if one.alias_id in names])
    apart = {id_: labels[id_].canonical_id for id_ in names}
    now = {row.id: row.canonical_id for row in rows}
    return (
        {id_: names[apart[id_]][1:3] for id_ in ids if id_ in names},
        {id_: names[now[id_]][1:3] for id_ in ids if id_ in names},
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
