"""Events of an ingest key about foreign names do not change the other tenant's answers.

The oracle are all questions that the other tenant can ask, asked before and after; the questions
are those of `test_two_tenants`, so a new operation is asked here as well.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import httpx
import pytest
from sqlalchemy import Engine, select

from api.test_two_tenants import (
    FACET,
    JSON,
    NOW,
    A,
    B,
    Tenant,
    at,
    barrier,
    client_with,
    event,
    requests,
    story,
)
from fixtures.operations import operations
from fixtures.servers import SETTINGS, serving
from strandline.core.access.granted import SCOPES
from strandline.core.changes.extract import changes_of
from strandline.core.changes.extraction import Stamp
from strandline.core.changes.lineage import LineageSeen
from strandline.core.changes.memory import Memory
from strandline.core.changes.rows import SnapshotSeen, SnapshotUsed
from strandline.core.openlineage.events import decode
from strandline.core.openlineage.names import id_of
from strandline.store.api_keys import add_key
from strandline.store.schema.dataset_tables import facets
from strandline.store.schema.relation_tables import relations
from strandline.store.schema.snapshot_tables import snapshots
from worlds.builders import encode

RUN = "018f0f3e-0000-7000-8000-00000000000b"
QUERY = "018f0f3e-0000-4000-8000-0000000000c0"
APPLICATION = "018f0f3e-0000-4000-8000-0000000000a0"
# What goes on with the clock, or counts what others do with one's tables.
MOVES = re.compile(
    r"seconds|duration|age|since|until|asof|now|hidden|complete|truncatedby|stal|etag|lag",
    re.IGNORECASE,
)
UNDATED = re.compile(
    "createdAt|updatedAt|" + MOVES.pattern, re.IGNORECASE
)  # of what has no date, Marquez' have today's
AGE = re.compile(r"\b\d+ (s|min|h|d)\b")
UNDATED_IN = {"/api/v1/namespaces", "/api/v1/search"}
NOT_ASKED = {"/api/v2/stream", "/metrics", "/docs", "/openapi.json", "/healthz", "/readyz"}


def micro_batch(tenant: Tenant, run: str, application: str) -> JSON:
    """Return the stock listener's event of a micro-batch of a streaming query."""
    parent = {
        "run": {"runId": application},
        "job": {"namespace": tenant.jobs, "name": f"{tenant.word}.app"},
    }
    details = {
        "jobDescription": f"{tenant.word} query<br/>id = {QUERY}<br/>runId = x<br/>batch = 3"
    }
    one = event(tenant, "COMPLETE", "batch", 60, facets={"parent": FACET | parent, "spark_jobDetails": FACET | details},
                outputs=[tenant.dataset("streamed", "output")])  # fmt: skip
    one["run"]["runId"] = run
    return one


def own_story(own: Tenant, other: Tenant) -> Iterator[JSON]:
    """Yield a tenant's events with its own key.

    The story, a run with a UUID, and a streaming query.
    """
    yield from story(own, other)
    steady = event(
        own,
        "RUNNING",
        "steady",
        30,
        inputs=[own.dataset("t", "input")],
        outputs=[own.dataset("x", "output")],
    )
    steady["run"]["runId"] = RUN if own is B else RUN.replace("b", "a")
    yield steady
    if own is B:
        yield micro_batch(own, "018f0f3e-0000-4000-8000-0000000000b1", APPLICATION)


def of_run(kind: str, run: str) -> JSON:
    one = event(A, kind, "thief", 70)
    one["run"]["runId"] = run
    return one


def lineage(*entries: JSON) -> JSON:
    """An event whose job declares lineage."""
    one = event(A, "COMPLETE", "declares", 70, outputs=[A.dataset("made", "output")])
    one["job"]["facets"]["lineage"] = FACET | {"entries": list(entries)}
    return one


def with_name(other: Tenant, table: str) -> JSON:
    """An own dataset that says it is also called as another's."""
    identifiers = [{"namespace": other.lake, "name": other.table(table), "type": "TABLE"}]
    return A.dataset("twin", "output", symlinks=FACET | {"identifiers": identifiers})


