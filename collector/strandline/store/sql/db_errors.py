"""Whose fault an error of the database is: of a record, which is set aside.

Or of the store, which is waited for.

Classes of SQLSTATE: PostgreSQL's documentation, appendix A. SQLite's driver has classes of errors
alone.
"""

import re

from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError

# Data that cannot be, constraints, too many rows for a subquery, limits of an index row: other
# records may do better.
OF_RECORDS = ("21", "22", "23", "54")
# a column, a table or a right is missing: waiting does not help, and nobody's record is to blame
OF_THE_SCHEMA = "42"
_MISSING = re.compile(r"no such (?:table|column)|has no column")  # as SQLite says it
IDLE_IN_TRANSACTION = "25P03"


def is_of_records(error: DBAPIError) -> bool:
    """Whether what was to be stored is the reason, rather than the database or its schema."""
    state = state_of(error)
    if state:
        return state[:2] in OF_RECORDS
    return isinstance(
        error, DataError | IntegrityError | ProgrammingError
    )  # the driver's own, before anything is sent


def is_of_the_schema(error: DBAPIError) -> bool:
    """Whether the program and the tables, or its rights to them, do not fit together."""
    state = state_of(error)
    return state[:2] == OF_THE_SCHEMA if state else _MISSING.search(reason_of(error)) is not None


def is_silence(error: DBAPIError) -> bool:
    """Whether the database ended a transaction because its process was idle for too long."""
    return state_of(error) == IDLE_IN_TRANSACTION


def reason_of(error: DBAPIError) -> str:
    """What the database says, in one line, without the statement and what was to be stored."""
    return " ".join(str(error.orig or error).split())[:500]


def state_of(error: DBAPIError) -> str:
    """The SQLSTATE, or nothing."""
    return getattr(error.orig, "sqlstate", None) or ""
