"""The log of facts, written under one lock and read in one order, and the news that becomes facts.

`mark` runs inside the ingest transaction and only says where to look. So a fact is seen by the
first server that looks after the commit, once, whatever the order in which transactions end.
"""

from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import (
    CompoundSelect,
    Connection,
    Delete,
    Select,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    union_all,
    update,
)

from strandline.core.changes.compact import Rows
from strandline.core.changes.rows import (
    BarrierSeen,
    DatasetAlias,
    RelationSeen,
    RunSeen,
    SnapshotSeen,
    SnapshotUsed,
)
from strandline.core.changes.snapshot_claims import IN_MAIN
from strandline.core.identity import RENAMED
from strandline.core.openlineage.names import id_of
from strandline.core.versions import facts as barriers
from strandline.core.versions.facts import Fact, Job, NameReused, Table, TableRenamed
from strandline.store.lineage.snapshot_reads import SAME_ROWS
from strandline.store.schema.dataset_tables import dataset_aliases, datasets
from strandline.store.schema.received_tables import VERSION_FACTS, numbers, store_settings
from strandline.store.schema.run_tables import job_groups, runs
from strandline.store.schema.snapshot_tables import job_barriers, snapshot_uses, snapshots
from strandline.store.schema.version_tables import (
    group_jobs,
    group_roots,
    version_facts,
    version_news,
)
from strandline.store.sql.id_lists import among, among_given
from strandline.store.sql.shared_settings import agree, agreed
from strandline.store.sql.upsert import insert_values, values_of
from strandline.store.versions.ingest_streams import join_groups
from strandline.store.versions.tables_behind import behind_new_edges, runs_since

RUN, ROOT, RENAME = 0, 1, 2
LOG = "fact_log"  # of store_settings
AT_ONCE = 2000
KINDS: dict[str, type[Fact]] = {
    kind.__name__: kind
    for kind in (
        barriers.GroupDeclared,
        barriers.RootsCut,
        barriers.JobRegistered,
        barriers.RunStarted,
        barriers.BarrierCommitted,
        barriers.RunEnded,
        barriers.JobRetired,
        barriers.JobPlaced,
        barriers.RolledBack,
        barriers.TableFound,
        barriers.TableRenamed,
        barriers.NameReused,
    )
}
DECODERS = {name: msgspec.json.Decoder(kind) for name, kind in KINDS.items()}


class VersionNews(NamedTuple):
    """A place to look at.

    A run with one of its barriers (0: the run itself), a base table, or a renamed dataset.
    """

    id: int
    kind: int
    entity_id: int
    barrier: int


def mark(connection: Connection, rows: Rows, *, has_renames: bool) -> None:
    """Note which runs, barriers, base tables and renames the rows of an ingest transaction touch.

    has_renames: whether the store has renamed datasets.
    """
    marks = _marks(connection, rows, has_renames=has_renames)
    if marks:
        columns = ("kind", "entity_id", "barrier")
        values = insert_values(version_news, columns, connection.dialect.name)
        statement = f"INSERT INTO version_news ({', '.join(columns)}) {values}"
        connection.exec_driver_sql(
            statement, values_of(connection, version_news, columns, sorted(marks))
        )


def _marks(connection: Connection, rows: Rows, *, has_renames: bool) -> set[tuple[int, int, int]]:
    """(kind, entity, barrier) of what the rows touch."""
    barriers_stated = _barriers_stated(rows)
    tables = _committed_to(rows)
    job_of = {run.id: run.job_id for run in rows.of(RunSeen)}
    named = {job for _, _, job in barriers_stated if job is not None}
    jobs, roots = _followed(connection, {*job_of.values(), *named}, tables)
    marks = set[tuple[int, int, int]]()
    for job in join_groups(connection, rows, jobs):
        marks |= {(RUN, run, barrier) for run, barrier in _all_of(connection, job)}
    followed = [run for run in rows.of(RunSeen) if run.job_id in jobs]
    marks |= {(RUN, run.id, 0) for run in followed if run.announced or run.first_at}
    marks |= {
        (RUN, run, barrier)
        for run, barrier, job in barriers_stated
        if job in jobs or job_of.get(run, job) in jobs
    }
    marks |= _written_on(connection, rows, {run for run, _, _ in barriers_stated})
    marks |= _read_before(connection, rows)
    marks |= _behind_new_edges(connection, rows)
    renamed = {alias.dataset_id for alias in rows.of(DatasetAlias) if alias.type == RENAMED}
    if has_renames:
        renamed |= _renamed(connection, {snapshot.dataset_id for snapshot in rows.of(SnapshotSeen)})
    return marks | {(ROOT, root, 0) for root in roots} | {(RENAME, id_, 0) for id_ in renamed}


