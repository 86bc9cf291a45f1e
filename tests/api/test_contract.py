"""The contract of every read.

Parameters, methods, errors, hostile names and the OpenAPI document.
"""

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import jsonschema_rs
import pytest
from sqlalchemy import Engine

from fixtures.servers import problem
from worlds.scenarios.bank import FACET
from worlds.scenarios.plain import dataset, run
from worlds.scenarios.taking import fill, ids

CONTRACT = Path(__file__).parent / "contract.txt"
HOSTILE = {
    "slashes": "a//b/../c/",
    "colons": "a:b::c:",
    "unicode": "ünï/码😀 e\u0301 \u202e",
    "encoded": "%00 %2F+&=?#",
    "quotes": '\'; DROP TABLE runs; -- "q" \\',
    "lines": "line\nbreak\ttab",
    "long": "x" * 2048,
    "braces": "{node} <script>",
}


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        ("/lineage", "parameter node is missing: "),
        ("/lineage?node=", "parameter node is empty"),
        ("/lineage?node=%00", "parameter node has a character that no name can have"),
        ("/lineage?node=t&depth=-1", "parameter depth is not a whole number from 0 to 1000000"),
        (
            "/lineage?node=t&direction=up",
            "parameter direction is not one of upstream, downstream, both",
        ),
        ("/lineage?node=t&asOf=monthly", "parameter asOf is not a time like 2026-11-20T12:00:00Z"),
        (
            "/lineage?node=t&asof=2026-11-20",
            "parameter 'asof' is not known here; known: format",
        ),
        ("/lineage?node=t&depth=1&depth=2", "parameter depth is given more than once"),
        ("/lineage?node=t&column=c", "parameter column needs granularity=column"),
        ("/lineage?node=t&dependency=direct", "parameter dependency needs granularity=column"),
        ("/lineage?node=t&facet=tags", "parameter facet is not KEY.FIELD=VALUE, such as "),
        (
            "/lineage?node=t&format=xml",
            "parameter format is not one of json, csv, csv-nodes, graphml, dot, mermaid",
        ),
        (
            "/lineage?node=t&granularity=column&collapse=root",
            "parameter collapse needs granularity=table",
        ),
        ("/datasets?limit=0", "parameter limit is not a whole number from 1 to 1000"),
        ("/jobs?cursor=%00", "parameter cursor is not a cursor of this list"),
        ("/runs?cursor=WyJhIiwiYiJd", "parameter cursor is not a cursor of this list"),
        (
            "/tables/source_job_lineage?state=recent",
            "parameter state is not one of running, history",
        ),
        ("/tables/source_job_lineage?format=xml", "parameter format is not one of json, csv"),
    ],
)
def test_invalid_parameter_is_named_with_the_reason(
    bank_client: httpx.Client, path: str, detail: str
) -> None:
    status, code, said = problem(bank_client.get(path))

    assert (status, code, said[: len(detail)]) == (400, "invalid_parameter", detail)


def test_unknown_resources_get_404(bank_client: httpx.Client) -> None:
    unknown = {"namespace": "n", "name": "t"}

    assert [bank_client.get(path, params=unknown).status_code for path in (
        "/datasets/detail", "/datasets/snapshots", "/jobs/detail", "/jobs/barriers", "/runs", "/snapshots/lineage"
    )] == [404] * 6  # fmt: skip
    assert problem(bank_client.get("/runs/detail", params={"runId": "r"})) == (
        404,
        "not_found",
        "unknown run: 'r'",
    )
    assert problem(bank_client.get("/nothing")) == (
        404,
        "not_found",
        "/api/v2/nothing: no such path; /docs lists all paths",
    )


def test_options_lists_methods_and_head_omits_the_body(bank_client: httpx.Client) -> None:
    options, refused = bank_client.options("/jobs"), bank_client.delete("/jobs")
    whole, head = bank_client.get("/jobs"), bank_client.head("/jobs")

    assert (options.status_code, options.headers["allow"]) == (204, "GET, HEAD, OPTIONS")
    assert (problem(refused)[:2], refused.headers["allow"]) == (
        (405, "method_not_allowed"),
        "GET, HEAD, OPTIONS",
    )
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(whole.content))


@pytest.mark.parametrize("path", ["/datasets", "/jobs", "/runs", "/search?q=a", "/events"])
def test_lists_are_the_same_at_any_page_size(bank_client: httpx.Client, path: str) -> None:
    whole = bank_client.get(path).json()

    assert len(whole["items"]) >= 5
    assert walked(bank_client, path, 3) == whole["items"]


def walked(client: httpx.Client, path: str, limit: int) -> list[Any]:
    """All items of a list, a few at a time."""
    page = client.get(path, params=httpx.URL(path).params.set("limit", limit)).json()
    found = page["items"]
    while page["nextCursor"] is not None:
        page = client.get(
            path,
            params=httpx.URL(path).params.merge({"limit": limit, "cursor": page["nextCursor"]}),
        )
        page = page.json()
        found += page["items"]
    return list(found)


