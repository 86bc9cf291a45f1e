"""The snapshots of tables as events report them.

For each table: the main ancestry, the newest snapshot, and what a base table got since its last
barrier.

A snapshot that only another branch has, or none (a staged one), is no version of the table: it is
neither newest nor of the main ancestry. It becomes one if a snapshot there was committed on top of
it, or an event tells that main has it.
"""

from collections.abc import Iterable

from sqlalchemy import ColumnElement, Connection, Text, cast, func, select

from strandline.core.changes.snapshot_claims import IN_MAIN
from strandline.core.versions.expirable import main_ancestry
from strandline.core.versions.facts import Table
from strandline.core.versions.root_barriers import SingleRoot
from strandline.store.lineage.lookup import ids_of_names
from strandline.store.lineage.table_snapshots import is_of_this_table
from strandline.store.schema.snapshot_tables import snapshots
from strandline.store.schema.version_tables import group_roots
from strandline.store.versions.fact_log import ROOT, VersionNews
from strandline.store.versions.renamed_tables import rows_of

_WHEN = func.coalesce(
    snapshots.c.committed_at, snapshots.c.first_at
)  # nobody sees a snapshot before it is there
_OF_MAIN = (
    func.coalesce(func.min(snapshots.c.aside), IN_MAIN) == IN_MAIN
)  # by all names of the table
_BETWEEN = "\x1f"  # hardly an id has this sign
_OLDEST_FIRST = (_WHEN, snapshots.c.first_at, snapshots.c.snapshot_id)
_NEWEST_FIRST = (
    func.min(_WHEN).desc(),
    func.min(snapshots.c.first_at).desc(),
    snapshots.c.snapshot_id.desc(),
)


def lines_since(
    connection: Connection, updates: Iterable[VersionNews], roots: Iterable[SingleRoot]
) -> list[tuple[SingleRoot, list[str]]]:
    """Of the base tables that news tell of.

    What was committed since the last cut, oldest first, with the snapshot of that cut.
    """
    tables = {update.entity_id for update in updates if update.kind == ROOT}
    if not tables:
        return []
    named = set(
        connection.scalars(
            select(group_roots.c.group_name).where(group_roots.c.dataset_id.in_(tables))
        )
    )
    return [(root, _since(connection, root)) for root in roots if root.group in named]


def _since(connection: Connection, root: SingleRoot) -> list[str]:
    of_table = rows_of(connection, root.table).condition
    last = select(func.min(_WHEN)).where(of_table, snapshots.c.snapshot_id == root.last)
    seen_at = connection.scalar(last) if root.last is not None else None
    return _lines(connection, of_table if seen_at is None else of_table & (seen_at <= _WHEN))[0]


def heads_of(connection: Connection, tables: Iterable[Table]) -> dict[Table, str]:
    """The newest committed snapshot of the main line of each table that has one."""
    heads = {}
    for table in tables:
        names = ids_of_names(table)
        newest = select(snapshots.c.snapshot_id).where(rows_of(connection, table).condition)
        newest = newest.where(is_of_this_table(connection, names))
        newest = newest.group_by(
            snapshots.c.snapshot_id
        )  # a table's names may tell of one at different times
        head = connection.scalar(newest.having(_OF_MAIN).order_by(*_NEWEST_FIRST).limit(1))
        if head is not None:
            heads[table] = head
    return heads


def commit_times(
    connection: Connection, wanted: Iterable[tuple[Table, str]]
) -> dict[tuple[Table, str], int]:
    """Return when snapshots were committed, of those that are known."""
    of_tables: dict[Table, set[str]] = {}
    for table, snapshot in wanted:
        of_tables.setdefault(table, set()).add(snapshot)
    found = {}
    for table, ids in of_tables.items():
        times = (
            select(snapshots.c.snapshot_id, func.min(_WHEN))
            .where(rows_of(connection, table).condition)
            .where(snapshots.c.snapshot_id.in_(sorted(ids)))
            .group_by(snapshots.c.snapshot_id)
        )
        found.update({(table, id_): int(at) for id_, at in connection.execute(times)})
    return found


def snapshot_lines(connection: Connection, table: Table) -> tuple[list[str], list[str]]:
    """(main ancestry oldest first, all other known snapshots) of a table under any of its names."""
    names = ids_of_names(table)
    return _lines(
        connection, rows_of(connection, table).condition & is_of_this_table(connection, names)
    )


def _lines(connection: Connection, which: ColumnElement[bool]) -> tuple[list[str], list[str]]:
    ids, parents, places = _with_parents(connection, which)
    if (
        not any(places) and ids[:-1] == parents[1:]
    ):  # each came on top of the one before: so it nearly always is
        return ids, []
    parent_of: dict[str, str] = {}
    for id_, parent in zip(
        ids, parents, strict=True
    ):  # of two names' rows the first has the place, either the parent
        parent_of[id_] = parent_of.get(id_) or parent
    of_main, aside = _apart(parent_of, list(zip(ids, places, strict=True)))
    if not of_main or not any(
        parents
    ):  # no event names parents: the order of commits is all there is
        return of_main, aside
    return main_ancestry(parent_of, of_main[-1])


def _apart(ids: Iterable[str], places: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Return the snapshots that main may have, and those that it does not have.

    All reports about the table's names count.
    """
    aside = {id_ for id_, place in places if place} - {
        id_ for id_, place in places if place == str(IN_MAIN)
    }
    return [id_ for id_ in ids if id_ not in aside], [id_ for id_ in ids if id_ in aside]


def _with_parents(
    connection: Connection, which: ColumnElement[bool]
) -> tuple[list[str], list[str], list[str]]:
    """Return snapshots, the newest last, with the parent and whether main has it, as texts.

    An empty parent means none; an empty answer, that nobody says.

    They come as three long texts: a table may have 100,000 snapshots, and a row each would take
    four times as long. Producers choose the ids: if one contains the separator, there are more
    parts than snapshots.
    """
    place = func.coalesce(cast(snapshots.c.aside, Text), "").label("place")
    each = select(
        snapshots.c.snapshot_id, func.coalesce(snapshots.c.parent_id, "").label("parent"), place
    ).where(which)
    rows = each.order_by(*_OLDEST_FIRST).subquery()
    texts = (
        func.aggregate_strings(column, _BETWEEN)
        for column in (rows.c.snapshot_id, rows.c.parent, rows.c.place)
    )
    number, *counts = connection.execute(select(func.count(), *texts)).one()
    ids, parents, places = (text.split(_BETWEEN) if number else [] for text in counts)
    if len(ids) == len(parents) == number:
        return ids, parents, places
    triples = connection.execute(each.order_by(*_OLDEST_FIRST)).all()
    return (
        [row.snapshot_id for row in triples],
        [row.parent for row in triples],
        [row.place for row in triples],
    )