def _renamed(connection: Connection, tables: set[int]) -> set[int]:
    """Return the datasets of renames from or to one of these names, or a name they are called."""
    if not tables:
        return set()
    links, called = dataset_aliases.c, dataset_aliases.alias("called")
    names = select(called.c.alias_id).where(among(called.c.dataset_id, tables))
    used = or_(
        among(links.dataset_id, tables), among(links.alias_id, tables), links.alias_id.in_(names)
    )
    return set(connection.scalars(select(links.dataset_id).where(links.type == RENAMED, used)))


def _behind_new_edges(connection: Connection, rows: Rows) -> set[tuple[int, int, int]]:
    """Mark the batch runs of groups whose inputs gained an upstream edge after they ended."""
    related = rows.of(RelationSeen)
    if not related:
        return set()
    completed = runs_since(connection, min(relation.first_at for relation in related))
    if not completed:
        return set()
    runs = {relation.run_id for relation in related}
    return {(RUN, run, 0) for run in behind_new_edges(connection, runs, completed)}


def _written_on(
    connection: Connection, rows: Rows, micro_batches: set[int]
) -> set[tuple[int, int, int]]:
    """Mark the micro-batches that were written on a correction, which was told of after them."""
    made = {
        (snapshot.dataset_id, snapshot.snapshot_id)
        for snapshot in rows.of(SnapshotSeen)
        if snapshot.run_id and snapshot.run_id not in micro_batches
    }
    if not made:
        return set()
    tables, parents = map(list, zip(*made, strict=True))
    found = connection.execute(_micro_batches_on(), {"tables": tables, "parents": parents})
    return {
        (RUN, row.run_id, row.barrier) for row in found if (row.dataset_id, row.parent_id) in made
    }


def _read_before(connection: Connection, rows: Rows) -> set[tuple[int, int, int]]:
    """Mark the runs that read a compacted snapshot before it was told whose rows it shows."""
    snapshots = {
        (snapshot.dataset_id, snapshot.snapshot_id)
        for snapshot in rows.of(SnapshotSeen)
        if snapshot.operation in SAME_ROWS
    }
    if not snapshots:
        return set()
    tables, ids = map(list, zip(*snapshots, strict=True))
    reads = connection.execute(_reads_of_snapshots(), {"tables": tables, "ids": ids})
    return {
        (RUN, read.run_id, read.barrier)
        for read in reads
        if (read.dataset_id, read.snapshot_id) in snapshots
    }


@cache
def _reads_of_snapshots() -> Select[Any]:
    uses = snapshot_uses.c
    return select(uses.run_id, uses.barrier, uses.dataset_id, uses.snapshot_id).where(
        among_given(uses.dataset_id, "tables"),
        among_given(uses.snapshot_id, "ids"),
        uses.direction == 0,
    )


@cache
def _micro_batches_on() -> Select[Any]:
    made = (snapshot_uses.c.dataset_id == snapshots.c.dataset_id) & (
        snapshot_uses.c.snapshot_id == snapshots.c.snapshot_id
    )
    return (
        select(snapshot_uses.c.run_id, snapshot_uses.c.barrier)
        .add_columns(snapshots.c.dataset_id, snapshots.c.parent_id)
        .select_from(snapshots.join(snapshot_uses, made))
        .where(
            among_given(snapshots.c.dataset_id, "tables"),
            among_given(snapshots.c.parent_id, "parents"),
            snapshot_uses.c.direction == 1,
            snapshot_uses.c.barrier > 0,
        )
    )


