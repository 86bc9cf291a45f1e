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
SCRIPT = r"a SQL script is not read at one version"


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


@pytest.mark.parametrize(
    ("statement", "amounts_after"),
    [
        ("INSERT OVERWRITE {t} SELECT * FROM {t}", [5, 10]),
        ("INSERT OVERWRITE {t} SELECT * FROM IDENTIFIER('{t}')", [5, 10]),
        ("INSERT OVERWRITE {t} SELECT account, how_much FROM seen", [5, 10]),
        ("WITH c AS (SELECT * FROM {t}) INSERT OVERWRITE {t} SELECT * FROM c", [5, 10]),
        ("INSERT INTO {t} REPLACE WHERE amount > 4 SELECT * FROM {t}", [5, 10]),
        ("INSERT INTO {t} SELECT account, amount * 100 FROM {t}", [5, 10, 500, 1000]),
        ("FROM {t} INSERT INTO {t} SELECT account, amount + 1", [5, 6, 10, 11]),
        ("DELETE FROM {t} WHERE amount NOT IN (SELECT max(amount) FROM {t})", [10]),
        ("DELETE FROM {t} AS x WHERE (SELECT count(*) FROM {t}) = 1", [5, 10]),
        ("UPDATE {t} SET amount = (SELECT count(*) FROM {t})", [2, 2]),
        (
            """MERGE INTO {t} x USING (SELECT * FROM {t}) y ON x.amount = y.amount
                 WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED BY SOURCE THEN DELETE""",
            [5, 10],
        ),
        (
            """MERGE INTO {t} x USING (SELECT 9 AS account, count(*) AS amount FROM {t}) y
                 ON x.amount = y.amount WHEN NOT MATCHED THEN INSERT *""",
            [2, 5, 10],
        ),
        ("CREATE OR REPLACE TABLE {t} AS SELECT * FROM {t}", [5, 10]),
    ],
)
def test_a_table_that_a_statement_changes_is_read_as_it_is(
    own_strong_session: Any, statement: str, amounts_after: list[int]
) -> None:
    """At barrier 1 credits has the amount 10 only; 5 came after it."""
    credits, sql = own_strong_session.name("credits"), own_strong_session.spark.sql
    sql(
        f"CREATE OR REPLACE TEMPORARY VIEW seen AS SELECT account, amount AS how_much FROM {credits}"
    )
    assert amounts(sql(f"SELECT * FROM {credits}")) == [10]

    sql(statement.format(t=credits))

    own_strong_session.spark.catalog.dropTempView("seen")
    assert now(own_strong_session, "credits") == amounts_after


def test_other_tables_of_a_statement_are_read_at_the_version(own_strong_session: Any) -> None:
    credits, debits = own_strong_session.name("credits"), own_strong_session.name("debits")
    own_strong_session.commit("debits", 2, (2, 70))

    own_strong_session.spark.sql(
        f"INSERT OVERWRITE {credits} SELECT * FROM {credits} UNION ALL SELECT * FROM {debits}"
    )

    assert now(own_strong_session, "credits") == [5, 10, 10]


@pytest.mark.parametrize(
    "write",
    [
        lambda frame, table: frame.write.insertInto(table, overwrite=True),
        lambda frame, table: frame.write.mode("overwrite").saveAsTable(table),
        lambda frame, table: frame.writeTo(table).overwritePartitions(),
        lambda frame, table: frame.writeTo(table).append(),
        lambda frame, table: frame.writeTo(table).createOrReplace(),
    ],
)
def test_a_dataframe_of_older_rows_is_not_written_back_to_its_table(
    own_strong_session: Any, write: Any
) -> None:
    spark, credits = own_strong_session.spark, own_strong_session.name("credits")
    mine = own_strong_session.table("mine")
    old_rows = spark.sql(f"SELECT * FROM {credits}").where("amount > 1")

    with pytest.raises(UnreadableStatementError, match="write would put them over newer ones"):
        write(old_rows, credits)
    write(old_rows, mine)
    write(spark.table(credits).where("amount < 10"), mine)

    assert now(own_strong_session, "credits") == [5, 10]


def test_a_dataframe_of_older_rows_is_not_merged_into_its_table(own_strong_session: Any) -> None:
    from pyspark.sql.functions import expr

    spark, credits = own_strong_session.spark, own_strong_session.name("credits")
    old_rows = spark.sql(f"SELECT * FROM {credits}").alias("s")
    if not hasattr(old_rows, "mergeInto"):
        pytest.skip("DataFrame.mergeInto came with Spark 4")

    with pytest.raises(UnreadableStatementError, match="write would put them over newer ones"):
        old_rows.mergeInto(credits, expr("amount = s.amount"))


def test_recursive_query_reads_itself_by_name(strong_session: Any) -> None:
    counts = (
        "counts(n) AS (SELECT max(amount) FROM {0} UNION ALL SELECT n - 5 FROM counts WHERE n > 0)"
    )
    query = f"WITH RECURSIVE {counts} SELECT n AS amount FROM counts".format(
        strong_session.name("credits")
    )

    assert amounts(strong_session.spark.sql(query)) == [0, 5, 10]


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
        ("BEGIN INSERT INTO {t} SELECT * FROM {t}; SELECT 1; END", SCRIPT),
        ("BEGIN IF (SELECT count(*) FROM {t}) > 1 THEN SELECT 1; END IF; END", SCRIPT),
        ("BEGIN CASE WHEN EXISTS (SELECT 1 FROM {t}) THEN SELECT 1; END CASE; END", SCRIPT),
        (
            "BEGIN CASE (SELECT count(*) FROM {t}) WHEN 1 THEN SELECT 1; ELSE SELECT 2; END CASE; END",
            SCRIPT,
        ),
        ("BEGIN WHILE (SELECT count(*) FROM {t}) > 9 DO SELECT 1; END WHILE; END", SCRIPT),
        ("BEGIN REPEAT SELECT 1; UNTIL EXISTS (SELECT * FROM {t}) END REPEAT; END", SCRIPT),
        ("BEGIN FOR r AS SELECT * FROM {t} DO SELECT 1; END FOR; END", SCRIPT),
        ("BEGIN SELECT (SELECT max(amount) FROM {t}); END", SCRIPT),
        (
            "BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN SELECT * FROM {t}; END; SELECT 1; END",
            SCRIPT,
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
    with pytest.raises(LeaseLostError, match="ask for a version again"):
        tables[known_bank.name("credits")]


def test_disable_restores_spark_sql(known_bank: Any) -> None:
    before = SparkSession.sql
    obey()
    patched = SparkSession.sql

    disable(known_bank.spark)

    assert patched is not before
    assert SparkSession.sql is before
