"""A transaction's changes of the lineage graph, for processes that keep parts of it.

One row of `graph_news` names what may have changed, never how. Which jobs hang on a run is asked of
the database by whoever reads the row (`around`). What is taken away or named anew altogether raises
the store's epoch instead (store/sql/shared_settings.py).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, Select, select

from strandline.core.changes.compact import Rows
from strandline.core.changes.rows import (
    FacetSeen,
    JobRelation,
    JobSeen,
    RunLease,
    RunParent,
    RunQuery,
    RunSeen,
)
from strandline.core.openlineage.facets import DATASET
from strandline.store.lineage.run_state import run_owners
from strandline.store.schema.conditions import NOW
from strandline.store.schema.dataset_tables import datasets
from strandline.store.schema.relation_tables import job_relations
from strandline.store.schema.run_tables import run_parents, runs
from strandline.store.sql.id_lists import among_given
from strandline.store.sql.shared_settings import agree, agreed

MICRO = 1_000_000
KEPT_SECONDS = 120  # of the log: whoever has not looked for so long begins with nothing
NOWHERE = 2**62  # beyond every row
LEVELS = 5  # a DAG, its task, the application, its statements: and one to spare
WRITTEN, PRUNED = "graph_news", "graph_pruned"  # of store_settings
SETTINGS = (WRITTEN, PRUNED, "epoch", "recent_runs", "silent_seconds")
LIFECYCLE = "lifecycleStateChange"


class GraphNews(msgspec.Struct, array_like=True, frozen=True):
    """The ids that one transaction may have changed.

    mentioned: runs that only their children spoke of: they are silent later.
    touched: (job, direction, dataset).
    datasets: of which something else is shown.
    renamed: datasets whose group or place is another.
    """

    runs: list[int] = []
    mentioned: list[int] = []
    jobs: list[int] = []
    touched: list[tuple[int, int, int]] = []
    datasets: list[int] = []
    renamed: list[int] = []


_DECODER = msgspec.msgpack.Decoder(GraphNews)
_encode = msgspec.msgpack.Encoder().encode


def is_written(settings: Mapping[str, str]) -> bool:
    """Return whether writers write the log at all."""
    return settings.get(WRITTEN) == "1"


def turn_on(connection: Connection) -> None:
    """Let every transaction write the log from now on.

    The caller has kept writers out: none that began before is under way.
    """
    agree(connection, WRITTEN, "1")


def note_rows(connection: Connection, rows: Rows, owned: Collection[JobRelation]) -> None:
    """Note what the rows of an ingest transaction change.

    What the owners of its runs touched besides is noted, too.
    """
    changes = news_of(rows, owned)
    if changes != GraphNews():
        _write(connection, changes)


def note_jobs(connection: Connection, ids: Collection[int]) -> None:
    """Note that something else is shown of these jobs."""
    if is_written(agreed(connection)):
        _write(connection, GraphNews(jobs=sorted(ids)))


def note_renamed(connection: Connection, ids: Collection[int]) -> None:
    """Note that these datasets are in another group, or at another place."""
    if ids and is_written(agreed(connection)):
        _write(connection, GraphNews(renamed=sorted(ids)))


def news_of(rows: Rows, owned: Collection[JobRelation]) -> GraphNews:
    """Return the jobs that these rows may change."""
    heard, named = _heard(rows), {run_seen.id for run_seen in rows.of(RunSeen)}
    relations_changed = {relation[:3] for relation in (*rows.of(JobRelation), *owned)}
    lifecycles = {
        facet_seen.entity_id
        for facet_seen in rows.of(FacetSeen)
        if facet_seen.key == LIFECYCLE and facet_seen.kind % 10 == DATASET
    }
    return GraphNews(
        sorted(heard),
        sorted(named - heard),
        sorted(_jobs_in(rows, owned)),
        sorted(relations_changed),
        sorted(lifecycles),
    )


def _heard(rows: Rows) -> set[int]:
    """Return the runs that had an event, or of which something else is known than before."""
    heard = {run_seen.id for run_seen in rows.of(RunSeen) if run_seen.newest_at is not None}
    heard.update(run_parent.run_id for run_parent in rows.of(RunParent))
    heard.update(run_lease.run_id for run_lease in rows.of(RunLease))
    heard.update(run_query.run_id for run_query in rows.of(RunQuery))
    return heard


def _jobs_in(rows: Rows, owned: Iterable[JobRelation]) -> set[int]:
    jobs = {run_seen.job_id for run_seen in rows.of(RunSeen)}
    jobs.update(job_seen.id for job_seen in rows.of(JobSeen))
    jobs.update(relation.job_id for relation in owned)
    return jobs


def _write(connection: Connection, graph_news: GraphNews) -> None:
    connection.exec_driver_sql(_INSERT[connection.dialect.name], (_encode(graph_news),))


_INSERT = {
    "sqlite": f"INSERT INTO graph_news (transaction_id, at, body) VALUES (0, {NOW['sqlite']}, ?)",
    "postgresql": "INSERT INTO graph_news (transaction_id, at, body)"
    f" VALUES (pg_current_xact_id()::text::bigint, {NOW['postgresql']}, %s)",
}


def prune(connection: Connection) -> None:
    """Delete what is old, and note how far.

    A reader that has not seen it starts empty; clocks do not matter.
    """
    key = "id" if connection.dialect.name == "sqlite" else "transaction_id"
    old = f"at < {NOW[connection.dialect.name]} - {KEPT_SECONDS * MICRO}"
    gone = (
        connection.exec_driver_sql(f"DELETE FROM graph_news WHERE {old} RETURNING {key}")
        .scalars()
        .all()
    )
    if gone:
        newest = max(int(agreed(connection).get(PRUNED, "0")), *gone)
        agree(connection, PRUNED, str(newest))


class LogPlace(NamedTuple):
    """The position of a reader in the log.

    On PostgreSQL every row of a transaction before `horizon`, and the rows `seen` besides, each
    with its transaction; on SQLite every row up to the number `horizon`.
    """

    horizon: int = 0
    done: Mapping[int, int] = {}


@dataclass(frozen=True, slots=True)
class LogLook:
    """The result of a look at the log.

    The settings, the news by number, and the place from where to look next time.
    """

    settings: Mapping[str, str]
    news: Mapping[int, GraphNews]
    place: LogPlace

    def missed(self, since: LogPlace, pruned: str) -> bool:
        """Return whether news after a place may be gone that nobody showed.

        `pruned` is what the settings said at that place of how far news were deleted.
        """
        gone = self.settings.get(PRUNED, "")
        return gone != pruned and int(gone or "0") >= since.horizon


_SETTINGS = (
    "SELECT key, value, CAST(NULL AS BIGINT) AS id, CAST(NULL AS BIGINT) AS transaction_id, "
    "{nothing} AS body FROM store_settings WHERE key IN ({keys})"
)
_ROWS = "SELECT 'news', '', id, transaction_id, body FROM graph_news"
_LOOK = {
    "sqlite": f"{_SETTINGS} UNION ALL SELECT 'horizon', coalesce(max(id), 0), NULL, NULL, "
    f"NULL FROM graph_news UNION ALL {_ROWS} WHERE id > ?",
    "postgresql": f"{_SETTINGS} UNION ALL SELECT 'horizon', "
    "pg_snapshot_xmin(pg_current_snapshot())::text, NULL, NULL, "
    f"NULL UNION ALL {_ROWS} WHERE transaction_id >= %s AND id <> ALL (%s)",
}


def look(connection: Connection, since: LogPlace | None) -> LogLook:
    """Return the news committed since a place, in one statement; None: only the newest place."""
    is_sqlite = connection.dialect.name == "sqlite"
    horizon, done = (NOWHERE, {}) if since is None else since
    parameters = (horizon,) if is_sqlite else (horizon, list(done))
    settings: dict[str, str] = {}
    changes: dict[int, GraphNews] = {}
    transactions = dict(done)
    for key, value, id_, transaction_id, body in connection.exec_driver_sql(
        _statement(connection.dialect.name), parameters
    ):
        if id_ is None:
            settings[key] = value
            continue
        changes[id_] = _DECODER.decode(bytes(body))
        transactions[id_] = transaction_id
    horizon = int(settings.pop("horizon"))
    waiting = (
        {}
        if is_sqlite
        else {
            id_: transaction for id_, transaction in transactions.items() if transaction >= horizon
        }
    )
    return LogLook(settings, changes, LogPlace(horizon, waiting))


@cache
def _statement(dialect: str) -> str:
    keys = ", ".join(f"'{key}'" for key in SETTINGS)
    return _LOOK[dialect].format(
        keys=keys, nothing="NULL" if dialect == "sqlite" else "NULL::bytea"
    )


@dataclass(slots=True)
class Changed:
    """The ids of runs, jobs and datasets that news change, with all that depends on them.

    What jobs touched for the first time belongs to it.
    """

    runs: set[int] = field(default_factory=set)
    jobs: set[int] = field(default_factory=set)
    datasets: set[int] = field(default_factory=set)
    touched: set[tuple[int, int, int]] = field(default_factory=set)

    @property
    def ids(self) -> set[int]:
        """All ids."""
        return self.runs | self.jobs | self.datasets | {job_edge[2] for job_edge in self.touched}


def around(connection: Connection, changes: Iterable[GraphNews]) -> Changed:
    """Return what these news change: of a run its job, its owner's, and those of all runs above."""
    changed, renamed = Changed(), set[int]()
    waiting = set[int]()
    for change in changes:
        changed.runs.update(change.runs)
        waiting.update(change.mentioned)
        changed.jobs.update(change.jobs)
        changed.datasets.update(change.datasets, change.renamed)
        changed.touched.update(change.touched)
        renamed.update(change.renamed)
    if renamed:
        changed.datasets.update(connection.scalars(_groups(), {"ids": list(renamed)}))
        changed.jobs.update(connection.scalars(_jobs_at(), {"ids": list(renamed)}))
    _go_up(connection, changed, waiting | changed.runs)
    return changed


