"""The third job: a JDBC table gets rows from a join of both tables.

Arguments: `joined.py KIND WAREHOUSE WAREHOUSE JDBC_ADDRESS`.
"""

import sys

from copied import session


def main(kind: str, first: str, second: str, address: str) -> None:
    """Join and write."""
    spark = session("join", kind, first=first, second=second)
    both = spark.sql(
        "SELECT a.id, a.amount + b.amount AS amount"
        " FROM first.shop.my_paimon_table AS a JOIN second.shop.my_paimon_table AS b ON a.id = b.id"
    )
    both.write.format("jdbc").option("url", address).option("dbtable", "joined").mode(
        "append"
    ).save()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
