"""Two tenants in one collector: no operation reveals names of the other tenant.

The operations are those of `operations()`: a new one is asked as well, and needs a body here if it
takes one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import product
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from sqlalchemy import Engine

from fixtures.operations import Operation, operations
from fixtures.servers import SETTINGS, bearer, client_of, serving
from strandline.core.access.granted import SCOPES
from strandline.store.api_keys import add_key
from strandline.store.catalog.proposal_tables import TABLES
from strandline.store.schema.tables import metadata
from strandline.store.sql.narrowed import BY_ID, BY_NAMESPACE

JSON = dict[str, Any]
NOW = datetime.now(UTC)
CANARY = "zeisig"
FACET = {"_producer": "https://example.com/tests", "_schemaURL": "https://example.com/tests"}


@dataclass(frozen=True)
class Tenant:
    """A tenant all of whose names have one word in them."""

    word: str

    @property
    def jobs(self) -> str:
        return f"{self.word}-jobs"

    @property
    def lake(self) -> str:
        return f"iceberg://{self.word}-lake"

    @property
    def catalog(self) -> str:
        return f"{self.word}cat"

    def table(self, name: str) -> str:
        return f"{self.word}db.{name}"

    def run(self, job: str) -> str:
        return f"run-{self.word}-{job}"

    def dataset(
        self, name: str, direction: str, snapshot: JSON | None = None, **facets: JSON
    ) -> JSON:
        own = {"strandline_snapshot": FACET | snapshot} if snapshot else {}
        column = {"name": f"{self.word}_{name}_id", "type": "long"}
        known = {
            "schema": FACET | {"fields": [column]},
            "symlinks": FACET
            | {
                "identifiers": [
                    {
                        "namespace": f"hive://{self.word}-meta",
                        "name": f"{self.catalog}.{self.table(name)}",
                        "type": "TABLE",
                    }
                ]
            },
            "catalog": FACET | {"framework": "iceberg", "type": "hive", "name": self.catalog},
        }
        return {
            "namespace": self.lake,
            "name": self.table(name),
            "facets": known | facets,
            f"{direction}Facets": own,
        }


A, B = Tenant("amsel"), Tenant(CANARY)


def at(seconds: float) -> str:
    return datetime.fromtimestamp(NOW.timestamp() - 600 + seconds, UTC).isoformat()


def event(tenant: Tenant, kind: str, job: str, seconds: float, **more: Any) -> JSON:
    facets = {
        "strandline_heartbeat": FACET | {"timeoutSeconds": 5},
        "processing_engine": FACET | {"name": f"spark {tenant.word}", "version": "4.1"},
    }
    return {
        "eventType": kind,
        "eventTime": at(seconds),
        "producer": f"https://example.com/{tenant.word}",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
        "run": {"runId": tenant.run(job), "facets": facets | more.pop("facets", {})},
        "job": {
            "namespace": tenant.jobs,
            "name": f"{tenant.word}.{job}",
            "facets": {
                "sql": FACET | {"query": f"SELECT {tenant.word}_t_id FROM {tenant.table('t')}"},
                "jobType": FACET
                | {"processingType": "STREAMING", "integration": "SPARK", "jobType": "QUERY"},
            },
        },
        "inputs": more.pop("inputs", []),
        "outputs": more.pop("outputs", []),
    }


def barrier(tenant: Tenant, number: int, seconds: float) -> JSON:
    told = {
        "group": f"{tenant.word}-group",
        "barrierId": number,
        "batchId": number - 1,
        "engine": "spark",
        "queryId": f"query-{tenant.word}",
        "phase": "committed",
        "checkpointLocation": f"/checkpoints/{tenant.word}",
        "startedAt": at(seconds - 1),
        "committedAt": at(seconds),
    }
    return {"strandline_barrier": FACET | told}


def story(own: Tenant, other: Tenant) -> Iterator[JSON]:
    """A chain of two jobs with barriers.

    The second also reads the other's table, says so in every way, and fails.
    """
    for number in (1, 2):
        made = {
            "snapshotId": f"{own.word}-s{number}",
            "barrierId": number,
            "committedAt": at(number),
        }
        read = made | {"format": "iceberg"}
        yield event(own, "RUNNING", "first", number, facets=barrier(own, number, number),
                    inputs=[own.dataset("t", "input", {"snapshotId": f"{own.word}-t{number}"})],
                    outputs=[own.dataset("u", "output", made | {"format": "iceberg"})])  # fmt: skip
        lineage = {
            "fields": {
                f"{own.word}_v_id": {
                    "inputFields": [
                        {
                            "namespace": other.lake,
                            "name": other.table("u"),
                            "field": f"{other.word}_u_id",
                        },
                        {
                            "namespace": own.lake,
                            "name": own.table("u"),
                            "field": f"{own.word}_u_id",
                        },
                    ]
                }
            }
        }
        parent = {
            "run": {"runId": other.run("first")},
            "job": {"namespace": other.jobs, "name": f"{other.word}.first"},
            "root": {
                "run": {"runId": other.run("root")},
                "job": {"namespace": other.jobs, "name": f"{other.word}.root"},
            },
        }
        yield event(own, "RUNNING", "second", number + 0.5, facets={"parent": FACET | parent} | barrier(own, number, number + 0.5),
                    inputs=[own.dataset("u", "input", read),
                            other.dataset("u", "input", {"snapshotId": f"{other.word}-s{number}", "barrierId": number})],
                    outputs=[own.dataset("v", "output", {"snapshotId": f"{own.word}-v{number}", "barrierId": number},
                                         columnLineage=FACET | lineage)])  # fmt: skip
    yield event(own, "RUNNING", "first", 9, facets=barrier(own, 3, 9), inputs=[own.dataset("t", "input")],
                outputs=[own.dataset("u", "output", {"snapshotId": f"{own.word}-s3", "barrierId": 3})])  # fmt: skip
    failed = {
        "errorMessage": FACET | {"message": f"{own.word} broke", "programmingLanguage": "JVM"}
    }
    yield event(
        own,
        "START",
        "third",
        20,
        inputs=[own.dataset("v", "input")],
        outputs=[own.dataset("w", "output")],
    )
    yield event(own, "FAIL", "third", 21, facets=failed, inputs=[own.dataset("v", "input")])


def questions(tenant: Tenant) -> Iterator[dict[str, str]]:
    """Values for parameters by their names, about the tenant's datasets and about its jobs."""
    common = {
        "q": tenant.word,
        "group": f"{tenant.word}-group",
        "runId": tenant.run("second"),
        "id": f"lease-{tenant.word}",
        "catalog": tenant.catalog,
        "database": f"{tenant.word}db",
        "jobID": f"{tenant.word}.second",
        "key": "table-lineage",
        "column": f"{tenant.word}_v_id",
        "barrier": "2",
        "dataset": f"dataset:{tenant.lake}:{tenant.table('u')}",
        "job": f"job:{tenant.jobs}:{tenant.word}.second",
        "from": f"dataset:{tenant.lake}:{tenant.table('t')}",
        "to": f"dataset:{tenant.lake}:{tenant.table('v')}",
    }
    for table in "v":
        name = tenant.table(table)
        yield common | {"namespace": tenant.lake, "name": name, "node": f"dataset:{tenant.lake}:{name}", "table": table,
                        "snapshotId": f"{tenant.word}-{'s' if table == 'u' else 'v'}2"}  # fmt: skip
    name = f"{tenant.word}.second"
    yield common | {
        "namespace": tenant.jobs,
        "name": name,
        "node": f"job:{tenant.jobs}:{name}",
        "table": "t",
    }
    yield {}


