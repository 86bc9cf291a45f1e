"""Makes the aligned bank's tables in the catalog `lake`.

`python tables.py sqlite:////path/cat.db file:///path`.
"""

import sys

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField

AMOUNTS = Schema(NestedField(1, "account", LongType()), NestedField(2, "amount", LongType()))
BALANCES = Schema(NestedField(1, "account", LongType()), NestedField(2, "balance", LongType()))
TABLES = {"credits": AMOUNTS, "debits": AMOUNTS, "balance": BALANCES, "naive_balance": BALANCES}


def make_tables(uri: str, warehouse: str) -> None:
    """Make the namespace and its tables."""
    catalog = SqlCatalog("lake", uri=uri, warehouse=warehouse)
    catalog.create_namespace("aligned")
    for name, schema in TABLES.items():
        catalog.create_table(f"aligned.{name}", schema)
    catalog.close()


if __name__ == "__main__":
    make_tables(*sys.argv[1:])
