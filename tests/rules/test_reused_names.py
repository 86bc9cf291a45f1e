"""Names that meant other tables before: what happened to those is nothing of the present ones."""

from collections.abc import Sequence

import pytest

from strandline.core.versions.apply import apply
from strandline.core.versions.facts import (
    BarrierCommitted,
    Fact,
    NameReused,
    RunStarted,
    Table,
    TableRenamed,
    Used,
    WrittenSnapshot,
)
from strandline.core.versions.model import Model

A, T = ("lake", "a"), ("lake", "t")


def commit(job: str, barrier: int, at: float, reads: dict[Table, str], writes: Table) -> Fact:
    """A micro-batch that made a snapshot which is named after its job."""
    return BarrierCommitted(
        ("ns", job), f"run of {job}", "d", barrier, at - 1, at,
        (WrittenSnapshot(writes, f"{job}{barrier}"),),
        tuple(Used(table, snapshot) for table, snapshot in reads.items()), query=job,
    )  # fmt: skip


def model_of(facts: Sequence[Fact]) -> Model:
    model = Model()
    for fact in facts:
        apply(model, fact)
    return model


FORMER = [commit("old", 1, 10, {}, A), commit("old", 2, 20, {}, A)]
REUSED: list[Fact] = [TableRenamed(("lake", "b"), A, 50.0, certain=False), NameReused(A, 50.0)]
PRESENT = [commit("new", barrier, 60 + barrier, {}, A) for barrier in (1, 2, 3)]


@pytest.mark.parametrize(
    "facts",
    [
        [*FORMER, *REUSED, *PRESENT],
        [*REUSED, *PRESENT, *FORMER],
        [*PRESENT, *REUSED, *FORMER],
        [*REUSED, *FORMER, *PRESENT],
    ],
)
def test_barriers_of_the_former_table_are_none_and_their_numbers_are_not_given_again(
    facts: Sequence[Fact],
) -> None:
    done = model_of(facts).done[A]

    assert {barrier: done.of[barrier].snapshot for barrier in done.order} == {3: "new3"}


def test_stream_that_read_the_former_table_completes_nothing_more() -> None:
    """Its table shows rows of both: only a new query that reads all again is whole."""
    follow: list[Fact] = [
        RunStarted(("ns", "old"), "run of old", 9.0, "d", (), (A,)),
        BarrierCommitted(
            ("ns", "make"), "m", "d", 1, 10.0, 11.0, (WrittenSnapshot(T, "t1"),),
            (Used(A, "old1", aligned=False),), batch=0, stated=False, query="q",
        ),
    ]  # fmt: skip
    later = BarrierCommitted(
        ("ns", "make"), "m", "d", 2, 65.0, 66.0, (WrittenSnapshot(T, "t2", "t1"),),
        (Used(A, "new3", aligned=False, since="old1"),), batch=1, stated=False, query="q",
    )  # fmt: skip
    before: list[Fact] = [follow[0], FORMER[0], follow[1]]

    assert model_of(before).done[T].order == [1]
    assert model_of([*before, *REUSED, *PRESENT, later]).done[T].order == []
