"""Scenarios of `worlds.simulation.kills`: the child's work and the checks after each kill."""

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path

from kafka import TopicPartition
from sqlalchemy import Engine, event

from store.test_any_order import first_difference
from strandline.core.openlineage.facets import content_hash
from strandline.logs import make_log
from strandline.runtime.follower import Follower
from strandline.settings import Settings
from strandline.store.ingest import transactions
from strandline.store.ingest.take import Record
from strandline.store.ingest.transactions import Batches
from strandline.store.sql.engine import make_engine, migrate
from strandline.transports import partitions
from strandline.transports.partitions import Holdings
from worlds.builders import encode
from worlds.simulation.checks import Referee, kept
from worlds.simulation.histories import History, history, received
from worlds.simulation.kills import CONSUMED, PAGES, SERVED, SYNCS, WRITES, Kill
from worlds.simulation.topic import TOPIC, Topic
from worlds.simulation.tracing import Disk, Point, traced
from worlds.simulation.world import Clock

Say = Callable[[bytes], object]
PARTITION = TopicPartition(TOPIC, 0)
SIZE = 3  # events of a transaction, at most


class Store:
    """The file that children work on, and what it has to hold in the end."""

    def __init__(self, folder: Path, now: datetime) -> None:
        self._now, self._template, reference = now, folder / "template.db", folder / "reference.db"
        self._folder, self._seen = folder / "store", folder / "seen"
        for one in (self._folder, self._seen):
            one.mkdir()
        engine = make_engine(f"sqlite:///{self._template}")
        migrate(engine)
        engine.dispose()
        shutil.copy(self._template, reference)
        self._reference = make_engine(f"sqlite:///{reference}")
        self._referee = Referee(self._reference)
        self._file, self._disk = self._folder / "world.db", Disk(self._folder)
        self._engine = make_engine(f"sqlite:///{self._file}")
        event.listen(self._engine, "connect", _checkpoint_often)
        self._warm()

    def play(self, seed: int) -> tuple[str, list[Kill]]:
        """The first thing that is wrong with a seed's story, '' if nothing is.

        And what was killed in it.
        """
        chance = random.Random(seed)
        story = History(seed, history(chance, self._now, 3, 12), 0)
        work = Serving(story, chance, self) if seed % 2 else Consuming(story, chance, self)
        self._empty()
        kills: list[Kill] = []
        while True:
            point = _point(chance) if len(kills) < work.kills else None
            ended = traced(work.work, self._disk, point)
            work.hear(ended.said)
            if ended.point:
                kills.append(Kill(ended.point, chance.random() < 0.5))
                if kills[-1].is_cut:
                    self._disk.cut(chance)
            elif ended.status:
                return f"a child ends with {ended.status}", kills
            if wrong := self._fault(work, is_cut=bool(ended.point) and kills[-1].is_cut):
                return wrong, kills
            if work.is_done():
                return self._fault_in_the_end(story), kills

    def close(self) -> None:
        """Leave nothing open."""
        self._reference.dispose()

    @property
    def engine(self) -> Engine:
        """The program's. It has no connection while a child is forked."""
        return self._engine

    @property
    def now(self) -> datetime:
        """The moment of all stories."""
        return self._now

    def _empty(self) -> None:
        for file in self._folder.iterdir():
            file.unlink()
        shutil.copy(self._template, self._file)
        self._disk.look()

    def _warm(self) -> None:
        """Let the engine compile its statements here, once for all children."""
        chance = random.Random(0)
        for number in range(4):
            self._empty()
            story = History(number, history(chance, self._now), 0)
            for work in (Serving(story, chance, self), Consuming(story, chance, self)):
                work.work(lambda _: None)
            self._engine.dispose()

    def _fault(self, work: "Serving | Consuming", *, is_cut: bool) -> str:
        """Return the fault after a kill, from a copy of the files.

        Opening them changes them.
        """
        for file in self._seen.iterdir():
            file.unlink()
        for file in self._folder.iterdir():
            if not file.name.endswith("-shm"):
                shutil.copy(file, self._seen)
        with closing(sqlite3.connect(self._seen / self._file.name)) as connection:
            if (found := connection.execute("PRAGMA integrity_check").fetchall()) != [("ok",)]:
                return f"the file is broken: {found}"
            stored = {row[0] for row in connection.execute("SELECT hash FROM event_keys")}
            if stored != {row[0] for row in connection.execute("SELECT hash FROM raw_events")}:
                return "event_keys and raw_events differ"
            offset = connection.execute("SELECT max(next_offset) FROM offsets").fetchone()[0] or 0
        return work.fault(stored, offset, is_cut=is_cut)

    def _fault_in_the_end(self, story: History) -> str:
        expected = self._referee.expected(story, self._now)
        found = kept(self._engine)
        self._engine.dispose()
        return first_difference(expected.kept, found)


