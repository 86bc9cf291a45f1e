"""What an analysis published is answered a page at a time, to each key as it sees the store."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine

from fixtures.servers import SETTINGS, serving
from strandline.analysis.publishing import _name
from strandline.analysis.report import REPORTS as COMPUTED
from strandline.core.exports.lists import COLUMNS
from strandline.core.openlineage.names import id_of
from strandline.store.analyses import MOST, REPORTS, PublishedReport, PublishedRow, publish
from strandline.store.api_keys import add_key
from strandline.store.forgetting.forget import Asked, Subject, forget
from worlds.scenarios.plain import run
from worlds.scenarios.taking import fill

NOW = datetime(2026, 11, 20, 13, tzinfo=UTC)
AT = int(NOW.timestamp() * 1_000_000)
THEIRS = {"namespace": "theirs", "name": "secret"}


def table(name: str) -> int:
    return id_of("dataset", "db", name)


def impact() -> PublishedReport:
    """Three datasets and one of somebody else, which comes between."""
    subjects = [table("raw"), id_of("dataset", *THEIRS.values()), table("orders"), table("totals")]
    rows = [
        PublishedRow(one, None, {"downstream": 9 - n, "readers": 1, "writtenAt": NOW.isoformat()})
        for n, one in enumerate(subjects)
    ]
    return PublishedReport("impact", "what others come from", AT, "known", 4, None, rows)


def aliases() -> PublishedReport:
    """A pair of our own, and one with somebody else's dataset."""
    pairs = [(table("raw"), table("orders")), (id_of("dataset", *THEIRS.values()), table("totals"))]
    rows = [PublishedRow(one, other, {"rule": "same path", "evidence": "e", "alike": 2}) for one, other in pairs]
    return PublishedReport("aliases", "probably one", AT, "newest", MOST + 7, "pairs", rows)


def jobs() -> PublishedReport:
    row = PublishedRow(id_of("job", "ns", "clean"), None, {"lastWriterOf": 1})
    return PublishedReport("jobs", "alone", AT, "known", 1, None, [row])


@pytest.fixture
def clients(engine: Engine) -> Iterator[dict[str, httpx.Client]]:
    """A collector with three published reports, for a key of everything and one of two namespaces."""
    fill(engine, [
        run("COMPLETE", 1, "clean", ["raw"], ["orders"]), run("COMPLETE", 2, "sum", ["orders"], ["totals"]),
        run("COMPLETE", 3, "hidden", [THEIRS], ["totals"]),
    ])  # fmt: skip
    with engine.begin() as connection:
        for one in (impact(), aliases(), jobs()):
            publish(connection, one)
        keys = {name: add_key(connection, name, NOW, ["read"], patterns)
                for name, patterns in {"whole": ["*"], "ours": ["db", "ns"]}.items()}  # fmt: skip
    with serving(engine, replace(SETTINGS, auth="required")) as address:
        yield {
            name: httpx.Client(base_url=f"{address}/api/v2", headers={"Authorization": f"Bearer {key}"}, timeout=60)
            for name, key in keys.items()
        }


def names(answer: Any) -> list[str]:
    return [item["name"] for item in answer["items"]]


def test_a_report_comes_in_its_order_a_page_at_a_time(clients: dict[str, httpx.Client]) -> None:
    first = clients["whole"].get("/analyses/impact", params={"limit": 3}).json()
    last = clients["whole"].get("/analyses/impact", params={"limit": 3, "cursor": first["nextCursor"]}).json()
    pair = clients["whole"].get("/analyses/aliases").json()
    job = clients["whole"].get("/analyses/jobs").json()

    assert first["items"][0] == {
        "id": "dataset:db:raw", "kind": "dataset", "namespace": "db", "name": "raw",
        "downstream": 9, "readers": 1, "writtenAt": NOW.isoformat(),
    }  # fmt: skip
    assert {name: first[name] for name in ("asOf", "state", "total", "complete", "truncatedBy", "withheld")} == {
        "asOf": NOW.isoformat(), "state": "known", "total": 4, "complete": True, "truncatedBy": None, "withheld": [],
    }  # fmt: skip
    assert (names(first), names(last), last["nextCursor"]) == (["raw", "secret", "orders"], ["totals"], None)
    assert pair["items"][0]["other"] == {"id": "dataset:db:orders", "namespace": "db", "name": "orders"}
    assert (pair["complete"], pair["truncatedBy"]) == (False, "pairs")
    assert job["items"] == [
        {"id": "job:ns:clean", "kind": "job", "namespace": "ns", "name": "clean", "lastWriterOf": 1}
    ]


