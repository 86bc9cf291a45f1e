"""What the tables share.

Their metadata, the kinds of their columns, and how a table with a compound key is laid out.
"""

from typing import Any

from sqlalchemy import BigInteger, Column, Integer, MetaData, SmallInteger, Text

metadata = MetaData(
    naming_convention={"ix": "ix_%(table_name)s_%(column_0_N_name)s", "pk": "pk_%(table_name)s"}
)

Id = BigInteger().with_variant(
    Integer(), "sqlite"
)  # a lone INTEGER key is SQLite's rowid: one B-tree instead of two
CLUSTERED: dict[str, Any] = {"sqlite_with_rowid": False}  # a compound key is the table itself


def time_column(name: str, *, nullable: bool = False) -> Column[int]:
    """A moment, in microseconds since 1970 UTC."""
    return Column(name, BigInteger, nullable=nullable)


def text_column(name: str, *, nullable: bool = False) -> Column[str]:
    """A text; empty where nothing is set, or NULL."""
    return Column(name, Text, nullable=nullable, server_default=None if nullable else "")


def id_column(name: str, *, nullable: bool = False) -> Column[int]:
    """The id of an entity, which stands in a table of its own."""
    return Column(name, BigInteger, nullable=nullable)


def flag_column(name: str) -> Column[int]:
    """0 or 1, or another small number; 0 where nothing is set."""
    return Column(name, SmallInteger, nullable=False, server_default="0")


def own_id() -> Column[int]:
    """The key of a table of entities: a hash that the collector computes, so no sequence."""
    return Column("id", Id, primary_key=True, autoincrement=False)
