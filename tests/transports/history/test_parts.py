"""Folding is associative: any split and grouping of events leaves the same rows."""

import random
from collections import defaultdict
from operator import itemgetter
from typing import Any

import msgspec
import pytest

import recordings
from strandline.core.changes.compact import fold_rows, key_of
from strandline.core.openlineage.events import decoded, trimmed
from strandline.core.openlineage.facets import content_hash
from strandline.core.openlineage.times import micros_of
from strandline.history import parts as parts_module
from strandline.history.parts import (
    KNOWN,
    REFUSED,
    ArchivedEvent,
    Parts,
    kind_of,
    pages_of,
    parts_of,
    rows_in,
)
from worlds.scenarios.bank import bank

BEGIN = 1_790_000_000_000_000
FACETS = ("facet_sets", "facet_uses", "facets", "facet_bodies")


def recorded() -> list[ArchivedEvent]:
    bodies = [body for name in recordings.names()[::3] for body in recordings.events_of(name)]
    found = [
        ArchivedEvent(content_hash(trimmed(body)), BEGIN + n * 10**6, body)
        for n, body in enumerate(bodies)
    ]
    streams = [
        ArchivedEvent(content_hash(one.value), micros_of(one.received_at), one.value)
        for one in bank(3)
    ]
    return [*found, *streams]


def fold(pieces: list[Parts]) -> Parts:
    """Fold what several workers made, as Spark brings it together."""
    rows = [(table, *row) for piece in pieces for table, found in piece.items() for row in found]
    folded: Parts = defaultdict(list)
    for table, page in pages_of(sorted(rows, key=itemgetter(0, 1))):
        for row in msgspec.msgpack.decode(page, type=list[msgspec.Raw]):
            folded[table].append((key_in(table, bytes(row)), bytes(row)))
    return dict(folded)


def key_in(table: str, row: bytes) -> bytes:
    """Return the packed key of a packed row."""
    values = msgspec.msgpack.decode(row, type=tuple)
    if table in (KNOWN, REFUSED):
        return bytes(values[0])
    return msgspec.msgpack.encode(key_of(kind_of(table), values))


def without_ways(parts: Parts) -> tuple[Parts, dict[tuple[int, str, int], tuple[int, bytes]]]:
    """Return the parts, and apart from them moment and hash of the newest facet of each key.

    Which are in sets depends on the cut.
    """
    rows = {
        table: [msgspec.msgpack.decode(row) for _, row in parts.get(table, ())] for table in FACETS
    }
    sets = defaultdict(list)
    for set_id, key, kind, hash_, *_ in rows["facet_sets"]:
        sets[set_id].append((key, kind, hash_))
    facets = [
        ((entity, key, kind), (at, hash_)) for entity, key, kind, at, hash_, *_ in rows["facets"]
    ]
    facets += [
        ((entity, key, kind), (at, hash_))
        for entity, one, at in rows["facet_uses"]
        for key, kind, hash_ in sets[one]
    ]
    return {table: rows for table, rows in parts.items() if table not in FACETS}, dict(
        sorted(facets)
    )


@pytest.mark.parametrize("seed", range(6))
def test_folding_is_associative(seed: int) -> None:
    events = recorded()
    whole = fold(list(parts_of(events)))
    assert set(whole) > {"runs", "run_relations", "facets", "snapshots", KNOWN}
    chance = random.Random(seed)
    chance.shuffle(events)
    again = [*events, *chance.choices(events, k=40)]

    pieces = [
        part for start in range(0, len(again), 37) for part in parts_of(again[start : start + 37])
    ]
    while len(pieces) > 1:  # two at a time, in any order
        chance.shuffle(pieces)
        pieces = [*pieces[2:], fold(pieces[:2])]

    assert without_ways(pieces[0]) == without_ways(whole)
    assert len(pieces[0]["facet_uses"]) > 10


def test_pages_have_one_row_a_key_in_the_order_of_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts_module, "PER_PAGE", 5)
    pieces = [part for seed in range(2) for part in parts_of(recorded()[seed::2])]
    rows = [(table, *row) for piece in pieces for table, found in piece.items() for row in found]

    pages = list(pages_of(sorted(rows, key=itemgetter(0, 1))))
    found: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for table, page in pages:
        assert len(rows_in(page)) <= 5
        found[table] += rows_in(page)

    keys = {table: {key for name, key, _ in rows if name == table} for table in found}
    assert [table for table, _ in pages] == sorted(table for table, _ in pages)
    assert max(map(len, found.values())) > 2 * 5
    assert {table: len(found[table]) for table in found} == {
        table: len(own) for table, own in keys.items()
    }
    folded = set(found) - {KNOWN, REFUSED}
    assert {table: sorted(found[table]) for table in folded} == {
        table: sorted(
            tuple(row)
            for row in fold_rows(
                kind_of(table),
                [
                    kind_of(table)(*msgspec.msgpack.decode(row, type=tuple))
                    for name, _, row in rows
                    if name == table
                ],
            )
        )
        for table in folded
    }


def test_invalid_archived_event_is_reported_and_affects_no_other() -> None:
    good = recorded()[0]
    decoded(good.body)

    (parts,) = parts_of([ArchivedEvent(b"\1" * 16, BEGIN, b"{"), good])

    assert [key for key, _ in parts[REFUSED]] == [b"\1" * 16]
    assert [key for key, _ in parts[KNOWN]] == [good.hash]
    assert set(parts) > {"jobs", "runs"}