def test_a_report_as_csv_has_the_same_columns_on_every_page_and_for_every_key(
    engine: Engine, clients: dict[str, httpx.Client]
) -> None:
    head = "id,kind,namespace,name,downstream,upstream,readers,writers"
    pages = [clients[name].get("/analyses/impact", params={"format": "csv", "limit": 1}) for name in ("whole", "ours")]
    with engine.begin() as connection:
        publish(connection, impact()._replace(rows=[], total=0))
    empty = clients["whole"].get("/analyses/impact", params={"format": "csv"})

    assert [page.text.splitlines() for page in pages] == [
        [head, "dataset:db:raw,dataset,db,raw,9,,1,"], [head, "dataset:db:raw,dataset,db,raw,,,,"]
    ]  # fmt: skip
    assert empty.text.splitlines() == [head]
    assert [page.headers.get("Strandline-Withheld") for page in pages] == [None, "downstream, readers"]


@pytest.mark.parametrize("report", REPORTS)
def test_a_report_has_as_csv_what_an_analysis_finds(report: str) -> None:
    shown = COMPUTED[report].columns
    found = [_name(name) for name in shown if name not in ("id", "dataset", "job", "other")]
    other = ["other.id", "other.namespace", "other.name"] if "other" in shown else []

    assert list(COLUMNS[f"/analyses/{report}"]) == ["id", "kind", "namespace", "name", *other, *found]


def test_a_key_of_some_namespaces_sees_their_rows_without_counts_of_others(clients: dict[str, httpx.Client]) -> None:
    first = clients["ours"].get("/analyses/impact", params={"limit": 2}).json()
    last = clients["ours"].get("/analyses/impact", params={"limit": 2, "cursor": first["nextCursor"]}).json()
    pairs = clients["ours"].get("/analyses/aliases").json()
    listed = clients["ours"].get("/analyses").json()["items"]

    assert (names(first), names(last), last["nextCursor"]) == (["raw", "orders"], ["totals"], None)
    assert first["items"][0].keys() == {"id", "kind", "namespace", "name", "writtenAt"}
    assert first["withheld"] == ["downstream", "readers"]
    assert [(item["name"], item["other"]["name"], item["rule"]) for item in pairs["items"]] == [
        ("raw", "orders", "same path")
    ]
    assert [one["report"] for one in listed] == ["impact", "jobs", "aliases"]
    assert not any("total" in one for one in (first, pairs, *listed))


def test_what_was_not_published_is_not_found(clients: dict[str, httpx.Client]) -> None:
    missing, unknown = (clients["whole"].get(f"/analyses/{name}") for name in ("stale", "nothing"))

    assert (missing.status_code, unknown.status_code) == (404, 400)
    assert "strandline analyse --publish" in missing.json()["detail"]


def test_a_report_takes_the_place_of_the_one_before(engine: Engine, clients: dict[str, httpx.Client]) -> None:
    with engine.begin() as connection:
        publish(connection, impact()._replace(rows=impact().rows[:1], total=1))

    assert names(clients["whole"].get("/analyses/impact").json()) == ["raw"]
    assert len(clients["whole"].get("/analyses").json()["items"]) == 3


def test_what_is_forgotten_takes_all_that_was_computed_with_it(
    engine: Engine, clients: dict[str, httpx.Client]
) -> None:
    asked = Asked(datetime.now(UTC), "tests")
    nothing = forget(engine, Subject("dataset", "db", "nobody"), asked, execute=True)
    before = clients["whole"].get("/analyses").json()["items"]

    gone = forget(engine, Subject("dataset", "db", "raw"), asked, execute=True).gone

    assert (nothing.is_nothing, len(before)) == (True, 3)
    assert gone["analysis_rows"] == 10  # seven rows and three heads
    assert clients["whole"].get("/analyses").json() == {"items": []}


def test_every_report_has_a_place_in_the_store() -> None:
    assert tuple(COMPUTED) == REPORTS