@pytest.mark.parametrize("odd", HOSTILE.values(), ids=HOSTILE)
def test_names_may_contain_any_character(client: httpx.Client, engine: Engine, odd: str) -> None:
    fields = {odd: {"inputFields": [{"namespace": odd, "name": "source", "field": odd}]}}
    sink = {"namespace": odd, "name": odd, "facets": {"columnLineage": FACET | {"fields": fields}}}
    made = sink | {"outputFacets": {"strandline_snapshot": FACET | {"snapshotId": "1"}}}
    fill(engine, [run("COMPLETE", 1, odd, [dataset("source") | {"namespace": odd}], [made])])
    named = {"namespace": odd, "name": odd}

    lineage = client.get("/lineage", params={"node": f"dataset:{odd}:{odd}"}).json()
    of_job = client.get("/lineage", params={"node": f"job:ns:{odd}"}).json()
    column = {"node": f"dataset:{odd}:{odd}", "granularity": "column", "column": odd}
    columns = client.get("/lineage", params=column).json()

    assert ids(lineage) == [f"dataset:{odd}:{odd}", f"dataset:{odd}:source", f"job:ns:{odd}"]
    assert len(of_job["nodes"]) == 3
    assert ids(columns) == [f"column:{odd}:{odd}:{odd}", f"column:{odd}:source:{odd}"]
    assert client.get("/datasets/detail", params=named).json()["name"] == odd
    assert client.get("/datasets/snapshots", params=named).json()["items"][0]["snapshotId"] == "1"
    assert client.get("/snapshots/lineage", params=named).json()["nodes"][0]["name"] == odd
    assert (
        client.get("/runs", params={"namespace": "ns", "name": odd}).json()["items"][0]["job"][
            "name"
        ]
        == odd
    )
    assert client.get("/search", params={"q": odd}).json()["items"][0]["namespace"] == odd
    assert client.get("/tables/sink_job_lineage?state=history").json()[0]["job"] == odd
    assert client.get(f"/tables/{quote(odd, safe='')}").status_code == 404


def test_the_document_has_every_path_of_the_contract(bank_client: httpx.Client) -> None:
    document = bank_client.get("../../openapi.json").json()
    described = {
        f"{method.upper()} {path}": sorted(
            parameter["name"] for parameter in operation["parameters"]
        )
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }

    missing = [
        line
        for line in CONTRACT.read_text().splitlines()
        if not set(line.split()[2:]) <= set(described.get(" ".join(line.split()[:2]), ["?"]))
    ]
    assert missing == []


def test_operations_have_names_and_answers_that_programs_can_use(bank_client: httpx.Client) -> None:
    document = bank_client.get("../../openapi.json").json()
    operations = [one for methods in document["paths"].values() for one in methods.values()]

    names = [operation["operationId"] for operation in operations]
    assert "get_api_v2_snapshots_lineage" in names
    assert len(set(names)) == len(names)
    assert json.dumps(document).count("#/components/schemas/Problem") > len(operations)


def test_models_of_answers_have_different_names(bank_client: httpx.Client) -> None:
    """Client generators name a class after the title of a model, and drop one of two of a name."""
    document = bank_client.get("../../openapi.json").json()
    models = document["components"]["schemas"]
    answers = {
        path: content["application/json"]["schema"]
        for path, methods in document["paths"].items()
        for operation in methods.values()
        for status, answer in operation["responses"].items()
        if status == "200" and "application/json" in (content := answer.get("content", {}))
    }

    free = [
        path
        for path, schema in answers.items()
        if schema.get("type", "object") == "object" and "$ref" not in schema
    ]
    assert [name for name in models if name.startswith("strandline")] == []
    assert {name: model["title"] for name, model in models.items() if name != "Problem"} == {
        name: name for name in models if name != "Problem"
    }
    assert free == ["/openapi.json"]


def test_required_parameters_have_valid_examples(bank_client: httpx.Client) -> None:
    document = bank_client.get("../../openapi.json").json()
    reads = [
        methods["get"]
        for path, methods in document["paths"].items()
        if path.startswith("/api/v2/") and "get" in methods
    ]
    needed = [
        one
        for operation in reads
        for one in operation["parameters"]
        if one["required"] and one["in"] == "query"
    ]

    assert [one["name"] for one in needed if "example" not in one] == []
    for one in needed:
        jsonschema_rs.validate(one["schema"], one["example"])


def test_defaults_of_parameters_are_valid(bank_client: httpx.Client) -> None:
    """Generated clients send them."""
    document = bank_client.get("../../openapi.json").json()
    parameters = [
        one
        for methods in document["paths"].values()
        for operation in methods.values()
        for one in operation["parameters"]
        if "default" in one["schema"]
    ]

    assert len(parameters) > 50
    for one in parameters:
        jsonschema_rs.validate(one["schema"], one["schema"]["default"])


def test_parameters_of_the_same_name_have_the_same_type(bank_client: httpx.Client) -> None:
    """Namespace, node and state are exceptions: graphs take other values than lists."""
    document = bank_client.get("../../openapi.json").json()
    types: dict[str, set[str]] = {}
    for path, methods in document["paths"].items():
        for operation in methods.values() if path.startswith("/api/v2/") else ():
            for one in operation["parameters"]:
                types.setdefault(one["name"], set()).add(str(one["schema"].get("type")))

    assert {name for name, found in types.items() if len(found) > 1} <= {"namespace", "node"}


def test_documentation_loads_nothing_from_other_origins(bank_client: httpx.Client) -> None:
    page = bank_client.get("../../docs").text

    assert "://" not in page
    assert "<script" not in page
    assert "api/v2/impact?node=bank.balance" in page
