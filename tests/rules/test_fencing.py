"""Nothing from before a rollback returns: fenced by run if its end is known, else by time."""

from msgspec.structs import replace

from strandline.core.versions.apply import apply
from strandline.core.versions.facts import (
    BarrierCommitted,
    GroupDeclared,
    JobRetired,
    RolledBack,
    RootsCut,
    RunEnded,
    RunStarted,
    WrittenSnapshot,
)
from strandline.core.versions.model import Model
from worlds.barriers.history import GROUP, job, table

TRANSFERS, BALANCE = table("transfers"), table("balance")
JOB = job("balances")


def rolled_back_at_50(*, ended: str | None = "FAIL") -> Model:
    """Barriers 1 to 3, of which run 1 told the first.

    It ended at 45, and the balance went back to barrier 1 at 50.
    """
    model = Model()
    apply(model, GroupDeclared(GROUP, (TRANSFERS,), 0.0))
    for barrier in (1, 2, 3):
        apply(
            model,
            RootsCut(GROUP, barrier, (WrittenSnapshot(TRANSFERS, f"t{barrier}"),), 10.0 * barrier),
        )
    apply(model, started("run1", 5.0))
    apply(model, balanced("run1", 1, "b1", 12.0))
    if ended is not None:
        apply(model, RunEnded(JOB, "run1", 45.0, ended))
    apply(model, RolledBack(GROUP, (BALANCE,), 1, 50.0))
    return model


def started(run: str, at: float) -> RunStarted:
    """A run of the one job."""
    return RunStarted(JOB, run, at, GROUP, (TRANSFERS,), (BALANCE,))


def balanced(run: str, barrier: int, snapshot: str, at: float) -> BarrierCommitted:
    """A micro-batch, on the clock of its driver."""
    return BarrierCommitted(
        JOB, run, GROUP, barrier, at - 1, at, (WrittenSnapshot(BALANCE, snapshot, "b1"),)
    )


def balances(model: Model) -> dict[int, str]:
    """The balance's snapshots, by barrier."""
    return {barrier: made.snapshot for barrier, made in model.done[BALANCE].of.items()}


def test_old_runs_late_commit_is_rejected_even_with_a_fast_clock() -> None:
    model = rolled_back_at_50()

    apply(model, balanced("run1", 2, "b2 of before", 57.0))
    assert balances(model) == {1: "b1"}

    apply(model, started("run2", 55.0))
    apply(model, balanced("run2", 2, "b2", 60.0))
    apply(model, balanced("run1", 3, "b3 of before", 61.0))
    assert balances(model) == {1: "b1", 2: "b2"}


def test_generation_of_a_commit_outweighs_its_clock() -> None:
    model = rolled_back_at_50(ended=None)
    apply(model, started("run2", 30.0))

    apply(model, replace(balanced("run1", 2, "b2 of before", 999.0), generation=1))
    apply(model, replace(balanced("run2", 2, "b2", 31.0), generation=2))

    assert balances(model) == {1: "b1", 2: "b2"}


def test_old_run_stays_out_after_its_job_was_retired_and_returned() -> None:
    model = rolled_back_at_50()
    apply(model, JobRetired(JOB, 52.0, "unregistered"))
    apply(model, started("run2", 55.0))

    apply(model, balanced("run1", 3, "b3 of before", 61.0))
    apply(model, balanced("run2", 2, "b2", 62.0))

    assert balances(model) == {1: "b1", 2: "b2"}


def test_silent_run_continues() -> None:
    model = rolled_back_at_50(ended="LOST")

    apply(model, balanced("run1", 2, "b2", 57.0))

    assert balances(model) == {1: "b1", 2: "b2"}


def test_unreported_old_run_is_recognized_by_its_times() -> None:
    model = rolled_back_at_50()

    apply(model, started("spooled", 46.0))
    apply(model, balanced("spooled", 2, "b2 of before", 48.0))

    assert balances(model) == {1: "b1"}
