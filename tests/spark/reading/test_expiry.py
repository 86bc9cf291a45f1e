"""Real Iceberg snapshots expire while a reader holds a lease and a job is stopped."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import orjson
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from strandline_spark import aligned_stream, read_consistent
from strandline_spark.consistency.table_identity import Identities

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TABLES = ("credits", "debits", "movements")


@pytest.fixture
def collector(bank: Any, sqlite_url: str) -> Iterator[str]:
    """A collector that keeps one barrier for rollback."""
    from fixtures.servers import serving
    from strandline.settings import Settings
    from strandline.store.sql.engine import make_engine

    engine = make_engine(sqlite_url)
    with serving(engine, Settings(port=0, keep_barriers=1)) as url:
        bank.spark.conf.set("spark.strandline.collector.url", url)
        yield url
        bank.spark.conf.unset("spark.strandline.collector.url")
    engine.dispose()


@pytest.fixture
def moving(bank: Any, collector: str) -> Any:
    """Barriers 1 to 3 went through credits and debits to movements, whose job has stopped."""
    for table in TABLES:
        bank.table(table)
    both(bank, collector, 1, 2, 3)
    work(bank, collector)
    return bank


def both(bank: Any, url: str, *barriers: int) -> None:
    """Commit a transfer at each barrier into credits and debits, and tell of it."""
    from worlds.lake import report_commits

    for barrier in barriers:
        for table in TABLES[:2]:
            bank.commit(table, barrier, (barrier, 10 * barrier))
    for table in TABLES[:2]:
        report_commits(bank, url, f"bank_{table}", table, "bank")


def movements(inputs: Mapping[str, DataFrame], barrier: int) -> DataFrame:
    """New credits, and new debits with a minus."""
    return inputs["credits"].unionAll(inputs["debits"].selectExpr("account", "-amount"))


def work(bank: Any, url: str) -> None:
    """Let the job of movements take all barriers that are there, then stop."""
    from worlds.lake import report_commits

    sources, place = [bank.name(table) for table in TABLES[:2]], str(bank.folder / "ck")
    query = aligned_stream(
        bank.spark, sources, bank.name("movements"), movements,
        checkpoint=place, group="bank", changes=["credits", "debits"], mode="append", available_now=True, timeout=30,
    )  # fmt: skip
    try:
        assert query.awaitTermination(600)
    finally:
        query.stop()
    report_commits(bank, url, "bank_movements", "movements", "bank")


def expire(bank: Any, url: str) -> dict[str, int]:
    """Expire on Iceberg what the collector says nobody needs; gives the number by table."""
    found = {}
    for table in TABLES:
        identity = Identities(bank.spark).of(bank.name(table))
        query = urlencode({"namespace": identity.namespace, "name": identity.name})
        with urlopen(f"{url}/api/v2/expirable?{query}", timeout=20) as answer:
            named = orjson.loads(answer.read())["expirable"]
        there = {
            point.snapshot_id for point in bank.points(table)
        }  # the collector is not told what went before
        ids = [one for one in named if one in there]
        forget(bank, table, ids)
        found[table] = len(ids)
    return found


def forget(bank: Any, table: str, ids: Sequence[str]) -> None:
    """Expire snapshots with the files that only they need, by Iceberg's own API."""
    loaded = bank.spark._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(
        bank.spark._jsparkSession, bank.name(table)
    )
    going = loaded.expireSnapshots()
    for one in ids:
        going = going.expireSnapshotId(int(one))
    going.commit()
    bank.spark.catalog.refreshTable(bank.name(table))


def sums(frames: Mapping[str, Any]) -> dict[str, int]:
    """The sum of the amounts by table."""
    return {
        name.rpartition(".")[2]: frame.groupBy().sum("amount").first()[0]
        for name, frame in frames.items()
    }


def test_expiry_keeps_what_leased_readers_and_stopped_jobs_need(
    moving: Any, collector: str
) -> None:
    names = [moving.name(table) for table in TABLES]
    with read_consistent(moving.spark, names) as leased:
        both(moving, collector, 4, 5)
        work(moving, collector)
        both(moving, collector, 6, 7, 8)

        gone = expire(moving, collector)

        assert gone == {"credits": 2, "debits": 2, "movements": 2}
        assert moving.barriers("credits") == [3, 4, 5, 6, 7, 8]
        assert leased.barrier == 3
        assert sums(read_again(moving, leased)) == {"credits": 60, "debits": 60, "movements": 0}

    gone = expire(moving, collector)
    work(moving, collector)

    assert gone == {"credits": 2, "debits": 2, "movements": 2}
    assert moving.barriers("movements") == [5, 6, 7, 8]
    assert moving.total_at("movements", moving.history("movements").done[8]) == 0


def test_control_removed_pinned_snapshot_cannot_be_read(moving: Any, collector: str) -> None:
    names = [moving.name(table) for table in TABLES]
    with read_consistent(moving.spark, names) as leased:
        both(moving, collector, 4)
        pinned = moving.history("credits").done[3]

        forget(moving, "credits", [pinned])

        with pytest.raises(PySparkException, match=pinned):
            sums(read_again(moving, leased))


def read_again(bank: Any, leased: Any) -> dict[str, Any]:
    """Frames of the leased snapshots, made anew."""
    return {
        name: bank.spark.sql(f"SELECT * FROM {name} VERSION AS OF {version.snapshot_id}")
        for name, version in leased.versions.items()
    }
