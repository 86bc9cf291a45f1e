"""Odd names and invisible bytes around events: everything that is stored can be queried."""

from codecs import BOM_UTF8
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine

from strandline.core.openlineage.names import LONGEST_NAME
from worlds.builders import dataset, encode, event, rows, store

LONG = "x" * 200_000
NAMES = [
    "",
    " ",
    "a\nb",
    "..",
    "a/b c%2F?#:&",
    "d" * LONGEST_NAME,
    "e" * (LONGEST_NAME + 1),
    "日" * 10_000,
    LONG,
]
BODY = encode(event("COMPLETE", 7, outputs=[dataset("t")]))


def ask(client: httpx.Client, path: str, **given: Any) -> dict[str, Any]:
    answer = client.get(path, params=given)
    assert answer.status_code == 200, (path, answer.text)
    known: dict[str, Any] = answer.json()
    return known


def seen_as(client: httpx.Client, row: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the answers of all questions that take a name, for a name as a list shows it.

    Ids, and how many runs.
    """
    names = {"namespace": row["namespace"], "name": row["name"]}
    lineage = ask(client, "/lineage", node=row["id"])
    return {
        "detail": ask(client, f"/{kind}s/detail", **names)["id"],
        "lineage": row["id"] in {node["id"] for node in lineage["nodes"]} and len(lineage["edges"]),
        "runs": len(ask(client, "/runs", **names)["items"]) if kind == "job" else 1,
    }


@pytest.mark.parametrize("namespace", ["hive://lake", "", LONG], ids=["usual", "none", "200 KB"])
def test_odd_names_are_listed_and_found(
    client: httpx.Client, engine: Engine, namespace: str
) -> None:
    for number, name in enumerate(NAMES):
        one = event(
            "COMPLETE",
            number,
            inputs=[dataset(name, namespace)],
            outputs=[dataset(f"made {number}", "other")],
        )
        store(engine, [one | {"job": {"namespace": namespace, "name": name, "facets": {}}}])

    for kind in ("dataset", "job"):
        items = ask(client, f"/{kind}s", limit=1_000)["items"]
        listed = [row for row in items if row["namespace"] != "other"]
        found = {row["id"]: seen_as(client, row, kind) for row in listed}
        assert len(found) == len(NAMES)
        assert found == {
            row["id"]: {"detail": row["id"], "lineage": 2, "runs": 1} for row in listed
        }


def test_long_name_is_found_in_full_and_as_shortened(engine: Engine) -> None:
    store(engine, [event("COMPLETE", 1, inputs=[dataset(LONG)], outputs=[dataset("t")])])
    (shown,) = [name for (name,) in rows(engine, "SELECT name FROM datasets") if name != "t"]
    store(
        engine,
        [event("COMPLETE", 2, inputs=[dataset(shown), dataset(LONG[1:])], outputs=[dataset("t")])],
    )

    names = [name for (name,) in rows(engine, "SELECT name FROM datasets")]
    assert sorted(map(len, names)) == [1, 817, 817]
    assert shown in names


@pytest.mark.parametrize(
    "around", [(b"", b"\n"), (BOM_UTF8, b""), (b" ", b"\r\n"), (BOM_UTF8, b"\n")]
)
def test_white_space_and_a_byte_order_mark_do_not_make_a_new_event(
    client: httpx.Client, around: tuple[bytes, bytes]
) -> None:
    before, after = around
    ingest = str(client.base_url).replace("/api/v2", "/api/v1")

    assert client.post(f"{ingest}lineage", content=before + BODY + after).status_code == 201
    assert client.post(f"{ingest}lineage", content=BODY).status_code == 201
    array = before + b"[" + BODY + b"\n, " + BODY + b"]" + after
    assert client.post(f"{ingest}lineage/batch", content=array).status_code == 204
    assert len(ask(client, "/events")["items"]) == 1


def test_marquez_page_may_ask_for_an_empty_namespace_and_an_empty_name(
    client: httpx.Client, engine: Engine
) -> None:
    unnamed = dataset("", "s3://bucket"), dataset("hello", "")
    store(engine, [event("COMPLETE", 1, "greet", 1, [unnamed[0]], [unnamed[1]])])

    namespaces = str(client.base_url).replace("/api/v2/", "/api/v1/namespaces")
    listed = client.get(namespaces).json()["namespaces"]
    assert "s3://bucket" in {one["name"] for one in listed}
    for namespace, name in (("", "hello"), ("s3%3A%2F%2Fbucket", "")):
        path = f"{namespaces}/{namespace}/datasets"
        assert [one["name"] for one in client.get(path).json()["datasets"]] == [name]
        assert client.get(f"{path}/{name}").json()["name"] == name
