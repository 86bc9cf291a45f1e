"""The kinds of columns that all tables share, and the tables' metadata.

Each table and each column states in its comment why it exists; PostgreSQL shows these comments.
"""

from typing import Any

from sqlalchemy import BigInteger, Column, Integer, LargeBinary, MetaData, SmallInteger, Text

metadata = MetaData(
    naming_convention={"ix": "ix_%(table_name)s_%(column_0_N_name)s", "pk": "pk_%(table_name)s"}
)

# A lone INTEGER key is SQLite's rowid: one B-tree instead of two.
Id = BigInteger().with_variant(Integer(), "sqlite")
# A compound key is the table itself.
CLUSTERED: dict[str, Any] = {"sqlite_with_rowid": False}


def time_column(name: str, why: str, *, nullable: bool = False) -> Column[int]:
    """Return a column of moments, in microseconds since 1970 UTC."""
    return Column(name, BigInteger, nullable=nullable, comment=why)


def text_column(name: str, why: str, *, nullable: bool = False) -> Column[str]:
    """Return a column of texts, empty or NULL where nothing is set."""
    default = None if nullable else ""
    return Column(name, Text, nullable=nullable, server_default=default, comment=why)


def id_column(name: str, why: str, *, nullable: bool = False) -> Column[int]:
    """Return a column of ids of other rows, or of parts of hashes."""
    return Column(name, BigInteger, nullable=nullable, comment=why)


def number_column(name: str, why: str, *, nullable: bool = False) -> Column[int]:
    """Return a column of large numbers."""
    return Column(name, BigInteger, nullable=nullable, comment=why)


def count_column(name: str, why: str) -> Column[int]:
    """Return a column of numbers that begin with 0."""
    return Column(name, BigInteger, nullable=False, server_default="0", comment=why)


def code_column(name: str, why: str, *, nullable: bool = False) -> Column[int]:
    """Return a column of small numbers, each of which has a meaning."""
    return Column(name, SmallInteger, nullable=nullable, comment=why)


def flag_column(name: str, why: str) -> Column[int]:
    """Return a column of 0 or 1, or other small numbers; 0 where nothing is set."""
    return Column(name, SmallInteger, nullable=False, server_default="0", comment=why)


def bytes_column(name: str, why: str, *, nullable: bool = False) -> Column[bytes]:
    """Return a column of bytes."""
    return Column(name, LargeBinary, nullable=nullable, comment=why)


def own_id(why: str = "a hash of what the row is about, so no sequence is needed") -> Column[int]:
    """Return the key of a table whose ids the collector computes."""
    return Column("id", Id, primary_key=True, autoincrement=False, comment=why)


def row_number() -> Column[int]:
    """Return the key of a table whose rows the database numbers."""
    return Column("id", Id, primary_key=True, autoincrement=True, comment="the order of the rows")
