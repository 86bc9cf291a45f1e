"""Column lineage of the statements that change rows, in a session that has one table format only.

`columns_of.py FOLDER FORMAT NAMESPACE`: writes a list of rows a statement into `columns.json`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from strandline_spark import column_lineage

STATEMENTS = (
    """MERGE INTO {n}.people AS t USING {n}.news AS s ON t.id = s.id
        WHEN MATCHED THEN UPDATE SET name = upper(s.name)
        WHEN NOT MATCHED THEN INSERT (id, name, city) VALUES (s.id, s.name, 'x')""",
    "UPDATE {n}.people SET name = concat(name, city) WHERE id = 3",
    "DELETE FROM {n}.people WHERE id = 3",
)


def main(folder: str, kind: str, namespace: str) -> None:
    spark = SparkSession.builder.appName("columns").getOrCreate()
    spark.sql(f"CREATE DATABASE {namespace}")
    for name in ("people", "news"):
        key = "TBLPROPERTIES ('primary-key' = 'id')"
        spark.sql(f"CREATE TABLE {namespace}.{name} (id bigint, name string, city string) USING {kind} {key}")
    rows = [
        [
            f"{row.target_column} <- {row.source_table}.{row.source_column} = {row.transform}"
            for row in column_lineage(spark, sql.format(n=namespace))
        ]
        for sql in STATEMENTS
    ]
    (Path(folder) / "columns.json").write_text(json.dumps(rows))
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
