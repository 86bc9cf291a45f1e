"""Upgrades: rows of every earlier schema survive, and a database is migrated while servers and senders go on."""

import subprocess
import sys
import threading
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine, MetaData, Table, insert, inspect
from sqlalchemy.types import Boolean, DateTime, Float, Integer, LargeBinary, String

from fixtures.versions_server.process import served
from store.test_migrations import back_to_nothing, revisions
from strandline.errors import SchemaError
from strandline.runtime.follower import Follower
from strandline.store.sql.engine import check, make_engine, migrate
from worlds.builders import dataset, encode, event, live, rows, run_id, store

EARLIER = revisions()[:-1]
REWRITTEN = {"edges", "store_settings", "alert_outbox"}  # what a migration makes something else of, on purpose
SAMPLES: tuple[tuple[type, Any], ...] = (
    (Boolean, True),
    (Integer, 7),
    (Float, 7.0),
    (LargeBinary, b"\x07"),
    (DateTime, datetime(2026, 11, 20)),
    (String, "7"),
)


def sample_of(kind: object) -> Any:
    """A value that a column of this type takes."""
    return next((value for known, value in SAMPLES if isinstance(kind, known)), "7")


def filled(engine: Engine) -> dict[str, dict[str, Any]]:
    """One row in every empty table of the schema, as it is at the moment; gives what was written, by table."""
    found: dict[str, dict[str, Any]] = {}
    metadata = MetaData()
    for name in sorted(inspect(engine).get_table_names()):
        table = Table(name, metadata, autoload_with=engine)
        if name in ("alembic_version", "dictionaries") or name.startswith("raw_events") or has_rows(engine, name):
            continue
        values = {column.name: sample_of(column.type) for column in table.columns if not column.identity}
        with engine.begin() as connection:
            connection.execute(insert(table).values(values))
        found[name] = values
    return found


def has_rows(engine: Engine, table: str) -> bool:
    """Whether a migration has put something there."""
    return bool(rows(engine, f"SELECT 1 FROM {table} LIMIT 1"))


def kept(engine: Engine, table: str, written: dict[str, Any]) -> bool:
    """Whether the row is still there in the columns that are."""
    there = {column["name"] for column in inspect(engine).get_columns(table)}
    names = sorted(written.keys() & there)
    columns = ", ".join(f'"{name}"' for name in names)
    found = rows(engine, f"SELECT {columns} FROM {table}")
    wanted = [written[name] for name in names]
    return any([bytes(one) if isinstance(one, memoryview) else one for one in row] == wanted for row in found)


@pytest.mark.parametrize("revision", EARLIER)
def test_a_row_of_each_table_of_an_earlier_schema_survives(engine: Engine, revision: str) -> None:
    back_to_nothing(engine)
    migrate(engine, revision)
    written = filled(engine)
    with pytest.raises(SchemaError, match="strandline migrate"):
        check(engine)

    migrate(engine)

    check(engine)
    there = set(inspect(engine).get_table_names())
    lost = [name for name in sorted(written.keys() & there - REWRITTEN) if not kept(engine, name, written[name])]
    assert len(written) > 10
    assert lost == []
    assert written.keys() - there <= REWRITTEN


def test_the_newest_program_works_on_a_database_of_the_first_schema(engine: Engine) -> None:
    back_to_nothing(engine)
    migrate(engine, EARLIER[0])
    migrate(engine)

    store(engine, [event("START", inputs=[dataset("bank.a")], outputs=[dataset("bank.b")])])
    with Follower(engine).model() as model:
        assert model.domains == {}

    assert live(engine) == {"etl": ["< bank.a", "> bank.b"]}


@pytest.mark.postgres
def test_a_database_is_migrated_while_two_servers_take_events(postgres_url: str, tmp_path: Path) -> None:
    """Who writes goes on, who migrates again and again changes nothing, and a server that starts meanwhile joins."""
    sent, stopping = [0, 0], threading.Event()

    def send(place: int, client: httpx.Client) -> None:
        while not stopping.is_set():
            one = event("START", run_id(1000 * place + sent[place]), job=f"job{place}")
            assert client.post("/api/v1/lineage", content=encode(one)).status_code == 201
            sent[place] += 1

    with served(postgres_url, tmp_path, 2) as servers:
        threads = [threading.Thread(target=send, args=(place, one.client)) for place, one in enumerate(servers)]
        for thread in threads:
            thread.start()
        command = [sys.executable, "-m", "strandline", "migrate", "--database-url", postgres_url]
        codes = [subprocess.run(command, check=False, capture_output=True).returncode for _ in range(3)]
        with served(postgres_url, tmp_path) as (third,):
            ready = third.client.get("/readyz").status_code
        stopping.set()
        for thread in threads:
            thread.join()
    engine = make_engine(postgres_url)
    stored = rows(engine, "SELECT count(*) FROM runs")
    engine.dispose()

    assert (codes, ready) == ([0, 0, 0], 200)
    assert min(sent) > 3
    assert stored == [(sum(sent),)]
