"""Expiry keeps what a stream that is in no group starts again from, and what a batch run under way reads."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Engine, delete

from fixtures.versions_server.events import (
    EPOCH,
    LAKE,
    appended,
    barrier_facet,
    committed,
    dataset,
    ended,
    event,
    facet,
    started,
)
from fixtures.versions_server.server import JSON, Server, running
from strandline.core.access.granted import Access
from strandline.core.access.hidden import HIDDEN
from strandline.core.versions.expirable import Expiry, Pin
from strandline.core.versions.facts import Job
from strandline.store.schema.snapshot_tables import snapshot_uses
from strandline.store.versions.answers import expiry_of
from strandline.store.versions.outside_readers import Outside

A = (LAKE, "db.a")
DAY = 86_400
LEASE = {"strandline_heartbeat": facet({"timeoutSeconds": 10**8})}
STREAMING = {
    "jobType": facet({"processingType": "STREAMING", "integration": "SPARK", "jobType": "SQL_JOB"})
}
QUERY = "11111111-2222-3333-4444-555555555555"


@pytest.fixture
def lake(engine: Engine) -> Iterator[Server]:
    """A tracked job made a1 to a6 of db.a, and another took them all.

    One barrier is kept for rollback.
    """
    with running(engine, keep_barriers=1) as server:
        server.post(
            started("to_a", 0, [], ["db.a"], group="d"),
            started("m", 0, ["db.a"], ["db.m"], group="d"),
        )
        for b in range(1, 7):
            parents = {"db.a": f"a{b - 1}", "db.m": f"m{b - 1}"} if b > 1 else {}
            server.post(
                committed("to_a", 10 * b, b, {}, {"db.a": f"a{b}"}, group="d", parents=parents),
                committed(
                    "m",
                    10 * b + 1,
                    b,
                    {"db.a": f"a{b}"},
                    {"db.m": f"m{b}"},
                    group="d",
                    parents=parents,
                ),
            )
        yield server


def asked(server: Server) -> JSON:
    """Return the API's answer about db.a."""
    return server.get("/api/v2/expirable?namespace=iceberg%3A%2F%2Flake&name=db.a")


def expirable(server: Server) -> Sequence[str]:
    """Return the expirable snapshots of db.a."""
    found: Sequence[str] = asked(server)["expirable"]
    return found


def reasons(server: Server) -> str:
    """Return the reasons for which the oldest kept snapshot stays."""
    return "; ".join(asked(server)["kept"][0]["reasons"])


def took(job: str, at: float, number: int, snapshot: str) -> JSON:
    """A micro-batch of a stream that is in no group."""
    return committed(
        job, at, number, {"db.a": snapshot}, {f"db.{job}": f"{job}{number}"}, group=None
    )


def outside_of_all(server: Server, seconds: float, outside: Outside) -> Expiry:
    """Return the expirable snapshots some seconds into the story.

    Only readers outside of the model need the table.
    """
    with server.engine.connect() as connection:
        needed = [Pin("a6", "the strong version")]
        return expiry_of(connection, A, needed, EPOCH.timestamp() + seconds, outside=outside)


def placed(**more: Any) -> Outside:
    """The tracked jobs of the lake have a place."""
    jobs: Mapping[Job, float] = {("default", one): float("inf") for one in ("to_a", "m")}
    return Outside(jobs, **more)


def test_stopped_stream_pins_its_last_read_snapshot(lake: Server) -> None:
    lake.post(took("u", 22, 1, "a1"), took("u", 23, 2, "a2"), ended("u", 24))

    assert expirable(lake) == ["a1"]
    assert reasons(lake).startswith("job u, which is in no group, last read it (stopped ")


def test_running_stream_pins_its_last_read_snapshot(lake: Server) -> None:
    lake.post(event("START", "u", 1, run_facets=LEASE), took("u", 23, 2, "a3"))

    assert expirable(lake) == ["a1", "a2"]
    assert "job u, which is in no group, last read it (running)" in reasons(lake)


def test_run_without_reads_pins_everything_until_it_ends(lake: Server) -> None:
    again = started("u", 30, ["db.a"], ["db.u"], group=None, run=2)
    again["run"]["facets"] |= LEASE
    lake.post(took("u", 23, 2, "a2"), ended("u", 24), again)
    assert expirable(lake) == []
    assert "from which snapshot on is not known" in reasons(lake)

    lake.post(ended("u", 31, run=2))
    assert expirable(lake) == ["a1"]


def test_stream_without_known_snapshots_pins_everything(lake: Server) -> None:
    inputs = [dataset("db.a", "input")]
    lake.post(
        event("RUNNING", "u", 23, run_facets=barrier_facet(None, 1, 22, 23), inputs=inputs),
        ended("u", 24),
    )

    assert expirable(lake) == []
    assert reasons(lake).startswith("job u, which is in no group, reads it (stopped ")
    assert "from which snapshot on is not known" in reasons(lake)


def test_aborted_micro_batch_does_not_move_the_pin(lake: Server) -> None:
    aborted = took("u", 24, 2, "a5")
    aborted["run"]["facets"]["strandline_barrier"]["phase"] = "skipped"
    lake.post(took("u", 23, 1, "a2"), aborted, ended("u", 25, "FAIL"))

    assert expirable(lake) == ["a1"]


