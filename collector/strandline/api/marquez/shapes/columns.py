"""The sources of a column, as Marquez shows them in a dataset and in a graph of columns."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from strandline.core.openlineage.names import id_of
from strandline.core.walk import Direction
from strandline.store.lineage.column_lineage import column_lineage_of
from strandline.store.lineage.run_state import View
from strandline.store.lineage.table_graph import Question
from strandline.store.marquez.datasets import node_of_row

Answer = dict[str, Any]
MOST_COLUMNS = 20_000  # of one question, with those that they come from


def column_inputs(connection: Connection, rows: Sequence[Any], now: int) -> dict[int, list[Answer]]:
    """Return the columns that each column of these datasets comes from.

    A dataset whose columns no job has stated is left out.
    """
    if not rows:
        return {}
    node, *others = map(node_of_row, rows)
    question = Question(
        node, View(now), Direction.UPSTREAM, depth=1, most=MOST_COLUMNS, others=tuple(others)
    )
    answer = column_lineage_of(connection, question)
    if others and answer["truncatedBy"] in ("nodes", "edges"):
        middle = len(rows) // 2
        first = column_inputs(connection, rows[:middle], now)
        return first | column_inputs(connection, rows[middle:], now)
    nodes = {node["id"]: node for node in answer["nodes"]}
    inputs = inputs_by_target(answer["edges"], nodes)
    answers: dict[int, list[Answer]] = {}
    for id_, node in nodes.items():
        if node["distance"] == 0 and id_ in inputs:
            dataset = id_of("dataset", node["namespace"], node["name"])
            answers.setdefault(dataset, []).append(_column(node["column"], inputs[id_]))
    return answers


def inputs_by_target(
    edges: Iterable[Answer], nodes: Mapping[str, Answer]
) -> dict[str, list[Answer]]:
    """Return the columns that each column comes from. What no job states by columns is left out."""
    by_target: dict[str, dict[tuple[str, ...], Answer]] = defaultdict(dict)
    for edge in edges:
        source, target = nodes[edge["source"]], nodes[edge["target"]]
        if edge["opaque"] or source["column"] is None or target["column"] is None:
            continue
        column = {
            "namespace": source["namespace"],
            "dataset": source["name"],
            "field": source["column"],
            "transformationDescription": edge["transform"],
            "transformationType": transformation(edge),
        }
        by_target[target["id"]].setdefault(tuple(map(str, column.values())), column)
    return {target: list(of.values()) for target, of in by_target.items()}


def transformation(edge: Mapping[str, Any]) -> str | None:
    """Return the transformation that makes a column from another.

    MASKED, IDENTITY, AGGREGATION, FILTER, ... as the event said.
    """
    return "MASKED" if edge["masking"] else edge["subtype"] or edge["type"]


def _column(name: str, inputs: list[Answer]) -> Answer:
    return {"name": name, "inputFields": inputs} | summary(inputs)


def summary(inputs: list[Answer]) -> Answer:
    """Return the one way in which the column is made, if there is only one."""
    ways = {
        (column["transformationDescription"], column["transformationType"]) for column in inputs
    }
    description, kind = ways.pop() if len(ways) == 1 else (None, None)
    return {"transformationDescription": description, "transformationType": kind}
