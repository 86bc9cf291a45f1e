"""Where keys are required nothing but the probes answers without one, however it is asked."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import httpx
import pytest
from sqlalchemy import Engine

from sample_events import run_event
from serving import SETTINGS, serving
from strandline.store.api_keys import add_key, revoke_key
from strandline.store.schema.tables import event_keys

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE")
PATHS = (
    *("/", "/docs", "/openapi.json", "/metrics", "/api/v1/lineage", "/api/v1/lineage/batch", "/api/v1/namespaces"),
    *("/api/v2/events", "/api/v2/domains", "/version/weak/a/b/c", "/nowhere", "/healthz/", "//healthz", "/readyz/x"),
)
NOW = datetime(2026, 11, 20, tzinfo=UTC)


@pytest.fixture
def client(engine: Engine) -> Iterator[httpx.Client]:
    required = replace(SETTINGS, auth="required")
    with serving(engine, required) as address, httpx.Client(base_url=address, timeout=60) as client:
        yield client


@pytest.fixture
def key(engine: Engine) -> str:
    with engine.begin() as connection:
        return add_key(connection, "job", NOW)


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def test_no_method_and_no_path_answers_without_a_key(client: httpx.Client, engine: Engine) -> None:
    answers = {
        (method, path): client.request(method, path, json=run_event()).status_code
        for method in METHODS
        for path in PATHS
    }

    page = {
        (method, path) for method in ("GET", "HEAD") for path in ("/", "//healthz")
    }  # no data; httpx asks both for "/"
    assert {asked: status for asked, status in answers.items() if status != 401 and asked not in page} == {}
    with engine.connect() as connection:
        assert connection.execute(event_keys.select()).all() == []


def test_probes_need_none_and_give_nothing_away(client: httpx.Client) -> None:
    assert client.get("/healthz").status_code == 200
    assert client.get("/readyz").json() == {"status": "ready", "faults": {}}


def test_a_refusal_says_how_to_get_in(client: httpx.Client) -> None:
    answer = client.get("/api/v2/events")

    assert (answer.headers["www-authenticate"], answer.json()["code"]) == ("Bearer", "unauthorized")
    assert "strandline keys add" in answer.json()["detail"]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_who_has_a_key_is_let_in(client: httpx.Client, key: str, method: str) -> None:
    assert client.request(method, "/api/v2/events", headers=bearer(key)).status_code == 200
    assert client.post("/api/v1/lineage", json=run_event(), headers=bearer(key)).status_code == 201


@pytest.mark.parametrize("header", ["", "Bearer", "Basic {}", "{}", "Bearer {}x", "Bearer x{}", "Bearer {} {}"])
def test_what_is_nearly_a_key_is_none(client: httpx.Client, key: str, header: str) -> None:
    asked = {"Authorization": header.replace("{}", key)}

    assert client.get("/api/v2/events", headers=asked).status_code == 401


def test_a_key_that_was_revoked_before_it_was_used_is_none(client: httpx.Client, engine: Engine, key: str) -> None:
    with engine.begin() as connection:
        revoke_key(connection, "job", NOW)

    assert client.get("/api/v2/events", headers=bearer(key)).status_code == 401
