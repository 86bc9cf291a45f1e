"""Consumption in events: inputs named by a commit, source positions and lookups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import strandline_spark.formats.registry  # noqa: F401 - formats that have snapshots are known from here on
from fixtures.emitter.builders import conf, insert, snapshot, table
from fixtures.emitter.plans import QUERY, Handle, Plan
from fixtures.emitter.streams import StreamScript
from strandline_spark.extraction.aligned_outputs import AlignedOutput, starting
from strandline_spark.jvm.iceberg_snapshot import Commit
from strandline_spark.model.statement import Statement
from strandline_spark.openlineage.consumption import certain, of_group


@pytest.fixture
def aligned() -> Iterator[str]:
    """The name of the query of an aligned job that writes bank.credits."""
    with starting("aligned_credits", AlignedOutput("lake.bank.credits", "append", frozenset())):
        yield "aligned_credits"


def test_commit_summary_decides_inputs_over_observed_scans(aligned: str) -> None:
    """With several jobs catching up, the observed scan belongs to another micro-batch."""
    made, right = snapshot("104", barrier_id=17), table("bank.transfers", snapshot("7"))
    wrong = insert(table("bank.credits", made), table("bank.transfers", snapshot("8")))
    exact = Plan(Statement("Tick"), checkpoints={4: insert(table("bank.credits", made), right)})
    busy = Plan(Statement("Tick"))
    inputs = {
        "strandline.query-id": QUERY,
        "strandline.batch-id": "4",
        "strandline.inputs": '{"lake.bank.transfers": "7"}',
    }
    commit = Commit("lake.bank.credits", "append", "104", summary=inputs)

    def told(plan: Plan, part: Statement) -> Any:
        driver = (
            StreamScript(Handle(name=aligned), told=3)
            .start(aligned)
            .batch(4, plan, parts=[part], commits=[commit])
        )
        (source,) = driver.sent.events[-1]["inputs"]
        facet = source["inputFacets"]["strandline_snapshot"]
        return facet["snapshotId"], facet.get("observed")

    assert told(exact, wrong) == ("7", None)
    assert told(busy, insert(table("bank.credits", made), right)) == ("7", None)
    assert told(busy, wrong) == ("8", True)


def test_a_stream_from_a_table_states_no_barrier_but_its_position_in_each_source() -> None:
    credits, idle = (
        replace(table(f"bank.{name}", snapshot(made)), streamed=True)
        for name, made in (("credits", "7"), ("debits", "9"))
    )
    rates = table("bank.rates", snapshot("3"))
    plan = Plan(insert(table("bank.sums", snapshot("5")), credits, rates))
    handle = Handle()
    handle.plan = Plan(Statement("Logical"), sources=(credits, idle))
    driver = StreamScript(handle, settings=conf(group="bank")).start().batch(0, plan)

    event = driver.sent.events[-1]
    facet = event["run"]["facets"]["strandline_barrier"]
    read = {
        one["name"]: one["inputFacets"]["strandline_snapshot"]["snapshotId"]
        for one in event["inputs"]
    }
    assert "barrierId" not in facet
    assert facet["batchId"] == 0
    assert facet["lookups"] == [{"namespace": "file", "name": "/warehouse/bank/rates"}]
    assert read == {
        "/warehouse/bank/credits": "7",
        "/warehouse/bank/rates": "3",
        "/warehouse/bank/debits": "9",
    }


def test_a_table_read_at_two_snapshots_in_one_micro_batch_is_certain_at_neither() -> None:
    streamed = insert(
        table("bank.sums"), replace(table("bank.credits", snapshot("7")), streamed=True)
    )
    scanned = insert(table("bank.sums"), table("bank.credits", snapshot("8")))

    assert all(
        s.observed for one in certain([streamed, scanned]) for d in one.inputs for s in d.snapshots
    )
    assert certain([streamed, streamed]) == [streamed, streamed]


def test_batch_run_joins_the_group_if_it_derives_a_table() -> None:
    made, read = table("bank.sums"), table("bank.credits", snapshot("7"))
    deleted = replace(
        insert(made, read), outputs=(replace(insert(made).outputs[0], operation="delete"),)
    )

    facet = of_group("bank", [insert(made, read)])
    assert facet is not None
    assert (facet.group, facet.barrierId, facet.batchId) == ("bank", None, None)
    assert of_group(None, [insert(made, read)]) is None
    assert of_group("bank", [insert(made)]) is None
    assert of_group("bank", [insert(made, made)]) is None
    assert of_group("bank", [deleted]) is None
