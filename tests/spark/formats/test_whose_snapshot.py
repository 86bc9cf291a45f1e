"""Attribution of Iceberg snapshots among concurrent statements and another writer.

What threads of one application do at random in the race, in a fixed order: each statement is read
as if everything that the table has seen since had come between its start and its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from fixtures.spark_lake import needs
from fixtures.spark_lake.analysis import iceberg_queue, reports_in
from strandline_spark.extraction.reader import PlanReader
from strandline_spark.jvm.iceberg_snapshot import ALL_CAME, Commit, Scan
from strandline_spark.model.statement import Statement
from strandline_spark.runs.unreported import UnreportedStatements

pytestmark = [
    pytest.mark.spark,
    needs("iceberg"),
]


class Registry:
    """The reports of Iceberg's registry since the last question.

    As the emitter's queue has them.
    """

    def __init__(self, spark: Any) -> None:
        self._queue = iceberg_queue(spark)

    def __call__(self) -> list[Commit | Scan]:
        return reports_in(self._queue)


@pytest.fixture(scope="module")
def registry(lake: Any) -> Registry:
    return Registry(lake)


@pytest.fixture
def table(lake: Any) -> Iterator[Callable[..., str]]:
    """Makes tables that are gone afterwards."""
    lake.sql("CREATE NAMESPACE IF NOT EXISTS lake.whose")
    made = []

    def make(name: str, **properties: str) -> str:
        told = ", ".join(
            f"'{key.replace('_', '.')}' = '{value}'" for key, value in properties.items()
        )
        lake.sql(
            f"CREATE TABLE lake.whose.{name} (k bigint, v string) USING iceberg TBLPROPERTIES ({told})".replace(
                " TBLPROPERTIES ()", ""
            )
        )
        made.append(f"lake.whose.{name}")
        return made[-1]

    yield make
    for name in made:
        lake.sql(f"DROP TABLE {name}")


def ran(spark: Any, *statements: str) -> list[Any]:
    """The QueryExecutions of statements that have run."""
    return [spark.sql(statement)._jdf.queryExecution() for statement in statements]


def history(spark: Any, table: str) -> list[str]:
    rows = spark.sql(
        f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at, snapshot_id"
    ).collect()
    return [str(row["snapshot_id"]) for row in rows]


def written(statement: Statement) -> str:
    """The snapshot; with a question mark, if it is only observed."""
    made = statement.outputs[0].dataset.snapshots[0]
    return made.snapshot_id + ("?" if made.observed else "")


def test_each_insert_finds_its_snapshot_among_later_ones(
    lake: Any, table: Callable[..., str], registry: Registry
) -> None:
    t = table("inserts")
    registry()
    executions = ran(lake, *[f"INSERT INTO {t} VALUES ({number}, 'a')" for number in range(3)])
    told = registry()

    assert [
        written(PlanReader(lake).at_end(execution, told)) for execution in executions
    ] == history(lake, t)


def doubting(spark: Any) -> PlanReader:
    """A reader that knows that events were dropped."""
    reader = PlanReader(spark)
    reader.jvm.kept[ALL_CAME] = lambda: False
    return reader


def test_single_commit_proves_nothing_after_dropped_events(
    lake: Any, table: Callable[..., str], registry: Registry
) -> None:
    t = table("dropped")
    registry()
    first, second = ran(lake, *[f"INSERT INTO {t} VALUES ({number}, 'a')" for number in range(2)])
    own, other = (one for one in registry() if isinstance(one, Commit))
    made = history(lake, t)

    assert written(PlanReader(lake).at_end(first, [other])) == made[1]  # what a proof is taken for
    assert (
        written(doubting(lake).at_end(first, [other])) == made[0]
    )  # found in the table, by its own files
    assert written(doubting(lake).at_end(first, [own])) == made[0]
    assert written(doubting(lake).at_end(second, [other])) == made[1]


@pytest.mark.slow
def test_delete_of_whole_files_is_observed_after_dropped_events(
    lake: Any, table: Callable[..., str], registry: Registry
) -> None:
    t = table("dropped_delete")
    _, delete = ran(lake, f"INSERT INTO {t} VALUES (1, 'a')", f"DELETE FROM {t} WHERE k = 1")
    made = history(lake, t)
    told = [one for one in registry() if isinstance(one, Commit) and one.snapshot_id == made[1]]

    assert written(PlanReader(lake).at_end(delete, told)) == made[1]
    assert written(doubting(lake).at_end(delete, told)) == f"{made[1]}?"


@pytest.mark.parametrize(
    "mode", ["copy-on-write", pytest.param("merge-on-read", marks=pytest.mark.slow)]
)
def test_each_change_finds_its_own_snapshot(
    lake: Any, table: Callable[..., str], registry: Registry, mode: str
) -> None:
    t = table(
        mode.replace("-", "_"),
        write_merge_mode=mode,
        write_update_mode=mode,
        write_delete_mode=mode,
    )
    registry()
    executions = ran(
        lake,
        f"INSERT INTO {t} VALUES (1, 'a'), (2, 'b'), (3, 'c')",
        f"MERGE INTO {t} AS t USING (SELECT 1L AS k, 'm' AS v UNION ALL SELECT 9L, 'n') AS s ON t.k = s.k"
        " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *",
        f"UPDATE {t} SET v = concat(v, '!') WHERE k = 2",
        f"DELETE FROM {t} WHERE k = 3",
        f"INSERT OVERWRITE {t} SELECT k, upper(v) FROM {t}",
    )
    told = registry()

    assert [
        written(PlanReader(lake).at_end(execution, told)) for execution in executions
    ] == history(lake, t)


def test_traceless_delete_is_observed_only_among_other_commits(
    lake: Any, table: Callable[..., str], registry: Registry
) -> None:
    t = table("deletes")
    registry()
    executions = ran(
        lake,
        f"INSERT INTO {t} VALUES (1, 'a')",
        f"DELETE FROM {t} WHERE k = 1",
        f"INSERT INTO {t} VALUES (2, 'b')",
        f"DELETE FROM {t} WHERE k = 2",
    )
    told = registry()
    made = history(lake, t)

    assert (
        written(PlanReader(lake).at_end(executions[3], told)) == made[3]
    )  # the first had ended before it began
    assert written(PlanReader(lake).at_end(executions[1], told)) == f"{made[3]}?"
    assert (
        written(PlanReader(lake).at_end(executions[1], told[: told.index(commit(told, made[2]))]))
        == made[1]
    )


def test_call_beside_another_write_proves_nothing(
    lake: Any, table: Callable[..., str], registry: Registry, tmp_path: Path
) -> None:
    """Its own commit is left out, as if it had found no files."""
    t = table("called")
    lake.range(1).selectExpr("id AS k", "'a' AS v").write.parquet(str(tmp_path / "files"))
    statements = UnreportedStatements()
    lake.sql(f"CALL lake.system.add_files('{t}', '`parquet`.`{tmp_path}/files`')")
    call = statements.take()
    statements.leave()
    assert call is not None
    registry()
    (insert,) = ran(lake, f"INSERT INTO {t} VALUES (2, 'b')")
    told = registry()
    (_, made) = history(lake, t)
    reader = PlanReader(lake)

    assert written(reader.unreported(call, told)) == made  # what a proof is taken for
    reader.at_start(insert)
    assert written(reader.unreported(call, told)) == f"{made}?"
    assert written(reader.at_end(insert, told)) == made
    assert reader.unreported(call, told).outputs[0].dataset.snapshots == ()


def commit(told: list[Commit | Scan], snapshot_id: str) -> Commit:
    return next(one for one in told if isinstance(one, Commit) and one.snapshot_id == snapshot_id)


def test_query_reads_the_snapshot_of_its_planning(lake: Any, table: Callable[..., str]) -> None:
    """Another session writes between creating a DataFrame and running it, and afterwards."""
    t = table("reads")
    lake.sql(f"INSERT INTO {t} VALUES (1, 'a')")
    rows = lake.newSession().sql(f"SELECT k, v FROM {t}")
    lake.sql(f"INSERT INTO {t} VALUES (2, 'b')")
    counted = len(rows.collect())
    lake.sql(f"INSERT INTO {t} VALUES (3, 'c')")

    read = PlanReader(lake).at_end(rows._jdf.queryExecution()).inputs[0].snapshots
    assert [(one.snapshot_id, one.observed) for one in read] == [
        (history(lake, t)[counted - 1], False)
    ]


@pytest.mark.slow
def test_table_read_at_two_snapshots_reports_both(lake: Any, table: Callable[..., str]) -> None:
    t = table("twice")
    lake.sql(f"INSERT INTO {t} VALUES (1, 'a')")
    lake.sql(f"INSERT INTO {t} VALUES (2, 'b')")
    first, second = history(lake, t)
    rows = lake.sql(
        f"SELECT new.k, old.v FROM {t} AS new LEFT JOIN {t} VERSION AS OF {first} AS old ON old.k = new.k"
    )
    rows.collect()

    read = PlanReader(lake).at_end(rows._jdf.queryExecution()).inputs
    assert [[one.snapshot_id for one in dataset.snapshots] for dataset in read] == [[first, second]]


def test_scans_of_other_statements_are_observed(
    lake: Any, table: Callable[..., str], registry: Registry
) -> None:
    """A DELETE of whole files reports no scan; Iceberg's registry reports everybody's scans."""
    t = table("scanned")
    lake.sql(f"INSERT INTO {t} VALUES (1, 'a')")
    registry()
    execution = ran(lake, f"DELETE FROM {t} WHERE k = 1")[0]
    told = registry()
    lake.sql(f"INSERT INTO {t} VALUES (2, 'b')")
    lake.sql(f"SELECT k FROM {t}").collect()
    inserted, deleted, later = history(lake, t)
    reader = PlanReader(lake)

    assert [
        (one.snapshot_id, one.observed)
        for one in reader.at_end(execution, told).inputs[0].snapshots
    ] == [(inserted, False)]
    assert all(
        one.observed for one in reader.at_end(execution, [*told, *registry()]).inputs[0].snapshots
    )
    assert deleted != later
