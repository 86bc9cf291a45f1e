"""The greatest cut without barriers equals brute force; where there is none, it says so.

Where runs overlapped several may be greatest: the cut is one that fits.
"""

from collections.abc import Mapping
from itertools import product
from random import Random

from strandline.core.versions.consistent_cut import Excluded, Line, greatest_cut
from strandline.core.versions.facts import Table
from worlds.barriers.history import table
from worlds.barriers.sizes import each_size


def some_lines(random: Random, *, replaced: bool = False) -> list[Line]:
    """One or two base tables, and one to three tables whose snapshots read what was there.

    Further and further; where batch runs replaced a table they may have read an older snapshot.
    """
    lines = [
        Line(table(f"r{n}"), [f"r{n}@{i}" for i in range(random.randint(1, 4))])
        for n in range(random.randint(1, 2))
    ]
    for root in lines:
        root.read = [{} for _ in root.snapshots]
    for n in range(random.randint(1, 3)):
        sources = random.sample(lines, random.randint(1, min(2, len(lines))))
        at = {source.table: -1 for source in sources}
        made, read = [f"t{n}@{i}" for i in range(random.randint(1, 3))], list[Mapping[Table, str]]()
        whole = {one for one in made if replaced and random.random() < 0.5}
        for snapshot in made:
            taken = {}
            if snapshot in whole:
                at = dict.fromkeys(at, -1)
            for source in sources:
                if random.random() < 0.1:
                    taken[source.table] = "~4.358e+18"
                elif random.random() < 0.8:
                    at[source.table] = random.randint(
                        max(0, at[source.table]), len(source.snapshots) - 1
                    )
                    taken[source.table] = source.snapshots[at[source.table]]
            read.append(taken)
        lines.append(Line(table(f"t{n}"), made, read, whole))
    return lines


def brute_force(lines: list[Line]) -> dict[Table, str] | None:
    """Return the componentwise greatest of all consistent cuts."""
    consistent = all_cuts(lines)
    if not consistent:
        return None
    return {
        line.table: line.snapshots[max(cut[line.table] for cut in consistent)] for line in lines
    }


def all_cuts(lines: list[Line]) -> list[dict[Table, int]]:
    """All consistent cuts, by the places of their snapshots."""
    seen = {line.table: how_far(line, lines) for line in lines}
    return [
        cut
        for chosen in product(*(range(len(line.snapshots)) for line in lines))
        if fits(cut := dict(zip((line.table for line in lines), chosen, strict=True)), seen)
    ]


def how_far(line: Line, lines: list[Line]) -> list[dict[Table, int]]:
    """Per snapshot, up to which snapshot each source was read since the last whole replacement.

    -2 where the last read was of none that is known.
    """
    snapshots = {one.table: one.snapshots for one in lines}
    found = []
    for i in range(len(line.snapshots)):
        first = max((at for at in range(i + 1) if line.snapshots[at] in line.whole), default=None)
        counted = line.read[first or 0 : i + 1]
        reads = [(source, read[source]) for read in counted for source in read]
        named = line.read if first is None else counted
        far = {source: -1 for read in named for source in read}
        for source, snapshot in reads:
            if snapshot in snapshots[source]:
                far[source] = max(far[source], snapshots[source].index(snapshot))
        last = dict(reads)
        found.append(
            {s: at if last.get(s, "") in ["", *snapshots[s]] else -2 for s, at in far.items()}
        )
    return found


def fits(cut: dict[Table, int], seen: dict[Table, list[dict[Table, int]]]) -> bool:
    """Every table shows exactly what the cut shows of its inputs."""
    return all(
        cut[source] == read for one, at in cut.items() for source, read in seen[one][at].items()
    )


@each_size
def test_greatest_cut_matches_brute_force(seeds: range) -> None:
    missing = 0
    for seed in seeds:
        lines = some_lines(Random(seed))
        wanted = brute_force(lines)
        missing += wanted is None
        found = greatest_cut(lines)

        assert (None if isinstance(found, Excluded) else found) == wanted, f"history {seed}"
    assert 0.1 < missing / len(seeds) < 0.9


@each_size
def test_cut_fits_where_runs_replaced_their_table_from_older_snapshots(seeds: range) -> None:
    found_cuts = missed = 0
    for seed in seeds:
        lines = some_lines(Random(seed), replaced=True)
        cuts = [
            {line.table: line.snapshots[cut[line.table]] for line in lines}
            for cut in all_cuts(lines)
        ]
        found = greatest_cut(lines)
        missed += isinstance(found, Excluded) and bool(cuts)
        found_cuts += found in cuts

        assert isinstance(found, Excluded) or found in cuts, f"history {seed}"
    assert found_cuts > 4 * missed


def test_table_that_a_run_replaced_from_an_older_snapshot_shows_that_one() -> None:
    orders = Line(table("orders"), ["o5", "o6"], [{}, {}])
    reads: list[Mapping[Table, str]] = [{orders.table: "o6"}, {orders.table: "o5"}]
    totals = Line(table("totals"), ["t1", "t2"], reads, {"t1", "t2"})

    assert greatest_cut([orders, totals]) == {orders.table: "o5", totals.table: "t2"}


def test_restore_shows_what_the_snapshot_that_it_names_shows() -> None:
    orders = Line(table("orders"), ["o5", "o6"], [{}, {}])
    reads: list[Mapping[Table, str]] = [{orders.table: "o5"}, {orders.table: "o6"}, {}]
    totals = Line(table("totals"), ["t1", "t2", "t3"], reads, {"t1", "t2"}, {"t3": "t1"})

    assert greatest_cut([orders, totals]) == {orders.table: "o5", totals.table: "t3"}


def test_restore_of_an_unknown_snapshot_fits_nothing() -> None:
    orders = Line(table("orders"), ["o5", "o6"], [{}, {}])
    reads: list[Mapping[Table, str]] = [{orders.table: "o5"}, {}]
    totals = Line(table("totals"), ["t1", "t2"], reads, {"t1"}, {"t2": None})

    assert greatest_cut([orders, totals]) == {orders.table: "o5", totals.table: "t1"}


@each_size
def test_control_latest_snapshots_are_often_inconsistent(seeds: range) -> None:
    latest_differs = 0
    for seed in seeds:
        lines = some_lines(Random(seed))
        wanted = brute_force(lines)
        latest_differs += wanted is not None and wanted != {
            line.table: line.snapshots[-1] for line in lines
        }
    assert latest_differs > len(seeds) * 0.05
