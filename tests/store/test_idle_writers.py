"""A writer stopped between statements is idle, so PostgreSQL can end its transaction."""

from typing import Any

import pytest
from sqlalchemy import Engine, event

from strandline.store.ingest.take import Record
from strandline.store.ingest.transactions import Batches
from worlds.builders import LONG_AGO, encode
from worlds.builders import event as built

pytestmark = pytest.mark.postgres

STATE = "SELECT state FROM pg_stat_activity WHERE pid = %s"


def test_writer_is_idle_between_any_two_statements(postgres_engine: Engine) -> None:
    seen: dict[str, str] = {}
    with postgres_engine.connect().execution_options(isolation_level="AUTOCOMMIT") as other:

        def look(connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
            if connection.connection is not other.connection and statement.startswith(
                "INSERT INTO "
            ):
                pid = connection.connection.driver_connection.info.backend_pid
                seen[statement.split()[2]] = other.exec_driver_sql(STATE, (pid,)).scalar_one()

        event.listen(postgres_engine, "before_cursor_execute", look)
        try:
            Batches(postgres_engine).write([Record(encode(built()), LONG_AGO)])
        finally:
            event.remove(postgres_engine, "before_cursor_execute", look)

    assert {"raw_events", "jobs", "runs"} <= seen.keys()
    assert set(seen.values()) == {"idle in transaction"}
