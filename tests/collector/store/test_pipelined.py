"""Statements of one pipeline fail as others do: as SQLAlchemy's errors, with PostgreSQL's own code, and with nothing left of them."""

import pytest
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, OperationalError

from strandline.store.ingest.transactions import may_retry
from strandline.store.sql.pipelined import pipelined

pytestmark = pytest.mark.postgres

WRITE = "INSERT INTO store_settings (key, value) VALUES (%s, 'x')"
FAIL = "DO $$ BEGIN RAISE EXCEPTION 'tried' USING ERRCODE = '{}'; END $$"


def test_what_is_sent_together_is_done_together(postgres_engine: Engine) -> None:
    with postgres_engine.begin() as connection, pipelined(connection):
        for key in ("one", "two"):
            connection.exec_driver_sql(WRITE, (key,))

    assert {"one", "two"} <= keys(postgres_engine)


@pytest.mark.parametrize("later", [0, 1, 40])
def test_the_first_error_is_told_and_nothing_is_left(postgres_engine: Engine, later: int) -> None:
    """However many statements follow, which fail for the reason that one before them has failed."""
    with pytest.raises(DBAPIError) as failed, postgres_engine.begin() as connection:
        write_around(connection, FAIL.format("40P01"), later)

    assert may_retry(failed.value)
    assert keys(postgres_engine).isdisjoint({"before", *map(str, range(later))})


def test_an_error_of_a_record_is_not_tried_again(postgres_engine: Engine) -> None:
    with pytest.raises(DBAPIError) as failed, postgres_engine.begin() as connection:
        write_around(connection, FAIL.format("22021"), 3)

    assert not may_retry(failed.value)


@pytest.mark.parametrize("later", [0, 5])
def test_a_connection_that_is_lost_half_way_is_not_lent_again(postgres_engine: Engine, later: int) -> None:
    with pytest.raises(OperationalError) as failed, postgres_engine.begin() as connection:
        write_around(connection, "SELECT pg_terminate_backend(pg_backend_pid())", later)

    assert failed.value.connection_invalidated
    assert "before" not in keys(postgres_engine)


def write_around(connection: Connection, statement: str, later: int) -> None:
    with pipelined(connection):
        connection.exec_driver_sql(WRITE, ("before",))
        connection.exec_driver_sql(statement)
        for key in range(later):
            connection.exec_driver_sql(WRITE, (str(key),))


def keys(engine: Engine) -> set[str]:
    with engine.connect() as connection:
        return set(connection.exec_driver_sql("SELECT key FROM store_settings").scalars())
