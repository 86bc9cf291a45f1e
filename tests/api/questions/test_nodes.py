"""The nodes of a lineage without its edges, over REST, on the command line and from memory."""

import csv
import io
import json

import httpx

from fixtures.commands import Command


def test_nodes_endpoint_returns_the_nodes_of_the_lineage(
    command: Command, server: httpx.Client
) -> None:
    url = str(server.base_url).removesuffix("/api/v2/")
    questions: list[dict[str, str | int]] = [
        {}, {"direction": "downstream"}, {"depth": 1}, {"kind": "dataset"}, {"state": "latest"}, {"namespace": "n*"},
        {"asOf": "2026-11-20T12:00:02.5Z"}, {"depth": 0},
    ]  # fmt: skip
    for given in questions:
        asked = {"node": "rows", "direction": "both"} | given
        whole, found = (
            server.get(path, params=asked).json() for path in ("/lineage", "/lineage/nodes")
        )
        assert found["items"] == [
            {"id": one["id"], "distance": one["distance"]} for one in whole["nodes"]
        ]
        assert {name: found[name] for name in ("complete", "truncatedBy", "hidden")} == {
            name: whole[name] for name in ("complete", "truncatedBy", "hidden")
        }
    of_job = server.get(
        "/lineage/nodes", params={"node": "job:ns:count", "direction": "upstream"}
    ).json()
    code, out, err = command("lineage", "job:ns:count", "--nodes", "--direction", "upstream")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "STEPS  NODE", "0      job:ns:count", "1      dataset:db:rows", "2      dataset:db:orders", "2      job:ns:clean",
        "3      job:ns:load",
    ]  # fmt: skip
    as_json = command(
        "lineage", "count", "--nodes", "--direction", "upstream", "--json", "--url", url
    )[1]
    assert json.loads(as_json)["items"] == of_job["items"]


def test_nodes_endpoint_cuts_the_farthest_nodes_first(
    command: Command, server: httpx.Client
) -> None:
    whole = server.get("/lineage/nodes", params={"node": "orders"}).json()["items"]
    cut = server.get("/lineage/nodes", params={"node": "orders", "limit": 4}).json()
    rows = csv.DictReader(
        io.StringIO(server.get("/lineage/nodes", params={"node": "orders", "format": "csv"}).text)
    )

    assert [one["distance"] for one in whole] == sorted(one["distance"] for one in whole)
    assert (cut["complete"], cut["truncatedBy"], len(cut["items"])) == (False, "nodes", 4)
    assert [one for one in whole if one in cut["items"]] == cut["items"]
    assert [one["distance"] for one in cut["items"]] == [one["distance"] for one in whole[:4]]
    assert 0 < cut["hidden"]["nodes"] <= len(whole) - 4
    assert [(row["id"], int(row["distance"])) for row in rows] == [
        (one["id"], one["distance"]) for one in whole
    ]
    for options, reason in ((("--collapse", "root"), "--collapse cannot be combined with --nodes"),
                            (("--format", "dot"), "--format dot is for graphs"),
                            (("--snapshots",), "--snapshots cannot be combined with --nodes")):  # fmt: skip
        assert reason in command("lineage", "orders", "--nodes", *options)[2]
