"""Aligned streams on real Spark and Iceberg process every barrier exactly once."""

import shutil
from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame

from strandline_spark import aligned_stream
from strandline_spark.consistency.table_history import TableAtError
from strandline_spark.extraction.aligned_outputs import is_finished

pytestmark = pytest.mark.spark


def balances(inputs: Mapping[str, DataFrame], barrier: int) -> DataFrame:
    """Credits less debits by account."""
    movements = inputs["credits"].unionAll(inputs["debits"].selectExpr("account", "-amount"))
    return movements.groupBy("account").sum("amount").toDF("account", "amount")


def run(
    bank: Any,
    inputs: list[str],
    output: str,
    transform: Any = balances,
    folder: str = "ck",
    **more: Any,
) -> None:
    """Make all checkpoints that are possible now."""
    more = {"available_now": True, "timeout": 30} | more
    tables, place = [bank.name(table) for table in inputs], str(bank.folder / folder / output)
    query = aligned_stream(
        bank.spark, tables, bank.name(output), transform, checkpoint=place, **more
    )
    try:
        assert query.awaitTermination(600)
        assert is_finished(query.id)  # so its run is COMPLETE
    finally:
        query.stop()


def both(bank: Any, *barriers: int, tables: tuple[str, ...] = ("credits", "debits")) -> None:
    """Commit a transfer at some barriers into both tables."""
    for barrier in barriers:
        for table in tables:
            bank.commit(table, barrier, (barrier % 3, 10 * barrier))


@pytest.fixture
def accounts(bank: Any) -> Any:
    """Credits, debits and balance, empty."""
    for table in ("credits", "debits", "balance"):
        bank.table(table)
    return bank


def test_each_barrier_is_one_snapshot_with_its_inputs(accounts: Any) -> None:
    both(accounts, 1, 2)

    run(accounts, ["credits", "debits"], "balance", group="bank")

    first, second = accounts.points("balance")
    credits, debits = (accounts.history(table).done for table in ("credits", "debits"))
    assert (first.barrier, second.barrier) == (1, 2)
    assert second.inputs == {
        accounts.name("credits"): credits[2],
        accounts.name("debits"): debits[2],
    }
    assert (first.group, second.group) == ("bank", "bank")


def test_barrier_skipped_by_an_input_is_skipped_and_recorded(accounts: Any) -> None:
    both(accounts, 1)
    accounts.commit("credits", 2, (5, 1000))
    both(accounts, 3)

    run(accounts, ["credits", "debits"], "balance")

    assert accounts.barriers("balance") == [1, 3]
    summary = (
        accounts.spark.sql(f"SELECT summary FROM {accounts.name('balance')}.snapshots")
        .collect()[-1]
        .summary
    )
    assert summary["strandline.skipped"] == "2"


@pytest.mark.slow
def test_job_with_lost_checkpoints_continues_from_its_table(accounts: Any) -> None:
    both(accounts, 1, 2)
    run(accounts, ["credits", "debits"], "balance")
    shutil.rmtree(accounts.folder / "ck")
    both(accounts, 3)

    run(accounts, ["credits", "debits"], "balance")

    assert accounts.barriers("balance") == [1, 2, 3]


@pytest.mark.slow
def test_replayed_micro_batch_duplicates_nothing(accounts: Any) -> None:
    both(accounts, 1, 2, 3)
    run(
        accounts,
        ["credits", "debits"],
        "balance",
        available_now=False,
        until_barrier=2,
        trigger="300 milliseconds",
    )
    commits = accounts.folder / "ck" / "balance" / "commits"
    for batch in range(
        1, 9
    ):  # as if killed between the commit to the table and the end of micro-batch 1
        (commits / str(batch)).unlink(missing_ok=True)
        (commits / f".{batch}.crc").unlink(missing_ok=True)

    run(accounts, ["credits", "debits"], "balance")

    assert accounts.barriers("balance") == [1, 2, 3]


@pytest.mark.slow
def test_changes_are_all_rows_first_and_new_rows_afterwards(bank: Any) -> None:
    bank.table("credits")
    both(bank, 1, tables=("credits",))
    bank.commit("credits", None, (7, 7))  # a backfill between two barriers belongs to the later one
    both(bank, 2, tables=("credits",))

    run(bank, ["credits"], "copied", lambda i, b: i["credits"], changes=["credits"], mode="append")

    done = bank.history("copied").done
    assert [bank.total_at("copied", done[barrier]) for barrier in (1, 2)] == [10, 37]


@pytest.mark.slow
def test_a_job_may_read_its_own_state(bank: Any) -> None:
    bank.table("credits")
    bank.table("totals")
    both(bank, 1, 2, 3, tables=("credits",))

    def totals(inputs: Mapping[str, DataFrame], barrier: int) -> DataFrame:
        return (
            inputs["credits"]
            .unionAll(inputs["totals"])
            .groupBy("account")
            .sum("amount")
            .toDF("account", "amount")
        )

    run(bank, ["credits", "totals"], "totals", totals, changes=["credits"])

    assert [
        bank.total_at("totals", bank.history("totals").done[barrier]) for barrier in (1, 2, 3)
    ] == [10, 30, 60]


