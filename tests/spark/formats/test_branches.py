"""Events name the branch of Iceberg snapshots that are not on main."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fixtures.spark_lake import needs
from fixtures.spark_lake.analysis import iceberg_queue, reports_in
from strandline_spark.extraction.reader import PlanReader

pytestmark = [
    pytest.mark.spark,
    needs("iceberg"),
]
Place = tuple[str | None, bool]
MAIN, DEV, STAGED, NOTHING = ("main", False), ("dev", False), (None, True), (None, False)


@pytest.fixture(scope="module")
def ran(lake: Any) -> Callable[[str], Any]:
    """Runs a statement and reads it as the emitter does at its end."""
    queue = iceberg_queue(lake)

    def run(statement: str) -> Any:
        reports_in(queue)
        rows = lake.sql(statement)
        rows.collect()
        return PlanReader(lake).at_end(rows._jdf.queryExecution(), reports_in(queue))

    return run


@pytest.fixture
def t(lake: Any, request: pytest.FixtureRequest) -> Iterator[str]:
    """A table with a first row, which is gone afterwards."""
    lake.sql("CREATE NAMESPACE IF NOT EXISTS lake.branches")
    name = "lake.branches.t"
    lake.sql(
        f"CREATE TABLE {name} (k bigint) USING iceberg TBLPROPERTIES ('write.wap.enabled' = 'true')"
    )
    lake.sql(f"INSERT INTO {name} VALUES (1)")
    yield name
    for key in ("spark.wap.id", "spark.wap.branch"):
        lake.conf.unset(key)
    lake.sql(f"DROP TABLE {name}")


def made(statement: Any) -> Place:
    (one,) = statement.outputs[0].dataset.snapshots
    return one.branch, one.staged


def read(statement: Any) -> Place:
    (one,) = statement.inputs[0].snapshots
    return one.branch, one.staged


def test_branch_is_omitted_for_a_table_with_only_main(ran: Callable[[str], Any], t: str) -> None:
    assert made(ran(f"INSERT INTO {t} VALUES (2)")) == NOTHING
    assert read(ran(f"SELECT * FROM {t}")) == NOTHING


def test_branch_commit_names_its_branch_until_main_is_set_to_it(
    lake: Any, ran: Callable[[str], Any], t: str
) -> None:
    lake.sql(f"ALTER TABLE {t} CREATE BRANCH dev")

    assert made(ran(f"INSERT INTO {t}.branch_dev VALUES (2)")) == DEV
    assert made(ran(f"DELETE FROM {t}.branch_dev WHERE k = 1")) == DEV
    assert made(ran(f"INSERT INTO {t} VALUES (3)")) == NOTHING
    assert read(ran(f"SELECT * FROM {t}")) == MAIN
    assert read(ran(f"SELECT * FROM {t}.branch_dev")) == DEV


def test_branch_that_main_was_set_to_is_read_as_main(
    lake: Any, ran: Callable[[str], Any], t: str
) -> None:
    lake.sql(f"ALTER TABLE {t} CREATE BRANCH dev")
    committed = ran(f"INSERT INTO {t}.branch_dev VALUES (2)")
    lake.sql(f"CALL lake.system.fast_forward('{t.removeprefix('lake.')}', 'main', 'dev')")
    lake.sql(f"REFRESH TABLE {t}")

    assert made(committed) == DEV
    assert read(ran(f"SELECT * FROM {t}")) == MAIN


def test_a_branch_that_a_session_writes_to_is_named(
    lake: Any, ran: Callable[[str], Any], t: str
) -> None:
    lake.conf.set("spark.wap.branch", "audit")

    assert made(ran(f"INSERT INTO {t} VALUES (2)")) == ("audit", False)
    assert read(ran(f"SELECT * FROM {t}")) == ("audit", False)


def test_staged_snapshot_has_no_branch_until_published(
    lake: Any, ran: Callable[[str], Any], t: str
) -> None:
    lake.conf.set("spark.wap.id", "load-7")
    staged = ran(f"INSERT INTO {t} VALUES (2)")
    lake.conf.unset("spark.wap.id")
    id_ = staged.outputs[0].dataset.snapshots[0].snapshot_id

    assert made(staged) == STAGED
    assert read(ran(f"SELECT * FROM {t}")) == NOTHING

    lake.sql(f"CALL lake.system.cherrypick_snapshot('{t.removeprefix('lake.')}', {id_})")
    lake.sql(f"REFRESH TABLE {t}")
    statement = ran(f"SELECT * FROM {t}")

    assert (read(statement), statement.inputs[0].snapshots[0].snapshot_id) == (MAIN, id_)
