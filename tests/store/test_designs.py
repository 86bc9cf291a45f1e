"""A JobEvent states what a job would do: it reads nothing, writes nothing and hides no run that did."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import Engine

from strandline.core.openlineage.names import id_of
from strandline.core.openlineage.times import micros_of
from strandline.store.catalog.details import job_detail
from strandline.store.catalog.writes import newest_writes
from strandline.store.lineage.dropped import dropped_at
from strandline.store.lineage.lookup import job_of
from strandline.store.lineage.run_state import View
from strandline.store.questions.last_use import last_reads
from worlds.builders import Json, dataset, event, job_event, rows, run_id, store

A, B = dataset("bank.a"), dataset("bank.b")
A_ID, B_ID = (id_of("dataset", "hive://lake", name) for name in ("bank.a", "bank.b"))
NOW = micros_of(datetime.now(UTC))
DESIGN = job_event(seconds=60, inputs=[A], outputs=[B])
RUN = event("COMPLETE", inputs=[A], outputs=[B])


def last_reader(engine: Engine, *, past: bool) -> str | None:
    """Return the run that read `a` last."""
    with engine.connect() as connection:
        found = last_reads(connection, [A_ID], View(NOW, past=past))
    return found[A_ID]["lastReadBy"]["runId"] if found else None


def last_writers(engine: Engine) -> list[str]:
    """Return the run that wrote `b` last, as the lists of now and of a past moment say."""
    with engine.connect() as connection:
        listed = rows(connection, "SELECT id FROM datasets WHERE name = 'bank.b'")
        ids = [id_ for (id_,) in listed]
        found = [newest_writes(connection, ids, View(NOW, past=past)) for past in (False, True)]
    return [writes[B_ID].run.run_id for writes in found if B_ID in writes]


@pytest.mark.parametrize("past", [False, True])
def test_a_design_reads_nothing(engine: Engine, past: bool) -> None:
    store(engine, [DESIGN])

    assert last_reader(engine, past=past) is None
    assert last_writers(engine) == []


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("history", [[RUN, DESIGN], [DESIGN, RUN]], ids=["after", "before"])
def test_a_design_hides_no_run(engine: Engine, history: list[Json], size: int) -> None:
    store(engine, history, size=size)

    assert last_reader(engine, past=False) == last_reader(engine, past=True) == run_id(1)
    assert last_writers(engine) == [run_id(1), run_id(1)]


def test_a_design_does_not_bring_back_a_dropped_table(engine: Engine) -> None:
    dropped = dataset("bank.b", lifecycleStateChange={"lifecycleStateChange": "DROP"})
    store(engine, [event("COMPLETE", outputs=[dropped]), DESIGN])

    with engine.connect() as connection:
        assert list(dropped_at(connection, [B_ID], NOW)) == [B_ID]


def test_a_job_that_never_ran_shows_what_its_design_declares(engine: Engine) -> None:
    store(engine, [DESIGN])

    with engine.connect() as connection:
        detail = job_detail(connection, job_of(connection, "tests", "etl"), NOW)
    assert (detail["latestRun"], detail["children"]) == (None, None)
    assert [len(detail[key]) for key in ("reads", "writes")] == [1, 1]
    assert "bank.a" in str(detail["reads"])
    assert "bank.b" in str(detail["writes"])
