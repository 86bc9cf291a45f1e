"""Events for the collector's tests: a builder fills in what does not matter.

And what the store shows afterwards.
"""

import json
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Engine, select

from strandline.core.changes.facet_sets import FacetSet, SharedFacets
from strandline.core.openlineage.facets import Facet
from strandline.core.openlineage.names import Naming
from strandline.history.compare import ANY_KIND, TABLES
from strandline.store.ingest.take import Caches, Outcome, Record, take
from strandline.store.sql.compression import expand
from strandline.store.sql.facet_rows import any_value, facet_rows, newest_rows

Json = dict[str, Any]
NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
QUERY = "0f2c6d0e-0000-4000-8000-000000000001"


def at(seconds: float) -> str:
    """A time: so many seconds after noon."""
    return (NOON + timedelta(seconds=seconds)).isoformat()


def run_id(number: int) -> str:
    """A run's id."""
    return f"00000000-0000-4000-8000-{number:012d}"


def dataset(
    name: str, namespace: str = "hive://lake", own: Json | None = None, **facets: Json
) -> Json:
    """A dataset; `own` are its input or output facets."""
    return {
        "namespace": namespace,
        "name": name,
        "facets": facets,
        "inputFacets": own or {},
        "outputFacets": own or {},
    }


def symlink(name: str, namespace: str = "hive://lake", type_: str = "TABLE") -> Json:
    """A symlinks facet with one other name."""
    return {"identifiers": [{"namespace": namespace, "name": name, "type": type_}]}


def event(
    kind: str | None = "START",
    run: int | str = 1,
    job: str = "etl",
    seconds: float = 0,
    inputs: Sequence[Json] | None = (),
    outputs: Sequence[Json] | None = (),
    facets: Json | None = None,
    job_facets: Json | None = None,
    **more: Any,
) -> Json:
    """A RunEvent."""
    typed = {} if kind is None else {"eventType": kind}
    return {
        **typed,
        "eventTime": at(seconds),
        "producer": "https://example.com/tests",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": run_id(run) if isinstance(run, int) else run, "facets": facets or {}},
        "job": {"namespace": "tests", "name": job, "facets": job_facets or {}},
        "inputs": inputs if inputs is None else list(inputs),
        "outputs": outputs if outputs is None else list(outputs),
        **more,
    }


def parent(run: int, job: str, root: tuple[int, str] | None = None) -> Json:
    """A parent facet, with the root of the hierarchy if there is one."""
    run_and_job = _run_of_job(run, job)
    return {"parent": run_and_job | ({"root": _run_of_job(*root)} if root else {})}


def _run_of_job(run: int, job: str) -> Json:
    return {"run": {"runId": run_id(run)}, "job": {"namespace": "tests", "name": job}}


def job_event(job: str = "etl", seconds: float = 0, **more: Any) -> Json:
    """A JobEvent."""
    whole = event(None, job=job, seconds=seconds, **more)
    del whole["run"]
    return whole


def batch(
    barrier: int, run: int = 1, job: str = "stream", seconds: float | None = None, **more: Any
) -> Json:
    """A RUNNING event of a streaming query: one micro-batch that committed a barrier."""
    facets = {
        "strandline_heartbeat": {"timeoutSeconds": 60},
        "strandline_barrier": {
            "barrierId": barrier,
            "batchId": barrier - 1,
            "queryId": more.pop("query", QUERY),
            "engine": "spark",
            "phase": "committed",
            "committedAt": at(barrier if seconds is None else seconds),
            **more.pop("barrier_facet", {}),
        },
    }
    kind = {"jobType": {"processingType": "STREAMING", "integration": "SPARK"}}
    when = barrier if seconds is None else seconds
    return event("RUNNING", run, job, when, facets=facets, job_facets=kind, **more)


def snapshot(snapshot_id: str, **more: Any) -> Json:
    """An own snapshot facet, as input or output facets."""
    return {"strandline_snapshot": {"format": "iceberg", "snapshotId": snapshot_id, **more}}