def stock(batch: int, kind: str, snapshot: str) -> JSON:
    """A micro-batch's own run, as the stock listener sends it, with a scan report of what it read."""
    details = {"jobDescription": f"orders<br/>id = {QUERY}<br/>runId = x<br/>batch = {batch}"}
    above = {"parent": {"run": {"runId": QUERY}, "job": {"namespace": "default", "name": "app"}}}
    read = {"namespace": LAKE, "name": "db.a", "facets": {}}
    report = {"inputFacets": {"icebergScanReport": facet({"snapshotId": int(snapshot)})}}
    facets = {"spark_jobDetails": facet(details)} | above
    found = event(
        kind, "app.batch", 20 + batch, run=batch, run_facets=facets, inputs=[read | report]
    )
    return found | {"job": found["job"] | {"facets": STREAMING}}


def test_micro_batches_of_the_stock_listener_count_once_they_are_complete(lake: Server) -> None:
    for b, parent in ((7, "a6"), (8, "7"), (9, "8")):
        before = {"db.a": parent, "db.m": f"m{b - 1}"}
        lake.post(
            committed("to_a", 10 * b, b, {}, {"db.a": f"{b}"}, group="d", parents=before),
            committed(
                "m", 10 * b + 1, b, {"db.a": f"{b}"}, {"db.m": f"m{b}"}, group="d", parents=before
            ),
        )
    lake.post(stock(1, "COMPLETE", "7"), stock(2, "FAIL", "8"))

    assert expirable(lake) == ["a1", "a2", "a3", "a4", "a5", "a6"]
    assert "which is in no group, last read it" in reasons(lake)


def test_running_batch_run_pins_what_it_reads(lake: Server) -> None:
    read = [dataset("db.a", "input", {"snapshotId": "a4"})]
    lake.post(event("START", "report", 50, run_facets=LEASE, inputs=read))
    assert expirable(lake) == ["a1", "a2", "a3"]
    assert reasons(lake) == "job report, which is in no group, reads it now"

    lake.post(event("COMPLETE", "report", 55, inputs=read))
    assert expirable(lake) == ["a1", "a2", "a3", "a4", "a5"]


def test_reads_under_another_table_name_count(lake: Server) -> None:
    symlink = {
        "symlinks": facet({"identifiers": [{"namespace": LAKE, "name": "db.a", "type": "TABLE"}]})
    }
    elsewhere = {"namespace": "s3://lake", "name": "db/a", "facets": symlink}
    one = took("u", 23, 1, "a2")
    one["inputs"][0] |= elsewhere
    lake.post(one, ended("u", 24))

    assert expirable(lake) == ["a1"]


def test_job_pins_nothing_once_its_recent_runs_skip_the_table(lake: Server) -> None:
    lake.post(took("u", 23, 1, "a2"), ended("u", 24))
    for run in range(2, 13):
        other = committed(
            "u", 30 + run, run, {"db.m": "m1"}, {"db.u": f"u{run}"}, group=None, run=run
        )
        lake.post(other, ended("u", 30 + run + 0.5, run=run))
        if run == 2:
            assert expirable(lake) == ["a1"]

    assert expirable(lake) == ["a1", "a2", "a3", "a4", "a5"]


def test_available_now_query_pins_its_start_snapshot(lake: Server) -> None:
    lake.post(committed("to_a", 70, 7, {}, {"db.a": "7"}, group="d", parents={"db.a": "a6"}))
    lake.post(committed("to_a", 80, 8, {}, {"db.a": "8"}, group="d", parents={"db.a": "7"}))
    lake.post(committed("m", 81, 8, {"db.a": "8"}, {"db.m": "m8"}, group="d"))
    one = took("u", 82, 1, "8")
    one["run"]["facets"]["strandline_barrier"]["sources"] = [
        {"initialOffset": '{"snapshot_id": 7}'}
    ]
    lake.post(one, ended("u", 83))

    assert "a6" in expirable(lake)
    assert "7" not in expirable(lake)


def test_retired_job_pins_nothing(lake: Server) -> None:
    lake.post(ended("m", 62))
    retired = Outside(
        {("default", "to_a"): float("inf"), ("default", "m"): datetime.now(UTC).timestamp()}
    )

    assert outside_of_all(lake, 70, retired).expirable == ["a1", "a2", "a3", "a4", "a5"]


def test_stream_dropped_by_retention_pins_nothing(lake: Server) -> None:
    lake.post(took("u", 23, 1, "a2"), ended("u", 24))
    with lake.engine.begin() as connection:
        connection.execute(delete(snapshot_uses).where(snapshot_uses.c.snapshot_id == "a2"))

    now = EPOCH.timestamp() + 10 * DAY
    assert outside_of_all(lake, 10 * DAY, placed(before=now - 30 * DAY)).expirable == []
    assert outside_of_all(lake, 10 * DAY, placed(before=now - 5 * DAY)).expirable == [
        "a1",
        "a2",
        "a3",
        "a4",
        "a5",
    ]


def test_job_names_hidden_from_the_key_are_not_shown(lake: Server) -> None:
    lake.post(took("u", 23, 1, "a2"), ended("u", 24))
    access = Access("reader", frozenset({"read"}), (LAKE,))

    said = [
        reason
        for of in outside_of_all(lake, 70, placed(access=access)).reasons.values()
        for reason in of
    ]

    assert f"job {HIDDEN}, which is in no group, last read it (stopped 46 s ago)" in said
    assert not any("job u" in reason for reason in said)


def test_a_job_of_another_table_pins_nothing(lake: Server) -> None:
    lake.post(
        appended("batch", 1, "db.other", "o1"),
        committed("w", 5, 1, {"db.other": "o1"}, {}, group=None),
    )

    assert expirable(lake) == ["a1", "a2", "a3", "a4", "a5"]
