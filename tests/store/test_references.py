"""Events packed against earlier ones are read back despite expiry, archiving and damage."""

import json
import random
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import pytest
import zstandard
from pyarrow import dataset as arrow
from sqlalchemy import Engine, text

from strandline.core.access.granted import EVERYTHING
from strandline.core.openlineage.facets import content_hash
from strandline.core.openlineage.times import micros_of
from strandline.errors import DamagedError
from strandline.history.archive import archive
from strandline.store.catalog.received import events_page
from strandline.store.forgetting.forget import Requester, Subject, forget
from strandline.store.ingest.bodies import replace_bodies
from strandline.store.ingest.forget import forget_secret
from strandline.store.ingest.raw_events import events_of
from strandline.store.ingest.retention import expire, keep_writers_out
from strandline.store.ingest.take import Caches, Record, take
from strandline.store.ingest.transactions import Batches
from strandline.store.sql.body_references import LARGEST, Body, ReferencePacker
from worlds.builders import Json, dataset, encode, event, rows, store
from worlds.stored_rows import stored_rows

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
WORD = "mellon-speak-friend"
DAY = timedelta(days=1)
STEPS = 30


@cache
def fields_of(job: str) -> list[Json]:
    chance = random.Random(job)
    return [
        {"name": f"{job}_column_{number}", "type": chance.choice("abcdef") * 9}
        for number in range(60)
    ]


def wide(run: int, job: str, kind: str = "COMPLETE", note: str = "") -> Json:
    """An event of some kilobytes, most of which every run of its job repeats."""
    table = dataset(f"bank.{job}", schema={"fields": fields_of(job)})
    return event(
        kind, run, job, run, inputs=[table], outputs=[table], facets={"custom": {"note": note}}
    )


class World:
    """A store, two writers, and what should be in the store."""

    def __init__(self, engine: Engine, seed: int, folder: Path) -> None:
        self.engine, self.folder = engine, folder
        self.chance = random.Random(seed)
        self.writers = [Caches(), Caches()]
        self.stored: dict[bytes, tuple[datetime, bytes]] = {}
        self.archived: dict[bytes, bytes] = {}
        self.now, self.run = BEGIN, 0
        self.shares: list[
            float
        ] = []  # of the events that are packed against an earlier one, after each step

    def step(self) -> None:
        """Something happens; ingest most of the time."""
        steps = [self.ingest] * 8 + [
            self.roll_back,
            self.restart,
            self.expire,
            self.forget,
            self.archive,
            self.replace,
        ]
        self.now += self.chance.choice((timedelta(0), timedelta(hours=5), DAY, 11 * DAY))
        self.chance.choice(steps)()

    def records(self) -> list[Record]:
        """Events of few jobs, some late, some with a secret that no rule knows, one with little in common with any."""
        found = []
        for _ in range(self.chance.randrange(1, 25)):
            self.run += 1
            note = self.chance.choice(("", "", f"say {WORD}", self.chance.randbytes(2000).hex()))
            one = wide(
                self.run,
                f"job{self.chance.randrange(4)}",
                self.chance.choice(("START", "COMPLETE")),
                note,
            )
            late = self.chance.choice((timedelta(0), timedelta(0), 3 * DAY, 40 * DAY))
            found.append(Record(encode(one), max(BEGIN, self.now - late)))
        return found

    def ingest(self) -> None:
        records, caches = self.records(), self.chance.choice(self.writers)
        with self.engine.begin() as connection:
            take(connection, records, caches)
        caches.commit()
        self.stored |= {content_hash(one.value): (one.received_at, one.value) for one in records}

    def roll_back(self) -> None:
        caches = self.chance.choice(self.writers)
        with self.engine.connect() as connection:
            take(connection, self.records(), caches)
            connection.rollback()
        caches.discard()

    def restart(self) -> None:
        self.writers[self.chance.randrange(2)] = Caches()

    def expire(self) -> None:
        before = BEGIN + (self.now - BEGIN).days * DAY - self.chance.choice((1, 5, 31)) * DAY
        with self.engine.begin() as connection:
            expire(connection, before)
        self.stored = {key: one for key, one in self.stored.items() if one[0] >= before}

    def forget(self) -> None:
        forget_secret(self.engine, WORD, execute=True)
        gone = WORD.encode()
        self.stored = {
            key: (at, body.replace(gone, b"[redacted]")) for key, (at, body) in self.stored.items()
        }

    def archive(self) -> None:
        before = self.now - self.chance.choice((0, 5)) * DAY
        archive(self.engine, str(self.folder), before, {}, most=40)
        leaving = {key: body for key, (at, body) in self.stored.items() if at < before}
        self.archived |= leaving
        self.stored = {key: one for key, one in self.stored.items() if key not in leaving}

    def replace(self) -> None:
        keys = self.chance.sample(sorted(self.stored), min(len(self.stored), 5))
        bodies: dict[tuple[int, bytes], bytes | None] = {}
        for key in keys:
            at, body = self.stored.pop(key)
            other = self.chance.choice((None, body.replace(b"tests", b"others")))
            bodies[micros_of(at), key] = other
            if other is not None:
                self.stored[key] = (at, other)
        with self.engine.begin() as connection:
            keep_writers_out(connection)
            replace_bodies(connection, bodies)

    def check(self) -> None:
        """The store holds these events and no others, each packed with what goes no earlier than it."""
        with self.engine.connect() as connection:
            found = {one.hash: one.body for one in events_of(connection)}
            packed = text(
                "SELECT received_at, until FROM raw_events JOIN body_references ON id = reference_id"
            )
            spans = [tuple(row) for row in connection.execute(packed) if row.until is not None]
        assert found == {key: body for key, (_, body) in self.stored.items()}
        assert not [at for at, until in spans if at >= until]
        self.shares += [len(spans) / len(found)] if found else []


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_random_sequences_match_the_oracle(engine: Engine, seed: int, tmp_path: Path) -> None:
    world = World(engine, seed, tmp_path / "archive")
    world.ingest()
    for _ in range(STEPS):
        world.step()
        world.check()

    assert max(world.shares) > 0.5
    if world.archived:
        table = arrow.dataset(str(tmp_path / "archive"), partitioning="hive").to_table()
        written = dict(zip(table["hash"].to_pylist(), table["body"].to_pylist(), strict=True))
        assert written == world.archived
    world.now += 100 * DAY
    with engine.begin() as connection:
        expire(connection, world.now)
    assert rows(engine, "SELECT count(*) FROM raw_events") == [(0,)]
    assert rows(engine, "SELECT count(*) FROM body_references") == [(0,)]


