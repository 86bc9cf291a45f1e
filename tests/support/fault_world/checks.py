"""What has to be so: after every step, and in the end. No check asks the code that it judges, but for one that asks it twice."""

import json
from pathlib import Path

from sqlalchemy import Engine

from collector.builders import encode
from collector.store.test_any_order import first_difference, folded, shown, take_all, wanted
from fault_world.histories import received
from fault_world.injector import CRASHES
from fault_world.world import BEFORE_ALL, STEPS, World
from strandline.core.openlineage.facets import content_hash
from strandline.store.ingest.raw_events import events_of
from strandline.store.ingest.retention import expire
from strandline.store.sql.engine import make_engine

# What does not depend on the order of runs that the oracle is asked about elsewhere (tests/collector/store).
JUDGED = tuple(f"{what} {side}" for what in ("live", "history", "snapshots") for side in ("inputs", "outputs"))
BAD = "not an OpenLineage event"
KILLED = "ended the process 3 times"


def fault_of(world: World, reference: Engine) -> str:
    """The first thing that is wrong with a world, '' if nothing is. Runs it to its end."""
    before: dict[int, int] = {}
    for _ in range(STEPS):
        world.step()
        if wrong := _at_any_time(world, before):
            return wrong
    world.heal()
    return _at_any_time(world, before) or in_the_end(world, reference)


def _at_any_time(world: World, before: dict[int, int]) -> str:
    """Offsets only grow; what is below one is stored, what is not below is not, unless it came another way."""
    with world.eyes.connect() as connection:
        rows = connection.exec_driver_sql("SELECT partition_id, next_offset FROM offsets").all()
        known = {bytes(row[0]) for row in connection.exec_driver_sql("SELECT hash FROM event_keys")}
        dead = {
            tuple(row) for row in connection.exec_driver_sql("SELECT partition_id, record_offset FROM dead_letters")
        }
    offsets = {row.partition_id: row.next_offset for row in rows}
    for number, log in enumerate(world.topic.partitions):
        taken = offsets.get(number, 0)
        if taken < before.get(number, 0):
            return f"the offset of {number} went back from {before[number]} to {taken}"
        before[number] = taken
        for message in log[:taken]:
            if content_hash(message.value or b"") not in known and (number, message.offset) not in dead:
                return f"record {number}@{message.offset} is below the offset {taken}, and nowhere"
    if early := known - world.sent - _below(world, offsets):
        return f"{len(early)} events are stored that no offset has passed"
    return ""


def _below(world: World, offsets: dict[int, int]) -> set[bytes]:
    logs = enumerate(world.topic.partitions)
    return {content_hash(one.value or b"") for number, log in logs for one in log[: offsets.get(number, 0)]}


def in_the_end(world: World, reference: Engine) -> str:
    """Every event is stored once, with all that it says; every other record is a dead letter, with its reason."""
    if not world.is_drained() or world.server.waiting:
        return "it never comes to an end"
    return _events(world) or _letters(world) or _told(world) or _tables(world, reference)


def _events(world: World) -> str:
    wanted_bodies = {content_hash(encode(one)): one for one, _ in world.arrivals}
    with world.eyes.connect() as connection:
        stored = {one.hash: one for one in events_of(connection)}
        keys = {bytes(row[0]) for row in connection.exec_driver_sql("SELECT hash FROM event_keys")}
    if stored.keys() != wanted_bodies.keys():
        return f"{len(wanted_bodies.keys() - stored.keys())} events are lost, {len(stored.keys() - wanted_bodies.keys())} too many"
    if keys != stored.keys():
        return "event_keys and raw_events differ"
    wrong = [hash_ for hash_, one in stored.items() if json.loads(one.body) != wanted_bodies[hash_]]
    return f"{len(wrong)} events are not as they came" if wrong else ""


def _letters(world: World) -> str:
    with world.eyes.connect() as connection:
        query = "SELECT partition_id, record_offset, reason FROM dead_letters"
        found = sorted(tuple(row) for row in connection.exec_driver_sql(query))
    good = {content_hash(encode(one)) for one, _ in world.arrivals}
    expected = {}
    for log in world.topic.partitions:
        for one in log:
            hash_ = content_hash(one.value or b"")
            if hash_ not in good:
                expected[one.partition, one.offset] = KILLED if hash_ in world.injector.poison else BAD
    if [row[:2] for row in found] != sorted(expected):
        return f"dead letters {[row[:2] for row in found]}, not {sorted(expected)}"
    odd = [row for row in found if expected[row[:2]] not in row[2]]
    return f"dead letters with another reason: {odd}" if odd else ""


def _told(world: World) -> str:
    """Nobody was told of more stored events than there are; of fewer only where a process died after its commit."""
    told, there = world.counts.get("stored", 0), len(world.arrivals)
    if told > there:
        return f"{told} events were told to be stored, and there are {there}"
    unheard = {"poison", "lost commit", *CRASHES} & world.injector.struck.keys()
    return f"of {there} events {told} were told to be stored" if told < there and not unheard else ""


def _tables(world: World, reference: Engine) -> str:
    """The rows are the oracle's, and those of a store that took all events once, in order."""
    arrivals = [(one, received(at, world.now)) for one, at in world.arrivals]
    take_all(reference, arrivals)
    expected, found = wanted(arrivals), shown(world.eyes)
    if wrong := first_difference({name: expected[name] for name in JUDGED}, {name: found[name] for name in JUDGED}):
        return f"not as the oracle says: {wrong}"
    for engine in (reference, world.eyes):  # bodies and sets of edges that nothing uses any more go with retention
        with engine.begin() as connection:
            expire(connection, BEFORE_ALL)
    expected, found = folded(reference), folded(world.eyes)
    expected["job_relations"] = found[
        "job_relations"
    ] = []  # may hold a job too many, by who came first: read its module
    return first_difference(expected, found)


def reference_engine(template: Path) -> Engine:
    """A store that faults never reach."""
    return make_engine(f"sqlite:///{template}")
