"""Cutting barriers through the roots of declared domains: b := the latest committed snapshot of every root.

Roots do not depend on each other, so every cut through them is consistent. One root: each of its commits is a barrier.
Several: one at an interval. Where managed jobs write the roots, their own events carry the barriers.
"""

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, Row, select

from strandline.core.barriers import Fact, Made, RootsCut, Table
from strandline.core.expiry import main_ancestry
from strandline.core.model import Domain, Model
from strandline.core.naming import id_of
from strandline.store.tables import datasets, snapshots
from strandline.store.version_log import ROOT, News
from strandline.store.version_tables import domain_roots

MICRO = 1_000_000


def natural_cuts(connection: Connection, model: Model, news: Iterable[News], now: float) -> list[Fact]:
    """The barriers of domains with one root: its commits that came since the last one."""
    touched = {one.entity_id for one in news if one.kind == ROOT}
    if not touched:
        return []
    named = set(connection.scalars(select(domain_roots.c.domain).where(domain_roots.c.dataset_id.in_(touched))))
    single = [domain for domain in _cut_here(model) if domain.name in named and len(domain.declared) == 1]
    return [cut for domain in single for cut in _each_commit(connection, model, domain, now)]


def interval_cut(connection: Connection, model: Model, domain: Domain, now: float) -> list[Fact]:
    """The next barrier of a domain with several roots; none while nothing new was committed to any."""
    heads = {table: line[-1] for table in domain.declared if (line := ancestry(connection, table))}
    last = {table: _last(model, table) for table in domain.declared}
    if len(heads) < len(domain.declared) or heads == last:
        return []
    made = tuple(Made(table, heads[table], last[table]) for table in domain.declared)
    return [RootsCut(domain.name, (domain.newest or 0) + 1, made, now)]


def domains_with_interval(model: Model) -> list[Domain]:
    """Those that the coordinator cuts at an interval."""
    return [domain for domain in _cut_here(model) if len(domain.declared) > 1]


def _cut_here(model: Model) -> Iterable[Domain]:
    for domain in model.domains.values():
        if domain.declared and not any(model.writers.get(table) for table in domain.declared):
            yield domain


def _each_commit(connection: Connection, model: Model, domain: Domain, now: float) -> Iterable[Fact]:
    (root,) = domain.declared
    line, last = ancestry(connection, root), _last(model, root)
    barrier = domain.newest or 0
    new = line[line.index(last) + 1 :] if last in line else line
    for parent, snapshot in zip([last, *new], new, strict=False):
        barrier += 1
        yield RootsCut(domain.name, barrier, (Made(root, snapshot, parent),), now)


def _last(model: Model, table: Table) -> str | None:
    done = model.done.get(table)
    return done.of[done.last].snapshot if done is not None and done.last is not None else None


def ancestry(connection: Connection, table: Table) -> list[str]:
    """The main ancestry of a table as far as events told of it, oldest first."""
    return snapshot_lines(connection, table)[0]


def snapshot_lines(connection: Connection, table: Table) -> tuple[list[str], list[str]]:
    """(main ancestry oldest first, all other known snapshots) of a table under any of its names."""
    rows = connection.execute(
        select(snapshots.c.snapshot_id, snapshots.c.parent_id, snapshots.c.committed_at, snapshots.c.at)
        .where(snapshots.c.dataset_id.in_(names_of(table)))
        .order_by(snapshots.c.committed_at, snapshots.c.at)
    ).all()
    ordered = sorted(rows, key=_when)
    parents = {row.snapshot_id: row.parent_id for row in ordered}
    if not any(parents.values()):
        return list(parents), []  # nobody told of parents: the order of commits is all there is
    return main_ancestry(parents, ordered[-1].snapshot_id if ordered else None)


def _when(row: Row[str, str | None, int | None, int]) -> tuple[int, int, str]:
    return (row[2] if row[2] is not None else row[3], row[3], row[0])


def names_of(table: Table) -> "Sequence[int]":
    """A query of the ids under which a table was named."""
    canonical = select(datasets.c.canonical_id).where(datasets.c.id == id_of("dataset", *table)).scalar_subquery()
    return select(datasets.c.id).where(datasets.c.canonical_id == canonical)  # type: ignore[return-value]