STOLEN: JSON = {
    "schema": FACET | {"fields": [{"name": "stolen", "type": "long"}]},
    "ownership": FACET | {"owners": [{"name": "amsel"}]},
    "documentation": FACET | {"description": "stolen"},
    "version": FACET | {"datasetVersion": "666"},
    "symlinks": FACET
    | {"identifiers": [{"namespace": A.lake, "name": A.table("v"), "type": "TABLE"}]},
    "lifecycleStateChange": FACET | {"lifecycleStateChange": "DROP"},
    "columnLineage": FACET
    | {"fields": {"stolen": {"inputFields": [{"namespace": A.lake, "name": "x", "field": "y"}]}}},
}
SNAPSHOT: JSON = {
    "snapshotId": "666",
    "parentSnapshotId": "zeisig-s2",
    "barrierId": 3,
    "committedAt": at(400),
    "operation": "append",
}
B_U: JSON = {"namespace": B.lake, "name": B.table("u")}


def stream(group: str, number: int, *inputs: JSON, table: str = "own") -> JSON:
    told = barrier(A, number, 80)
    told["strandline_barrier"]["group"] = group
    snapshot = {"snapshotId": f"amsel-{table}{number}", "barrierId": number}
    return event(A, "RUNNING", f"streams-{table}", 80, facets=told, inputs=list(inputs),
                 outputs=[A.dataset(table, "output", snapshot)])  # fmt: skip


def sent_by(namespaces: list[str], one: JSON) -> JSON:
    one["job"]["facets"]["strandline_sender"] = FACET | {"namespaces": namespaces}
    return one


@dataclass(frozen=True)
class Attack:
    """A request of A, and its answer."""

    status: int
    make: Callable[[], JSON]


ATTACKS = {
    "ends another's run": Attack(403, lambda: of_run("FAIL", RUN)),
    "ends it in other letters": Attack(403, lambda: of_run("COMPLETE", RUN.upper())),
    "takes it over": Attack(403, lambda: of_run("RUNNING", RUN)),
    "takes its streaming query": Attack(403, lambda: micro_batch(A, "018f0f3e-0000-4000-8000-0000000000a1", APPLICATION)),
    "writes its table": Attack(403, lambda: event(A, "COMPLETE", "w", 70, outputs=[B.dataset("v", "output", SNAPSHOT)])),
    "writes it by another job's event": Attack(
        403, lambda: {**event(A, "COMPLETE", "w", 70), "run": None, "outputs": [B.dataset("v", "output")]}
    ),
    "declares to make it": Attack(403, lambda: lineage({**B_U, "type": "DATASET", "inputs": []})),
    "declares to read it": Attack(
        201, lambda: lineage({"type": "JOB", "inputs": [{**B_U, "type": "DATASET"}]})
    ),
    "says what it is": Attack(
        201,
        lambda: event(A, "COMPLETE", "r", 500, inputs=[B.dataset("u", "input", SNAPSHOT, **STOLEN)]),
    ),
    "renames it": Attack(
        201,
        lambda: event(A, "COMPLETE", "r", 70, outputs=[A.dataset("mine", "output", lifecycleStateChange=FACET | {
            "lifecycleStateChange": "RENAME", "previousIdentifier": B_U})]),
    ),
    "is called as it is": Attack(201, lambda: event(A, "COMPLETE", "n", 70, outputs=[with_name(B, "v")])),
    "is made as it is": Attack(
        403,
        lambda: {**lineage({"namespace": B.lake, "name": B.table("v"), "type": "DATASET", "inputs": []}),
                 "outputs": [with_name(B, "v")]},
    ),
    "says so without a job": Attack(
        403, lambda: {"eventTime": at(70), "producer": "x", "schemaURL": "x", "dataset": with_name(B, "v")}
    ),
    "says what it is without a job": Attack(
        403, lambda: {"eventTime": at(70), "producer": "x", "schemaURL": "x", "dataset": B.dataset("v", "output", **STOLEN)}
    ),
    "joins its group": Attack(403, lambda: stream(f"{B.word}-group", 1000)),
    "joins a group of a job": Attack(403, lambda: stream(f"job:{B.jobs}:{B.word}.registered", 1)),
    "takes its root": Attack(
        201, lambda: stream("amsel-other", 7, B.dataset("t", "input", {"snapshotId": "zeisig-t1", "barrierId": 7}), table="o")
    ),
    "holds its table back": Attack(
        201, lambda: stream("amsel-other", 8, B.dataset("v", "input", {"snapshotId": "zeisig-v1", "barrierId": 1}), table="o")
    ),
    "says that it may": Attack(
        201,
        lambda: sent_by(["*"], event(A, "COMPLETE", "r", 500, inputs=[B.dataset("u", "input", SNAPSHOT, **STOLEN)])),
    ),
    "hides a namespace behind a login": Attack(
        403,
        lambda: event(A, "COMPLETE", "w", 70, outputs=[{"namespace": f"hive://{A.word}:x@{B.word}-meta", "name": "a.b"}]),
    ),
}  # fmt: skip