def as_marquez(tenant: Tenant) -> dict[str, str]:
    """The same names as Marquez' methods take them."""
    return {
        "dataset": tenant.table("v"),
        "job": f"{tenant.word}.second",
        "nodeId": f"dataset:{tenant.lake}:{tenant.table('v')}",
        "field": f"{tenant.word}_v_id",
        "tag": f"{tenant.word}-tag",
        "source": tenant.lake,
        "id": tenant.run("second"),
        "version": "00000000-0000-4000-8000-000000000001",
        "period": "DAY",
    }


def bodies(tenant: Tenant) -> Mapping[str, JSON | list[JSON]]:
    """A body for each path that takes one, about the tenant."""
    job = {
        "namespace": tenant.jobs,
        "name": f"{tenant.word}.first",
    }  # the second one reads what is another's
    tables = [{"namespace": tenant.lake, "name": tenant.table(name)} for name in "uv"]
    option = {"catalog": tenant.catalog, "key": "x", "value": tenant.word}
    posted = event(tenant, "COMPLETE", "posted", 40, outputs=[tenant.dataset("posted", "output")])
    return {
        "/api/v1/lineage": posted,
        "/api/v1/lineage/batch": [posted],
        "/api/v2/catalog-options": option,
        "/api/v2/compare": {"tables": tables},
        "/api/v2/groups": {
            "name": f"{tenant.word}-new",
            "tables": [{"namespace": tenant.lake, "name": tenant.table("w")}],
        },
        "/api/v2/jobs/decision": job | {"position": 1},
        "/api/v2/rollbacks": tables[1] | {"barrier": 1},
        "/api/v2/versions": {"tables": tables, "leaseSeconds": 3600, "holder": f"by {tenant.word}"},
        "/api/v2/leases/{id}": {"leaseSeconds": 60},
        "/api/v2/forget": {"kind": "dataset", "dryRun": True} | tables[0],
    }