def _go_up(connection: Connection, changed: Changed, runs_asked: set[int]) -> None:
    done: set[int] = set()
    for _ in range(LEVELS):
        runs_asked -= done
        if not runs_asked:
            break
        done |= runs_asked
        higher: set[int] = set()
        for *of_run, parent, root in connection.execute(_above(), {"runs": list(runs_asked)}):
            changed.jobs.update(run for run in of_run if run is not None)
            higher.update(run for run in (parent, root) if run is not None)
        runs_asked = higher


@cache
def _above() -> Select[Any]:
    """Return the jobs that runs may show themselves under, and the runs above them."""
    joined = runs.outerjoin(run_parents, run_parents.c.run_id == runs.c.id)
    joined = joined.outerjoin(run_owners, run_owners.c.run_id == runs.c.id)
    names = (
        runs.c.job_id,
        runs.c.least_start,
        runs.c.least_later,
        run_owners.c.job_id,
        run_parents.c.parent_job_id,
    )
    higher = (run_parents.c.parent_run_id, run_parents.c.root_run_id)
    return select(*names, *higher).select_from(joined).where(among_given(runs.c.id, "runs"))


@cache
def _groups() -> Select[Any]:
    return select(datasets.c.canonical_id).where(among_given(datasets.c.id, "ids"))


@cache
def _jobs_at() -> Select[Any]:
    return (
        select(job_relations.c.job_id)
        .distinct()
        .where(among_given(job_relations.c.dataset_id, "ids"))
    )