@pytest.fixture
def keys(engine: Engine) -> dict[str, str]:
    """A key each, for what is theirs, and one for everything."""
    with engine.begin() as connection:
        return {"whole": add_key(connection, "whole", NOW, SCOPES, ["*"])} | {
            own.word: add_key(
                connection, own.word, NOW, SCOPES, [own.jobs, own.lake, f"hive://{own.word}*"]
            )
            for own in (A, B)
        }


@pytest.fixture
def address(engine: Engine, keys: dict[str, str]) -> Iterator[str]:
    """A collector to which both sent their stories with their own keys."""
    with serving(engine, replace(SETTINGS, auth="required")) as address:
        for own, other in ((A, B), (B, A)):
            with client_with(address, keys[own.word]) as client:
                for one in own_story(own, other):
                    one["run"]["facets"]["strandline_heartbeat"]["timeoutSeconds"] = (
                        86_400  # no run is LOST while the test goes on
                    )
                    answer = client.post("/api/v1/lineage", json=one)
                    assert answer.status_code == 201, answer.text
        yield address


def answers(client: httpx.Client, tenant: Tenant) -> dict[str, Any]:
    """All that a tenant is answered about itself, without what moves by itself."""
    found = {}
    for operation in operations():
        if operation.path in NOT_ASKED or (
            operation.method != "GET" and operation.path != "/api/v2/versions"
        ):
            continue
        optional = {one.name for one in operation.parameters if one.words and not one.required}
        for asked in requests(operation, tenant):
            if optional & asked.query.keys() and operation.path != "/api/v2/tables/{table}":
                continue  # another view of the same
            body = (
                {key: one for key, one in asked.body.items() if key != "leaseSeconds"}
                if asked.body
                else None
            )
            answer = client.request(asked.method, asked.path, params=asked.query, json=body)
            is_json = "json" in answer.headers.get("content-type", "")
            moves = UNDATED if operation.path in UNDATED_IN else MOVES
            told = still(answer.json(), moves) if is_json else re.sub(r"\d+\.\d+", "", answer.text)
            found[f"{asked.method} {asked.path} {asked.query}"] = (answer.status_code, told)
    return found


def still(told: Any, moves: re.Pattern[str]) -> Any:
    """The answer without what moves."""
    if isinstance(told, dict):
        return {key: still(one, moves) for key, one in told.items() if not moves.search(key)}
    if isinstance(told, list) and told and isinstance(told[0], dict) and "startInterval" in told[0]:
        return counts_of_hours(told)
    if isinstance(told, list):
        return [still(one, moves) for one in told]
    return AGE.sub("some time", told) if isinstance(told, str) else told


