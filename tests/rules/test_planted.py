"""Rules of the model that random histories rarely reach."""

import pytest

from strandline.core.versions.apply import apply
from strandline.core.versions.facts import (
    BarrierCommitted,
    Fact,
    GroupDeclared,
    JobRetired,
    RootsCut,
    RunEnded,
    RunStarted,
    Table,
    Used,
    WrittenSnapshot,
)
from strandline.core.versions.model import Model
from strandline.core.versions.rollback import plan
from strandline.core.versions.strong_weak import strong
from strandline.errors import RefusedError
from worlds.barriers.history import GROUP, job, table

A, B, C, X = (table(name) for name in "abcx")


def model_of(*facts: Fact) -> Model:
    """The model after these facts."""
    model = Model()
    for fact in facts:
        apply(model, fact)
    return model


def started(
    name: str, at: float, reads: Table, writes: Table, run: str = "1", seen: float = 0
) -> RunStarted:
    """A run of a job."""
    return RunStarted(job(name), run, at, GROUP, (reads,), (writes,), seen)


def cut(root: Table, barrier: int) -> RootsCut:
    """A barrier of one base table."""
    return RootsCut(GROUP, barrier, (WrittenSnapshot(root, f"{root[1]}{barrier}"),), 10.0 * barrier)


def committed(
    name: str, barrier: int, reads: Table, writes: Table, run: str = "1"
) -> BarrierCommitted:
    """A micro-batch."""
    at, used = 10.0 * barrier + 1, Used(reads, f"{reads[1]}{barrier}")
    made = WrittenSnapshot(writes, f"{writes[1]}{barrier}")
    return BarrierCommitted(
        job(name), run, GROUP, barrier, at, at + 1, (made,), (used,), barrier - 1, f"/{name}"
    )


def chain() -> Model:
    """A -> to_b -> b -> to_c -> c, all at barriers 1 to 3."""
    jobs = (started("to_b", 1, A, B), started("to_c", 2, B, C))
    commits = [
        (cut(A, n), committed("to_b", n, A, B), committed("to_c", n, B, C)) for n in (1, 2, 3)
    ]
    return model_of(
        GroupDeclared(GROUP, (A, X), 0), *jobs, *(one for three in commits for one in three)
    )


@pytest.mark.parametrize("how", ["COMPLETE", "FAIL", "ABORT"])
def test_late_start_does_not_revive_an_ended_run(how: str) -> None:
    model = chain()
    apply(model, RunEnded(job("to_b"), "1", 50, how, 51))
    apply(model, started("to_b", 1, A, B, seen=99))

    ended = model.places[job("to_b")].ended
    assert ended is not None
    assert (ended.how, ended.at) == (how, 50)


def test_later_event_revives_a_silent_run() -> None:
    model = chain()
    apply(model, RunEnded(job("to_b"), "1", 50, "LOST", 51))
    apply(model, started("to_b", 1, A, B, seen=49))
    assert model.places[job("to_b")].ended is not None

    apply(model, started("to_b", 1, A, B, seen=99))
    assert model.places[job("to_b")].ended is None


@pytest.mark.parametrize("lost", [{}, {job("to_c"): 4}], ids=["incremental", "full"])
def test_a_rollback_stops_downstream_first_and_restarts_upstream_first(
    lost: dict[tuple[str, str], int],
) -> None:
    """A running downstream job would read rows that the rollback of its upstream job removes."""
    found = plan(chain(), B, 2, retained=lost)
    b, c, to_b, to_c = "lake:b", "lake:c", "jobs:to_b", "jobs:to_c"

    table_step, job_step = (
        ("clear table", "clear checkpoint") if lost else ("roll back table", "cut checkpoint")
    )
    assert [(step.action, step.target) for step in found.steps] == [
        ("stop job", to_c),
        ("stop job", to_b),
        (table_step, c),
        (table_step, b),
        (job_step, to_c),
        (job_step, to_b),
        ("raise generation", "group"),
        ("restart job", to_b),
        ("restart job", to_c),
    ]


@pytest.mark.parametrize("barrier", [4, 400])
def test_a_rollback_to_a_barrier_that_never_was_is_refused(barrier: int) -> None:
    with pytest.raises(
        RefusedError, match=f"b: group bank never had barrier {barrier}; it has 1 to 3"
    ):
        plan(chain(), B, barrier)


def test_returning_table_is_not_answered_with_an_older_barrier() -> None:
    """B was answered at barrier 3; its next writer reads a base table that has but two barriers."""
    model = chain()
    assert strong(model, [B])[0].barrier == 3
    for name in ("to_c", "to_b"):
        apply(model, JobRetired(job(name), 40, "unregistered"))
    for fact in (cut(X, 1), cut(X, 2), started("anew", 50, X, B)):
        apply(model, fact)

    assert model.done[B].order == [1, 2, 3]
    assert strong(model, [B])[0].barrier == 3

    apply(model, cut(X, 3))

    assert strong(model, [B])[0].barrier == 3
