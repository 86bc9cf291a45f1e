"""FLIP-314 listeners on a real driver, beside listeners that hang, throw or are missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fixtures.emitter.drivers import ProgramResult, SparkProgram, emitting
from fixtures.emitter.recording import RecordingServer, recording_server
from fixtures.warm_jvm import WarmJvm

pytestmark = [pytest.mark.spark, pytest.mark.slow]

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
MISBEHAVING = """
import threading

class Hanging:
    def create_listener(self, context):
        return self
    def on_event(self, event):
        threading.Event().wait()

class Throwing:
    def create_listener(self, context):
        return self
    def on_event(self, event):
        raise RuntimeError("a listener threw")

class HangingInItsIo:
    def create_listener(self, context):
        self.executor = context.io_executor
        return self
    def on_event(self, event):
        self.executor.submit(threading.Event().wait)

class Impossible:
    def create_listener(self, context):
        raise RuntimeError("a factory threw")
"""
LISTENERS = (
    "misbehaving.Throwing",
    "misbehaving.Hanging",
    "misbehaving.HangingInItsIo",
    "misbehaving.Impossible",
    "nowhere.Factory",
    "datahub_listener.DataHubListenerFactory",
    "capacity_listener.CapacityListenerFactory",
)


@pytest.fixture(scope="module")
def ran(
    tmp_path_factory: pytest.TempPathFactory, warm_jvm: WarmJvm
) -> tuple[SparkProgram, ProgramResult, RecordingServer]:
    """The job of the vectors, run to its end with all of these listeners."""
    folder = tmp_path_factory.mktemp("vectors")
    (folder / "misbehaving.py").write_text(MISBEHAVING)
    path = f"{EXAMPLES / 'datahub'}:{EXAMPLES / 'vectors'}:{folder}"
    with recording_server() as datahub:
        conf = emitting(
            folder,
            spark__strandline__listeners=",".join(LISTENERS),
            spark__datahub__rest__url=datahub.url,
            spark__datahub__token="t0ken",
            spark__vectors__capacities=str(folder / "capacities.txt"),
        )
        program = (EXAMPLES / "vectors" / "vector_source.py").read_text()
        environ = {"PYTHONPATH": path}
        driver = SparkProgram(
            folder, program, conf, environ=environ, arguments=(str(folder / "index"),), jvm=warm_jvm
        )
        return driver, driver.run(), datahub


def test_hanging_or_failing_listeners_change_nothing(
    ran: tuple[SparkProgram, ProgramResult, RecordingServer],
) -> None:
    driver, result, _ = ran

    assert result.code == 0, result.err[-2000:]
    rows = [
        json.loads(line)
        for line in (driver.folder / "index" / "vectors.jsonl").read_text().splitlines()
    ]
    assert rows == [{"topic": n, "vector": [float(n), 0.5]} for n in (1, 2, 3)]
    assert [line.split()[0] for line in driver.lines()] == [
        "START",
        "START",
        "COMPLETE",
        "COMPLETE",
    ]


def test_faults_of_listeners_are_logged(
    ran: tuple[SparkProgram, ProgramResult, RecordingServer],
) -> None:
    err = ran[1].err

    assert "strandline: listener misbehaving.Throwing failed" in err
    assert "strandline: listener factory misbehaving.Impossible could not be used" in err
    assert "strandline: listener factory nowhere.Factory could not be used" in err


def test_datahub_listener_adds_edges_at_start_and_removes_them_at_the_end(
    ran: tuple[SparkProgram, ProgramResult, RecordingServer],
) -> None:
    posted = [document["proposal"] for document in ran[2].documents()]
    (path, headers, _) = ran[2].requests[0]

    def urn(number: int) -> str:
        return f"urn:li:dataset:(urn:li:dataPlatform:vectors,topic_{number},PROD)"

    assert (path, headers["Authorization"]) == ("/aspects?action=ingestProposal", "Bearer t0ken")
    job = "bank.vectors://broker:9000/topic_4"
    assert [document["entityUrn"] for document in posted] == [
        f"urn:li:dataJob:(urn:li:dataFlow:(spark,bank,default),{job})"
    ] * 2
    assert [json.loads(document["aspect"]["value"]) for document in posted] == [
        {"inputDatasets": [urn(1), urn(2), urn(3)], "outputDatasets": [urn(4), urn(5)]},
        {"inputDatasets": [], "outputDatasets": []},
    ]


def test_listener_reads_provider_facets_along_user_edges(
    ran: tuple[SparkProgram, ProgramResult, RecordingServer],
) -> None:
    assert (ran[0].folder / "capacities.txt").read_text().splitlines() == [
        "topic_1(8 x FLOAT) -> topic_4(32 x FLOAT)",
        "topic_2(16 x FLOAT) -> topic_4(32 x FLOAT)",
        "topic_3(24 x FLOAT) -> topic_5(40 x FLOAT)",
    ]


def test_events_contain_user_edges_and_provider_facets(
    ran: tuple[SparkProgram, ProgramResult, RecordingServer],
) -> None:
    complete = next(event for event in ran[0].events() if event["eventType"] == "COMPLETE")

    assert {
        output["name"]: [source["name"] for source in output["facets"]["lineage"]["inputs"]]
        for output in complete["outputs"]
    } == {"topic_4": ["topic_1", "topic_2"], "topic_5": ["topic_3"]}
    vector = complete["inputs"][0]["facets"]["vector"]
    assert (vector["capacity"], vector["value_type"]) == (8, "FLOAT")
