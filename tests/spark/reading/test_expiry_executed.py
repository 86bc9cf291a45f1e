"""`strandline expire --execute` on a real Iceberg table while readers continue."""

import json
from typing import Any

import pytest

from strandline.cli import main
from strandline_spark.jvm.streaming_query import StreamHandle

pytestmark = pytest.mark.spark


@pytest.fixture
def copied(bank: Any, collector: str) -> Any:
    """A stream copies credits, started again for each of the barriers 1 to 4 (AvailableNow)."""
    from worlds.lake import name_the_place, report_commits

    for table in ("credits", "copy"):
        bank.table(table)
    reads = {}
    for barrier in (1, 2, 3, 4):
        reads[barrier] = {bank.name("credits"): bank.commit("credits", barrier, (barrier, 10))}
        bank.stream("credits", "copy")
    report_commits(bank, collector, "credits", "credits", "bank")
    report_commits(bank, collector, "copy", "copy", "bank", reads=reads)
    for table in ("credits", "copy"):
        name_the_place(bank, collector, table)
    return bank


def expire(bank: Any, database: str, *more: str) -> int:
    """Expire credits, with one barrier kept for rollback."""
    conf = bank.spark.conf
    uri = conf.get("spark.sql.catalog.lake.uri").replace("jdbc:sqlite:", "sqlite:///")
    properties = {
        "type": "sql",
        "uri": uri,
        "warehouse": conf.get("spark.sql.catalog.lake.warehouse"),
    }
    named = [f"--catalog-property=lake.{key}={value}" for key, value in properties.items()]
    table = bank.name("credits")
    return main(
        ["expire", table, "--database-url", database, "--keep-barriers", "1", *named, *more], {}
    )


@pytest.mark.slow
def test_named_snapshots_go_and_needed_ones_are_tagged(
    copied: Any, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, third, fourth = [point.snapshot_id for point in copied.points("credits")]
    assert main(["retire", "copy", "--even-if-running", "--database-url", sqlite_url], {}) == 0

    assert expire(copied, sqlite_url) == 0
    assert len(copied.points("credits")) == 4  # it only says so
    capsys.readouterr()
    assert expire(copied, sqlite_url, "--execute") == 0

    assert capsys.readouterr().out.splitlines()[-1].endswith(": 3 snapshots expired")
    left = copied.spark.sql(f"SELECT snapshot_id FROM {copied.name('credits')}.snapshots").collect()
    tags = copied.spark.sql(
        f"SELECT name FROM {copied.name('credits')}.refs WHERE type = 'TAG'"
    ).collect()
    assert [str(row.snapshot_id) for row in left] == [fourth]
    assert {first, second, third}.isdisjoint({fourth})
    assert [row.name for row in tags] == [f"strandline-pin-{fourth}"]
    copied.commit("credits", 5, (5, 10))
    with pytest.raises(Exception, match="Cannot expire"):
        copied.spark.sql(
            f"CALL lake.system.expire_snapshots(table => '{copied.name('credits')}', snapshot_ids => array({fourth}))"
        )


@pytest.mark.slow
def test_available_now_query_restarts_after_an_expiry(
    copied: Any, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first = copied.points("credits")[0].snapshot_id

    assert expire(copied, sqlite_url) == 0
    said = capsys.readouterr().out.splitlines()
    assert expire(copied, sqlite_url, "--execute") == 0

    began = "the query of job copy began with it, and reads from there on when it starts again"
    assert any(line.startswith(f"  pinned {first}: ") and began in line for line in said)
    copied.commit("credits", 5, (5, 10))
    copied.stream("credits", "copy")
    assert copied.spark.table(copied.name("copy")).count() == 5


@pytest.mark.slow
def test_control_query_does_not_restart_without_its_history(copied: Any) -> None:
    second = copied.points("credits")[1].snapshot_id
    copied.spark.sql(
        f"CALL lake.system.expire_snapshots(table => '{copied.name('credits')}', snapshot_ids => array({second}))"
    )
    copied.commit("credits", 5, (5, 10))

    with pytest.raises(Exception, match=r"(?i)snapshot"):
        copied.stream("credits", "copy")


def test_emitter_reports_the_start_offset_of_an_available_now_query(bank: Any) -> None:
    for table in ("credits", "copy"):
        bank.table(table)
    first = bank.commit("credits", 1, (1, 10))
    writer = bank.spark.readStream.table(bank.name("credits")).writeStream.trigger(
        availableNow=True
    )
    query = writer.option("checkpointLocation", str(bank.folder / "copy")).toTable(
        bank.name("copy")
    )
    handle = StreamHandle(query._jsq.streamingQuery())
    assert query.awaitTermination(600)

    (began,) = handle.initial_offsets(1)
    assert began is not None
    assert str(json.loads(began)["snapshot_id"]) == first
