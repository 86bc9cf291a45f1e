"""A random history told to running servers over REST, with one of them killed now and then in the middle of a request.

The oracle hears of the same facts in the same order; what the server decides by its own clock (a retirement, a rollback)
it hears with that time.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any
from urllib.parse import quote

import httpx
from msgspec.structs import replace

from barrier_world.history import DOMAIN, World, history, job, run_id, small_world
from barrier_world.oracle import Oracle
from barrier_world.running import Outcome, world_descendants
from strandline.core.versions import facts
from strandline.core.versions.facts import Table
from versions_server.events import EPOCH, LAKE, appended, committed, ended, started
from versions_server.process import Served

JSON = dict[str, Any]
INGEST = job("ingest")
_EARLY = 12  # requests, which even the shortest history has: within these all servers die that are to die


class LiveWorld(World):
    """A world whose clock is the real one."""

    def tick(self) -> float:
        """A time that never comes twice, to the millisecond."""
        self.clock = round(max(self.clock + 0.001, time.time()), 3)
        return self.clock


@dataclass
class Telling:
    """Tells servers and oracle of a world; `kills`: how often a request meets a server that dies."""

    world: World
    servers: Sequence[Served]
    random: Random
    kills: int
    oracle: Oracle = field(default_factory=Oracle)
    requests: int = 0

    @property
    def cut_by_servers(self) -> bool:
        """One root: the servers cut a barrier at each of its commits. Several: a managed job brings the barriers."""
        return len(self.world.roots) == 1

    def begin(self) -> None:
        """Declare the domain."""
        roots = [named(root) for root in self.world.roots]
        self.request("POST", "/api/v2/domains", {"name": DOMAIN, "tables": roots})
        self.oracle.take(facts.DomainDeclared(DOMAIN, tuple(self.world.roots), 0.0))
        if not self.cut_by_servers:
            self.tell(facts.RunStarted(INGEST, "ingest-run1", self.world.tick(), DOMAIN, (), tuple(self.world.roots)))

    def tell(self, fact: facts.Fact) -> None:
        """One fact, to one of the servers, until it has been taken; then the oracle."""
        match fact:
            case facts.RootsCut() if self.cut_by_servers:
                (made,) = fact.snapshots
                self.post(
                    appended(f"batch{fact.barrier}", since(fact.at), shown(made.table), made.snapshot, made.parent)
                )
            case facts.RootsCut():
                self.tell(as_commit(fact))
                return
            case facts.JobRetired():
                fact = replace(fact, at=time.time())
                self.request("DELETE", f"/unregister/{quote(fact.job[1])}", None, (204, 404))
            case facts.RunStarted():
                reads, writes = [shown(one) for one in fact.reads], [shown(one) for one in fact.writes]
                self.post(started(fact.job[1], since(fact.at), reads, writes, domain=fact.domain, run=number(fact.run)))
            case facts.RunEnded():
                self.post(ended(fact.job[1], since(fact.at), fact.how, run=number(fact.run)))
            case facts.BarrierCommitted():
                self.post(commit_event(fact))
            case _:
                return
        self.oracle.take(fact)

    def roll_back(self) -> None:
        """Carry out a rollback as the servers plan it."""
        worker = self.world.random.choice(self.world.workers)
        if not self.oracle.managed(worker.writes) or not self.world.truth[worker.writes]:
            return
        wanted = self.world.random.choice(sorted(self.world.truth[worker.writes]))
        body = {**named(worker.writes), "barrier": wanted}
        plan = self.request("POST", "/api/v2/rollbacks", body).json()
        tables = {("lake", one["name"].removeprefix("db.")) for one in plan["tables"]}
        if tables != world_descendants(self.world, worker.writes):
            return
        barrier = plan["barrier"] or 0
        self.world.rollbacks += 1
        for other in self.world.workers:
            if other.writes in tables:
                self.tell(facts.RunEnded(other.job, run_id(other), self.world.tick(), "ABORT"))
                other.state = "stopped" if other.state == "running" else other.state
                truth = self.world.truth[other.writes]
                self.world.truth[other.writes] = {b: snapshot for b, snapshot in truth.items() if b <= barrier}
                other.position, other.head = barrier, self.world.truth[other.writes].get(barrier)
        body["barrier"] = barrier if plan["kind"] == "incremental" else wanted
        self.request("POST", "/api/v2/rollbacks", {**body, "apply": True}, killing=False)
        self.oracle.take(facts.RolledBack(DOMAIN, tuple(sorted(tables)), barrier, time.time()))

    def post(self, event: JSON) -> None:
        """An event, as an emitter sends it: again and again until it was taken."""
        self.request("POST", "/api/v1/lineage", event, (201,))

    def request(
        self, method: str, path: str, body: JSON | None, expected: Sequence[int] = (200,), killing: bool = True
    ) -> httpx.Response:
        """To one of the servers, which may die of it; then to the next one."""
        self.requests += killing
        if killing and self.kills and self.random.random() * (_EARLY - self.requests) < self.kills:
            self.kills -= 1
            self._meet_with_death(method, path, body)
        answer = self.random.choice(self.servers).client.request(method, path, json=body)
        assert answer.status_code in expected, f"{path}: {answer.text}"
        return answer

    def _meet_with_death(self, method: str, path: str, body: JSON | None) -> None:
        server = self.random.choice(self.servers)

        def send() -> None:
            with suppress(httpx.TransportError):
                server.client.request(method, path, json=body)

        sender = threading.Thread(target=send)
        sender.start()
        time.sleep(self.random.uniform(0, 0.02))
        server.kill()
        sender.join()
        server.start()


def tell_all(telling: Telling, steps: int, check: Callable[[], None]) -> None:
    """A whole history; `check` looks now and then, and at the end."""
    telling.begin()
    told = history(telling.world, steps)
    for number_, fact in enumerate(cuts_in_order(told) if telling.cut_by_servers else told):
        telling.tell(fact)
        if number_ % 7 == 0:
            check()
        if telling.world.random.random() < 0.03:
            telling.roll_back()
    check()


def cuts_in_order(told: Iterator[facts.Fact]) -> Iterator[facts.Fact]:
    """The facts, each cut after the one before it: who cuts at each commit numbers them as they come."""
    newest, held = 0, dict[int, facts.Fact]()
    for fact in told:
        if not isinstance(fact, facts.RootsCut) or fact.barrier <= newest:
            yield fact
            continue
        held[fact.barrier] = fact
        while newest + 1 in held:
            newest += 1
            yield held.pop(newest)


def live_world(seed: int) -> World:
    """A small world on the real clock. A root that servers cut at each of its commits is cut at nothing else."""
    made = small_world(Random(seed))
    moves = 1.0 if len(made.roots) == 1 else made.moves
    return LiveWorld(made.random, made.roots, made.workers, truth=made.truth, moves=moves)


def strong_over_rest(server: Served, table: Table) -> Outcome:
    """The strong barrier, or the code of the refusal (of an unknown table too)."""
    answer = server.client.post("/api/v2/versions", json={"tables": [named(table)]}).json()
    if "code" in answer:
        return "unmanaged" if answer["code"] == "not_found" else str(answer["code"])
    return int(answer["tables"][0]["barrier"])


def weak_over_rest(server: Served, tables: Sequence[Table]) -> dict[Table, int] | str:
    """The weak barriers, or the code of the refusal."""
    asked = {"tables": [named(table) for table in tables], "consistency": "weak"}
    answer = server.client.post("/api/v2/versions", json=asked).json()
    if "code" in answer:
        return str(answer["code"])
    return {table: one["barrier"] for table, one in zip(tables, answer["tables"], strict=True)}


def as_commit(cut: facts.RootsCut) -> facts.BarrierCommitted:
    """A cut as the commit of one ingest job that writes all roots."""
    return facts.BarrierCommitted(INGEST, "ingest-run1", DOMAIN, cut.barrier, cut.at, cut.at, cut.snapshots)


def commit_event(fact: facts.BarrierCommitted) -> JSON:
    """RUNNING of a micro-batch."""
    return committed(
        fact.job[1],
        since(fact.committed),
        fact.barrier,
        {shown(used.table): used.snapshot for used in fact.used},
        {shown(made.table): made.snapshot for made in fact.written},
        domain=fact.domain,
        run=number(fact.run),
        parents={shown(made.table): made.parent for made in fact.written if made.parent is not None},
        started_at=since(fact.started),
    )


def named(table: Table) -> JSON:
    """A table of the world as a body names it."""
    return {"namespace": LAKE, "name": shown(table)}


def shown(table: Table) -> str:
    """The name of a table of the world."""
    return f"db.{table[1]}"


def since(at: float) -> float:
    """Seconds into the story of versions_server.events."""
    return at - EPOCH.timestamp()


def number(run: str) -> int:
    """The number of a run."""
    return int(run.rpartition("run")[2])
