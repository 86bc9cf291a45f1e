"""Every list and graph can be exported and read back with the same nodes, edges and names."""

import csv
import io
import re
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest
from sqlalchemy import Engine

from fixtures.commands import Command
from worlds.scenarios.plain import dataset, run
from worlds.scenarios.taking import fill

GRAPHML = "{http://graphml.graphdrawing.org/xmlns}"
ASKED = {"node": "rows", "direction": "both"}


def lines(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def pairs(answer: dict[str, Any]) -> list[tuple[str, str]]:
    return sorted((edge["source"], edge["target"]) for edge in answer["edges"])


def test_a_graph_is_the_same_in_every_format(server: httpx.Client) -> None:
    whole = server.get("/lineage", params=ASKED).json()
    texts = {
        name: server.get("/lineage", params=ASKED | {"format": name}).text
        for name in ("csv", "csv-nodes", "graphml", "dot", "mermaid")
    }
    names = [node["id"] for node in whole["nodes"]]

    assert sorted((row["source"], row["target"]) for row in lines(texts["csv"])) == pairs(whole)
    assert [row["id"] for row in lines(texts["csv-nodes"])] == names
    tree = ElementTree.fromstring(texts["graphml"])
    assert [node.get("id") for node in tree.iter(f"{GRAPHML}node")] == names
    edges = [(edge.get("source"), edge.get("target")) for edge in tree.iter(f"{GRAPHML}edge")]
    assert sorted(edges) == pairs(whole)
    shown = dict(
        re.findall(r'^  (n\d+) \[.* id="((?:[^"\\]|\\.)*)"\];$', texts["dot"], re.MULTILINE)
    )
    raw = {
        short: re.sub(r"\\(.)", lambda one: {"n": "\n"}.get(one[1], one[1]), name)
        for short, name in shown.items()
    }
    assert list(raw.values()) == names
    drawn = re.findall(r"^  (n\d+) -> (n\d+)", texts["dot"], re.MULTILINE)
    assert sorted((raw[one], raw[other]) for one, other in drawn) == pairs(whole)
    arrows = re.findall(r"^  (n\d+) -->? (n\d+)$", texts["mermaid"], re.MULTILINE)
    assert sorted((names[int(one[1:])], names[int(other[1:])]) for one, other in arrows) == pairs(
        whole
    )
    assert all(re.fullmatch(r'  n\d+\(?\["[\w ./:,@=+#;-]*"\]\)?|  n\d+ -.*|flowchart LR|', line)
               for line in texts["mermaid"].split("\n"))  # fmt: skip


@pytest.mark.parametrize(
    "path",
    [
        "/datasets",
        "/jobs",
        "/runs",
        "/search?q=a",
        "/impact?node=rows",
        "/lineage/changes?since=2020-01-01T00:00:00Z",
    ],
)
def test_a_list_has_a_line_for_each_item(server: httpx.Client, path: str) -> None:
    items = server.get(path).json()["items"]
    answer = server.get(path, headers={"Accept": "text/html;q=0.5, text/csv"})

    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    found = lines(answer.text)
    assert len(found) == len(items) > 0
    name = next(name for name in ("id", "runId") if name in items[0])
    assert [row[name] for row in found] == [item[name] or "" for item in items]


@pytest.mark.parametrize(
    "path",
    [
        "/graph",
        "/namespaces",
        "/lineage/paths?from=orders&to=totals",
        "/lineage?node=rows&granularity=column",
    ],
)
def test_every_graph_is_available_as_graphml(server: httpx.Client, path: str) -> None:
    whole = server.get(path).json()
    answer = server.get(path, headers={"Accept": "application/graphml+xml"})

    nodes = [node.get("id") for node in ElementTree.fromstring(answer.text).iter(f"{GRAPHML}node")]
    assert nodes == [node["id"] for node in whole["nodes"]]
    assert nodes


def test_headers_carry_what_a_format_cannot_hold(server: httpx.Client) -> None:
    cut = server.get("/lineage", params={"node": "rows", "depth": 1, "format": "csv"})
    page = server.get("/datasets", params={"limit": 2, "format": "csv"})
    following = server.get(re.findall("<(.*)>", page.headers["link"])[0].removeprefix("/api/v2"))

    assert (cut.headers["strandline-complete"], cut.headers["strandline-truncated-by"]) == (
        "false",
        "depth",
    )
    assert int(cut.headers["strandline-hidden-nodes"]) == 3
    every = [item["id"] for item in server.get("/datasets").json()["items"]]
    assert [row["id"] for row in lines(page.text) + lines(following.text)] == every[:4]


def test_json_is_the_default_format(server: httpx.Client) -> None:
    for accept in ("*/*", "application/json", "text/html", "nonsense;q=x"):
        assert (
            server.get("/jobs", headers={"Accept": accept}).headers["content-type"]
            == "application/json"
        )


def flat(item: dict[str, Any], columns: set[str], above: str = "") -> set[str]:
    """The columns that an item needs: what is an object, in a column of its own or by its parts."""
    found = set[str]()
    for name, value in item.items():
        inside = isinstance(value, dict) and bool(value) and f"{above}{name}" not in columns
        found |= flat(value, columns, f"{above}{name}.") if inside else {f"{above}{name}"}
    return found


LISTS = {
    "/jobs": "?namespace=nowhere",
    "/datasets": "?namespace=nowhere",
    "/runs": "?namespace=nowhere",
    "/search?q=a": "",
    "/impact?node=orders": "&kind=column&namespace=nowhere",
    "/lineage/changes?since=2020-01-01T00:00:00Z&granularity=column": "&namespace=nowhere",
    "/events": "?until=2020-01-01T00:00:00Z",
}


@pytest.mark.parametrize("path", LISTS)
def test_csv_columns_of_a_list_do_not_depend_on_its_items(server: httpx.Client, path: str) -> None:
    both = "&" if "?" in path else "?"
    head, none = (
        server.get(f"{path}{more}{'&' if '?' in path + more else '?'}format=csv")
        .text.splitlines()[0]
        .split(",")
        for more in ("", LISTS[path])
    )
    items = server.get(f"{path}{both}limit=1000").json()["items"]

    assert head == none
    assert items
    objects = {name.partition(".")[0] for name in head if "." in name}
    for item in items:
        assert flat(item, set(head)) <= {*head, *objects}


def test_csv_columns_of_snapshots_are_the_same_for_an_empty_list(server: httpx.Client) -> None:
    heads = {}
    for name in ("/lake/bank/balance", "/lake/bank/transfers"):
        asked = {"namespace": "file", "name": name}
        heads[name] = server.get(
            "/datasets/snapshots", params=asked | {"format": "csv"}
        ).text.splitlines()[0]
        item = server.get("/datasets/snapshots", params=asked).json()["items"][0]
        assert sorted(item) == sorted(heads[name].split(","))
    none = {"namespace": "db", "name": "orders", "format": "csv"}

    assert {server.get("/datasets/snapshots", params=none).text.strip()} == set(heads.values())


@pytest.mark.parametrize(
    "path", ["/dead-letters", "/unread-events", "/rejected-events", "/rejected", "/groups"]
)
def test_empty_list_has_a_csv_header(server: httpx.Client, path: str) -> None:
    answer = server.get(path, params={"format": "csv"})

    assert [one for one in server.get(path).json().values() if isinstance(one, list)] == [[]]
    assert "," in answer.text
    assert answer.text.count("\r\n") == 1


def test_the_command_prints_the_csv_that_the_api_answers(
    command: Command, server: httpx.Client
) -> None:
    for argv, path in {
        ("jobs",): "/jobs",
        ("datasets",): "/datasets",
        ("runs", "--namespace", "nowhere"): "/runs?namespace=nowhere",
        ("search", "row"): "/search?q=row",
        ("impact", "orders"): "/impact?node=orders",
        ("impact", "job:ns:dashboard"): "/impact?node=job:ns:dashboard",
        (
            "changes",
            "orders",
            "--since",
            "2020-01-01",
        ): "/lineage/changes?node=orders&since=2020-01-01",
        ("paths", "orders", "totals"): "/lineage/paths?from=orders&to=totals",
        ("namespaces",): "/namespaces",
        ("events", "--limit", "3"): "/events?limit=3",
    }.items():
        said = server.get(path, headers={"Accept": "text/csv"}).text
        assert list(csv.reader(io.StringIO(command(*argv, "--csv")[1]))) == list(
            csv.reader(io.StringIO(said))
        ), argv


def test_csv_escapes_names_that_look_like_spreadsheet_formulas(
    own_server: httpx.Client, own_world: Engine
) -> None:
    names = ['=HYPERLINK("http://x")', "+1", "-1", "@SUM(A1)", "\tx"]
    fill(own_world, [run("COMPLETE", 9, "formulas", [], [dataset(name) for name in names])])

    rows = lines(own_server.get("/datasets", params={"format": "csv"}).text)
    edges = lines(
        own_server.get("/lineage", params={"node": "job:ns:formulas", "format": "csv-nodes"}).text
    )
    for found in (rows, edges):
        assert {f"'{name}" for name in names} <= {row["name"] for row in found}
        assert not [
            row
            for row in found
            if any(value.startswith(("=", "+", "-", "@", "\t")) for value in row.values())
        ]
