"""The world of one seed: what is produced, who acts when, what breaks.

Then everything heals, and has to be right.
"""

import random
from collections.abc import Iterable
from datetime import UTC, datetime

from kafka import TopicPartition
from sqlalchemy.exc import DBAPIError

from strandline.core.openlineage.facets import content_hash
from strandline.logs import make_log
from strandline.runtime.follower import Follower
from strandline.settings import Settings
from strandline.store.ingest import transactions
from strandline.store.ingest.retention import expire
from strandline.store.ingest.take import Outcome, Record
from strandline.store.ingest.transactions import Batches
from strandline.transports import partitions
from strandline.transports.partitions import LOOK_SECONDS, RELEASE_SECONDS, Holdings
from worlds.builders import encode
from worlds.simulation.actors import ConsumerActor, ServerActor
from worlds.simulation.databases import Databases
from worlds.simulation.histories import WORLDS, bodies_of, history_of, received
from worlds.simulation.injector import CRASHES, ERRORS, Crash, Fault
from worlds.simulation.topic import TOPIC, Group, Topic

PARTITIONS, CONSUMERS = 2, 3
# of one seed: a record that ends three processes is a dead letter, and nobody else shall be one
MOST_CRASHES = 2
# how likely a world has a record that ends its process: three deaths cost as much as five faults
POISONED = 0.05
ACTS_MEANWHILE = 0.3  # how likely somebody else does something while a process waits once
SETTINGS, LOG = (
    Settings(batch_records=3, max_dead_in_row=10_000, max_dead_share=1.0),
    make_log(level="critical"),
)
BEFORE_ALL = datetime(1990, 1, 1, tzinfo=UTC)


class Clock:
    """Time passes where somebody waits; the wall clock stands still."""

    def __init__(self, now: datetime) -> None:
        self.now, self.passed = now, 0.0

    def monotonic(self) -> float:
        """Seconds since the world began."""
        return self.passed

    def time(self) -> float:
        """The moment of the whole story."""
        return self.now.timestamp()

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.passed += seconds


