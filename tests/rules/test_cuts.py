"""The greatest cut without barriers equals brute force; where there is none, it says so."""

from itertools import product
from random import Random

from strandline.core.versions.consistent_cut import Line, greatest_cut
from strandline.core.versions.facts import Table
from worlds.barriers.history import table
from worlds.barriers.sizes import each_size


def some_lines(random: Random) -> list[Line]:
    """One or two base tables, and one to three tables whose snapshots read what was there, further and further."""
    lines = [
        Line(table(f"r{n}"), [f"r{n}@{i}" for i in range(random.randint(1, 4))])
        for n in range(random.randint(1, 2))
    ]
    for root in lines:
        root.read = [{} for _ in root.snapshots]
    for n in range(random.randint(1, 3)):
        sources = random.sample(lines, random.randint(1, min(2, len(lines))))
        at = {source.table: -1 for source in sources}
        made, read = [f"t{n}@{i}" for i in range(random.randint(1, 3))], list[dict[Table, str]]()
        for _ in made:
            taken = {}
            for source in sources:
                if random.random() < 0.1:
                    taken[source.table] = "~4.358e+18"
                elif random.random() < 0.8:
                    at[source.table] = random.randint(
                        max(0, at[source.table]), len(source.snapshots) - 1
                    )
                    taken[source.table] = source.snapshots[at[source.table]]
            read.append(taken)
        lines.append(Line(table(f"t{n}"), made, list(read)))
    return lines


def brute_force(lines: list[Line]) -> dict[Table, str] | None:
    """All cuts; the consistent ones; the componentwise greatest of these."""
    seen = {line.table: how_far(line, lines) for line in lines}
    consistent = [
        cut
        for chosen in product(*(range(len(line.snapshots)) for line in lines))
        if fits(cut := dict(zip((line.table for line in lines), chosen, strict=True)), seen)
    ]
    if not consistent:
        return None
    return {
        line.table: line.snapshots[max(cut[line.table] for cut in consistent)] for line in lines
    }


def how_far(line: Line, lines: list[Line]) -> list[dict[Table, int]]:
    """Per snapshot, up to which snapshot each source was read so far.

    -2 where the last read was of none that is known.
    """
    snapshots = {one.table: one.snapshots for one in lines}
    found = []
    for i in range(len(line.snapshots)):
        reads = [(source, read[source]) for read in line.read[: i + 1] for source in read]
        far = {source: -1 for read in line.read for source in read}
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

        assert greatest_cut(lines) == wanted, f"history {seed}"
    assert 0.1 < missing / len(seeds) < 0.9


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