def ingest(engine: Engine, events: list[Json]) -> Caches:
    caches = Caches()
    store(engine, events, BEGIN, size=1, writer=caches)
    return caches


def test_repeated_content_of_a_jobs_runs_is_stored_once(engine: Engine) -> None:
    ingest(engine, [wide(number, "etl") for number in range(30)])

    sizes = [len(bytes(body)) for (body,) in rows(engine, "SELECT body FROM raw_events")]
    assert len(rows(engine, "SELECT id FROM body_references")) == 1
    assert sorted(sizes)[-2] < max(sizes) / 5  # but for the first, which was packed alone


def damage(engine: Engine, how: str) -> None:
    """Turn over a byte of the reference of job1, or take it away."""
    with engine.begin() as connection:
        key = connection.scalar(text("SELECT min(id) FROM body_references"))
        body = bytearray(
            connection.scalar(text("SELECT body FROM body_references WHERE id = :id"), {"id": key})
        )
        body[len(body) // 2] ^= 1
        change = (
            "DELETE FROM body_references"
            if how == "missing"
            else "UPDATE body_references SET body = :body"
        )
        values = {"id": key} if how == "missing" else {"id": key, "body": bytes(body)}
        connection.execute(text(f"{change} WHERE id = :id"), values)


@pytest.mark.parametrize("how", ["damaged", "missing"])
def test_damaged_reference_is_named_and_affects_only_its_events(
    engine: Engine, how: str, tmp_path: Path
) -> None:
    events = [wide(number, f"job{number % 2}") for number in range(8)]
    ingest(engine, events)
    damage(engine, how)
    ingest(engine, [wide(number, f"job{number % 2}") for number in range(8, 14)])

    with engine.connect() as connection:
        page, _ = events_page(connection, 100, None, None, EVERYTHING)
    problems = [one.problem for one in page if one.problem]
    assert len(page) == 14
    assert len(problems) == 3
    assert all(how in one and "cannot be read" in one for one in problems)
    assert len({one.body for one in page if not one.problem}) == 11
    with pytest.raises(DamagedError, match=how):
        forget_secret(engine, WORD, execute=True)
    assert archive(engine, str(tmp_path / "archive"), BEGIN + DAY, {}).events == 11
    assert rows(engine, "SELECT count(*) FROM raw_events") == [(3,)]


@pytest.mark.postgres
def test_two_writers_and_retention_work_together(postgres_engine: Engine) -> None:
    def write(place: int) -> None:
        batches = Batches(postgres_engine)
        for number in range(25):
            one = [wide(1000 * place + 10 * number + n, f"job{n % 3}") for n in range(6)]
            batches.write([Record(encode(event), BEGIN + number * DAY) for event in one])

    def clean() -> None:
        for days in range(0, 25, 5):
            with postgres_engine.begin() as connection:
                expire(connection, BEGIN + days * DAY - 40 * DAY)

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(write, 0), pool.submit(write, 1), pool.submit(clean)]:
            done.result()

    with postgres_engine.connect() as connection:
        bodies = {one.body for one in events_of(connection)}
    assert bodies == {
        encode(wide(1000 * place + 10 * number + n, f"job{n % 3}"))
        for place in (0, 1)
        for number in range(25)
        for n in range(6)
    }