class Serving:
    """A server: groups of requests, each a transaction.

    Who sends them sends again what was not answered.
    """

    kills = SERVED

    def __init__(self, story: History, chance: random.Random, store: Store) -> None:
        self._store = store
        records = [Record(encode(one), received(at, store.now)) for one, at in story.arrivals]
        records += chance.sample(records, len(records) // 3)
        chance.shuffle(records)
        self._groups: list[list[Record]] = []
        while records:
            size = chance.randint(1, SIZE)
            self._groups.append(records[:size])
            del records[:size]
        self._answered = 0

    def work(self, say: Say) -> None:
        """Do the work of the child."""
        follower = Follower(self._store.engine)
        batches = Batches(self._store.engine, finish=follower.take_news, after=follower.follow)
        for group in self._groups[self._answered :]:
            batches.write_or_keep(group)
            say(b"2")

    def hear(self, said: bytes) -> None:
        """So many groups were answered."""
        self._answered += len(said)

    def is_done(self) -> bool:
        """Return true if everything was answered."""
        return self._answered == len(self._groups)

    def fault(self, stored: set[bytes], _offset: int, *, is_cut: bool) -> str:
        """Return the fault: answered events are there, later ones are not.

        Of the group that was under way everything or nothing is there.

        Of later ones nothing.
        """
        hashes = [{content_hash(record.value) for record in group} for group in self._groups]
        answered = set[bytes]().union(*hashes[: self._answered])
        if lost := answered - stored:
            return f"{len(lost)} events were answered, and are lost"
        under_way = hashes[self._answered] - answered if not self.is_done() else set()
        return "" if stored - answered in (set(), under_way) else "a transaction is there in part"


class Consuming:
    """A consumer of a topic with one partition; the store knows how far it is."""

    kills = CONSUMED

    def __init__(self, story: History, chance: random.Random, store: Store) -> None:
        self._store, self._topic, self._seed = store, Topic([[]]), chance.random()
        for one, at in story.arrivals:
            for _ in range(chance.choice((1, 1, 2))):
                self._topic.append(0, encode(one), round(at.timestamp() * 1000))
        self._told, self._offset = 0, 0

    def work(self, say: Say) -> None:
        """Do the work of the child."""
        clock, chance = Clock(self._store.now), random.Random(self._seed)
        vars(partitions)["time"] = vars(transactions)["time"] = clock
        follower = Follower(self._store.engine)

        def waited(seconds: float) -> bool:
            clock.sleep(max(seconds, 0.01))
            return False

        settings = Settings(batch_records=SIZE, max_dead_in_row=10_000, max_dead_share=1.0)
        log = make_log(level="critical")
        holdings = Holdings(
            self._store.engine,
            settings,
            log,
            lambda: None,
            waited,
            follower.take_news,
            follower.follow,
        )
        (position,) = holdings.claim(self._topic.bounds([PARTITION])).values()
        while polled := self._topic.poll(PARTITION, position, chance.randint(1, SIZE)):
            for _ in holdings.write(holdings.batch_of({PARTITION: polled})):
                say(b"2")
            position += len(polled)

    def hear(self, said: bytes) -> None:
        """So many records were told to be committed."""
        self._told += len(said)

    def is_done(self) -> bool:
        """Return true if the topic is taken."""
        return self._offset == len(self._topic.hashes[0])

    def fault(self, stored: set[bytes], offset: int, *, is_cut: bool) -> str:
        """Return the fault: exactly the records below the stored offset are there.

        It goes back with a power cut alone, never behind what was told.
        """
        if offset < (least := self._told if is_cut else max(self._told, self._offset)):
            return f"the offset is {offset}, after {least} records were committed"
        self._offset = offset
        return (
            ""
            if stored == set(self._topic.hashes[0][:offset])
            else f"events and the offset {offset} differ"
        )


def _point(chance: random.Random) -> Point:
    kind = chance.choice(("any", "any", "write", "sync", "sync", "truncate"))
    return Point(kind, chance.randrange(WRITES if kind in ("any", "write") else SYNCS))


def _checkpoint_often(connection: sqlite3.Connection, _: object) -> None:
    connection.execute(f"PRAGMA wal_autocheckpoint = {PAGES}").close()
