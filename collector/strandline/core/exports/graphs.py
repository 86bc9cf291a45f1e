"""Graphs as CSV (edges or nodes), GraphML, DOT and Mermaid, made of the API's JSON.

Names may hold anything, so each format's own signs are escaped, and nodes are called n0, n1, ...
where a format wants names. What a graph leaves out is written into it: as data in GraphML, as a
comment in DOT and Mermaid.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from strandline.core.exports.rows import cell, csv_of
from strandline.core.labels import labels_of

Graph = Mapping[str, Any]
Item = Mapping[str, Any]

EDGE_COLUMNS = ("source", "target")
NODE_COLUMNS = ("id", "type", "namespace", "name")
NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
GRAPHML = "http://graphml.graphdrawing.org/xmlns"


def edges_csv(graph: Graph) -> str:
    """Return a line for each edge."""
    return csv_of(graph["edges"], EDGE_COLUMNS)


def nodes_csv(graph: Graph) -> str:
    """Return a line for each node."""
    return csv_of(graph["nodes"], NODE_COLUMNS)


def graphml(graph: Graph) -> str:
    """Return the whole graph as Gephi, yEd, Cytoscape and networkx read it."""
    nodes = [dict(_plain(node)) for node in graph["nodes"]]
    edges = [dict(_plain(edge)) for edge in graph["edges"]]
    about = dict(
        _plain({name: value for name, value in graph.items() if name not in ("nodes", "edges")})
    )
    keys = _keys({"graph": [about], "node": nodes, "edge": edges})
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<graphml xmlns="{GRAPHML}">']
    lines += [
        f"  <key id={_attribute(key)} for={_attribute(kind)} attr.name={_attribute(name)} "
        f"attr.type={_attribute('string')}/>"
        for (kind, name), key in keys.items()
    ]
    lines += ['  <graph id="lineage" edgedefault="directed">', *_data("graph", about, keys)]
    for node in nodes:
        lines += [
            f"    <node id={_attribute(node['id'])}>",
            *_data("node", node, keys),
            "    </node>",
        ]
    for place, edge in enumerate(edges):
        ends = f"source={_attribute(edge['source'])} target={_attribute(edge['target'])}"
        lines += [f'    <edge id="e{place}" {ends}>', *_data("edge", edge, keys), "    </edge>"]
    return "\n".join([*lines, "  </graph>", "</graphml>", ""])


def _keys(parts: Mapping[str, Sequence[Mapping[str, str]]]) -> dict[tuple[str, str], str]:
    named = dict.fromkeys(
        (kind, name) for kind, items in parts.items() for item in items for name in item
    )
    return {pair: f"d{place}" for place, pair in enumerate(named)}


def _data(kind: str, item: Mapping[str, str], keys: Mapping[tuple[str, str], str]) -> Iterator[str]:
    for name, value in item.items():
        if value != "":
            yield f'      <data key="{keys[kind, name]}">{escape(_xml(value))}</data>'


def _plain(item: Item, above: str = "") -> Iterator[tuple[str, str]]:
    for name, value in item.items():
        if isinstance(value, Mapping):
            yield from _plain(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", cell(value)


def _xml(text: str) -> str:
    """Return the text without the characters that no XML document may hold, not even escaped."""
    return NO_XML.sub("\ufffd", text)


def _attribute(text: str) -> str:
    return quoteattr(_xml(text), {"\n": "&#10;", "\t": "&#9;", "\r": "&#13;"})


def dot(graph: Graph) -> str:
    """Return the graph for Graphviz, left to right.

    Jobs as rounded boxes, indirect dependencies dashed.
    """
    names, labels = _short_names(graph), labels_of(graph["nodes"])
    lines = ["digraph lineage {", "  rankdir=LR;", "  node [shape=box];"]
    for node in graph["nodes"]:
        style = ", style=rounded" if node["type"] in ("job", "run") else ""
        lines.append(
            f"  {names[node['id']]} [label={_quoted(labels[node['id']])}{style}, "
            f"id={_quoted(node['id'])}];"
        )
    for edge in graph["edges"]:
        style = " [style=dashed]" if is_weak(edge) else ""
        lines.append(f"  {names[edge['source']]} -> {names[edge['target']]}{style};")
    return "\n".join([*lines, *(f"  // {line}" for line in left_out(graph)), "}", ""])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\r", " ").replace("\n", "\\n")
    return f'"{escaped}"'


def mermaid(graph: Graph) -> str:
    """Return the graph as a Mermaid flowchart, as wikis and code hosts draw it."""
    names, labels = _short_names(graph), labels_of(graph["nodes"])
    lines = ["flowchart LR"]
    for node in graph["nodes"]:
        begin, end = ("([", "])") if node["type"] in ("job", "run") else ("[", "]")
        lines.append(f'  {names[node["id"]]}{begin}"{_entities(labels[node["id"]])}"{end}')
    for edge in graph["edges"]:
        arrow = "-.->" if is_weak(edge) else "-->"
        lines.append(f"  {names[edge['source']]} {arrow} {names[edge['target']]}")
    return "\n".join([*lines, *(f"  %% {line}" for line in left_out(graph)), ""])


def _entities(text: str) -> str:
    """Everything that is no letter, digit, space or harmless sign by its number.

    Mermaid reads HTML and Markdown in labels.

    >>> _entities('a"b<c>/d.e')
    'a#34;b#60;c#62;/d.e'
    """
    return re.sub(r"[^\w ./:,@=+-]", lambda sign: f"#{ord(sign.group())};", text)


def _short_names(graph: Graph) -> dict[str, str]:
    return {node["id"]: f"n{place}" for place, node in enumerate(graph["nodes"])}


def is_weak(edge: Item) -> bool:
    """Return whether no value came this way.

    What an indirect dependency, or a step past hidden nodes, says.
    """
    return str(edge.get("type") or "").upper() == "INDIRECT" or bool(edge.get("through"))


def left_out(graph: Graph) -> list[str]:
    """Return a line for each kind of thing that the graph does not show."""
    hidden = graph.get("hidden") or {}
    lines = [f"not shown: {number} {what}" for what, number in hidden.items() if number]
    if not graph.get("complete", True):
        lines.insert(0, f"cut by {graph.get('truncatedBy') or 'limit'}")
    return lines


WRITERS: Mapping[str, tuple[str, Callable[[Graph], str]]] = {
    "csv": ("text/csv; charset=utf-8", edges_csv),
    "csv-nodes": ("text/csv; charset=utf-8", nodes_csv),
    "graphml": ("application/graphml+xml; charset=utf-8", graphml),
    "dot": ("text/vnd.graphviz; charset=utf-8", dot),
    "mermaid": ("text/vnd.mermaid; charset=utf-8", mermaid),
}
"""Each format of a graph with its media type."""
