"""The event stream that tells a page when to refresh."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

import httpx
import pytest
from sqlalchemy import Engine

from fixtures.servers import SETTINGS, bearer, post, problem, serving
from strandline.api.http import auth
from strandline.api.routers import overview
from strandline.store.api_keys import add_key, revoke_key
from worlds.sample_events import run_event

STREAM = "/api/v2/stream"
NOW = datetime(2026, 11, 20, tzinfo=UTC)


@contextmanager
def changes(root: str, key: str | None = None) -> Iterator[Iterator[str]]:
    """Yield the stream's messages about each change.

    A word that is another one for each state of the store.
    """
    with httpx.stream(
        "GET", f"{root}{STREAM}", headers=bearer(key) if key else {}, timeout=60
    ) as answer:
        assert answer.headers["content-type"].partition(";")[0] == "text/event-stream"
        yield (
            line.removeprefix("data: ") for line in answer.iter_lines() if line.startswith("data: ")
        )


def test_stream_announces_each_change_once(root: str) -> None:
    with changes(root) as told:
        states = [next(told)]
        for run in ("1", "2"):
            assert post(f"{root}/api/v1/lineage", json=run_event(run)).status_code == 201
            states.append(next(told))

    with changes(root) as again:
        assert next(again) == states[-1]
    assert len(set(states)) == len(states)


def test_stream_of_a_revoked_key_ends(
    sqlite_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "BELIEVED_SECONDS", 0)
    monkeypatch.setattr(overview, "LOOK_SECONDS", 0.01)
    with sqlite_engine.begin() as connection:
        key = add_key(connection, "viewer", NOW, ["read"], ["*"])
    with (
        serving(sqlite_engine, replace(SETTINGS, auth="required")) as root,
        changes(root, key) as told,
    ):
        next(told)
        with sqlite_engine.begin() as connection:
            revoke_key(connection, "viewer", NOW)

        assert list(told) == []


def test_stream_announces_only_changes_that_the_key_may_see(engine: Engine) -> None:
    with engine.begin() as connection:
        own, other = (
            add_key(connection, name, NOW, ["ingest", "read"], [f"{name}*"])
            for name in ("own", "other")
        )
        sender = add_key(connection, "sender", NOW, ["ingest"], ["*"])

    with serving(engine, replace(SETTINGS, auth="required")) as root:
        assert problem(httpx.get(f"{root}{STREAM}", headers=bearer(sender)))[:2] == (
            403,
            "forbidden",
        )
        with changes(root, own) as told:
            before = next(told)
            send(root, sender, "own")
            heard = next(told)
        send(root, sender, "other")
        with changes(root, own) as told, changes(root, other) as others:
            assert (next(told), next(others) == before) == (heard, False)
    assert heard != before


def send(root: str, key: str, namespace: str) -> None:
    """An event of a job in a namespace."""
    event = run_event(namespace, job=f"{namespace}.job") | {
        "job": {"namespace": namespace, "name": "job"}
    }
    answer = post(
        f"{root}/api/v1/lineage", json=event | {"inputs": [], "outputs": []}, headers=bearer(key)
    )
    assert answer.status_code == 201
