"""Makes the bank's tables in the catalog `lake`, without a JVM.

`python tables.py sqlite:////path/cat.db file:///path`.

Table `report` is not among them: the report job makes it.
"""

import sys

from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, TimestamptzType

TABLES = {
    "bank.transfers": Schema(
        NestedField(1, "id", LongType()),
        NestedField(2, "payer", LongType()),
        NestedField(3, "payee", LongType()),
        NestedField(4, "amount", LongType()),
        NestedField(5, "at", TimestamptzType()),
    ),
    "bank.credits": Schema(
        NestedField(1, "account", LongType()), NestedField(2, "amount", LongType())
    ),
    "bank.debits": Schema(
        NestedField(1, "account", LongType()), NestedField(2, "amount", LongType())
    ),
    "bank.balance": Schema(
        NestedField(1, "account", LongType()), NestedField(2, "balance", LongType())
    ),
}


def make_tables(uri: str, warehouse: str) -> None:
    """Make the namespace and the four tables that streams write."""
    catalog = SqlCatalog("lake", uri=uri, warehouse=warehouse)
    catalog.create_namespace("bank")
    for name, schema in TABLES.items():
        catalog.create_table(name, schema)
    catalog.close()


if __name__ == "__main__":
    make_tables(*sys.argv[1:])
