"""Checks after every step and at the end, independent of the code that they judge."""

import json
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Engine

from store.test_any_order import (
    NOW,
    Arrival,
    first_difference,
    tables_shown,
    tables_wanted,
    take_all,
)
from strandline.store.ingest.raw_events import events_of
from strandline.store.ingest.retention import expire
from strandline.store.sql.engine import reading
from worlds.builders import folded_rows
from worlds.oracle import Oracle
from worlds.simulation.databases import Databases, Rows
from worlds.simulation.histories import History, received
from worlds.simulation.injector import CRASHES
from worlds.simulation.world import BEFORE_ALL, World

BAD = "not an OpenLineage event"
KILLED = "ended the process 3 times"
Tables = dict[str, list[Any]]
# What these have depends on the way that events took. What the store says of their content is read
# from none of them.
OF_THE_WAY = frozenset(
    (
        "body_references",
        "offsets",
        "raw_events",
        "search_names",
        "search_texts",
        "set_aside",
        "store_settings",
    )
)


class CachedOracle(Oracle):
    """The oracle for one set of events, with its answers cached."""

    def __init__(self, arrivals: list[Arrival]) -> None:
        super().__init__(arrivals, NOW)
        for name in ("links", "group", "of_run"):
            setattr(self, name, cache(getattr(self, name)))


class Expected(NamedTuple):
    """The right end state.

    The oracle's public tables, and the rows of a store that took all events once, in order.
    """

    number: int
    tables: Tables
    kept: Tables


class Referee:
    """The right end state of a history; it remembers the last one."""

    def __init__(self, reference: Engine) -> None:
        self._reference = reference
        self._last = Expected(-1, {}, {})
        self._states: tuple[int, set[int]] = (-1, set())
        self._right: tuple[int, set[Rows]] = (-1, set())

    def expected(self, history: History, now: datetime) -> Expected:
        """Return the end state that all worlds of this history have to leave."""
        if history.number != self._last.number:
            arrivals = [(one, received(at, now)) for one, at in history.arrivals]
            take_all(self._reference, arrivals)
            self._last = Expected(
                history.number, tables_wanted(CachedOracle(arrivals)), kept(self._reference)
            )
        return self._last

    def right(self, history: History) -> set[Rows]:
        """The rows that worlds of this history had in the end and that were found to be right.

        The caller adds to them.

        What has the same rows says the same, so that nobody has to ask it again: nine of ten
        worlds.
        """
        if history.number != self._right[0]:
            self._right = (history.number, set())
        return self._right[1]

    def new_states(self, history: History, states: set[int]) -> int:
        """Count the states of the store that no world of this history has shown before."""
        if history.number != self._states[0]:
            self._states = (history.number, set())
        seen = self._states[1]
        before = len(seen)
        seen |= states
        return len(seen) - before


def fault_of(world: World, databases: Databases, referee: Referee) -> str:
    """The first thing that is wrong with a world, '' if nothing is. Runs it to its end."""
    before: dict[int, int] = {}
    for _ in range(world.history.steps):
        world.step()
        if wrong := _at_any_time(world, before):
            return wrong
    world.heal()
    return _at_any_time(world, before) or in_the_end(world, databases, referee)


def _at_any_time(world: World, before: dict[int, int]) -> str:
    """Offsets only grow; what is below one is stored, what is not below is not, unless it came another way."""
    if not world.observer.has_changed():
        return ""
    offsets = dict(world.observer.rows("SELECT partition_id, next_offset FROM offsets"))
    known = {row[0] for row in world.observer.rows("SELECT hash FROM event_keys")}
    dead = set(
        world.observer.rows("SELECT partition_id, record_offset FROM set_aside WHERE kind = 'dead'")
    )
    world.states.add(hash((*sorted(offsets.items()), frozenset(known), frozenset(dead))))
    for number, hashes in enumerate(world.topic.hashes):
        taken = offsets.get(number, 0)
        if taken < before.get(number, 0):
            return f"the offset of {number} went back from {before[number]} to {taken}"
        before[number] = taken
        for offset, hash_ in enumerate(hashes[:taken]):
            stored = hash_ in known or (number, offset) in dead
            if not stored and not world.topic.is_tombstone(number, offset):
                return f"record {number}@{offset} is below the offset {taken}, and nowhere"
    if early := known - world.sent - _below(world, offsets):
        return f"{len(early)} events are stored that no offset has passed"
    return ""


