"""Recorded Flink events: default answers match the statements as far as reported."""

import json

import pytest
from sqlalchemy import Engine, select

from store.recordings.conftest import RecordedEngine
from strandline.cli import main
from strandline.core.walk import Direction
from strandline.store.lineage.table_lineage import lineage_of
from strandline.store.schema.run_tables import jobs, runs
from worlds.recorded import ORDERS, question, truth_of
from worlds.scenarios.taking import reader

TRUTH = truth_of("flink")


@pytest.fixture(params=ORDERS)
def ran(recorded_engine: RecordedEngine, request: pytest.FixtureRequest) -> Engine:
    """Give a store that has taken the recording."""
    return recorded_engine("flink", *request.param)


def test_each_table_is_made_from_what_its_statements_read(ran: Engine) -> None:
    with reader(ran) as connection:
        for table, sources in TRUTH["sources"].items():
            answer = lineage_of(connection, question(connection, f"lake.bank.{table}"))
            assert (
                sorted(
                    one["name"]
                    for one in answer["nodes"]
                    if one["type"] == "dataset" and one["distance"]
                )
                == sources
            )


def test_a_topic_leads_to_the_table_that_a_stream_fills(ran: Engine) -> None:
    with reader(ran) as connection:
        answer = lineage_of(connection, question(connection, "payments", Direction.DOWNSTREAM))

    assert [one["name"] for one in answer["nodes"] if one["type"] == "dataset"] == [
        "payments",
        "lake.bank.payments",
    ]


def test_jobs_are_batch_or_streaming_as_they_ran(ran: Engine) -> None:
    kinds = select(jobs.c.name, runs.c.streaming).join(runs, runs.c.job_id == jobs.c.id).distinct()
    with reader(ran) as connection:
        found = {
            name: "STREAMING" if streaming else "BATCH"
            for name, streaming in connection.execute(kinds)
        }

    assert found == TRUTH["jobs"]


def test_run_without_an_end_event_is_not_complete(
    ran: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a session cluster the listener reports no end; silent runs become LOST."""
    url = ran.url.render_as_string(hide_password=False)

    assert main(["jobs", "--json", "--database-url", url], {}) == 0

    newest = [one["latestRun"] for one in json.loads(capsys.readouterr().out)["items"]]
    assert {(one["state"], one["endedAt"] is None) for one in newest} <= {
        ("START", True),
        ("LOST", False),
    }
    assert len(newest) == len(TRUTH["jobs"])
