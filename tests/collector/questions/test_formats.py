"""Every list and graph can be taken away: read back by another reader, it holds the same nodes, edges and names."""

import csv
import io
import re
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest

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
    shown = dict(re.findall(r'^  (n\d+) \[.* id="((?:[^"\\]|\\.)*)"\];$', texts["dot"], re.MULTILINE))
    raw = {short: re.sub(r"\\(.)", lambda one: {"n": "\n"}.get(one[1], one[1]), name) for short, name in shown.items()}
    assert list(raw.values()) == names
    drawn = re.findall(r"^  (n\d+) -> (n\d+)", texts["dot"], re.MULTILINE)
    assert sorted((raw[one], raw[other]) for one, other in drawn) == pairs(whole)
    arrows = re.findall(r"^  (n\d+) -->? (n\d+)$", texts["mermaid"], re.MULTILINE)
    assert sorted((names[int(one[1:])], names[int(other[1:])]) for one, other in arrows) == pairs(whole)
    assert all(re.fullmatch(r'  n\d+\(?\["[\w ./:,@=+#;-]*"\]\)?|  n\d+ -.*|flowchart LR|', line)
               for line in texts["mermaid"].split("\n"))  # fmt: skip


@pytest.mark.parametrize(
    "path",
    ["/datasets", "/jobs", "/runs", "/search?q=a", "/impact?node=rows", "/lineage/changes?since=2020-01-01T00:00:00Z"],
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
    "path", ["/graph", "/namespaces", "/lineage/paths?from=orders&to=totals", "/lineage?node=rows&granularity=column"]
)
def test_every_graph_can_be_had_as_graphml(server: httpx.Client, path: str) -> None:
    whole = server.get(path).json()
    answer = server.get(path, headers={"Accept": "application/graphml+xml"})

    nodes = [node.get("id") for node in ElementTree.fromstring(answer.text).iter(f"{GRAPHML}node")]
    assert nodes == [node["id"] for node in whole["nodes"]]
    assert nodes


def test_what_a_format_has_no_room_for_is_told_in_headers(server: httpx.Client) -> None:
    cut = server.get("/lineage", params={"node": "rows", "depth": 1, "format": "csv"})
    page = server.get("/datasets", params={"limit": 2, "format": "csv"})
    following = server.get(re.findall("<(.*)>", page.headers["link"])[0].removeprefix("/api/v2"))

    assert (cut.headers["strandline-complete"], cut.headers["strandline-truncated-by"]) == ("false", "depth")
    assert int(cut.headers["strandline-hidden-nodes"]) == 3
    every = [item["id"] for item in server.get("/datasets").json()["items"]]
    assert [row["id"] for row in lines(page.text) + lines(following.text)] == every[:4]


def test_without_a_wish_it_is_json(server: httpx.Client) -> None:
    for accept in ("*/*", "application/json", "text/html", "nonsense;q=x"):
        assert server.get("/jobs", headers={"Accept": accept}).headers["content-type"] == "application/json"
