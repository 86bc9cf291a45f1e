"""Column lineage, statement by statement. The cases are data: a file each for the constructs of a family.

A row reads `target column <- table.column = transform`; a column that is taken as it is has no transform. `indirect`
names what decides which rows there are. Tables are those of `setup.sql`, without their catalog.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strandline_spark.columns import ColumnLineage, column_lineage
from strandline_spark.plans import PlanReader

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # PySpark leaves sockets to the gc
]
HERE = Path(__file__).parent
CATALOG = "lake.shop."


def cases(field: str = "sql") -> list[Any]:
    """Every case that has a field."""
    files = sorted((HERE / "cases").glob("*.toml"))
    found = [(file.stem, case) for file in files for case in tomllib.loads(file.read_text())["case"]]
    return [pytest.param(case, id=f"{family}: {case['name']}") for family, case in found if field in case]


@pytest.fixture(scope="module")
def shop(lake: Any) -> Any:
    for statement in (HERE / "setup.sql").read_text().split(";"):
        if statement.strip():
            lake.sql(statement)
    register_functions(lake)
    return lake


def register_functions(lake: Any) -> None:
    from pyspark.sql.functions import udf

    lake.udf.register("my_suffix_udf", udf(lambda name: f"{name}-suffix", "string"))
    if since("4.0"):
        from pyspark.sql.functions import udtf

        lake.udtf.register("my_split_udtf", udtf(Split, returnType="word string, length int"))


class Split:
    def eval(self, name: str) -> Iterator[tuple[str, int]]:
        yield from ((word, len(word)) for word in name.split(" "))


def since(version: str) -> bool:
    import pyspark

    return bool(pyspark.__version__ >= version)


@pytest.mark.parametrize("case", cases())
def test_columns(shop: Any, case: dict[str, Any]) -> None:
    if not since(case.get("since", "3.5")):
        pytest.skip(f"Spark has this from {case['since']} on")

    rows = [row_of(row) for row in column_lineage(shop, case["sql"])]

    assert rows == case["rows"]


@pytest.mark.parametrize("case", cases("indirect"))
def test_what_decides_the_rows(shop: Any, case: dict[str, Any]) -> None:
    statement = PlanReader(shop).at_start(analysed(shop, case["sql"]))

    assert sorted(f"{o.subtype} {o.dataset[1].rpartition('/')[2]}.{o.column}" for o in statement.indirect) == sorted(
        case["indirect"]
    )


@pytest.mark.parametrize("case", cases("kinds"))
def test_how_a_column_takes_part(shop: Any, case: dict[str, Any]) -> None:
    statement = PlanReader(shop).at_start(analysed(shop, case["sql"]))

    kinds = [
        f"{column.name} <- {origin.column} {origin.type} {origin.subtype}{' masked' if origin.masking else ''}"
        for column in statement.columns
        for origin in column.origins
    ]
    assert kinds == case["kinds"]


def analysed(spark: Any, sql: str) -> Any:
    state = spark._jsparkSession.sessionState()
    mode = spark._jvm.org.apache.spark.sql.execution.CommandExecutionMode.SKIP()
    return state.executePlan(state.sqlParser().parsePlan(sql), mode)


def row_of(row: ColumnLineage) -> str:
    source = f"{row.target_column} <- {row.source_table.removeprefix(CATALOG)}.{row.source_column}"
    return source if row.transform is None else f"{source} = {row.transform}"


def test_a_statement_is_not_run(shop: Any) -> None:
    before = shop.sql("SELECT count(*) FROM lake.shop.dwd_hudi_users").collect()

    column_lineage(
        shop,
        "INSERT INTO lake.shop.dwd_hudi_users SELECT id, name, name, birthday, ts, 'p' FROM lake.shop.ods_mysql_users",
    )
    column_lineage(shop, "CREATE TABLE lake.shop.never AS SELECT * FROM lake.shop.orders")

    assert shop.sql("SELECT count(*) FROM lake.shop.dwd_hudi_users").collect() == before
    assert not shop.catalog.tableExists("lake.shop.never")


def test_names_are_whole_and_the_target_is_told(shop: Any) -> None:
    sql = "INSERT INTO lake.shop.names SELECT UPPER(name) FROM lake.shop.customers"

    assert column_lineage(shop, sql) == [
        ColumnLineage("lake.shop.customers", "name", "lake.shop.names", "name", "UPPER(name)")
    ]
