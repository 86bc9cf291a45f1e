"""Column lineage, statement by statement.

The cases are data: a file each for the constructs of a family.

A row reads `target column <- table.column = transform`; a column that is taken as it is has no
transform. `indirect` names what decides which rows there are, `kinds` how each column takes part,
`inputs` the tables that are read. Tables are those of `setup.sql`, without their catalog.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fixtures.spark_lake import formats
from fixtures.spark_lake.analysis import analysed
from strandline_spark import ColumnLineage, column_lineage
from strandline_spark.extraction.reader import PlanReader
from strandline_spark.model.statement import Statement
from strandline_spark.plans.questions import plan_probe
from strandline_spark.plans.tree import answers_with_trees
from strandline_spark.sql_columns import rows_of as lineage_rows

pytestmark = pytest.mark.spark
HERE = Path(__file__).parent
FORMAT = next((name for name in ("iceberg", "delta") if name in formats()), "parquet")
CATALOG = "lake.shop." if FORMAT == "iceberg" else "spark_catalog.shop."
CANNOT = {  # what a format's tables cannot do
    "iceberg": r"$^",
    "delta": r"(UPDATE|DELETE).*SELECT|REPLACE WHERE",
    "parquet": r"\b(MERGE|UPDATE|DELETE FROM|OR REPLACE TABLE|REPLACE WHERE)\b",
}[FORMAT]


def cases() -> list[Any]:
    """Return every case of every family."""
    return [
        pytest.param(case, id=f"{file.stem}: {case['name']}")
        for file in sorted((HERE / "cases").glob("*.toml"))
        for case in tomllib.loads(file.read_text())["case"]
    ]


@pytest.fixture(scope="module")
def shop(lake: Any) -> Any:
    for statement in (HERE / "setup.sql").read_text().split(";"):
        if statement.strip():
            lake.sql(here(statement))
    register_functions(lake)
    return lake


def here(sql: str) -> str:
    """A statement on tables of the format that there is for this Spark."""
    if FORMAT == "iceberg":
        return sql
    return sql.replace("lake.shop", "shop").replace("USING iceberg", f"USING {FORMAT}")


def statement_of(case: dict[str, Any]) -> str:
    if not since(case.get("since", "3.5")):
        pytest.skip(f"Spark has this from {case['since']} on")
    if re.search(CANNOT, case["sql"], re.DOTALL):
        pytest.skip(f"tables of {FORMAT} cannot do this")
    return here(case["sql"])


def register_functions(lake: Any) -> None:
    from pyspark.sql.functions import udf

    lake.udf.register("my_suffix_udf", udf(lambda name: f"{name}-suffix", "string"))
    if since("4.0"):
        from pyspark.sql.functions import udtf

        lake.sql("DECLARE OR REPLACE VARIABLE least_id INT DEFAULT 5")
        lake.udtf.register("my_split_udtf", udtf(Split, returnType="word string, length int"))
    for function in SQL_FUNCTIONS if since("4.2") else ():  # Iceberg's parser of 4.1 refuses them
        lake.sql(f"CREATE OR REPLACE TEMPORARY FUNCTION {here(function)}")


SQL_FUNCTIONS = (
    "full_name(a STRING, b STRING) RETURNS STRING RETURN concat(upper(a), '-', b)",
    "total_of(c BIGINT) RETURNS DECIMAL(20,2) RETURN SELECT sum(amount) FROM lake.shop.orders WHERE customer_id = c",
    """orders_of(c BIGINT) RETURNS TABLE (oid BIGINT, st STRING)
       RETURN SELECT id, upper(status) FROM lake.shop.orders WHERE customer_id = c""",
)


class Split:
    def eval(self, name: str) -> Iterator[tuple[str, int]]:
        yield from ((word, len(word)) for word in name.split(" "))


def since(version: str) -> bool:
    import pyspark

    return bool(pyspark.__version__ >= version)


@pytest.fixture(scope="module")
def reader(shop: Any) -> PlanReader:
    return PlanReader(shop)


@pytest.mark.parametrize("case", cases())
def test_columns_have_the_expected_origins(
    shop: Any, reader: PlanReader, case: dict[str, Any]
) -> None:
    """Compare all that the case states of the plan."""
    statement = reader.at_start(analysed(shop, statement_of(case)))

    assert [row_of(row) for row in lineage_rows(statement)] == case["rows"]
    if "indirect" in case:
        assert deciding_columns(statement) == sorted(case["indirect"])
    if "kinds" in case:
        assert kinds_of_origins(statement) == case["kinds"]
    if "inputs" in case:
        assert (
            sorted(dataset.name.rpartition("/")[2] for dataset in statement.inputs)
            == case["inputs"]
        )


def deciding_columns(statement: Statement) -> list[str]:
    """Return the columns that decide which rows there are, each with how it does so."""
    return sorted(
        f"{o.subtype} {o.dataset[1].rpartition('/')[2]}.{o.column}" for o in statement.indirect
    )


def kinds_of_origins(statement: Statement) -> list[str]:
    """Return how each origin takes part in its column."""
    return [
        f"{column.name} <- {origin.column} {origin.type} {origin.subtype}{' masked' if origin.masking else ''}"
        for column in statement.columns
        for origin in column.origins
    ]


def test_tree_of_a_plan_is_short(shop: Any) -> None:
    columns = ", ".join(f"amount * {number} AS c{number}" for number in range(20))
    plan = analysed(shop, here(f"SELECT {columns} FROM lake.shop.orders")).analyzed()

    text = str(plan_probe(shop._jvm._gateway_client).tree(plan))

    assert answers_with_trees(text).name == "Project"
    assert len(text) < len(plan.toJSON()) / 4


def row_of(row: ColumnLineage) -> str:
    source = f"{row.target_column} <- {row.source_table.removeprefix(CATALOG)}.{row.source_column}"
    return source if row.transform is None else f"{source} = {row.transform}"


def test_row_says_whether_its_origin_supplies_the_value(shop: Any) -> None:
    sql = "SELECT CASE WHEN status = 'x' THEN amount END AS a, IF(amount > 1, amount, id) AS b FROM lake.shop.orders"

    rows = [
        (row.target_column, row.source_column, row.type) for row in column_lineage(shop, here(sql))
    ]

    assert rows == [
        ("a", "status", "INDIRECT"),
        ("a", "amount", "DIRECT"),
        ("b", "amount", "DIRECT"),
        ("b", "id", "DIRECT"),
    ]


def test_column_lineage_does_not_run_the_statement(shop: Any) -> None:
    before = shop.sql(here("SELECT count(*) FROM lake.shop.dwd_hudi_users")).collect()

    rows = "SELECT id, name, name, birthday, ts, 'p' FROM lake.shop.ods_mysql_users"
    column_lineage(shop, here(f"INSERT INTO lake.shop.dwd_hudi_users {rows}"))
    column_lineage(
        shop, here("CREATE TABLE lake.shop.never USING iceberg AS SELECT * FROM lake.shop.orders")
    )

    assert shop.sql(here("SELECT count(*) FROM lake.shop.dwd_hudi_users")).collect() == before
    assert not shop.catalog.tableExists(f"{CATALOG}never")


def test_rows_have_full_names_and_the_target(shop: Any) -> None:
    sql = "INSERT INTO lake.shop.names SELECT UPPER(name) FROM lake.shop.customers"

    assert column_lineage(shop, here(sql)) == [
        ColumnLineage(f"{CATALOG}customers", "name", f"{CATALOG}names", "name", "UPPER(name)")
    ]