def _below(world: World, offsets: dict[int, int]) -> set[bytes]:
    return {
        one
        for number, hashes in enumerate(world.topic.hashes)
        for one in hashes[: offsets.get(number, 0)]
    }


def in_the_end(world: World, databases: Databases, referee: Referee) -> str:
    """Every event is stored once, with all that it says.

    Every other record with a value is a dead letter, with its reason.
    """
    if not world.is_drained() or world.server.waiting:
        return "it never comes to an end"
    return (
        _events(world, databases)
        or _letters(world)
        or _told(world)
        or _tables(world, databases, referee)
    )


def _events(world: World, databases: Databases) -> str:
    wanted = world.bodies
    with reading(databases.checker).connect() as connection:
        stored = {one.hash: one for one in events_of(connection)}
    keys = {row[0] for row in world.observer.rows("SELECT hash FROM event_keys")}
    if stored.keys() != wanted.keys():
        return f"{len(wanted.keys() - stored.keys())} events are lost, {len(stored.keys() - wanted.keys())} too many"
    if keys != stored.keys():
        return "event_keys and raw_events differ"
    wrong = [hash_ for hash_, one in stored.items() if json.loads(one.body) != wanted[hash_]]
    return f"{len(wrong)} events are not as they came" if wrong else ""


def _letters(world: World) -> str:
    found = sorted(
        world.observer.rows(
            "SELECT partition_id, record_offset, reason FROM set_aside WHERE kind = 'dead'"
        )
    )
    expected = {}
    for number, hashes in enumerate(world.topic.hashes):
        for offset, hash_ in enumerate(hashes):
            if hash_ not in world.bodies and not world.topic.is_tombstone(number, offset):
                expected[number, offset] = KILLED if hash_ in world.injector.poison else BAD
    if [row[:2] for row in found] != sorted(expected):
        return f"dead letters {[row[:2] for row in found]}, not {sorted(expected)}"
    odd = [row for row in found if expected[row[:2]] not in row[2]]
    return f"dead letters with another reason: {odd}" if odd else ""


def _told(world: World) -> str:
    """Nobody was told of more stored events than there are.

    Of fewer only where a process died after its commit.
    """
    told, there = world.counts.get("stored", 0), len(world.arrivals)
    if told > there:
        return f"{told} events were told to be stored, and there are {there}"
    unheard = {"poison", "lost commit", *CRASHES} & world.injector.struck.keys()
    return (
        f"of {there} events {told} were told to be stored" if told < there and not unheard else ""
    )


def _tables(world: World, databases: Databases, referee: Referee) -> str:
    """The rows are the oracle's, and those of a store that took all events once, in order."""
    rows, right = world.observer.rows_but_of(OF_THE_WAY), referee.right(world.history)
    if rows in right:
        return ""
    expected = referee.expected(world.history, world.now)
    with reading(databases.checker).connect() as connection:
        shown = tables_shown(connection)
    if wrong := first_difference(expected.tables, shown):
        return f"not as the oracle says: {wrong}"
    if wrong := first_difference(expected.kept, kept(databases.checker)):
        return wrong
    right.add(rows)
    return ""


def kept(engine: Engine) -> Tables:
    """Every row, without sets of edges that nothing uses any more: they go with retention.

    Facets are as they are read: how they are stored, a writer's memory decides. `job_relations` may
    hold a job too many, by who came first: its module says so.
    """
    with engine.begin() as connection:
        expire(connection, BEFORE_ALL)
        return folded_rows(connection) | {"job_relations": []}