@dataclass(frozen=True)
class Asked:
    """A request, and every text of it that an answer may repeat."""

    method: str
    path: str
    query: dict[str, str]
    body: Any

    def without_echo(self, answer: str) -> str:
        """The answer without what the request itself named."""
        sent = [*self.query.values(), *self.path.split("/"), *_texts(self.body)]
        for text in sorted({*sent, *map(repr, sent)}, key=len, reverse=True):
            answer = answer.replace(text, "") if len(text) > 1 else answer
        return answer


def _texts(body: Any) -> Iterator[str]:
    match body:
        case dict():
            for one in body.values():
                yield from _texts(one)
        case list():
            for one in body:
                yield from _texts(one)
        case str():
            yield body


def requests(operation: Operation, tenant: Tenant) -> Iterator[Asked]:
    """Yield a tenant's requests to an operation.

    One for each word of a choice, and one for each of its questions.
    """
    if operation.path == "/api/v2/stream":
        return  # stays open; asked in test_stream
    body = bodies(tenant).get(operation.path) if operation.has_body else None
    if body is None and operation.path.startswith("/api/v1/"):
        body = {"description": tenant.word}
    for values in questions(tenant):
        if operation.path.startswith("/api/v1/"):
            values = values | as_marquez(tenant) if values else values
        given = {one.name: values[one.name] for one in operation.parameters if one.name in values}
        if operation.path == "/api/v2/lineage/changes":
            given |= {"since": at(-10)}
        for choice in _choices(operation):
            query = given | choice
            path = operation.path
            for name in [name for name in query if f"{{{name}}}" in path]:
                path = path.replace(f"{{{name}}}", quote(query.pop(name), safe=""))
            if "{" not in path:
                yield Asked(operation.method, path, query, body)


def _choices(operation: Operation) -> Iterator[dict[str, str]]:
    """Each word of each choice, alone; of a table's name every table."""
    kinds = {one.name: one.words for one in operation.parameters if one.words}
    kinds |= (
        {"format": kinds["format"][:2]} if "format" in kinds else {}
    )  # all are made of the same answer
    if operation.path == "/api/v2/tables/{table}":
        kinds["table"] = TABLES
        yield from (dict(zip(kinds, one, strict=True)) for one in product(*kinds.values()))
        return
    required = {
        one.name: one.words[0] for one in operation.parameters if one.words and one.required
    }
    kinds |= {one.name: (at(15),) for one in operation.parameters if one.name == "asOf"}
    yield from (
        required,
        *(required | {name: word} for name, words in kinds.items() for word in words),
    )


def _reads_first(operation: Operation) -> int:
    """Sort registering and retiring last, as these take versions away."""
    return 0 if operation.method == "GET" else 2 if "register" in operation.path else 1


@pytest.fixture
def keys(engine: Engine) -> dict[str, str]:
    """A key for everything, and one of A that may do everything to what is A's."""
    with engine.begin() as connection:
        patterns = [A.jobs, A.lake, f"hive://{A.word}*"]
        return {
            "whole": add_key(connection, "whole", NOW, SCOPES, ["*"]),
            "a": add_key(connection, "a", NOW, SCOPES, patterns),
        }


@pytest.fixture
def world(engine: Engine, keys: dict[str, str]) -> Iterator[httpx.Client]:
    """A collector that has heard both stories, with the master key."""
    required = replace(SETTINGS, auth="required")
    with serving(engine, required) as address, client_with(address, keys["whole"]) as client:
        for own, other in ((A, B), (B, A)):
            for one in story(own, other):
                client.post("/api/v1/lineage", json=one).raise_for_status()
            client.put(
                "/api/v2/catalog-options", json=bodies(own)["/api/v2/catalog-options"]
            ).raise_for_status()
            client.put(f"/register/source/{own.word}.registered/{own.catalog}/{own.word}db/nowhere")
        client.post(
            "/api/v1/lineage",
            json={"job": {"namespace": B.jobs, "name": CANARY}, "producer": CANARY},
        )
        yield client


