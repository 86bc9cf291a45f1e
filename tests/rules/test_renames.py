"""The names that tables have now, for facts under earlier ones, against tables that really move."""

import random

import pytest

from strandline.core.versions.facts import (
    BarrierCommitted,
    DomainDeclared,
    RunStarted,
    TableRenamed,
    Used,
    WrittenSnapshot,
)
from strandline.core.versions.renames import Renames

NAMES = [("lake", name) for name in "abcdef"]
A, B, C = NAMES[:3]


@pytest.mark.parametrize("seed", range(200))
def test_name_of_a_moment_leads_to_the_table_that_had_it_then(seed: int) -> None:
    """Moves of names at random, swaps among them, which become known in any order."""
    chance = random.Random(seed)
    named = {name: number for number, name in enumerate(NAMES[:4])}  # by name the table
    moves: list[TableRenamed] = []
    held: list[tuple[float, dict[tuple[str, str], int]]] = [(0.5, dict(named))]
    for at in range(1, 12):
        free = [name for name in NAMES if name not in named]
        before, after = chance.choice(sorted(named)), chance.choice(free)
        named[after] = named.pop(before)
        moves.append(TableRenamed(before, after, float(at)))
        held.append((at + 0.5, dict(named)))
    known = list(enumerate(moves, 1))
    chance.shuffle(known)
    renames = Renames(known)

    present = {table: name for name, table in named.items()}
    for moment, then in held:
        for name, table in then.items():
            assert renames.of_time(name, moment) == present[table]


def test_fact_without_a_moment_means_the_table_of_its_place_in_the_log() -> None:
    renames = Renames([(5, TableRenamed(A, B, 100.0)), (9, TableRenamed(B, C, 50.0))])
    declared = DomainDeclared("d", (A,), 1000.0)

    assert renames.renamed(declared, 4) == DomainDeclared("d", (B,), 1000.0)
    assert renames.renamed(declared, 5) is declared


def test_all_tables_of_a_fact_are_called_as_now() -> None:
    renames = Renames([(1, TableRenamed(A, B, 10.0))])
    run = RunStarted(("ns", "j"), "1", 5.0, reads=(A, C), writes=(A,))
    commit = BarrierCommitted(
        ("ns", "j"), "1", "d", 1, 5.0, 6.0, (WrittenSnapshot(A, "1"),), (Used(A, "0"),), aside=(A,)
    )

    assert renames.renamed(run, 2) == RunStarted(("ns", "j"), "1", 5.0, reads=(B, C), writes=(B,))
    named = renames.renamed(commit, 2)
    assert isinstance(named, BarrierCommitted)
    assert (named.written[0].table, named.used[0].table, named.aside) == (B, B, (B,))
    assert renames.renamed(RunStarted(("ns", "j"), "2", 11.0, reads=(A,)), 3).reads == (A,)  # type: ignore[union-attr]


def test_rename_that_is_told_again_changes_nothing() -> None:
    renames = Renames([(1, TableRenamed(A, B, 10.0)), (2, TableRenamed(A, B, 10.0))])

    assert renames.has(TableRenamed(A, B, 10.0))
    assert not renames.has(TableRenamed(A, B, 11.0))
    assert renames.of_log(A, 1) == A
