"""Reading at one consistent version, with real tables and a real collector."""

from typing import Any

import pytest

from strandline_spark import activation, consistent_sql, read_consistent
from strandline_spark.consistency.collector import (
    CertificateError,
    CollectorAwayError,
    ConfigurationError,
    LagError,
    UnknownTableError,
)

pytestmark = pytest.mark.spark


def amounts(frame: Any) -> list[int]:
    """The amounts in a DataFrame, in their order."""
    return sorted(row.amount for row in frame.collect())


def test_strong_read_shows_one_barrier_and_a_latest_read_does_not(known_bank: Any) -> None:
    names = [known_bank.name(table) for table in ("credits", "debits", "balance")]

    with read_consistent(known_bank.spark, names) as tables:
        strong = {name.rpartition(".")[2]: amounts(frame) for name, frame in tables.items()}
        barrier = tables.barrier

    assert barrier == 1
    assert strong == {"credits": [10], "debits": [10], "balance": [-10, 10]}
    assert amounts(known_bank.spark.table(names[0])) == [5, 10]


def test_weak_read_considers_only_the_querys_tables(known_bank: Any) -> None:
    credits, debits = known_bank.name("credits"), known_bank.name("debits")

    with (
        read_consistent(known_bank.spark, credits, "weak") as alone,
        read_consistent(known_bank.spark, [credits, debits], "weak") as both,
    ):
        assert (alone.barrier, both.barrier) == (2, 1)


def test_a_cut_agrees_by_data_lineage_without_barriers(known_bank: Any) -> None:
    names = [known_bank.name(table) for table in ("credits", "debits", "balance")]

    with read_consistent(known_bank.spark, names, "cut") as tables:
        assert tables.barrier is None
        assert amounts(tables[names[0]]) == [10]
        assert amounts(tables[names[2]]) == [-10, 10]


def test_read_holds_a_lease_until_released(known_bank: Any) -> None:
    tables = read_consistent(known_bank.spark, known_bank.name("credits"))
    assert tables.lease is not None
    held = tables.lease.held

    tables.release()

    assert (held, tables.lease.held) == (True, False)


def test_job_that_blocks_a_newer_version_is_named(known_bank: Any) -> None:
    with read_consistent(known_bank.spark, known_bank.name("credits")) as tables:
        assert [one["job"]["name"] for one in tables.blocked_by] == ["bank_debits"]


def test_consistent_sql_applies_to_every_table_of_a_query(known_bank: Any) -> None:
    credits, debits = known_bank.name("credits"), known_bank.name("debits")
    query = f"""
        WITH debits AS (SELECT amount, '{credits}' AS told FROM {debits} d)  -- {credits}
        SELECT sum(c.amount) - (SELECT sum(amount) FROM debits) AS missing, max(c.amount) AS credits
          FROM {credits} AS c"""

    strong, latest = (
        consistent_sql(known_bank.spark, query).first(),
        known_bank.spark.sql(query).first(),
    )

    assert (strong.missing, strong.credits) == (0, 10)
    assert latest.missing == 5


def test_plain_sql_reads_strongly_if_the_catalog_conf_says_so(strong_session: Any) -> None:
    query = f"SELECT amount FROM {strong_session.name('credits')}"
    strong = amounts(strong_session.spark.sql(query))

    strong_session.spark.conf.set("spark.strandline.catalog.lake.consistency", "latest")

    assert strong == [10]
    assert amounts(strong_session.spark.sql(query)) == [5, 10]


def test_conf_that_is_set_at_run_time_is_followed(known_bank: Any) -> None:
    """The application began without a word of consistency."""
    spark, key = known_bank.spark, "spark.strandline.catalog.lake.consistency"
    query = f"SELECT amount FROM {known_bank.name('credits')}"
    assert activation.conf_of_context(spark.sparkContext).enabled is False

    activation._follow_conf(dict(spark.sparkContext.getConf().getAll()))
    try:
        latest = amounts(spark.sql(query))
        spark.sql(f"SET {key}=strong")
        strong = amounts(spark.sql(query))
    finally:
        spark.conf.unset(key)
        activation.disable(spark)

    assert (latest, strong) == ([5, 10], [10])


def test_staleness_bound_gives_an_answer_or_an_error_at_once(known_bank: Any) -> None:
    credits = known_bank.name("credits")

    with read_consistent(known_bank.spark, credits, max_lag=10**6) as tables:
        assert tables.barrier == 1
    with pytest.raises(LagError, match=r"s behind, more than 0 s"):
        read_consistent(known_bank.spark, credits, max_lag=0)


def test_tables_unknown_to_the_collector_are_rejected(known_bank: Any, bank: Any) -> None:
    strange = bank.table("strange")
    known_bank.spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW a_view AS SELECT * FROM {known_bank.name('credits')}"
    )

    with pytest.raises(UnknownTableError):
        read_consistent(known_bank.spark, strange)
    with pytest.raises(UnknownTableError, match="a_view"):
        read_consistent(known_bank.spark, "a_view")


def test_consistent_read_requires_a_collector(known_bank: Any) -> None:
    known_bank.spark.conf.set("spark.strandline.collector.url", "http://127.0.0.1:9")
    with pytest.raises(CollectorAwayError, match=r"http://127\.0\.0\.1:9 does not answer"):
        read_consistent(known_bank.spark, known_bank.name("credits"))

    known_bank.spark.conf.unset("spark.strandline.collector.url")
    with pytest.raises(ConfigurationError, match=r"spark\.strandline\.collector\.url is not set"):
        read_consistent(known_bank.spark, known_bank.name("credits"))


def test_transport_address_is_used_as_the_collector(known_bank: Any) -> None:
    conf = known_bank.spark.conf
    url = conf.get("spark.strandline.collector.url")
    conf.unset("spark.strandline.collector.url")
    conf.set("spark.openlineage.transport.url", url)
    try:
        with read_consistent(known_bank.spark, known_bank.name("credits")) as tables:
            assert tables.barrier == 1
    finally:
        conf.unset("spark.openlineage.transport.url")
        conf.set("spark.strandline.collector.url", url)


def test_invalid_consistency_is_rejected_with_the_valid_values(known_bank: Any) -> None:
    with pytest.raises(ValueError, match="'strng' is none of strong, weak, cut"):
        read_consistent(known_bank.spark, known_bank.name("credits"), "strng")


def test_answer_that_contradicts_the_tables_is_an_error(own_bank: Any) -> None:
    credits = own_bank.name("credits")
    first = own_bank.history("credits").done[1]
    own_bank.spark.sql(
        f"CALL lake.system.expire_snapshots(table => '{credits}', snapshot_ids => array({first}), retain_last => 1)"
    )

    with pytest.raises(CertificateError, match=f"has no snapshot {first}"):
        read_consistent(own_bank.spark, [credits, own_bank.name("debits")])
