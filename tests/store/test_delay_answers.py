"""The delay of a table and its staleness, as they are answered."""

from sqlalchemy import Engine

from strandline.core.versions.apply import apply
from strandline.core.versions.facts import (
    BarrierCommitted,
    Fact,
    GroupDeclared,
    RootsCut,
    Used,
    WrittenSnapshot,
)
from strandline.core.versions.model import Model
from strandline.store.versions.delay_answers import delay_answer
from worlds.barriers.history import GROUP, job, table

TRANSFERS, BALANCE = table("transfers"), table("balance")


def late_balance() -> Model:
    """Return a model of two barriers; the balance has only the first."""

    def cut(barrier: int, at: float) -> Fact:
        return RootsCut(GROUP, barrier, (WrittenSnapshot(TRANSFERS, f"t{barrier}"),), at)

    made, used = (WrittenSnapshot(BALANCE, "b1", None),), (Used(TRANSFERS, "t1"),)
    balanced = BarrierCommitted(job("balances"), "run1", GROUP, 1, 13.0, 15.0, made, used)
    model = Model()
    for fact in (GroupDeclared(GROUP, (TRANSFERS,), 0.0), cut(1, 10.0), balanced, cut(2, 20.0)):
        apply(model, fact)
    return model


def test_last_barrier_has_a_delay_while_its_time_is_stored(engine: Engine) -> None:
    model = late_balance()

    with engine.connect() as connection:
        answer = delay_answer(connection, model, BALANCE, None, 50.0)

    assert (answer["delay"]["barrier"], answer["delay"]["seconds"]) == (1, 5.0)


def test_lag_is_known_after_the_time_of_the_last_barrier_is_deleted(engine: Engine) -> None:
    model = late_balance()
    model.group(GROUP).forget(2)

    with engine.connect() as connection:
        answer = delay_answer(connection, model, BALANCE, None, 50.0)

    assert answer["delay"] is None
    assert (answer["staleness"]["barrier"], answer["staleness"]["seconds"]) == (2, 30.0)
