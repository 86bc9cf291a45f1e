"""A thousand secrets sent over HTTP and Kafka appear in no row, answer, metric or log."""

import json
from urllib.parse import quote
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import Engine

from fixtures.kafka import Running, make_topic, send, settings_of, stored
from fixtures.servers import client_of, serving
from fixtures.stores import SQLITE_FIRST
from fixtures.waiting import wait_until
from worlds.builders import Json, dataset, encode, event, run_id
from worlds.canaries import Canary, canaries, leaks
from worlds.stored_rows import stored_rows

pytestmark = pytest.mark.kafka


@pytest.fixture(params=SQLITE_FIRST)
def database_url(request: pytest.FixtureRequest) -> str:
    """Give the URL of an empty store."""
    url: str = request.getfixturevalue(f"{request.param}_url")
    return url


@pytest.mark.slow
def test_no_secret_is_in_any_output(engine: Engine, kafka: str) -> None:
    planted = canaries()
    half = len(planted) // 2
    topic = f"canaries-{uuid4().hex}"
    make_topic(kafka, topic)
    send(kafka, topic, [*bodies(planted[half:], start=half), *no_events(planted[half::7])])
    with (
        Running(engine, settings_of(kafka, topic)) as consumer,
        serving(engine) as address,
        client_of(address, "") as client,
    ):
        for body in [*bodies(planted[:half]), *no_events(planted[:half:7])]:
            client.post(
                "/api/v1/lineage", content=body, headers={"content-type": "application/json"}
            )
        for canary in planted[::40]:
            register(client, canary)
        wait_until(lambda: stored(engine) >= len(planted))
        outputs = {path: client.get(path).text for path in PATHS}
    outputs |= {"log": consumer.log.getvalue(), **dict(stored_rows(engine))}

    assert stored(engine) == len(planted)
    assert any(name.startswith("body_references") for name in outputs)
    assert {
        name: found for name, output in outputs.items() if (found := leaks(planted, output))
    } == {}


PATHS = (
    "/metrics",
    "/api/v2/jobs?limit=1000",
    "/api/v2/datasets?limit=1000",
    "/api/v2/runs?limit=1000",
    "/api/v2/events?limit=100",
    "/api/v2/dead-letters?limit=1000",
    "/api/v2/rejected-events",
    "/api/v1/namespaces",
    "/api/v2/search?q=select",
    "/api/v2/search?q=redacted",
    "/api/v2/groups",
)


def bodies(planted: list[Canary], start: int = 0) -> list[bytes]:
    """An event for each, the secret where its number says."""
    return [encode(holding(canary.text, number)) for number, canary in enumerate(planted, start)]


def holding(secret: str, number: int) -> Json:
    """An event with a text somewhere."""
    places: tuple[Json, ...] = (
        {"job_facets": {"sql": {"query": secret}}},
        {"facets": {"custom": {"note": secret, "deep": [{"x": [secret]}]}}},
        {
            "facets": {
                "errorMessage": {
                    "message": secret,
                    "programmingLanguage": "PYTHON",
                    "stackTrace": secret,
                }
            }
        },
        {"inputs": [dataset(secret)], "outputs": [dataset(f"out{number}")]},
        {"job": f"job {secret}"},
        {"facets": {"keys": {secret: 1, "x": {secret: {"y": 2}}}, secret: {"z": 3}}},
        {
            "job_facets": {
                "documentation": {"description": secret},
                "sourceCode": {"language": "PYTHON", "sourceCode": secret},
            }
        },
        {
            "outputs": [
                dataset(
                    f"o{number}",
                    own={"custom": {"note": secret}},
                    documentation={"description": secret},
                )
            ]
        },
        {"facets": {"escaped": {"body": json.dumps({"inner": json.dumps({"text": secret})})}}},
        {"facets": {"strandline_extra": {"args": ["x", secret, "y"], secret: secret}}},
    )
    given = {"run": run_id(number), "seconds": number, **places[number % len(places)]}
    return event("COMPLETE", **given)


def no_events(planted: list[Canary]) -> list[bytes]:
    """Records that become dead letters or refused events: no events, and JSON that was cut off."""
    whole = [
        json.dumps({"eventType": canary.text, "x": canary.text}).encode() for canary in planted
    ]
    return [body if number % 2 else body[:-3] for number, body in enumerate(whole)]


def register(client: httpx.Client, canary: Canary) -> None:
    """A job of that name registers itself."""
    name = quote(canary.text, safe="")
    client.put(f"/register/source/{name}/cat/db/{name}", params={"group": "d"})