def encode(one: Json) -> bytes:
    """The event as clients send it."""
    return json.dumps(one).encode()


def store(
    engine: Engine,
    events: Iterable[Json | bytes],
    received_at: datetime | None = None,
    naming: Naming | None = None,
    size: int = 1000,
    writer: Caches | None = None,
) -> list[Outcome]:
    """Take events in, `size` of them a transaction; `writer` is a new one unless it is given."""
    caches = writer or Caches(naming)
    now = received_at or datetime.now(UTC)
    records = [Record(one if isinstance(one, bytes) else encode(one), now) for one in events]
    outcomes: list[Outcome] = []
    for start in range(0, len(records), size):
        with engine.begin() as connection:
            outcomes += take(connection, records[start : start + size], caches)
        caches.commit()
    return outcomes


class SingleFacets(SharedFacets):
    """Stores each facet in a row of its own: the oracle of facets in sets."""

    def split(
        self, entity_id: int, kind: int, facets: Sequence[Facet]
    ) -> tuple[FacetSet | None, Sequence[Facet]]:
        """Put nothing into a set."""
        return None, facets


def store_plainly(
    engine: Engine,
    events: Iterable[Json | bytes],
    received_at: datetime | None = None,
    size: int = 1000,
) -> list[Outcome]:
    """Take events in as `store` does, each facet in a row of its own."""
    writer = Caches()
    writer.shared_facets = SingleFacets(writer.is_new)
    return store(engine, events, received_at, size=size, writer=writer)


def rows(source: Engine | Connection, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query, sorted."""
    if isinstance(source, Engine):
        with source.connect() as connection:
            return rows(connection, query)
    return sorted((tuple(row) for row in source.exec_driver_sql(query)), key=repr)


def counts(engine: Engine, *tables: str) -> dict[str, int]:
    """Count the rows of these tables."""
    return {table: rows(engine, f"SELECT count(*) FROM {table}")[0][0] for table in tables}


def folded_rows(connection: Connection) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of the tables that are folds over events, by table.

    Of facets the newest, in whichever way they are stored.
    """
    found = {table: rows(connection, f"SELECT * FROM {table}") for table in TABLES}
    return found | {"facets": newest_facets(connection)}


def newest_facets(connection: Connection) -> list[tuple[Any, ...]]:
    """The facets that count, unpacked, with the columns of their table."""
    held = newest_rows(connection.execute(select(facet_rows(any_value, ANY_KIND))))
    unpacked = [(*row[:5], expand(bytes(row.content)), row.deleted, row.problem) for row in held]
    return sorted(unpacked, key=repr)


def live(engine: Engine) -> dict[str, list[str]]:
    """Return the content of the proposals' tables of relations.

    Job -> tables, sources before "->", sinks after.
    """
    found: dict[str, list[str]] = {}
    for mark, view in (("< ", "source_job_lineage"), ("> ", "sink_job_lineage")):
        for job, database, table in rows(engine, f'SELECT job, database, "table" FROM {view}'):
            found.setdefault(job, []).append(
                f"{mark}{database}.{table}" if database else f"{mark}{table}"
            )
    return found


def history(engine: Engine) -> list[tuple[Any, ...]]:
    """Ended relations: job, direction, table, state, and for how many seconds after noon they were valid."""
    noon = int(NOON.timestamp())
    found = []
    for mark, view in (("<", "source_job_lineage_history"), (">", "sink_job_lineage_history")):
        query = f'SELECT job, "table", state, valid_from, valid_to FROM {view}'
        for job, table, state, since, until in rows(engine, query):
            found.append((job, mark, table, state, since / 10**6 - noon, until / 10**6 - noon))
    return found


def until_waiting(engine: Engine, work: Future[Any]) -> None:
    """Return once a transaction of this database waits for a lock on PostgreSQL, or the work is done."""
    waiting = """SELECT 1 FROM pg_stat_activity
                  WHERE datname = current_database() AND wait_event_type = 'Lock'"""
    while not rows(engine, waiting) and not work.done():
        time.sleep(0.01)
