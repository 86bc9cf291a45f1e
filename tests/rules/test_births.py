"""Birth and commit times of barriers, in any order of events and across rollbacks."""

from strandline.core.versions.apply import apply
from strandline.core.versions.delays import delay
from strandline.core.versions.facts import (
    BarrierCommitted,
    Fact,
    GroupDeclared,
    RolledBack,
    RootsCut,
    Used,
    WrittenSnapshot,
)
from strandline.core.versions.model import Model
from strandline.core.versions.strong_weak import strong
from worlds.barriers.history import GROUP, job, table

TRANSFERS, RATES, BALANCE = table("transfers"), table("rates"), table("balance")


def told(*facts: Fact) -> Model:
    """A model of the two base tables, and of what was told in this order."""
    model = Model()
    for fact in (GroupDeclared(GROUP, (TRANSFERS, RATES), 0.0), *facts):
        apply(model, fact)
    return model


def cut(barrier: int, at: float, transfers: str, rates: str = "r1") -> RootsCut:
    """A cut through both base tables; rates seldom have anything new."""
    return RootsCut(
        GROUP, barrier, (WrittenSnapshot(TRANSFERS, transfers), WrittenSnapshot(RATES, rates)), at
    )


def balanced(
    barrier: int, at: float, snapshot: str, read: str, parent: str | None = None
) -> BarrierCommitted:
    """A micro-batch that took two seconds."""
    made, used = (
        (WrittenSnapshot(BALANCE, snapshot, parent),),
        (Used(TRANSFERS, read), Used(RATES, "r1")),
    )
    return BarrierCommitted(job("balances"), "run1", GROUP, barrier, at - 2, at, made, used)


def test_barrier_birth_does_not_depend_on_event_order() -> None:
    in_order = told(cut(1, 10.0, "t1"), balanced(1, 15.0, "b1", "t1"))
    late = told(balanced(1, 15.0, "b1", "t1"), cut(1, 10.0, "t1"))

    assert [delay(model, TRANSFERS, 1).seconds for model in (in_order, late)] == [0.0, 0.0]
    assert [delay(model, BALANCE, 1).seconds for model in (in_order, late)] == [5.0, 5.0]


def test_rollback_below_the_base_tables_keeps_barrier_births() -> None:
    model = told(
        cut(1, 10.0, "t1"),
        balanced(1, 15.0, "b1", "t1"),
        balanced(2, 25.0, "b2", "t2", "b1"),
        cut(2, 20.0, "t2"),
        RolledBack(GROUP, (BALANCE,), 1, 30.0),
    )

    (answer,) = strong(model, [BALANCE])
    assert (answer.barrier, answer.generation, answer.lag(now=40.0)) == (1, 2, 20.0)


def test_overwritten_barrier_keeps_its_birth_and_stays_rolled_back() -> None:
    first, again = balanced(1, 15.0, "b1", "t1"), balanced(1, 18.0, "b1 again", "t1", "b1")
    for telling in ((first, again), (again, first)):
        model = told(*telling)
        assert model.done[BALANCE].of[1].snapshot == "b1 again"
        assert model.done[BALANCE].first(1) == 15.0

        apply(model, RolledBack(GROUP, (BALANCE,), 0, 14.0))
        apply(model, first)
        apply(model, again)
        assert 1 not in model.done[BALANCE]


def test_unchanged_base_table_is_cut_again_after_its_rollback() -> None:
    model = told(
        cut(1, 10.0, "t1"), cut(2, 20.0, "t1", "r2"), RolledBack(GROUP, (TRANSFERS,), 1, 30.0)
    )

    apply(model, cut(3, 40.0, "t1", "r3"))

    assert model.done[TRANSFERS].order == [1, 3]
    assert model.done[RATES].order == [1, 2, 3]
