"""The first log line and the manual check say where events go and whether they arrive."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fixtures.emitter.builders import conf
from fixtures.emitter.recording import recording_server
from strandline_spark import check
from strandline_spark.delivery.transports.destinations import destination_of, say_where


def session(**entries: str) -> Any:
    """A session of an application named bank; `a__b` in a key stands for a.b."""
    told = {
        key.replace("__", "."): value
        for key, value in {"spark__app__name": "bank", **entries}.items()
    }
    settings = SimpleNamespace(getAll=lambda: list(told.items()))
    return SimpleNamespace(
        sparkContext=SimpleNamespace(
            applicationId="local-1", version="4.1.4", getConf=lambda: settings
        )
    )


def test_check_sends_a_test_event_and_reports_its_delivery() -> None:
    with recording_server() as server:
        found = check(session(spark__openlineage__transport__url=server.url))

    assert found.delivered
    assert str(found).splitlines() == [
        "emitter: off: spark.strandline.enabled is not true",
        f"events go to: {server.url}/api/v1/lineage",
        "jobs are named: bank.{output} in namespace default",
        "test event: taken",
    ]
    assert [b'"name": "bank.strandline_check"' in body for body in server.bodies()] == [True]


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ({}, "status 401: it wants an API key: spark.openlineage.transport.auth.apiKey"),
        (
            {"spark__openlineage__transport__auth__apiKey": "k"},
            "status 401: it wants an API key: it does not know the one in",
        ),
    ],
    ids=["none", "a wrong one"],
)
def test_check_names_the_missing_conf_after_a_401(key: dict[str, str], says: str) -> None:
    with recording_server() as server:
        server.status = 401
        found = check(session(spark__openlineage__transport__url=server.url, **key))

    assert not found.delivered
    assert says in found.findings[-1]


def test_check_reports_an_unusable_conf() -> None:
    found = check(session(spark__openlineage__transport__url="collector:5000"))

    assert not found.delivered
    assert "transport.url: the http transport needs an http or https address" in found.findings[-1]


def test_first_log_line_names_the_destination_and_the_job_names(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "strandline")

    say_where(conf(collector_url="http://user:hunter2@collector:5000"))

    assert [record.getMessage() for record in caplog.records] == [
        "strandline: events go to http://collector:5000/api/v1/lineage; jobs are bank.{output} in namespace default"
    ]


@pytest.mark.parametrize(
    ("transport", "place"),
    [
        ({"type": "http", "url": "http://c:5000/in"}, "http://c:5000/in"),
        (
            {"type": "http", "url": "http://c:5000", "endpoint": "api/lineage"},
            "http://c:5000/api/lineage",
        ),
        ({"type": "file", "location": "/tmp/events"}, "the file /tmp/events"),
        ({}, "standard output, because no transport is configured"),
        (
            {
                "type": "composite",
                "transports.a.type": "http",
                "transports.a.url": "http://c:5000",
                "transports.b.type": "console",
            },
            "http://c:5000/api/v1/lineage; console",
        ),
    ],
)
def test_a_destination_is_named_as_events_are_sent_there(
    transport: dict[str, str], place: str
) -> None:
    assert destination_of(transport) == place
