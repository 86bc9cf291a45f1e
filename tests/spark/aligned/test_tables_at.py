"""Histories of real Iceberg tables.

Barriers, compaction, rollback, expiry, and reads at a snapshot.
"""

from typing import Any

import pytest

from strandline_spark.consistency.table_history import (
    ExpiredSnapshotError,
    MissingTableError,
    NotOnlyAppendsError,
    TableHistory,
    UnsupportedTableError,
)

pytestmark = pytest.mark.spark


def test_last_snapshot_that_carries_a_barrier_counts(bank: Any) -> None:
    bank.table("t")
    first = bank.commit("t", 1, (1, 10))
    bank.commit("t", 2, (1, 20))
    again = bank.commit("t", 2, (1, 30))
    bank.commit("t", None, (1, 40))

    history = bank.history("t")

    assert dict(history.done) == {1: first, 2: again}
    assert history.position == 2


def test_streaming_base_table_counts_micro_batches_unless_barriers_are_set(bank: Any) -> None:
    bank.table("source")
    bank.table("t")
    naturally = []
    for amount in (1, 2):
        bank.commit("source", None, (1, amount))
        naturally.append(bank.stream("source", "t"))

    told = bank.commit("t", 9, (1, 3))

    assert dict(bank.history("t").done) == {1: naturally[0], 2: naturally[1], 9: told}


@pytest.mark.slow
def test_refresh_sees_new_and_rolled_back_snapshots(bank: Any) -> None:
    table = bank.table("t")
    first = bank.commit("t", 1, (1, 10))
    history = bank.history("t")
    second = bank.commit("t", 2, (1, 20))

    history.refresh()
    seen = dict(history.done)
    bank.spark.sql(f"CALL lake.system.rollback_to_snapshot('{table}', {first})")
    history.refresh()

    assert seen == {1: first, 2: second}
    assert dict(history.done) == {1: first}


def test_compaction_changes_neither_barriers_nor_the_changes_between_them(bank: Any) -> None:
    table = bank.table("t")
    first, second = bank.commit("t", 1, (1, 10)), bank.commit("t", 2, (1, 20))
    bank.spark.sql(
        f"CALL lake.system.rewrite_data_files(table => '{table}', options => map('rewrite-all', 'true'))"
    )
    third = bank.commit("t", 3, (1, 30))

    history = bank.history("t")

    assert dict(history.done) == {1: first, 2: second, 3: third}
    assert sorted(row.amount for row in history.between(first, third).collect()) == [20, 30]


def test_changes_across_a_delete_are_rejected_with_the_snapshot_id(bank: Any) -> None:
    table = bank.table("t")
    first = bank.commit("t", 1, (1, 10))
    bank.spark.sql(f"DELETE FROM {table} WHERE amount = 10")
    second = bank.commit("t", 2, (1, 20))

    with pytest.raises(
        NotOnlyAppendsError, match=r"t: snapshot \d+ \(delete\) changed or deleted rows"
    ):
        bank.history("t").between(first, second)


@pytest.mark.slow
def test_changes_across_a_rollback_are_rejected(bank: Any) -> None:
    table = bank.table("t")
    first, gone = bank.commit("t", 1, (1, 10)), bank.commit("t", 2, (1, 20))
    bank.spark.sql(f"CALL lake.system.rollback_to_snapshot('{table}', {first})")
    anew = bank.commit("t", 2, (1, 21))

    with pytest.raises(NotOnlyAppendsError, match=f"snapshot {gone} is not an ancestor of {anew}"):
        bank.history("t").between(gone, anew)


def test_expired_snapshot_is_not_served_from_cache(bank: Any) -> None:
    table = bank.table("t")
    first = bank.commit("t", 1, (1, 10))
    second = bank.commit("t", 2, (1, 20))
    history = bank.history("t")
    seen = history.point(first)
    bank.spark.sql(
        f"CALL lake.system.expire_snapshots(table => '{table}', older_than => TIMESTAMP '2100-01-01', retain_last => 1)"
    )

    history.refresh()

    assert seen is not None
    assert history.point(first) is None
    assert dict(history.done) == {2: second}
    assert list(history._points) == [second]


@pytest.mark.slow
def test_reading_an_expired_snapshot_names_it(bank: Any) -> None:
    table = bank.table("t")
    first = bank.commit("t", 1, (1, 10))
    bank.commit("t", 2, (1, 20))
    history = bank.history("t")
    bank.spark.sql(
        f"CALL lake.system.expire_snapshots(table => '{table}', older_than => TIMESTAMP '2100-01-01', retain_last => 1)"
    )
    history.refresh()

    with pytest.raises(
        ExpiredSnapshotError, match=rf"t: snapshot {first} is not in the table any more"
    ):
        history.at(first)


def test_tables_that_cannot_be_aligned_are_rejected_with_the_reason(bank: Any) -> None:
    bank.spark.sql(
        "CREATE TABLE IF NOT EXISTS spark_catalog.default.csv_table (a bigint) USING csv"
    )

    with pytest.raises(
        UnsupportedTableError, match=r"spark_catalog\.default\.csv_table: only Iceberg tables"
    ):
        TableHistory(bank.spark, "spark_catalog.default.csv_table")
    with pytest.raises(MissingTableError, match="nothing_here"):
        TableHistory(bank.spark, bank.name("nothing_here"))


def test_looking_for_barriers_runs_no_sql(bank: Any) -> None:
    bank.table("t")
    bank.commit("t", 1, (1, 10))
    store = bank.spark._jsparkSession.sharedState().statusStore()
    before = store.executionsCount()

    history = bank.history("t")
    history.refresh()

    assert dict(history.done).keys() == {1}
    assert store.executionsCount() == before