@pytest.mark.slow
def test_job_started_at_the_newest_barrier_skips_none_after_a_restart(accounts: Any) -> None:
    both(accounts, 1, 2, 3)
    run(accounts, ["credits", "debits"], "balance", start="latest")
    both(accounts, 4, 5)

    run(accounts, ["credits", "debits"], "balance", start="latest")

    assert accounts.barriers("balance") == [3, 4, 5]


@pytest.mark.slow
def test_timed_out_wait_names_the_late_table_and_barrier(accounts: Any) -> None:
    both(accounts, 1)
    accounts.commit("credits", 2, (1, 1))

    with pytest.raises(StreamingQueryException) as error:
        run(
            accounts,
            ["credits", "debits"],
            "balance",
            available_now=False,
            until_barrier=2,
            timeout=0.5,
        )

    assert "after barrier 1" in str(error.value)
    assert f"{accounts.name('debits')} has barrier 1 as its newest" in str(error.value)
    assert accounts.barriers("balance") == [1]


@pytest.mark.slow
def test_rolled_back_output_is_rebuilt(accounts: Any) -> None:
    both(accounts, 1, 2)
    run(accounts, ["credits", "debits"], "balance")
    first = accounts.history("balance").done[1]
    accounts.spark.sql(
        f"CALL lake.system.rollback_to_snapshot('{accounts.name('balance')}', {first})"
    )

    run(accounts, ["credits", "debits"], "balance")

    assert accounts.barriers("balance") == [1, 2]


def test_inputs_of_another_group_are_rejected(accounts: Any) -> None:
    accounts.commit("credits", 1, (1, 1), group="shop")
    accounts.commit("debits", 1, (1, 1), group="bank")

    with pytest.raises(
        TableAtError, match="its barriers are of group 'shop', this job's of 'bank'"
    ):
        run(accounts, ["credits", "debits"], "balance", group="bank")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"mode": "merge"}, "mode: 'merge' is neither"),
        ({"changes": ["debts"]}, "changes: .* must name some of credits, debits"),
        ({"start": "now"}, "start: 'now' is neither"),
    ],
)
def test_contradictory_arguments_are_rejected(
    accounts: Any, wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        run(accounts, ["credits", "debits"], "balance", **wrong)


@pytest.mark.slow
def test_job_started_before_its_input_exists_waits_for_it(bank: Any) -> None:
    bank.table("credits")
    bank.commit("credits", 1, (1, 10))
    query = aligned_stream(
        bank.spark, [bank.name("credits"), bank.name("debits")], bank.name("late"), balances,
        checkpoint=str(bank.folder / "late"), until_barrier=1, timeout=90,
    )  # fmt: skip
    try:
        bank.table("debits")
        bank.commit("debits", 1, (1, 10))
        assert query.awaitTermination(600)
    finally:
        query.stop()

    assert bank.barriers("late") == [1]


@pytest.mark.slow
def test_input_that_never_appears_is_named_at_the_timeout(bank: Any) -> None:
    query = aligned_stream(
        bank.spark, [bank.name("nothing")], bank.name("late"), balances,
        checkpoint=str(bank.folder / "late"), timeout=0.1,
    )  # fmt: skip
    try:
        with pytest.raises(
            StreamingQueryException, match=r"for an input that is not there: .*nothing"
        ):
            query.awaitTermination(600)
    finally:
        query.stop()


NOTHING_TO_DO = (
    "there was no checkpoint to make after barrier 1 (the newest that all inputs have is 1)"
)


@pytest.mark.slow
def test_nothing_to_do_is_logged(accounts: Any, caplog: pytest.LogCaptureFixture) -> None:
    both(accounts, 1)
    run(accounts, ["credits", "debits"], "balance")
    told = list(caplog.messages)

    run(accounts, ["credits", "debits"], "balance")

    assert told == []
    assert [message.partition(": ")[2] for message in caplog.messages] == [
        # the tests' shell has no name of its own
        f"job pytest.{accounts.name('balance')}: {NOTHING_TO_DO}"
    ]


@pytest.mark.slow
def test_delete_that_stops_a_changes_job_names_the_remedy(accounts: Any) -> None:
    both(accounts, 1)
    changes: Any = {"changes": ["credits"], "group": "bank"}
    run(accounts, ["credits", "debits"], "balance", **changes)
    accounts.spark.sql(f"DELETE FROM {accounts.name('credits')} WHERE amount = 10")
    both(accounts, 2)

    way = rf"without credits in changes=, .* rollback {accounts.name('balance')} 1 --lost-state \S+\.balance"
    with pytest.raises(StreamingQueryException, match=way):
        run(accounts, ["credits", "debits"], "balance", **changes)
