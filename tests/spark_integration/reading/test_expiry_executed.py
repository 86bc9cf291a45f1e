"""`strandline expire --execute` on a real Iceberg table: what it names goes, and who reads it goes on."""

from typing import Any

import pytest
from pyspark.errors import PySparkException

from strandline.cli import main

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]


@pytest.fixture
def copied(bank: Any, collector: str) -> Any:
    """A stream copies credits, started again for each of the barriers 1 to 4 (AvailableNow)."""
    from aligned_lake import name_the_place, tell

    for table in ("credits", "copy"):
        bank.table(table)
    reads = {}
    for barrier in (1, 2, 3, 4):
        reads[barrier] = {bank.name("credits"): bank.commit("credits", barrier, (barrier, 10))}
        bank.stream("credits", "copy")
    tell(bank, collector, "credits", "credits", "bank")
    tell(bank, collector, "copy", "copy", "bank", reads=reads)
    for table in ("credits", "copy"):
        name_the_place(bank, collector, table)
    return bank


def expire(bank: Any, database: str, *more: str) -> int:
    """Expire credits, with one barrier kept for rollback."""
    conf = bank.spark.conf
    uri = conf.get("spark.sql.catalog.lake.uri").replace("jdbc:sqlite:", "sqlite:///")
    properties = {"type": "sql", "uri": uri, "warehouse": conf.get("spark.sql.catalog.lake.warehouse")}
    named = [f"--catalog-property=lake.{key}={value}" for key, value in properties.items()]
    table = bank.name("credits")
    return main(["expire", table, "--database-url", database, "--keep-barriers", "1", *named, *more], {})


def test_what_is_named_goes_and_a_stream_that_began_long_ago_starts_again(
    copied: Any, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, third, fourth = [point.snapshot_id for point in copied.points("credits")]

    assert expire(copied, sqlite_url) == 0
    assert len(copied.points("credits")) == 4  # it only says so
    capsys.readouterr()
    assert expire(copied, sqlite_url, "--execute") == 0

    said = capsys.readouterr().out.splitlines()
    assert f"  kept {first}: the query of job copy began with it, and loads it when it starts again" in said
    assert said[-1].endswith(": 2 snapshots expired")
    left = copied.spark.sql(f"SELECT snapshot_id FROM {copied.name('credits')}.snapshots").collect()
    assert {str(row.snapshot_id) for row in left} == {first, fourth}
    tags = copied.spark.sql(f"SELECT name FROM {copied.name('credits')}.refs WHERE type = 'TAG'").collect()
    assert [row.name for row in tags] == [f"strandline-pin-{fourth}"]
    with pytest.raises(PySparkException, match="Cannot expire"):
        copied.spark.sql(
            f"CALL lake.system.expire_snapshots(table => '{copied.name('credits')}', snapshot_ids => array({fourth}))"
        )
    copied.commit("credits", 5, (5, 10))
    copied.stream("credits", "copy")
    assert copied.spark.table(copied.name("copy")).count() == 5
    assert {second, third}.isdisjoint(str(row.snapshot_id) for row in left)


def test_control_a_stream_whose_first_snapshot_is_gone_does_not_start(copied: Any) -> None:
    first = copied.points("credits")[0].snapshot_id
    copied.spark.sql(
        f"CALL lake.system.expire_snapshots(table => '{copied.name('credits')}', snapshot_ids => array({first}))"
    )
    copied.commit("credits", 5, (5, 10))

    with pytest.raises(Exception, match=r"(?i)snapshot|null"):
        copied.stream("credits", "copy")