def _committed_to(rows: Rows) -> set[int]:
    """The tables of which snapshots are told that somebody made, or that main has now."""
    return {
        snapshot_seen.dataset_id
        for snapshot_seen in rows.of(SnapshotSeen)
        if snapshot_seen.run_id or snapshot_seen.aside == IN_MAIN
    }


def _barriers_stated(rows: Rows) -> list[tuple[int, int, int | None]]:
    """(run, barrier, job) of what states a barrier; a snapshot does so without the job."""
    stated: list[tuple[int, int, int | None]] = [
        (barrier_seen.run_id, barrier_seen.barrier, barrier_seen.job_id)
        for barrier_seen in rows.of(BarrierSeen)
    ]
    return stated + [
        (snapshot_used.run_id, snapshot_used.barrier, None)
        for snapshot_used in rows.of(SnapshotUsed)
        if snapshot_used.barrier
    ]


def _followed(
    connection: Connection, jobs: set[int], tables: set[int]
) -> tuple[set[int], set[int]]:
    """Return the jobs that are tracked or whose barriers name a group, and the base tables.

    Others are most, and would be looked at for nothing. START and end of a run may carry no facet
    that tells of a group.
    """
    if not jobs and not tables:
        return set(), set()
    jobs_followed = connection.execute(
        _followed_ids(), {"jobs": sorted(jobs), "tables": sorted(tables)}
    ).all()
    return {row.id for row in jobs_followed if row.kind == RUN}, {
        row.id for row in jobs_followed if row.kind == ROOT
    }


@cache
def _followed_ids() -> CompoundSelect[Any]:
    run, root, id_ = (
        literal(RUN).label("kind"),
        literal(ROOT).label("kind"),
        group_jobs.c.job_id.label("id"),
    )
    return union_all(
        select(run, id_).where(among_given(group_jobs.c.job_id, "jobs")),
        select(run, job_groups.c.job_id).where(
            among_given(job_groups.c.job_id, "jobs"), job_groups.c.group_name != ""
        ),
        select(root, group_roots.c.dataset_id).where(
            among_given(group_roots.c.dataset_id, "tables")
        ),
    )


def head(connection: Connection) -> tuple[int, bool, str]:
    """The number of the last fact, whether news wait, and which log it is: one cheap question."""
    row = connection.execute(_head()).one()
    return row.seq, bool(row.news), row.log or ""


@cache
def _head() -> Select[int, bool, str | None]:
    log = select(store_settings.c.value).where(store_settings.c.key == LOG).scalar_subquery()
    newest = exists(select(version_news.c.id))
    head = select(numbers.c.seq, newest.label("news"), log.label("log"))
    return head.where(numbers.c.name == VERSION_FACTS)


def log_of(connection: Connection) -> str:
    """Return which log it is: another one when facts were taken out of it."""
    return agreed(connection).get(LOG, "")


def begin_anew(connection: Connection) -> None:
    """Facts were taken out, or are others: whoever folded them folds the log from its beginning."""
    agree(connection, LOG, str(int(log_of(connection) or "0") + 1))


class Waiting(NamedTuple):
    """Facts after a number: how many, and when the first was written.

    The last value is the news that are no facts yet.
    """

    facts: int
    oldest_at: int | None
    news: int


def waiting_after(connection: Connection, seq: int) -> Waiting:
    """Return the facts after `seq`, for a follower that has folded all before."""
    later = select(func.count(), func.min(version_facts.c.at)).where(version_facts.c.seq > seq)
    facts, oldest_at = connection.execute(later).one()
    return Waiting(
        facts,
        oldest_at,
        connection.execute(select(func.count()).select_from(version_news)).scalar_one(),
    )


def has_news(connection: Connection) -> bool:
    """Return whether anything waits to become facts."""
    return bool(connection.scalar(select(exists(select(version_news.c.id)))))


def lock_head(connection: Connection) -> int:
    """Take the lock that gives out numbers, and return the number of the last fact.

    SQLite's writers have one lock anyway.
    """
    head = select(numbers.c.seq).where(numbers.c.name == VERSION_FACTS)
    return int(connection.execute(head.with_for_update()).scalar_one())


