"""Aligned jobs, whose commits state their barriers: they are believed where their table is whole."""

from typing import Any

import pytest

from api.versions.test_derived import COPY, RAW, batch_run, on, read
from fixtures.versions_server.events import barrier_facet, committed, dataset, event, started
from fixtures.versions_server.server import Server

JSON = dict[str, Any]


def aligned(
    number: int, barrier: int, read_: JSON, made: JSON, at: float, query: str = "q"
) -> JSON:
    """RUNNING of a micro-batch of `al` that ends at a barrier."""
    inputs = [dataset(RAW, "input", read_ | {"barrierId": barrier})]
    outputs = [dataset(COPY, "output", made | {"barrierId": barrier, "operation": "append"})]
    facets = barrier_facet("plain", barrier, at - 1, at, batchId=number, queryId=query)
    return event("RUNNING", "al", at, run_facets=facets, inputs=inputs, outputs=outputs)


@pytest.fixture
def lake(server: Server) -> Server:
    """A base table at barrier 5."""
    server.post(
        started("ingest", 0, [], [RAW], group="plain"),
        started("al", 1, [RAW], [COPY], group="plain"),
    )
    for barrier in range(1, 6):
        server.post(
            committed("ingest", 10 * barrier, barrier, {}, {RAW: f"r{barrier}"}, group="plain")
        )
    return server


def test_an_aligned_job_that_began_on_an_empty_table_is_believed(lake: Server) -> None:
    lake.post(aligned(0, 2, read(None, "r2"), on("c0", "c1", wasEmpty=True), 100))
    lake.post(aligned(1, 4, read("r2", "r4"), on("c1", "c2"), 110))

    assert lake.snapshots(RAW, COPY, consistency="strong") == {RAW: "r4", COPY: "c2"}


@pytest.mark.parametrize("late", [False, True], ids=["in order", "late"])
@pytest.mark.parametrize("is_recorded", [False, True], ids=["of nobody", "of a batch job"])
def test_an_aligned_job_that_began_on_rows_of_others_completes_nothing_until_a_replacement(
    lake: Server, *, is_recorded: bool, late: bool
) -> None:
    part = {"snapshotId": "c0", "replacesTable": False}
    fill = batch_run("fill", 1, 90, {RAW: "r1"}, {COPY: part}) if is_recorded else []
    first = aligned(0, 2, read(None, "r2"), on("c0", "c1"), 100)
    second = aligned(1, 3, read("r2", "r3"), on("c1", "c2"), 110)
    lake.post(*([second, first, *fill] if late else [*fill, first, second]))
    refused = lake.versions(RAW, COPY, consistency="strong", status=409)
    lake.post(*batch_run("load", 1, 120, {RAW: "r4"}, {COPY: "c3"}, parent="c2"))
    lake.post(aligned(2, 5, read("r4", "r5"), on("c3", "c4"), 130))

    assert refused["code"] == "no_version"
    assert "al: db.copy: " in refused["detail"]
    assert "replace the whole table" in refused["detail"]
    assert lake.snapshots(RAW, COPY, consistency="strong") == {RAW: "r5", COPY: "c4"}


def test_aligned_job_continues_exactly_after_an_initial_load(lake: Server) -> None:
    lake.post(*batch_run("load", 1, 90, {RAW: "r3"}, {COPY: "c0"}))
    lake.post(aligned(0, 4, read("r3", "r4"), on("c0", "c1"), 100))

    assert lake.snapshots(RAW, COPY, consistency="strong") == {RAW: "r4", COPY: "c1"}


def test_an_aligned_job_that_lost_its_checkpoint_keeps_the_barriers_before(lake: Server) -> None:
    lake.post(aligned(0, 2, read(None, "r2"), on(None, "c1"), 100))
    lake.post(aligned(0, 4, read(None, "r4"), on("c1", "c2"), 110, query="new"))
    answer = lake.versions(RAW, COPY, consistency="strong")

    assert [table["snapshotId"] for table in answer["tables"]] == ["r2", "c1"]
    assert answer["blockedBy"][0]["reason"] == (
        "al: db.copy: a query with a new checkpoint writes a table with content; replace the whole table, "
        "or go back: strandline rollback db.copy 2"
    )