def test_references_use_bounded_memory(sqlite_engine: Engine) -> None:
    references, most = ReferencePacker(1 << 20, 1 << 20), 2 << 20
    sizes = []
    with sqlite_engine.begin() as connection:
        for turn in range(3):
            for key in range(100):
                content = encode(wide(100 * turn + key, f"job{key}"))
                body = Body(key, content_hash(content), micros_of(BEGIN), content)
                references.pack(connection, [body])
                references.commit()
                sizes.append(references.size)

    assert most / 4 < max(sizes) <= most
    assert (
        len(rows(sqlite_engine, "SELECT id FROM body_references")) == 100
    )  # what left the memory was found again


@pytest.mark.parametrize("size", [LARGEST, LARGEST + 1])
def test_the_largest_bodies_are_read_back(engine: Engine, size: int) -> None:
    note = random.Random(size).randbytes(50_000).hex()
    events = [encode(wide(number, "etl", note=note)) for number in range(3)]
    events = [
        one.replace(note.encode(), note.encode().ljust(size - len(one) + len(note), b"x"))
        for one in events
    ]
    ingest(engine, [json.loads(one) for one in events])

    with engine.connect() as connection:
        assert {one.body for one in events_of(connection)} == set(events)
    assert {len(one) for one in events} == {size}
    assert len(rows(engine, "SELECT id FROM body_references")) == (1 if size == LARGEST else 0)


def test_forgotten_name_is_removed_from_a_reference_without_its_event(engine: Engine) -> None:
    hushed = wide(1, "etl")
    hushed["outputs"] = [*hushed["outputs"], dataset("bank.hush")]
    ingest(engine, [wide(0, "etl"), hushed, *(wide(number, "etl") for number in range(2, 6))])
    with engine.begin() as connection:
        connection.execute(
            text("DELETE FROM raw_events WHERE hash IN (SELECT source FROM body_references)")
        )
    before = [
        table
        for table, shown in stored_rows(engine)
        if "hush" in shown and table.startswith("body_references")
    ]

    forget(
        engine,
        Subject("dataset", "hive://lake", "bank.hush"),
        Requester(BEGIN, "tests"),
        execute=True,
    )

    assert len(before) == 1
    assert [table for table, shown in stored_rows(engine) if "hush" in shown] == []
    with engine.connect() as connection:
        assert {one.body for one in events_of(connection)} == {
            encode(wide(run, "etl")) for run in (0, 2, 3, 4, 5)
        }
    assert len(rows(engine, "SELECT id FROM body_references")) == 1


def test_events_of_many_jobs_are_packed_against_common_words(engine: Engine) -> None:
    events = [event("COMPLETE", number, f"job{number}") for number in range(20)]
    for one in events:
        one["run"]["facets"] = {"processing_engine": {"name": "spark", "version": "4.0.1"}}
        one["run"]["facets"]["processing_engine"] |= {
            "_producer": "https://github.com/OpenLineage/OpenLineage/tree/1.54.0/integration/spark",
            "_schemaURL": "https://openlineage.io/spec/facets/1-1-1/ProcessingEngineRunFacet.json"
            "#/$defs/ProcessingEngineRunFacet",
        }
    ingest(engine, events)

    stored = sum(len(bytes(body)) for (body,) in rows(engine, "SELECT body FROM raw_events"))
    by_itself = sum(len(zstandard.compress(encode(one), 3)) for one in events)
    assert rows(engine, "SELECT count(*) FROM body_references") == [(0,)]
    assert stored < 0.75 * by_itself
    with engine.connect() as connection:
        assert {one.body for one in events_of(connection)} == set(map(encode, events))
