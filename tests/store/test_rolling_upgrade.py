"""An upgrade without a pause: a server of an earlier version goes on beside the new one, on the schema of the new one."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Engine

from api.versions.test_killed_servers import checking
from conftest import sql
from fixtures.versions_server.earlier import earlier_program
from fixtures.versions_server.live_world import Telling, live_world, tell_all
from fixtures.versions_server.process import PATIENCE, Served, served
from strandline.core.openlineage.times import moment_of
from strandline.history.compare import differences
from strandline.store.ingest.raw_events import events_of
from strandline.store.ingest.take import Caches, Record, take
from strandline.store.sql.engine import make_engine, migrate
from worlds.scenarios.bank import bank

BARRIERS = 9


@pytest.fixture
def empty_url(postgres_server: Callable[[str], str]) -> Iterator[str]:
    """An empty PostgreSQL database."""
    name = f"test_{uuid4().hex[:12]}"
    sql(postgres_server("postgres"), f"CREATE DATABASE {name}")
    yield postgres_server(name)
    sql(postgres_server("postgres"), f"DROP DATABASE {name} WITH (FORCE)")


def command(url: str, *words: str, program: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A command of this version, or of another one."""
    first = [] if program is None else [str(program)]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([*first, *filter(None, sys.path)])}
    whole = [sys.executable, "-m", "strandline", *words, "--database-url", url]
    return subprocess.run(whole, check=False, capture_output=True, text=True, env=environ)


def send(server: Served, records: list[Record]) -> None:
    """Each event alone. A sender takes what is refused for a while again."""
    for record in records:
        until = time.monotonic() + PATIENCE
        while server.client.post("/api/v1/lineage", content=record.value).status_code != 201:
            assert time.monotonic() < until
            time.sleep(0.05)


def answers(server: Served) -> list[Any]:
    """What both shall answer alike: lineage, columns, snapshots, the proposals' tables."""
    balance = "dataset:file:/lake/bank/balance"
    asked = [
        ("/api/v2/lineage", {"node": balance}),
        ("/api/v2/lineage", {"node": balance, "granularity": "column"}),
        ("/api/v2/datasets", {}),
        ("/api/v2/datasets/snapshots", {"namespace": "file", "name": "/lake/bank/balance"}),
        ("/api/v2/tables/sink_snapshot_lineage", {"state": "history"}),
    ]
    found = [server.client.get(path, params=params) for path, params in asked]
    assert [one.status_code for one in found] == [200] * len(found), [one.text for one in found]
    return [timeless(one.json()) for one in found]


def timeless(answer: Any) -> Any:
    """Without the moment of the question."""
    if isinstance(answer, dict):
        return {name: timeless(value) for name, value in answer.items() if name != "asOf"}
    return [timeless(one) for one in answer] if isinstance(answer, list) else answer


def from_events(engine: Engine, folder: Path) -> dict[str, int]:
    """How the store differs from one of this version that took the same events alone, in the order of their receipt."""
    folder.mkdir()
    fresh = make_engine(f"sqlite:///{folder}/fresh.db")
    migrate(fresh)
    caches = Caches()
    with engine.connect() as connection, fresh.begin() as target:
        for one in events_of(connection):
            take(target, [Record(one.body, moment_of(one.received_at))], caches)
    found = differences(engine, fresh)
    fresh.dispose()
    return found


@pytest.mark.postgres
def test_a_server_of_an_earlier_version_goes_on_beside_the_new_one(empty_url: str, tmp_path: Path) -> None:
    """It reads and writes on the new schema, also after its writer was killed; only a process that starts anew is refused.

    While a random history of barriers goes to either of them, the versions of both are the oracle's.
    """
    earlier = earlier_program(tmp_path / "earlier")
    if earlier is None:
        pytest.skip("no earlier version: this is no clone with the project's history")
    records = bank(BARRIERS, ended=False)
    third = len(records) // 3
    assert command(empty_url, "migrate", program=earlier).returncode == 0
    with ExitStack() as stack:
        (old,) = stack.enter_context(served(empty_url, tmp_path, program=earlier))
        send(old, records[:third])

        migrated = command(empty_url, "migrate")
        (new,) = stack.enter_context(served(empty_url, tmp_path))
        for place, record in enumerate(records[third : 2 * third]):
            send((old, new)[place % 2], [record])
        old.kill_who_writes()
        for place, record in enumerate(records[2 * third :]):
            send((new, old)[place % 2], [record])

        telling = Telling(live_world(1), [old, new], Random(1), kills=0)
        tell_all(telling, 20, checking(telling))
        (by_old, by_new), ready = (answers(old), answers(new)), [one.client.get("/readyz") for one in (old, new)]
        versions = [one.client.get("/openapi.json").status_code for one in (old, new)]
        too_late = command(empty_url, "serve", "--port", "0", program=earlier)
    engine = make_engine(empty_url)
    try:
        differing = from_events(engine, tmp_path / "before")
        to_templates = command(empty_url, "migrate", "--templates", "--json")
        differing_then = from_events(engine, tmp_path / "then")
    finally:
        engine.dispose()

    assert (migrated.returncode, migrated.stderr) == (0, "")
    assert "has the schema of this version" in migrated.stdout
    assert by_old == by_new
    assert [one.status_code for one in ready] == [200, 200]
    assert versions == [200, 200]
    assert differing == differing_then == {}
    assert json.loads(to_templates.stdout)["moved"] == 0  # the earlier version writes templates too
    assert too_late.returncode == 1
    assert "which this program does not know: update strandline" in too_late.stderr