def client_with(address: str, key: str) -> httpx.Client:
    """Make a client that sends this key."""
    return client_of(address, "", headers=bearer(key))


def test_no_operation_reveals_the_other_tenant(world: httpx.Client, keys: dict[str, str]) -> None:
    versions = world.post("/api/v2/versions", json=bodies(B)["/api/v2/versions"])
    assert versions.status_code == 200, versions.text
    lease = versions.json()["lease"]["id"]
    seen_by_all, told, statuses = set[str](), list[tuple[Asked, str]](), dict[str, set[int]]()
    with client_with(str(world.base_url), keys["a"]) as client:
        for operation in sorted(operations(), key=_reads_first):
            for tenant in (A, B):
                for asked in requests(operation, tenant):
                    sent = {"params": asked.query, "json": asked.body}
                    if (
                        operation.path not in seen_by_all
                        and operation.method == "GET"
                        and CANARY
                        in asked.without_echo(world.request(asked.method, asked.path, **sent).text)
                    ):
                        seen_by_all.add(operation.path)
                    answer = client.request(asked.method, asked.path, **sent)
                    statuses.setdefault(f"{operation.method} {operation.path}", set()).add(
                        answer.status_code
                    )
                    left = asked.without_echo(f"{answer.headers} {answer.text}")
                    if CANARY in left.lower():
                        told.append((asked, left))
        renewed = client.put(f"/api/v2/leases/{lease}", json={"leaseSeconds": 9})
        ended = client.delete(f"/api/v2/leases/{lease}")

    near = [left[max(0, (at := left.lower().index(CANARY)) - 150) : at + 60] for _, left in told]
    assert [
        f"{one.method} {one.path} {one.query}: {text}"
        for (one, _), text in zip(told, near, strict=True)
    ] == []
    assert {path: found for path, found in statuses.items() if max(found) >= 500} == {}
    never_right = {
        asked for asked, found in statuses.items() if min(found) >= 300 and "/api/v1/" not in asked
    }
    never_read = {
        asked
        for asked, found in statuses.items()
        if min(found) >= 300 and asked.startswith("GET /api/v1/")
    }
    assert never_right == {
        *(
            "PUT /api/v2/catalog-options",
            "DELETE /api/v2/catalog-options",
            "GET /metrics",
            "GET /api/v2/dead-letters",
        ),
        *("GET /api/v2/unread-events", "GET /api/v2/audit", "POST /api/v2/forget"),
        "POST /unregister/{jobID}",  # DELETE has done it; no namespace owns the others
        "GET /api/v2/rejected",
        *("POST /api/v2/keys", "GET /api/v2/keys", "DELETE /api/v2/keys/{name}"),
        *("GET /api/v2/rejected-events", "PUT /api/v2/leases/{id}", "DELETE /api/v2/leases/{id}"),
    }
    assert never_read == {
        *("GET /api/v1/events", "GET /api/v1/events/lineage", "GET /api/v1/events/{namespace}"),
        *(
            f"GET /api/v1/namespaces/{{namespace}}/{of}/versions/{{version}}"
            for of in ("datasets/{dataset}", "jobs/{job}")
        ),
    }
    assert len(seen_by_all) >= 20  # the world is full of canaries
    assert (renewed.status_code, ended.status_code) == (404, 404)
    assert world.put(f"/api/v2/leases/{lease}", json={"leaseSeconds": 9}).status_code == 200


def test_unclassified_table_is_hidden() -> None:
    hidden = metadata.tables.keys() - BY_ID - BY_NAMESPACE.keys()

    assert metadata.tables.keys() >= BY_ID | BY_NAMESPACE.keys()
    assert hidden >= {
        *(
            "event_keys",
            "raw_events",
            "set_aside",
            "refused_events",
            "offsets",
        ),
        *(
            "api_keys",
            "audit_log",
            "annotation_log",
            "version_facts",
            "version_news",
            "open_rollbacks",
            "alerts",
            "export_news",
            "export_changes",
            "export_sent",
            "export_parked",
            "graph_news",
        ),
    }
