"""The names that tables have now, for facts under an earlier name."""

from strandline.core.versions.facts import (
    BarrierCommitted,
    GroupDeclared,
    NameReused,
    RunStarted,
    TableRenamed,
    Used,
    WrittenSnapshot,
)
from strandline.core.versions.renames import Renames

A, B, C = (("lake", name) for name in "abc")


def test_all_tables_of_a_fact_are_called_as_now() -> None:
    renames = Renames([(1, TableRenamed(A, B, 10.0))])
    commit = BarrierCommitted(
        ("ns", "j"), "1", "d", 1, 5.0, 6.0, (WrittenSnapshot(A, "1"),), (Used(A, "0"),), aside=(A,)
    )

    started = renames.renamed(RunStarted(("ns", "j"), "1", 5.0, reads=(A, C), writes=(A,)), 2)
    assert started == RunStarted(("ns", "j"), "1", 5.0, reads=(B, C), writes=(B,))
    named = renames.renamed(commit, 2)
    assert isinstance(named, BarrierCommitted)
    assert (named.written[0].table, named.used[0].table, named.aside) == (B, B, (B,))


def test_what_happens_under_the_former_name_after_the_rename_keeps_it() -> None:
    renames = Renames([(1, TableRenamed(A, B, 10.0))])
    later = RunStarted(("ns", "j"), "2", 11.0, reads=(A,))

    assert renames.renamed(later, 3) is later


def test_names_in_a_chain_lead_to_the_last() -> None:
    renames = Renames([(5, TableRenamed(B, C, 50.0)), (9, TableRenamed(A, B, 10.0))])

    assert [renames.name(A, 1), renames.name(B, 1, 20.0), renames.name(B, 1, 60.0)] == [C, C, B]


def test_name_that_is_used_again_is_mapped_in_what_came_before_in_the_log() -> None:
    renames = Renames([(5, TableRenamed(A, B, 10.0)), (9, NameReused(A, 10.0))])
    declared = GroupDeclared("d", (A,), 1000.0)

    assert renames.renamed(declared, 8) == GroupDeclared("d", (B,), 1000.0)
    assert renames.renamed(declared, 10) is declared
    assert [renames.name(A, 10, 9.0), renames.name(A, 10, 11.0)] == [B, A]


def test_rename_that_turns_out_to_be_uncertain_is_none() -> None:
    renames = Renames([(5, TableRenamed(A, B, 10.0))])
    assert renames.name(A, 6) == B
    assert renames.moves(TableRenamed(A, B, 10.0, certain=False)) == B

    renames.add(9, TableRenamed(A, B, 10.0, certain=False))
    assert renames.name(A, 6) == A
    assert renames.moves(TableRenamed(A, B, 10.0)) is None


def test_repeated_event_changes_nothing() -> None:
    renames = Renames([(1, TableRenamed(A, B, 10.0)), (2, NameReused(C, 20.0))])

    assert renames.has(TableRenamed(A, B, 10.0))
    assert renames.has(NameReused(C, 20.0))
    assert renames.has(NameReused(C, 10.0))
    assert not renames.has(NameReused(C, 30.0))
