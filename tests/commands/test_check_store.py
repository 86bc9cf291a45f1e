"""`strandline check` finds every fault of docs/how-to/troubleshoot.md until it is repaired."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from kafka import KafkaAdminClient, TopicPartition
from sqlalchemy import Engine, insert, update

from fixtures.kafka import environ_of, make_topic, process, send, taken, values
from fixtures.waiting import wait_until
from strandline.cli import main
from strandline.store.ingest.take import Caches, Record, take
from strandline.store.schema.export_tables import export_parked, export_targets
from strandline.store.schema.received_tables import offsets
from worlds.builders import encode, event

MICRO = 1_000_000


class Checked:
    """A database that is checked; `faults` are the lines after `strandline: `."""

    def __init__(self, engine: Engine, capsys: pytest.CaptureFixture[str]) -> None:
        self.engine, self._capsys = engine, capsys
        self._url = engine.url.render_as_string(hide_password=False)

    def faults(self, *flags: str, **environ: str) -> list[str]:
        self._capsys.readouterr()
        code = main(["check", "--database-url", self._url, *flags], environ)
        lines = self._capsys.readouterr().err.splitlines()
        assert code == bool(lines)
        return [line.removeprefix("strandline: ") for line in lines]

    def take(self, bodies: Sequence[bytes], at: datetime, topic: str = "") -> None:
        """Store what was received at a moment."""
        records = [
            Record(body, at, topic, 0 if topic else -1, place) for place, body in enumerate(bodies)
        ]
        with self.engine.begin() as connection:
            take(connection, records, Caches())


@pytest.fixture
def checked(engine: Engine, capsys: pytest.CaptureFixture[str]) -> Checked:
    return Checked(engine, capsys)


@pytest.fixture
def postgres_checked(own_postgres_engine: Engine, capsys: pytest.CaptureFixture[str]) -> Checked:
    return Checked(own_postgres_engine, capsys)


def test_healthy_store_has_no_fault(checked: Checked) -> None:
    checked.take([encode(event("START"))], datetime.now(UTC))

    assert checked.faults("--retention-days", "3") == []


def test_check_waits_for_no_writer(checked: Checked) -> None:
    checked.take([encode(event("START"))], datetime.now(UTC))

    with checked.engine.begin() as connection:
        connection.execute(
            insert(export_targets).values(name="marquez", kinds="runs", failures=9, problem="503")
        )
        found = checked.faults()

    assert found == []  # it is not committed yet


def test_check_finds_events_older_than_retention(checked: Checked) -> None:
    checked.take([encode(event("COMPLETE"))], datetime.now(UTC) - timedelta(days=9))

    assert checked.faults() == checked.faults("--retention-days", "7") == []
    (fault,) = checked.faults("--retention-days", "5")
    assert fault.startswith(
        "database: the oldest event is 9 days old, and STRANDLINE_RETENTION_DAYS is 5: nothing expires"
    )


def test_check_finds_dead_letters_of_the_last_hour(checked: Checked) -> None:
    checked.take([b"no event"], datetime.now(UTC) - timedelta(hours=2), "topic")
    assert checked.faults() == []

    checked.take([b"no event either", b"nor this"], datetime.now(UTC), "topic")

    assert checked.faults() == [
        "database: 2 dead letters in the last hour: strandline replay --help"
    ]


def test_lost_runs_are_named_and_many_are_counted(checked: Checked) -> None:
    lease, at = (
        {"strandline_heartbeat": {"timeoutSeconds": 60}},
        datetime.now(UTC) - timedelta(hours=3),
    )
    starts = [
        event("START", run=number, job=f"job{number}", facets=lease) for number in range(1, 6)
    ]
    checked.take([encode(one | {"eventTime": at.isoformat()}) for one in starts], at)

    faults = checked.faults()

    assert [fault.partition(" is lost")[0].rstrip("0123456789") for fault in faults[:3]] == [
        "database: job job"
    ] * 3
    assert faults[3:] == ["database: 2 more like that"]


def test_check_finds_receipts_in_the_future(checked: Checked) -> None:
    checked.take([encode(event("COMPLETE"))], datetime.now(UTC) + timedelta(hours=5, seconds=30))

    assert checked.faults() == [
        "database: the newest event's time of receipt is 5 h ahead of this machine's clock: check the clocks of the broker and the servers"
    ]


@pytest.mark.postgres
def test_check_finds_a_database_clock_that_is_off(postgres_checked: Checked) -> None:
    name = postgres_checked.engine.url.database
    with postgres_checked.engine.begin() as connection:
        slow = "SELECT pg_catalog.clock_timestamp() - interval '1 hour'"
        connection.exec_driver_sql(
            f"CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql AS $${slow}$$"
        )
        assert postgres_checked.faults() == []
        connection.exec_driver_sql(f"ALTER DATABASE {name} SET search_path = public, pg_catalog")

    assert postgres_checked.faults() == [
        "database: PostgreSQL's clock is 3600 s behind this machine's"
    ]


@pytest.mark.postgres
def test_check_finds_exhausted_postgresql_connections(postgres_checked: Checked) -> None:
    url = postgres_checked.engine.url.set(drivername="postgresql").render_as_string(
        hide_password=False
    )
    opened: list[psycopg.Connection[Any]] = []
    try:
        with postgres_checked.engine.connect() as connection:
            free = connection.exec_driver_sql(FREE).scalar_one()
        opened += [psycopg.connect(url) for _ in range(free - 3)]
        wait_until(
            lambda: any("connections are in use" in fault for fault in postgres_checked.faults())
        )
    finally:
        for one in opened:
            one.close()
    wait_until(lambda: postgres_checked.faults() == [])


FREE = """SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
- (SELECT sum(numbackends) FROM pg_stat_database)::int"""


def test_check_finds_a_nearly_full_disk(
    own_sqlite_engine: Engine,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checked = Checked(own_sqlite_engine, capsys)
    assert checked.faults() == []

    monkeypatch.setattr("strandline.cli.store_findings.NEARLY_FULL", 1 << 60)

    (fault,) = checked.faults()
    assert fault.startswith(f"database: the folder {tmp_path} is nearly full: ")


def test_check_finds_failing_exports(checked: Checked) -> None:
    with checked.engine.begin() as connection:
        connection.execute(
            insert(export_targets).values(name="marquez", kinds="runs", failures=5, problem="503")
        )
    assert checked.faults() == []

    with checked.engine.begin() as connection:
        connection.execute(update(export_targets).values(failures=6))

    assert checked.faults() == ["database: the export to marquez has failed 6 times in a row: 503"]


def test_check_finds_parked_exports(checked: Checked) -> None:
    letter = {
        "about": "run r",
        "reason": "no",
        "change_kind": 0,
        "change_id": 1,
        "group_id": 0,
        "change_at": 0,
    }
    with checked.engine.begin() as connection:
        connection.execute(
            insert(export_parked).values(
                target="datahub", kind=0, entity_id=1, at=0, attempts=1, **letter
            )
        )

    (fault,) = checked.faults()
    assert fault.startswith("database: datahub has refused 1 changes, which are parked")


@pytest.mark.kafka
def test_check_finds_waiting_and_expired_records(checked: Checked, kafka: str) -> None:
    topic = f"checked-{uuid4().hex[:8]}"
    make_topic(kafka, topic, partitions=2)
    flags = (
        "--kafka-bootstrap-servers",
        kafka,
        "--kafka-topic",
        topic,
        "--kafka-group",
        f"group-{topic}",
    )
    where = f"topic {topic} at {kafka}"
    assert others(checked.faults(*flags)) == []
    send(kafka, topic, values(10), partitions=2)
    (fault,) = others(checked.faults(*flags))
    assert fault.startswith(f"{where}: 10 records wait, and ")
    assert f"group group-{topic}" in fault

    with process(environ_of(checked.engine, kafka, topic)):
        wait_until(lambda: taken(checked.engine) == 10)
        assert others(checked.faults(*flags)) == []
    send(kafka, topic, values(6, start=10), partitions=2)
    delete_before(kafka, TopicPartition(topic, 1), 7)
    with checked.engine.begin() as connection:
        connection.execute(
            update(offsets).where(offsets.c.partition_id == 0).values(next_offset=50)
        )

    found = others(checked.faults(*flags))
    assert (
        found[0]
        == f"{where}: partition 0 ends at 8, and was consumed up to 50: it is another topic"
    )
    assert found[1].startswith(
        f"{where}: 2 records of partition 1 were deleted before they were consumed"
    )


def others(faults: list[str]) -> list[str]:
    """Without what every topic of the suite has.

    Its broker takes no events of 32 MiB by default.
    """
    return [fault for fault in faults if "max.message.bytes" not in fault]


def delete_before(bootstrap: str, partition: TopicPartition, offset: int) -> None:
    """Delete records as a topic's retention does."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.delete_records({partition: offset})
    finally:
        admin.close()