class World:
    """Everything of one seed. `now` is the moment at which the oracle asks."""

    def __init__(self, seed: int, databases: Databases, now: datetime) -> None:
        self.seed, self.chance, self.now = seed, random.Random(seed), now
        self.clock = Clock(now)
        vars(partitions)["time"] = vars(transactions)["time"] = self.clock
        random.seed(seed)  # how long a transaction that is done again waits
        self.engine, self.injector, self.observer = (
            databases.engine,
            databases.injector,
            databases.observer,
        )
        self.topic = Topic([[] for _ in range(PARTITIONS)])
        self.group = Group([TopicPartition(TOPIC, number) for number in range(PARTITIONS)])
        self.follower = Follower(self.engine)
        number = seed // WORLDS
        self.history, self.bodies = history_of(number, now), bodies_of(number, now)
        self.arrivals = self.history.arrivals
        self.sent: set[bytes] = set()  # hashes of events that were sent over HTTP
        self.counts: dict[str, int] = {}
        self.story: list[str] = []
        self.states: set[int] = set()  # of the store, as they were seen between steps
        self.crashes = self.fenced = 0
        self.nested = self.healed = False
        self.consumers = [ConsumerActor(self, number) for number in range(CONSUMERS)]
        self.server = ServerActor(self, [])
        self._produce()

    def holdings(self) -> Holdings:
        """Those of a new process."""
        return Holdings(
            self.engine,
            SETTINGS,
            LOG,
            lambda: None,
            self._waited,
            self.follower.take_news,
            self.follower.follow,
        )

    def batches(self) -> Batches:
        """The writer of a new server."""
        return Batches(self.engine, finish=self.follower.take_news, after=self.follower.follow)

    def note(self, line: str) -> None:
        """Add a line to the story that a failing seed prints."""
        self.story.append(line)

    def count(self, outcomes: Iterable[Outcome]) -> None:
        """Count the reports of committed records."""
        for outcome in outcomes:
            self.counts[outcome.kind] = self.counts.get(outcome.kind, 0) + 1

    def step(self) -> None:
        """Something happens."""
        acts = [
            *(one.act for one in self.consumers),
            self.server.act,
            self._rebalance,
            self._arm,
            self._expire,
            self._ask,
        ]
        weights = [*(4 for _ in self.consumers), 3, 2, 4, 0.3, 0.5]
        (act,) = self.chance.choices(acts, weights)
        act()

    def heal(self) -> None:
        """No more faults; everybody works until there is nothing left to do."""
        self.injector.fault, self.healed = None, True
        self.group.members = [0]
        self.group.share(self.chance)
        for one in self.consumers:
            one.asleep = False
        for _ in range(400):
            self.consumers[0].act()
            self.server.act()
            if not self.server.waiting and self.is_drained():
                return
        self.note("it never comes to an end")

    def is_drained(self) -> bool:
        """Return true if the store has taken every record of the topic."""
        taken = dict(self.observer.rows("SELECT partition_id, next_offset FROM offsets"))
        return all(
            taken.get(number) == len(log) for number, log in enumerate(self.topic.partitions)
        )

    def _produce(self) -> None:
        """Each event goes to the topic, to the server, or to both, perhaps twice.

        Among them records that are no events.
        """
        posted: list[Record] = []
        for one, at in self.arrivals:
            value, way = (
                encode(one),
                self.chance.choice(("topic", "topic", "topic", "http", "both", "twice")),
            )
            if way != "http":
                for _ in range(2 if way == "twice" else 1):
                    number = self.chance.randrange(PARTITIONS)
                    self.topic.append(number, value, round(at.timestamp() * 1000))
            if way in ("http", "both"):
                posted.append(Record(value, received(at, self.now)))
                self.sent.add(content_hash(value))
            if self.chance.random() < 0.1:
                bad = self.chance.choice(
                    (b"no event", b"{}", None, b'{"eventTime": 1}', b"\xff\xfe")
                )
                self.topic.append(
                    self.chance.randrange(PARTITIONS), bad, round(at.timestamp() * 1000)
                )
        while posted:
            size = self.chance.randint(1, 4)
            self.server.waiting.append(posted[:size])
            del posted[:size]
        if self.chance.random() < POISONED:
            self._poison()
        self.group.members = list(range(CONSUMERS))
        self.group.share(self.chance)

    def _poison(self) -> None:
        """One event kills whoever takes it: a record of its own, that nobody sends otherwise."""
        one, at = self.chance.choice(self.arrivals)
        value = encode(one | {"producer": "https://example.com/poison"})
        self.topic.append(self.chance.randrange(PARTITIONS), value, round(at.timestamp() * 1000))
        self.injector.poison.add(content_hash(value))

    def _waited(self, seconds: float) -> bool:
        """A process waits: time passes, and others may act meanwhile.

        Who waits for a partition looks at it again and again. While nobody acts it sees the same:
        these waits are one.
        """
        waited = 0.0
        while True:
            self.clock.sleep(max(seconds, 0.01))
            waited += seconds
            if not self.nested and not self.healed and self.chance.random() < ACTS_MEANWHILE:
                self._act_meanwhile()
                return False
            if seconds != LOOK_SECONDS or waited >= RELEASE_SECONDS:
                return False

    def _act_meanwhile(self) -> None:
        self.nested = True
        try:
            self.chance.choice([self._rebalance, self.chance.choice(self.consumers).act])()
        finally:
            self.nested = False

    def _rebalance(self) -> None:
        """The group believes other members to live.

        One that lives may be stopped with records in its hands.
        """
        self.group.members = sorted(
            self.chance.sample(range(CONSUMERS), self.chance.randint(1, CONSUMERS))
        )
        self.group.share(self.chance)
        for one in self.consumers:
            if one.gathered and self.chance.random() < 0.4:
                one.asleep = True
        self.note(f"members {self.group.members}")

    def _arm(self) -> None:
        """Something will break soon."""
        kinds = [*ERRORS, *(CRASHES if self.crashes < MOST_CRASHES else ())]
        fault = Fault(self.chance.choice(kinds), 0)
        fault.after = self.chance.randint(0, 1 if fault.at_commit else 30)
        self.crashes += fault.kind in CRASHES
        self.injector.fault = fault
        self.note(f"armed: {fault}")

    def _expire(self) -> None:
        """Retention looks, and finds nothing that is old enough."""
        try:
            with self.engine.begin() as connection:
                expire(connection, BEFORE_ALL)
        except (DBAPIError, Crash):
            self.note("retention fails")

    def _ask(self) -> None:
        """Somebody asks for versions."""
        try:
            with self.follower.model():
                pass
        except (DBAPIError, Crash):
            self.follower = Follower(self.engine)
            self.server.batches = None
