"""What events told of the snapshots of tables: their main ancestry, their newest one, what came to a root since its last cut."""

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import ColumnElement, Connection, func, select

from strandline.core.barriers import Table
from strandline.core.cutting import SingleRoot
from strandline.core.expiry import main_ancestry
from strandline.core.naming import id_of
from strandline.store.tables import datasets, snapshots
from strandline.store.version_log import ROOT, News
from strandline.store.version_tables import domain_roots

_WHEN = func.coalesce(snapshots.c.committed_at, snapshots.c.at)
_BETWEEN = "\x1f"  # no id has this sign
_NEWEST_FIRST = (_WHEN.desc(), snapshots.c.at.desc(), snapshots.c.snapshot_id.desc())


def lines_since(
    connection: Connection, news: Iterable[News], roots: Iterable[SingleRoot]
) -> list[tuple[SingleRoot, list[str]]]:
    """Of the roots that news tell of: what was committed since the last cut, oldest first, with the snapshot of that cut."""
    touched = {one.entity_id for one in news if one.kind == ROOT}
    if not touched:
        return []
    named = set(connection.scalars(select(domain_roots.c.domain).where(domain_roots.c.dataset_id.in_(touched))))
    return [(root, _since(connection, root)) for root in roots if root.domain in named]


def _since(connection: Connection, root: SingleRoot) -> list[str]:
    of_table = snapshots.c.dataset_id.in_(names_of(root.table))
    last = select(_WHEN).where(of_table, snapshots.c.snapshot_id == root.last)
    known = connection.scalar(last) if root.last is not None else None
    return _lines(connection, of_table if known is None else of_table & (known <= _WHEN))[0]


def heads_of(connection: Connection, tables: Iterable[Table]) -> dict[Table, str]:
    """The newest committed snapshot of each table that has one."""
    found = {}
    for table in tables:
        newest = select(snapshots.c.snapshot_id).where(snapshots.c.dataset_id.in_(names_of(table)))
        head = connection.scalar(newest.order_by(*_NEWEST_FIRST).limit(1))
        if head is not None:
            found[table] = head
    return found


def snapshot_lines(connection: Connection, table: Table) -> tuple[list[str], list[str]]:
    """(main ancestry oldest first, all other known snapshots) of a table under any of its names."""
    return _lines(connection, snapshots.c.dataset_id.in_(names_of(table)))


def _lines(connection: Connection, which: ColumnElement[bool]) -> tuple[list[str], list[str]]:
    parents = _parents(connection, which)
    if not any(parents.values()):  # nobody told of parents: the order of commits is all there is
        ordered = connection.scalars(select(snapshots.c.snapshot_id).where(which).order_by(*_NEWEST_FIRST))
        return list(dict.fromkeys(ordered))[::-1], []
    head = connection.scalar(select(snapshots.c.snapshot_id).where(which).order_by(*_NEWEST_FIRST).limit(1))
    return main_ancestry(parents, head)


def _parents(connection: Connection, which: ColumnElement[bool]) -> Mapping[str, str | None]:
    """Snapshot to parent. As two long texts: a table may have 100,000, and a row of each takes four times as long."""
    texts = select(
        func.aggregate_strings(snapshots.c.snapshot_id, _BETWEEN),
        func.aggregate_strings(func.coalesce(snapshots.c.parent_id, ""), _BETWEEN),
    )
    ids, parents = connection.execute(texts.where(which)).one()
    if ids is None:
        return {}
    return dict(zip(ids.split(_BETWEEN), (parent or None for parent in parents.split(_BETWEEN)), strict=True))


def names_of(table: Table) -> "Sequence[int]":
    """A query of the ids under which a table was named."""
    canonical = select(datasets.c.canonical_id).where(datasets.c.id == id_of("dataset", *table)).scalar_subquery()
    return select(datasets.c.id).where(datasets.c.canonical_id == canonical)  # type: ignore[return-value]
