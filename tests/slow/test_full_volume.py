"""PostgreSQL on a volume that is really full: a mounted file system of fixed size.

Mounting needs root; elsewhere these tests are skipped, and test_broken_stores.py has PostgreSQL's
own error out of a trigger. The log of transactions (pg_wal) is on another volume: where that is
full PostgreSQL stops, which is a database that is away. PostgreSQL may open no new connection on a
full volume, so who looks at the store has one already.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from sqlalchemy import Engine

from fixtures.kafka import PATIENCE, environ_of, make_topic, process, send, taken
from fixtures.versions_server.process import served
from fixtures.waiting import wait_until
from strandline.store.sql.engine import make_engine
from worlds.simulation.senders import is_stored_once, post_all
from worlds.simulation.stores import arrivals, check

pytestmark = pytest.mark.postgres

LARGE, ROOM = (
    256 << 20,
    400_000,
)  # bytes: of the volume while it has room, and those that are left where it is to fill up
FIRST = 5  # events that come before
FULL = "No space left on device"


class Volume:
    """A mounted file system in memory, whose size can be changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._mount(f"size={LARGE}", "-t", "tmpfs", "strandline-test")

    def leave(self, size: int) -> None:
        """Let so many bytes be free."""
        self._mount(f"remount,size={shutil.disk_usage(self.folder).used + size}")

    def close(self) -> None:
        """Unmount it, with all that it has."""
        subprocess.run(["umount", self.folder], check=True)

    def _mount(self, options: str, *more: str) -> None:
        subprocess.run(
            ["mount", "-o", options, *more, self.folder], check=True, capture_output=True
        )


@contextmanager
def mounted() -> Iterator[Volume]:
    """A volume for this test alone."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root mounts a volume")
    with TemporaryDirectory(prefix="strandline-volume-") as name:
        folder = Path(name)
        try:
            volume = Volume(folder)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"nothing can be mounted here: {error.stderr.decode().strip()}")
        try:
            yield volume
        finally:
            volume.close()


@pytest.fixture
def volume(
    postgres_server: Callable[[str], str], postgres_template: str
) -> Iterator[tuple[Volume, Engine]]:
    """A volume, and a migrated database of which every table is on it."""
    with mounted() as volume, administration(postgres_server("postgres")) as admin:
        where, name = volume.folder / "tables", f"full_{os.getpid()}"
        where.mkdir()
        volume.folder.chmod(0o755)
        with admin.connect() as connection:
            data = Path(str(connection.exec_driver_sql("SHOW data_directory").scalar()))
            os.chown(where, data.stat().st_uid, data.stat().st_gid)
            connection.exec_driver_sql(f"CREATE TABLESPACE {name} LOCATION '{where}'")
            connection.exec_driver_sql(
                f"CREATE DATABASE {name} TEMPLATE {postgres_template} TABLESPACE {name} STRATEGY file_copy"
            )
            engine = make_engine(postgres_server(name))
            yield volume, engine
            engine.dispose()
            connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
            connection.exec_driver_sql(f"DROP TABLESPACE {name}")


@contextmanager
def administration(url: str) -> Iterator[Engine]:
    """An engine for statements that want no transaction."""
    engine = make_engine(url)
    yield engine.execution_options(isolation_level="AUTOCOMMIT")
    engine.dispose()


def test_server_rejects_events_on_a_full_volume_and_recovers(
    volume: tuple[Volume, Engine], sqlite_url: str, tmp_path: Path
) -> None:
    (disk, engine), bodies = volume, arrivals(7, 3)
    url = engine.url.render_as_string(hide_password=False)
    with served(url, tmp_path) as (server,), engine.connect() as connection:
        answers = []
        for place, body in enumerate(bodies):
            if place == FIRST:
                disk.leave(ROOM)
            answers.append(server.client.post("/api/v1/lineage", content=body))
        stored = [body for body, one in zip(bodies, answers, strict=True) if one.status_code == 201]
        there = [body for body in bodies if is_stored_once(connection, body)]
        disk.leave(LARGE)
        heard = post_all(f"http://127.0.0.1:{server.port}", bodies, engine)

    assert {one.status_code for one in answers} == {201, 503}
    assert there == stored
    assert FULL in (tmp_path / f"{server.port}.log").read_text()
    assert heard.statuses.keys() == {201}
    assert heard.missing == []
    check(engine, bodies, sqlite_url)


@pytest.mark.kafka
def test_consumer_waits_on_a_full_volume_and_recovers(
    volume: tuple[Volume, Engine], kafka: str, sqlite_url: str, tmp_path: Path
) -> None:
    (disk, engine), bodies = volume, arrivals(8, 3)
    topic, log = f"full-volume-{os.getpid()}", tmp_path / "log"
    make_topic(kafka, topic)
    send(kafka, topic, bodies[:FIRST])
    with process(environ_of(engine, kafka, topic, batch_records="5"), "", log):
        wait_until(lambda: taken(engine) == FIRST, PATIENCE)
        disk.leave(ROOM)
        send(kafka, topic, bodies[FIRST:])
        wait_until(lambda: FULL in log.read_text(), PATIENCE)
        assert taken(engine) < len(bodies)
        disk.leave(LARGE)
        wait_until(lambda: taken(engine) == len(bodies), PATIENCE)

    check(engine, bodies, sqlite_url)
