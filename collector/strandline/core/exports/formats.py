"""The names of the formats in which a graph can be had."""

from typing import Literal, get_args

GraphFormat = Literal["json", "csv", "csv-nodes", "graphml", "dot", "mermaid"]
GRAPH_FORMATS: tuple[GraphFormat, ...] = get_args(GraphFormat)
