"""The cause of an error of the database: a record, which is set aside, or the store.

The classes of SQLSTATE are in PostgreSQL's documentation, appendix A. SQLite's driver only has
classes of errors.
"""

import re

from sqlalchemy.exc import DatabaseError, DataError, DBAPIError, IntegrityError, ProgrammingError

# Impossible data, constraints, too many rows for a subquery, limits of an index row.
OF_RECORDS = ("21", "22", "23", "54")
# A column, a table or a right is missing: waiting does not help, and no record is to blame.
OF_THE_SCHEMA = "42"
_MISSING = re.compile(r"no such (?:table|column)|has no column")  # as SQLite says it
IDLE_IN_TRANSACTION = "25P03"


def is_of_records(error: DBAPIError) -> bool:
    """Return whether a record is the cause, rather than the database or its schema."""
    state = state_of(error)
    if state:
        return state[:2] in OF_RECORDS
    # These come from the driver itself, before anything is sent.
    return isinstance(error, DataError | IntegrityError | ProgrammingError)


def is_damage(error: BaseException) -> bool:
    """Return whether an SQLite file is not what was written; the driver has no class of its own."""
    return type(error) is DatabaseError


def is_of_the_schema(error: DBAPIError) -> bool:
    """Return whether the tables, or the rights to them, are not what the program needs."""
    state = state_of(error)
    return state[:2] == OF_THE_SCHEMA if state else _MISSING.search(reason_of(error)) is not None


def is_silence(error: DBAPIError) -> bool:
    """Return whether the database ended a transaction because its process was idle."""
    return state_of(error) == IDLE_IN_TRANSACTION


def reason_of(error: DBAPIError) -> str:
    """Return the database's message in one line, without the statement and its parameters."""
    return " ".join(str(error.orig or error).split())[:500]


def state_of(error: DBAPIError) -> str:
    """Return the SQLSTATE, or an empty text."""
    return getattr(error.orig, "sqlstate", None) or ""
