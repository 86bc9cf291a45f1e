"""Import from Marquez through its API: everything once, with its own times."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from fixtures.contract_servers.server import Asked, ContractServer, Fault
from fixtures.servers import client_of, serving
from strandline.cli import main
from strandline.demo.replay import records
from strandline.errors import ImportFaultError
from strandline.exporters.http_client import Client
from strandline.imports.marquez import MarquezReader
from strandline.imports.taking import take_marquez
from strandline.store.ingest.transactions import Batches
from strandline.store.sql.engine import make_engine, migrate
from worlds.builders import dataset, event, job_event, rows, run_id, store

BANK = Path(__file__).resolve().parents[3] / "examples" / "recorded" / "bank.jsonl.gz"
COMPARED = (
    "SELECT namespace, name, first_at, newest_at FROM jobs",
    "SELECT run_id, state, started_at, ended_at FROM runs WHERE newest_at IS NOT NULL AND design = 0",
    "SELECT namespace, name, catalog, database_name, table_name FROM datasets",
    "SELECT run_id, direction, dataset_id, first_at, newest_at FROM run_relations",
    "SELECT run_id, sink_id, rule, set_hash FROM run_edges",
    "SELECT dataset_id, snapshot_id, barrier FROM snapshots",
    "SELECT job_id, barrier, query_id FROM job_barriers",
)


def reader(url: str) -> MarquezReader:
    return MarquezReader(Client(url, most_bytes=64 << 20), lambda what, done, total: None)


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Engine]:
    engine = make_engine(f"sqlite:///{tmp_path / 'other.db'}")
    migrate(engine)
    yield engine
    engine.dispose()


def test_imported_bank_equals_the_original_and_repeating_changes_nothing(
    sqlite_engine: Engine, other: Engine
) -> None:
    batches = Batches(sqlite_engine)
    batches.write(list(records(BANK, datetime.now(UTC))))
    with serving(sqlite_engine) as address:
        first = take_marquez(other, reader(address))
        before = [rows(other, query) for query in (*COMPARED, "SELECT * FROM facets")]
        again = take_marquez(other, reader(address))

    assert first["stored"] > 100
    assert first["dead"] == again["dead"] == 0
    assert again["stored"] == 0
    assert [rows(other, query) for query in (*COMPARED, "SELECT * FROM facets")] == before
    for query in COMPARED:
        assert rows(other, query) == rows(sqlite_engine, query), query


def test_jobs_without_runs_and_tags_come_too(sqlite_engine: Engine, other: Engine) -> None:
    with serving(sqlite_engine) as address, client_of(address, "/api/v1") as marquez:
        store(
            sqlite_engine,
            [event("COMPLETE", 1, "etl", inputs=[dataset("db.a")], outputs=[dataset("db.b")])],
        )
        marquez.put("/tags/PII", json={"description": "about people"}).raise_for_status()
        marquez.post(f"/namespaces/{'hive:%2F%2Flake'}/datasets/db.b/tags/PII").raise_for_status()
        designed = job_event("sum", 2, inputs=[dataset("orders")], outputs=[dataset("sums")])
        designed["job"]["facets"] = {"documentation": {"description": "adds"}}
        store(sqlite_engine, [designed])
        take_marquez(other, reader(address))
    with serving(other) as address, client_of(address, "/api/v1") as marquez:
        tagged = marquez.get("/namespaces/hive:%2F%2Flake/datasets/db.b").json()
        job = marquez.get("/namespaces/tests/jobs/sum").json()

    assert tagged["tags"] == ["PII"]
    assert (job["description"], [one["name"] for one in job["outputs"]]) == ("adds", ["sums"])


def page(key: str, *found: dict[str, Any]) -> tuple[int, Any]:
    """Return a list as Marquez answers it."""
    return 200, {key: list(found), "totalCount": len(found)}


class Forgetful(ContractServer):
    """A Marquez that has dropped its events and kept what it made of them."""

    def answer(self, asked: Asked) -> tuple[int, Any]:
        path = asked.path.partition("?")[0]
        version = {
            "datasetVersionId": {"namespace": "ns", "name": "a", "version": "v1"},
            "facets": {},
        }
        run: dict[str, Any] = {
            "id": run_id(1),
            "state": "FAILED",
            "createdAt": "2025-01-01T00:00:00Z",
            "facets": {},
        }
        run |= {
            "startedAt": "2025-01-01T00:00:01Z",
            "endedAt": "2025-01-01T00:00:09Z",
            "inputDatasetVersions": [version],
        }
        job: dict[str, Any] = {
            "namespace": "ns",
            "name": "old",
            "type": "BATCH",
            "createdAt": "2025-01-01T00:00:00Z",
            "tags": ["GOLD"],
        }
        ends = {
            "inputs": [{"namespace": "ns", "name": "a"}],
            "outputs": [{"namespace": "ns", "name": "b"}],
        }
        column = {"name": "id", "type": "INT", "tags": ["KEY"], "description": "which"}
        table: dict[str, Any] = {
            "namespace": "ns",
            "name": "a",
            "createdAt": "2025-01-01T00:00:00Z",
            "fields": [column],
            "tags": [],
        }
        return {
            "/api/v1/events/lineage": page("events"),
            "/api/v1/namespaces": page("namespaces", {"name": "ns"}),
            "/api/v1/namespaces/ns/datasets": page("datasets", table),
            "/api/v1/namespaces/ns/jobs": page("jobs", job | ends),
            "/api/v1/namespaces/ns/jobs/old/runs": page("runs", run),
        }.get(path, (404, {}))


def test_jobs_and_runs_without_events_keep_their_times(engine: Engine) -> None:
    server = Forgetful()
    counts = take_marquez(engine, reader(server.url))
    again = take_marquez(engine, reader(server.url))
    server.close()
    states = rows(engine, "SELECT run_id, state, ended_at - started_at FROM runs WHERE design = 0")
    touched = rows(
        engine,
        "SELECT direction, name FROM run_relations JOIN datasets ON datasets.id = dataset_id",
    )

    assert (counts["dead"], again["stored"]) == (0, 0)
    assert states == [(run_id(1), 5, 8_000_000)]
    assert touched == [(0, "a"), (1, "b")]
    long_ago = int(datetime(2025, 6, 1, tzinfo=UTC).timestamp() * 10**6)
    assert all(at < long_ago for (at,) in rows(engine, "SELECT received_at FROM raw_events"))


def test_interrupted_import_resumes(engine: Engine) -> None:
    events = [
        event("COMPLETE", number, "etl", number, outputs=[dataset("db.b")])
        for number in range(1, 1201)
    ]

    class Long(ContractServer):
        """A Marquez with many events."""

        def answer(self, asked: Asked) -> tuple[int, Any]:
            """Pages of events, nothing else."""
            if "/events/lineage" not in asked.path:
                return page("namespaces")
            start = int(asked.path.partition("offset=")[2].partition("&")[0])
            return 200, {"events": events[start : start + 100], "totalCount": len(events)}

    server = Long()
    server.fault = lambda asked: Fault(503) if "offset=700" in asked.path else None
    with pytest.raises(ImportFaultError, match="answers 503"):
        take_marquez(engine, reader(server.url))
    part = rows(engine, "SELECT count(*) FROM event_keys")
    server.fault = lambda _: None
    counts = take_marquez(engine, reader(server.url))
    server.close()

    assert part == [(500,)]
    assert (counts["stored"], counts["duplicate"]) == (700, 0)
    assert rows(engine, "SELECT count(*) FROM event_keys") == [(1200,)]


def test_address_without_a_marquez_is_reported(
    sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ContractServer()
    code = main(
        ["import", "--from", "marquez", server.url], {"STRANDLINE_DATABASE_URL": sqlite_url}
    )
    server.close()

    assert code == 1
    assert "has no events: is it a Marquez?" in capsys.readouterr().err