def append(connection: Connection, seq: int, facts: Sequence[Fact], at: int) -> int:
    """Add facts after `seq`, under the lock; the number of the last one."""
    if not facts:
        return seq
    rows = [
        {
            "seq": seq + place,
            "at": at,
            "kind": type(fact).__name__,
            "body": msgspec.json.encode(fact),
        }
        for place, fact in enumerate(facts, 1)
    ]
    connection.execute(insert(version_facts), rows)
    head = update(numbers).where(numbers.c.name == VERSION_FACTS)
    connection.execute(head.values(seq=seq + len(rows)))
    return seq + len(rows)


def facts_after(connection: Connection, seq: int) -> Iterator[tuple[int, Fact]]:
    """The facts after `seq`, in order."""
    while page := connection.execute(_facts(), {"after": seq}).all():
        for number, kind, body in page:
            yield number, DECODERS[kind].decode(body)
        seq = page[-1].seq


def name_facts(connection: Connection) -> list[tuple[int, TableRenamed | NameReused]]:
    """Return the log's facts about names of tables, with their numbers."""
    log, kinds = version_facts.c, (TableRenamed.__name__, NameReused.__name__)
    query = select(log.seq, log.kind, log.body).where(log.kind.in_(kinds)).order_by(log.seq)
    facts = [(seq, DECODERS[kind].decode(body)) for seq, kind, body in connection.execute(query)]
    return [(seq, fact) for seq, fact in facts if isinstance(fact, TableRenamed | NameReused)]


@cache
def _facts() -> Select[int, str, bytes]:
    log = version_facts.c
    return (
        select(log.seq, log.kind, log.body)
        .where(log.seq > bindparam("after"))
        .order_by(log.seq)
        .limit(AT_ONCE)
    )


def take_news(connection: Connection) -> list[VersionNews]:
    """Remove and return the oldest news.

    The caller holds the lock, in the transaction that makes facts of them.
    """
    rows = connection.execute(select(version_news).order_by(version_news.c.id).limit(AT_ONCE))
    updates = [VersionNews(row.id, row.kind, row.entity_id, row.barrier) for row in rows]
    if updates:
        connection.execute(_taken(), {"ids": [update.id for update in updates]})
    return updates


@cache
def _taken() -> Delete:
    return delete(version_news).where(among_given(version_news.c.id, "ids"))


def manage(connection: Connection, jobs: Collection[Job]) -> None:
    """Look at every run of these jobs from now on.

    For new jobs, look at all that is known.
    """
    ids = {id_of("job", *job) for job in jobs}
    if not ids:
        return
    ids -= set(connection.scalars(select(group_jobs.c.job_id).where(group_jobs.c.job_id.in_(ids))))
    for job in sorted(ids):
        connection.execute(insert(group_jobs).values(job_id=job))
        _mark_all(connection, job)


def _mark_all(connection: Connection, job: int) -> None:
    marks = _all_of(connection, job)
    if marks:
        values = [{"kind": RUN, "entity_id": run, "barrier": barrier} for run, barrier in marks]
        connection.execute(insert(version_news), values)


def _all_of(connection: Connection, job: int) -> list[tuple[int, int]]:
    """Return the runs of a job with 0, and with each of their barriers."""
    started = connection.execute(
        select(runs.c.id).where(runs.c.job_id == job, runs.c.started_at.is_not(None))
    )
    barriers_ = select(job_barriers.c.run_id, job_barriers.c.barrier).where(
        job_barriers.c.job_id == job
    )
    known = [(row.run_id, row.barrier) for row in connection.execute(barriers_)]
    return [*((row.id, 0) for row in started), *known]


def mark_roots(connection: Connection, group: str, roots: Sequence[Table]) -> None:
    """Let the snapshots of a group's base tables become barriers.

    Known snapshots come first.
    """
    for root in roots:
        ids = set(
            connection.scalars(
                select(datasets.c.id).where(datasets.c.canonical_id == id_of("dataset", *root))
            )
        )
        for dataset in sorted(ids | {id_of("dataset", *root)}):
            connection.execute(delete(group_roots).where(group_roots.c.dataset_id == dataset))
            connection.execute(insert(group_roots).values(dataset_id=dataset, group_name=group))
            connection.execute(insert(version_news).values(kind=ROOT, entity_id=dataset, barrier=0))