def counts_of_hours(hours: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The counts other than 0 in their order: an hour may begin between two answers."""
    counts = [
        {key: one for key, one in hour.items() if not key.endswith("Interval")} for hour in hours
    ]
    return [one for one, _ in groupby(counts) if any(one.values())]


def differences(place: str, before: Any, after: Any) -> Iterator[str]:
    """Yield the places where two answers differ, with both values."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in {**before, **after}:
            yield from differences(f"{place} {key}", before.get(key), after.get(key))
    elif (
        isinstance(before, list | tuple)
        and isinstance(after, list | tuple)
        and len(before) == len(after)
    ):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from differences(f"{place} {index}", one, other)
    elif before != after:
        yield f"{place}: {str(before)[:200]} -> {str(after)[:200]}"


@pytest.mark.slow
def test_another_tenants_answers_do_not_change(
    address: str, keys: dict[str, str], engine: Engine
) -> None:
    with client_with(address, keys[B.word]) as owner, client_with(address, keys[A.word]) as thief:
        before = answers(owner, B)
        heard = {
            name: thief.post("/api/v1/lineage", json=one.make()) for name, one in ATTACKS.items()
        }
        batch = thief.post(
            "/api/v1/lineage/batch", json=[one.make() for one in ATTACKS.values()]
        ).json()
        place = f"/register/sink/{A.word}.new/{A.catalog}/{A.word}db/w"
        joined = thief.put(place, params={"namespace": A.jobs, "group": f"{B.word}-group"})
        after = answers(owner, B)

    assert {
        name: (one.status_code, one.text)
        for name, one in heard.items()
        if one.status_code != ATTACKS[name].status
    } == {}
    assert [one["status"] for one in batch["results"]] == [
        422 if one.status == 403 else 201 for one in ATTACKS.values()
    ]
    assert joined.status_code == 403
    assert len(before) > 80
    changed = [
        one for asked, told in before.items() for one in differences(asked, told, after[asked])
    ]
    assert "\n".join(changed) == ""
    with engine.connect() as connection:
        assert (
            connection.scalars(
                select(snapshots.c.snapshot_id).where(snapshots.c.snapshot_id == "666")
            ).all()
            == []
        )
        assert 2 in connection.scalars(select(relations.c.creates)).all()


def test_only_the_name_of_a_foreign_table_that_is_read_is_stored(
    address: str, keys: dict[str, str], engine: Engine
) -> None:
    """This holds after a replay too, and the reader's own lineage stays complete."""
    read = B.dataset("u2", "input", SNAPSHOT, **STOLEN)
    with client_with(address, keys[A.word]) as client, client_with(address, keys[B.word]) as owner:
        made = A.dataset("r", "output", {"snapshotId": "amsel-r1"})
        sent = event(A, "COMPLETE", "r", 500, inputs=[read], outputs=[made])
        assert client.post("/api/v1/lineage", json=sent).status_code == 201
        listed = owner.get("/api/v2/datasets", params={"namespace": B.lake}).json()["items"]
    with client_with(address, keys["whole"]) as client:
        own = client.get("/api/v2/events", params={"job": f"job:{A.jobs}:{A.word}.r"}).json()[
            "items"
        ]

    assert [(one["name"], one["updatedAt"]) for one in listed if one["name"] == B.table("u2")] == [
        (B.table("u2"), None)
    ]
    assert own[0]["event"]["job"]["facets"]["strandline_sender"]["namespaces"] == [
        A.jobs,
        A.lake,
        f"hive://{A.word}*",
    ]
    found = changes_of(decode(encode(own[0]["event"])), Stamp(1, 1, 1), Memory()).changes
    elsewhere = id_of("dataset", B.lake, B.table("u2"))
    (lineage,) = [one.lineage for one in found if isinstance(one, LineageSeen)]
    (use,) = [one for one in lineage.uses if one.dataset.id == elsewhere]
    assert (use.elsewhere, use.stored, use.aliases) == (True, (), None)
    assert [one.snapshot_id for one in found if isinstance(one, SnapshotSeen)] == ["amsel-r1"]
    assert [
        one.snapshot_id
        for one in found
        if isinstance(one, SnapshotUsed) and one.dataset_id == elsewhere
    ] == ["666"]
    with engine.connect() as connection:
        assert (
            connection.scalars(select(facets.c.key).where(facets.c.entity_id == elsewhere)).all()
            == []
        )
