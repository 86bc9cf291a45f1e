"""Queries with unknown, overlong or invalid names."""

import httpx
import pytest
from sqlalchemy import Engine

from worlds.builders import dataset as lake
from worlds.builders import event, store
from worlds.scenarios.bank import bank
from worlds.scenarios.taking import fill


def test_overlong_names_are_unknown(client: httpx.Client, engine: Engine) -> None:
    fill(engine, bank())
    long = "a" * 60_000

    answers = [
        client.get("/datasets/detail", params={"namespace": "file", "name": long}),
        client.post("/versions", json={"tables": [{"namespace": "file", "name": long}]}),
        client.post(
            "/versions",
            json={"consistency": "cut", "tables": [{"namespace": "file", "name": long}]},
        ),
    ]

    assert [answer.status_code for answer in answers] == [404, 404, 404]
    assert client.get("/search", params={"q": long}).json()["items"] == []


def test_search_finds_a_long_name_by_its_whole_text(client: httpx.Client, engine: Engine) -> None:
    name = f"/lake/{'Part=1/' * 3_000}end"
    store(engine, [event("COMPLETE", 1, name, inputs=[lake(name), lake("other")])])

    found = client.get("/search", params={"q": name[1:].upper()}).json()["items"]

    assert [(one["type"], one["name"]) for one in found] == [("dataset", name), ("job", name)]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/versions", {"tables": [{"namespace": "x", "name": "a\0b"}]}),
        (
            "/versions",
            {"tables": [{"namespace": "file", "name": "t"}], "lease": {"holder": "a\0b"}},
        ),
        ("/rollbacks", {"a\0b": 1}),
    ],
)
def test_null_character_is_rejected_in_bodies_too(
    bank_client: httpx.Client, path: str, body: dict[str, object]
) -> None:
    answer = bank_client.post(path, json=body)

    assert (answer.status_code, "U+0000" in answer.json()["detail"]) == (400, True)


@pytest.mark.parametrize("query", ["namespace=caf%E9", "state=FAIL&namespace=%ff", "n%ff=1"])
def test_parameter_that_is_not_utf8_is_refused(client: httpx.Client, query: str) -> None:
    answer = client.get(f"/datasets?{query}")

    assert answer.status_code == 400
    assert "is not UTF-8: percent-encode its characters as UTF-8" in answer.json()["detail"]
