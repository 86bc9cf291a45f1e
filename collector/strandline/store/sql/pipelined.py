"""Statements that nobody waits for: one after the other on its way to PostgreSQL, and their answers at the end.

Each statement that is waited for lets two processes wait for each other; a small transaction has a dozen that answer nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError


@contextmanager
def pipelined(connection: Connection) -> Iterator[None]:
    """Around statements without answers. All are done after it, or the first error of one of them is raised.

    An error may be raised with a later statement's text: until the end nobody looks which one an answer belongs to.
    """
    if connection.dialect.name != "postgresql":
        yield
        return
    from psycopg import Error  # with SQLite nobody needs it

    driver: Any = connection.connection.driver_connection
    try:
        with driver.pipeline():
            yield
    except Error as error:
        is_lost = driver.closed
        if is_lost:
            connection.invalidate(error)
        what = "statements of one pipeline"
        raise DBAPIError.instance(what, None, error, Error, connection_invalidated=is_lost) from error
