"""Ordinary statements with consistency strong: reads are versioned, writes are not."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from strandline_spark import consistent_sql, disable, read_consistent
from strandline_spark.consistency.collector import (
    Collector,
    LeaseLostError,
    UnknownTableError,
    UnreadableStatementError,
)
from strandline_spark.consistency.reading.conf import obey

pytestmark = pytest.mark.spark


def now(bank: Any, table: str) -> list[int]:
    """The amounts that a table has at its latest."""
    return sorted(row.amount for row in bank.history(table).now().collect())


def amounts(frame: Any) -> list[int]:
    """The amounts in a DataFrame, in their order."""
    return sorted(row.amount for row in frame.collect())


def test_delete_update_and_merge_write_the_latest_and_read_the_version(
    own_strong_session: Any,
) -> None:
    sql, credits, mine = (
        own_strong_session.spark.sql,
        own_strong_session.name("credits"),
        own_strong_session.table("mine"),
    )
    sql(f"INSERT INTO {mine} VALUES (1, 1), (2, 2), (3, 3)")

    sql(f"UPDATE {mine} SET amount = (SELECT sum(amount) FROM {credits}) WHERE account = 1")
    sql(f"DELETE FROM {mine} WHERE amount IN (SELECT 2 FROM {credits})")
    sql(
        f"MERGE INTO {mine} AS t USING {credits} AS s ON t.account = s.account + 2 WHEN MATCHED THEN UPDATE SET *"
    )
    merged = now(own_strong_session, "mine")
    sql(f"DELETE FROM {credits} WHERE amount = 5")

    assert merged == [
        10,
        10,
    ]  # at the latest 15 would be the sum, and two rows of credits would match
    assert now(own_strong_session, "credits") == [10]


@pytest.mark.parametrize("evolves", ["", "WITH SCHEMA EVOLUTION"])
def test_insert_only_merge_compares_with_the_latest_target(
    strong_session: Any, bank: Any, evolves: str
) -> None:
    """Spark plans it as an append of the rows that an anti-join with the latest target finds."""
    credits, mine = strong_session.name("credits"), bank.table("mine")
    strong_session.spark.sql(f"INSERT INTO {mine} VALUES (7, 7)")

    for _ in range(2):  # the second one finds the row of the first
        strong_session.spark.sql(
            f"MERGE {evolves} INTO {mine} t USING {credits} s ON t.amount = s.amount WHEN NOT MATCHED THEN INSERT *"
        )

    assert now(bank, "mine") == [7, 10]  # at the latest of credits 5 as well


def test_insert_only_merge_reads_its_target_as_a_versioned_source(own_strong_session: Any) -> None:
    credits, hidden = own_strong_session.name("credits"), "IDENTIFIER('{}')"
    merge = "MERGE INTO {0} t USING (SELECT 9 AS account, max(amount) + 90 AS amount FROM {1}) s ON t.amount = s.amount"
    insert = "WHEN NOT MATCHED THEN INSERT *"

    own_strong_session.spark.sql(
        f"DELETE FROM {credits} WHERE amount = 10"
    )  # the version alone has it now
    own_strong_session.spark.sql(f"{merge.format(credits, credits)} {insert}")
    with pytest.raises(UnreadableStatementError, match="IDENTIFIER"):
        own_strong_session.spark.sql(f"{merge.format(credits, hidden.format(credits))} {insert}")

    assert now(own_strong_session, "credits") == [5, 100]


def test_recursive_query_reads_itself_by_name(strong_session: Any) -> None:
    counts = (
        "counts(n) AS (SELECT max(amount) FROM {0} UNION ALL SELECT n - 5 FROM counts WHERE n > 0)"
    )
    query = f"WITH RECURSIVE {counts} SELECT n AS amount FROM counts".format(
        strong_session.name("credits")
    )

    assert amounts(strong_session.spark.sql(query)) == [0, 5, 10]


def test_insert_reads_its_table_at_the_version_and_appends_to_the_latest(
    own_strong_session: Any,
) -> None:
    credits = own_strong_session.name("credits")

    own_strong_session.spark.sql(
        f"INSERT INTO {credits} SELECT account, amount * 100 FROM {credits}"
    )

    assert now(own_strong_session, "credits") == [5, 10, 1000]


def test_ctas_reads_at_the_version(strong_session: Any, bank: Any) -> None:
    sql, credits = strong_session.spark.sql, strong_session.name("credits")

    sql(f"CREATE TABLE {bank.name('made')} AS SELECT * FROM {credits}")
    sql(f"CREATE TABLE {bank.name('also')} AS TABLE {credits}")

    assert now(bank, "made") == now(bank, "also") == [10]


def test_tables_behind_a_view_are_read_at_the_version(own_strong_session: Any) -> None:
    sql, credits, view = (
        own_strong_session.spark.sql,
        own_strong_session.name("credits"),
        own_strong_session.name("seen"),
    )
    sql(f"CREATE VIEW {view} (who, how_much) AS SELECT account, amount FROM {credits} c  -- all")
    sql(f"USE {own_strong_session.database}")
    try:
        sql("CREATE OR REPLACE TEMPORARY VIEW seen_twice AS SELECT how_much AS amount FROM seen")
        text = sql(f"SHOW CREATE TABLE {view}").first()[0]
        through = [
            amounts(sql(f"SELECT {name}.amount FROM {name}")) for name in ("seen_twice", "credits")
        ]
        joined = sql(
            "SELECT sum(v.how_much) AS amount FROM seen v JOIN credits ON v.who = credits.account"
        )
        strong = amounts(joined)
    finally:
        sql("USE spark_catalog.default")
        own_strong_session.spark.catalog.dropTempView("seen_twice")

    assert "VERSION AS OF" not in text
    assert through == [[10], [10]]
    assert strong == [10]
    assert sorted(row.how_much for row in own_strong_session.spark.table(view).collect()) == [5, 10]


def test_cached_table_is_cached_at_its_latest(strong_session: Any) -> None:
    credits = strong_session.name("credits")

    strong_session.spark.sql(f"CACHE TABLE {credits}")
    try:
        assert amounts(strong_session.spark.table(credits)) == [5, 10]
        assert amounts(strong_session.spark.sql(f"SELECT * FROM {credits}")) == [10]
    finally:
        strong_session.spark.sql(f"UNCACHE TABLE {credits}")


def test_keyword_arguments_metadata_tables_and_version_as_of_work(strong_session: Any) -> None:
    sql, credits = strong_session.spark.sql, strong_session.name("credits")
    latest = strong_session.history("credits").newest.snapshot_id
    rows = strong_session.spark.createDataFrame([(10,)], "amount bigint")

    assert amounts(
        sql(f"SELECT c.amount FROM {credits} c JOIN {{rows}} r USING (amount)", rows=rows)
    ) == [10]
    assert sql(f"SELECT * FROM {credits}.snapshots").count() == 2
    assert amounts(sql(f"SELECT * FROM {credits} VERSION AS OF {latest}")) == [5, 10]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        (
            "SELECT * FROM IDENTIFIER('{t}')",
            r"{t}: read through IDENTIFIER\(\), where no version can be put",
        ),
        ("INSERT INTO {t} SELECT * FROM IDENTIFIER('{t}')", r"{t}: read through IDENTIFIER\(\)"),
        (
            "BEGIN INSERT INTO {t} SELECT * FROM {t}; SELECT 1; END",
            r"a SQL script is not read at one version",
        ),
        ("EXECUTE IMMEDIATE 'SELECT * FROM {t}'", r"EXECUTE IMMEDIATE hides what it reads"),
        ("SELECT * FROM of_a_frame", r"{t}: read through a view made of a DataFrame"),
        ("SELECT total_of()", r"{t}: read through .* a function"),
        ("SELECT amount FROM {t}.changes", r"{t}\.changes: read through .* changes"),
    ],
)
def test_a_read_that_cannot_be_versioned_is_refused_with_the_reason(
    strong_session: Any, statement: str, reason: str
) -> None:
    credits = strong_session.name("credits")
    strong_session.spark.table(credits).createOrReplaceTempView("of_a_frame")
    strong_session.spark.sql(
        f"CREATE OR REPLACE TEMPORARY FUNCTION total_of() RETURNS BIGINT RETURN SELECT sum(amount) FROM {credits}"
    )
    try:
        with pytest.raises(
            UnreadableStatementError, match=reason.format(t=credits.replace(".", r"\."))
        ):
            strong_session.spark.sql(statement.format(t=credits))
    finally:
        strong_session.spark.catalog.dropTempView("of_a_frame")

    assert now(strong_session, "credits") == [5, 10]


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM IDENTIFIER('range')(3)",
        "BEGIN SELECT 1; END",
        "DELETE FROM IDENTIFIER('{t}') WHERE amount = 7",
    ],
)
def test_statements_that_do_not_read_the_catalog_are_unchanged(
    strong_session: Any, bank: Any, statement: str
) -> None:
    strong_session.spark.sql(statement.format(t=bank.table("credits")))


@pytest.fixture
def rates(strong_session: Any, bank: Any) -> Iterator[str]:
    """A lookup table of which the collector has never heard."""
    yield bank.table("rates")
    for key in ("", f".{bank.database.partition('.')[2]}.rates"):
        strong_session.spark.conf.unset(f"spark.strandline.catalog.lake.untracked{key}")


@pytest.mark.parametrize("of_the_table", [True, False])
def test_conf_allows_the_latest_snapshot_of_untracked_tables(
    strong_session: Any, rates: str, of_the_table: bool
) -> None:
    sql, credits = strong_session.spark.sql, strong_session.name("credits")
    sql(f"INSERT INTO {rates} VALUES (1, 3)")
    query = f"SELECT c.amount * r.amount AS amount FROM {credits} c JOIN {rates} r ON c.account = r.account"
    with pytest.raises(UnknownTableError):
        sql(query)

    key = f".{rates.partition('.')[2]}" if of_the_table else ""
    strong_session.spark.conf.set(f"spark.strandline.catalog.lake.untracked{key}", "latest")

    assert amounts(sql(query)) == [30]
    assert amounts(sql(f"SELECT * FROM {rates}")) == [3]


def test_failed_statement_releases_its_lease(
    strong_session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[tuple[str, str]]()
    ask = Collector.ask

    def note(self: Collector, method: str, path: str, *more: Any) -> Any:
        asked.append((method, path.rpartition("/")[0] if method == "DELETE" else path))
        return ask(self, method, path, *more)

    monkeypatch.setattr(Collector, "ask", note)
    with pytest.raises(UnreadableStatementError, match="nonsense"):
        consistent_sql(
            strong_session.spark, f"SELECT nonsense FROM {strong_session.name('credits')}"
        )

    assert asked == [("POST", "/api/v2/versions"), ("DELETE", "/api/v2/leases")]


def test_lost_lease_raises_an_explicit_error(known_bank: Any) -> None:
    tables = read_consistent(known_bank.spark, known_bank.name("credits"))
    assert tables.lease is not None
    collector = known_bank.spark.conf.get("spark.strandline.collector.url")
    Collector(collector).ask("DELETE", f"/api/v2/leases/{tables.lease.id}")

    with pytest.raises(LeaseLostError, match="unknown lease"):
        tables.lease.renew()
    with pytest.raises(LeaseLostError, match="ask for a version anew"):
        tables[known_bank.name("credits")]


def test_disable_restores_spark_sql(known_bank: Any) -> None:
    before = SparkSession.sql
    obey()
    patched = SparkSession.sql

    disable(known_bank.spark)

    assert patched is not before
    assert SparkSession.sql is before
