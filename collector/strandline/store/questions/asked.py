"""Questions by the names that the API gives their parameters; commands that ask the database use the same.

`ANSWERS` has a function for each path below /api/v2: from a connection, the parameters (parsed; absent ones are None or
missing) and the view to the answer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection

from strandline.core.walk import MOST_NODES, Direction
from strandline.errors import NotFoundError
from strandline.store.lineage.column_lineage import column_lineage_of, refuse_unknown
from strandline.store.lineage.lookup import Node, node_called
from strandline.store.lineage.relations import View
from strandline.store.lineage.table_labels import newest_datasets
from strandline.store.lineage.table_lineage import Question, lineage_of
from strandline.store.questions.differences import Span, differences
from strandline.store.questions.impact import Removal, impact_of
from strandline.store.questions.namespaces import namespace_overview
from strandline.store.questions.paths import Way, paths_between, selected_paths
from strandline.store.questions.run_graph import run_graph
from strandline.store.questions.selection import Selection

Answer = dict[str, Any]
Asked = Mapping[str, Any]


def selection_of(asked: Asked) -> Selection:
    """Which nodes are to be shown."""
    named = (tuple(asked.get(name) or ()) for name in ("namespace", "kind", "tag", "facet"))
    return Selection(*named)


def question_of(connection: Connection, asked: Asked, view: View) -> Question:
    """What is asked of the lineage of one or several nodes."""
    node, *others = nodes_called(connection, asked["node"])
    return Question(
        node,
        view,
        Direction(asked.get("direction") or "both"),
        asked.get("depth"),
        asked.get("limit") or MOST_NODES,
        asked.get("collapse") or "none",
        tuple(others),
        tuple(asked.get("dependency") or ()),
    )


def lineage(connection: Connection, asked: Asked, view: View) -> Answer:
    """The lineage of one or several nodes."""
    question = question_of(connection, asked, view)
    by_column = asked.get("granularity") == "column"
    found = (
        column_lineage_of(connection, question, asked.get("column")) if by_column else lineage_of(connection, question)
    )
    return selection_of(asked).of(connection, found)


def nodes_called(connection: Connection, texts: str | Sequence[str]) -> list[Node]:
    """The nodes that texts mean, each once."""
    named = (texts,) if isinstance(texts, str) else texts
    return list(dict.fromkeys(node_called(connection, text) for text in named))


def impact(connection: Connection, asked: Asked, view: View) -> Answer:
    """What depends on a table, a column or a job."""
    node, column = node_and_column(connection, asked["node"], asked.get("column"))
    limit = asked.get("limit") or MOST_NODES
    return impact_of(connection, Removal(node, column, view, asked.get("depth"), limit, selection_of(asked)))


def node_and_column(connection: Connection, text: str, column: str | None) -> tuple[Node, str | None]:
    """What TABLE or TABLE.COLUMN means: the whole text as a node, else its longest beginning that is one."""
    try:
        node = node_called(connection, text)
    except NotFoundError as error:
        if column is not None or (found := _table_and_column(connection, text)) is None:
            raise
        node, column = found
        if node.kind != "dataset":
            raise error from None
    if column is not None:
        refuse_unknown(connection, node, column)
    return node, column


def _table_and_column(connection: Connection, text: str) -> tuple[Node, str] | None:
    for end in [place for place, sign in enumerate(text) if sign == "."][:-11:-1]:
        try:
            return node_called(connection, text[:end]), text[end + 1 :]
        except NotFoundError:
            continue
    return None


def paths(connection: Connection, asked: Asked, view: View) -> Answer:
    """The ways between two nodes, or between two columns."""
    columns = asked.get("fromColumn"), asked.get("toColumn")
    first, last = (node_called(connection, asked[name]) for name in ("from", "to"))
    for node, column in zip((first, last), columns, strict=True):
        if column is not None:
            refuse_unknown(connection, node, column)
    by_column = asked.get("granularity") == "column" or any(columns)
    way = Way(first, last, view, asked.get("depth"), asked.get("limit") or MOST_NODES, columns, by_column)
    return selected_paths(connection, paths_between(connection, way), last, selection_of(asked))


def changes(connection: Connection, asked: Asked, view: View) -> Answer:
    """What came and went between two moments; `view` is the later one."""
    nodes = tuple(nodes_called(connection, asked.get("node") or ()))
    limit = asked.get("limit") or MOST_NODES
    datasets, more = ([], False) if nodes else newest_datasets(connection, None, limit)
    span = Span(
        nodes,
        tuple(datasets),
        replace(view, at=min(asked["since"], view.at), past=True),
        view,
        Direction(asked.get("direction") or "both"),
        asked.get("depth"),
        limit,
        asked.get("granularity") == "column",
        selection_of(asked),
    )
    found = differences(connection, span)
    return found | {"complete": False, "truncatedBy": "nodes"} if more else found


def namespaces(connection: Connection, asked: Asked, view: View) -> Answer:
    """How namespaces feed each other."""
    return namespace_overview(connection, view, asked.get("limit") or MOST_NODES)


ANSWERS: Mapping[str, Callable[[Connection, Asked, View], Answer]] = {
    "/lineage": lineage,
    "/impact": impact,
    "/lineage/paths": paths,
    "/lineage/changes": changes,
    "/namespaces": namespaces,
    "/runs/lineage": run_graph,
}
