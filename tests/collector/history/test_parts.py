"""Rows may be made and folded anywhere: any cut of the events, folded in any grouping, leaves the same rows."""

import random

import pytest

import recordings
from scenarios.bank import bank
from strandline.core.openlineage.events import decoded, trimmed
from strandline.core.openlineage.facets import content_hash
from strandline.core.openlineage.times import micros_of
from strandline.history.parts import REFUSED, ArchivedEvent, Part, folded, parts_of

BEGIN = 1_790_000_000_000_000


def recorded() -> list[ArchivedEvent]:
    bodies = [body for name in recordings.names()[::3] for body in recordings.events_of(name)]
    found = [ArchivedEvent(content_hash(trimmed(body)), BEGIN + n * 10**6, body) for n, body in enumerate(bodies)]
    streams = [ArchivedEvent(content_hash(one.value), micros_of(one.received_at), one.value) for one in bank(3)]
    return [*found, *streams]


def fold(parts: list[Part]) -> list[Part]:
    return list(folded(sorted(parts, key=lambda part: part[:2])))


@pytest.mark.parametrize("seed", range(6))
def test_folding_is_associative(seed: int) -> None:
    events = recorded()
    whole = fold(list(parts_of(events, ())))
    chance = random.Random(seed)
    chance.shuffle(events)
    again = [*events, *chance.choices(events, k=40)]

    pieces = [list(parts_of(again[start : start + 37], ())) for start in range(0, len(again), 37)]
    while len(pieces) > 1:  # two at a time, in any order
        chance.shuffle(pieces)
        pieces = [*pieces[2:], fold(pieces[0] + pieces[1])]

    assert fold(pieces[0]) == whole


def test_what_is_no_event_is_named_and_costs_no_other() -> None:
    good = recorded()[0]
    decoded(good.body)

    parts = list(parts_of([ArchivedEvent(b"\1" * 16, BEGIN, b"{"), good], ()))

    assert [part.key for part in parts if part.table == REFUSED] == [b"\1" * 16]
    assert {part.table for part in parts} > {"jobs", "runs"}
