"""Folding is associative: any split and grouping of events leaves the same rows."""

import random
from collections import defaultdict
from pathlib import Path

import msgspec
import pytest

import recordings
from strandline.core.openlineage.events import decoded, trimmed
from strandline.core.openlineage.facets import content_hash
from strandline.core.openlineage.times import micros_of
from strandline.history import sorted_files
from strandline.history.parts import (
    KNOWN,
    REFUSED,
    ArchivedEvent,
    Parts,
    folded,
    joined,
    partitioned,
    parts_of,
)
from strandline.history.sorted_files import merged, write_sorted
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
    return folded(joined(one for piece in pieces for one in partitioned(piece, 1)))


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
    whole = fold(list(parts_of(events, ())))
    assert set(whole) > {"runs", "run_relations", "facets", "snapshots", KNOWN}
    chance = random.Random(seed)
    chance.shuffle(events)
    again = [*events, *chance.choices(events, k=40)]

    pieces = [
        part
        for start in range(0, len(again), 37)
        for part in parts_of(again[start : start + 37], ())
    ]
    while len(pieces) > 1:  # two at a time, in any order
        chance.shuffle(pieces)
        pieces = [*pieces[2:], fold(pieces[:2])]

    assert without_ways(pieces[0]) == without_ways(whole)
    assert len(pieces[0]["facet_uses"]) > 10


@pytest.mark.parametrize("buckets", [1, 3, 40])
def test_rows_of_all_buckets_are_merged_once_in_key_order(
    buckets: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sorted_files, "PER_PAGE", 5)
    pieces = [part for seed in range(2) for part in parts_of(recorded()[seed::2], ())]
    hands = [partitioned(piece, buckets) for piece in pieces]

    files = [
        write_sorted(str(tmp_path), folded(joined(filter(None, bucket))))
        for bucket in zip(*hands, strict=True)
    ]
    found = {table: list(rows) for table, rows in merged(files)}

    whole = fold(pieces)
    assert max(map(len, whole.values())) > 2 * 5 * 40  # several pages of each file
    assert found == {
        table: [msgspec.msgpack.decode(row, type=tuple) for _, row in rows]
        for table, rows in whole.items()
    }


def test_invalid_archived_event_is_reported_and_affects_no_other() -> None:
    good = recorded()[0]
    decoded(good.body)

    (parts,) = parts_of([ArchivedEvent(b"\1" * 16, BEGIN, b"{"), good], ())

    assert [key for key, _ in parts[REFUSED]] == [b"\1" * 16]
    assert [key for key, _ in parts[KNOWN]] == [good.hash]
    assert set(parts) > {"jobs", "runs"}
