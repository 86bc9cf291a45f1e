"""Actors of the world: consumers with their holdings, and a server that gets requests."""

from typing import TYPE_CHECKING

from kafka import TopicPartition
from sqlalchemy.exc import DBAPIError

from strandline.errors import FencedError, StrandlineError
from strandline.store.ingest.take import Record
from strandline.store.ingest.transactions import Batches
from strandline.transports.partitions import Holdings
from worlds.simulation.injector import Crash
from worlds.simulation.topic import Message

if TYPE_CHECKING:
    from worlds.simulation.world import World


class ConsumerActor:
    """One process that consumes. What it holds goes with it when it is killed."""

    def __init__(self, world: "World", number: int) -> None:
        self.world, self.number = world, number
        self.holdings: Holdings | None = None
        self.held: set[TopicPartition] = set()
        self.positions: dict[TopicPartition, int] = {}
        self.gathered: dict[
            TopicPartition, list[Message]
        ] = {}  # polled, and not yet written: a stopped process keeps it
        self.asleep = self.busy = False

    def act(self) -> None:
        """One turn of the loop of `Consumer.run`, unless it is in the midst of one, and waits."""
        if self.busy:
            return
        self.busy = True
        try:
            if self.holdings is None:
                self.holdings = self.world.holdings()
                self.held.clear()
            if not self.asleep:
                self._follow_group(self.holdings)
                self._poll()
            self._write(self.holdings)
        except Crash:
            self.die("is killed")
        except (
            StrandlineError,
            DBAPIError,
        ) as error:  # it stops with its reason, and is started again
            self.die(f"stops: {error}".partition("\n")[0])
        finally:
            self.busy = False

    def die(self, how: str) -> None:
        """The process is gone; nothing of it is left but what is stored."""
        self.holdings, self.asleep = None, False
        self.held.clear()
        self.positions.clear()
        self.gathered.clear()
        self.world.note(f"consumer {self.number} {how}")

    def _follow_group(self, holdings: Holdings) -> None:
        wanted = self.world.group.of(self.number)
        revoked, assigned = (
            sorted(self.held - wanted),
            sorted(wanted - self.held),
        )  # the same in every process
        if revoked:
            for one in revoked:
                self.gathered.pop(one, None)
            if self.world.chance.random() < 0.7:
                holdings.release(revoked)
            self.held.difference_update(revoked)
        if assigned:
            self.positions |= holdings.claim(self.world.topic.bounds(assigned))
            self.held.update(assigned)
            for one in assigned:
                self.gathered.pop(one, None)

    def _poll(self) -> None:
        for one in sorted(self.held):
            found = self.world.topic.poll(one, self.positions[one], self.world.chance.randint(0, 5))
            if found:
                self.positions[one] = found[-1].offset + 1
                self.gathered.setdefault(one, []).extend(found)

    def _write(self, holdings: Holdings) -> None:
        if not self.gathered or (not self.asleep and self.world.chance.random() < 0.25):
            return  # gathers more
        gathered, self.gathered = self.gathered, {}
        self.asleep = False
        batch = holdings.batch_of(gathered)
        if not batch:
            return
        try:
            holdings.write(batch)
        except FencedError:
            self.world.fenced += 1
            holdings.forget()
            self.held.clear()
        except Crash:
            holdings.committed = []  # nobody is told any more
            raise
        finally:
            self.world.count(holdings.committed)


class ServerActor:
    """A server: it writes what senders post, and senders post again what was not answered with 2xx."""

    def __init__(self, world: "World", waiting: list[list[Record]]) -> None:
        self.world, self.waiting = world, waiting
        self.batches: Batches | None = None
        self.answered: list[Record] = []

    def act(self) -> None:
        """Write a group of requests."""
        if not self.waiting:
            return
        if self.batches is None:
            self.batches = self.world.batches()
        place = self.world.chance.randrange(len(self.waiting))
        records = self.waiting[place]
        try:
            outcomes = self.batches.write_or_keep(records)
        except Crash:
            self.batches = None
            self.world.note("the server dies")
        except DBAPIError:
            self.world.note("a sender hears 503")
        else:
            self.answered += records
            self.world.count(outcomes)
            del self.waiting[place]
