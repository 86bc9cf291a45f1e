"""Questions by the names that the API gives their parameters.

Commands that ask the database use the same.

`ANSWERS` has a function for each path below /api/v2: from a connection, the parameters (parsed;
absent ones are None or missing) and the view to the answer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection

from strandline.core.limits import MOST_OF_DATABASE
from strandline.core.walk import MOST_NODES, Direction
from strandline.errors import NotFoundError, QuestionError
from strandline.store.catalog.filters import refuse_backward_span
from strandline.store.lineage.column_lineage import column_lineage_of, spelled
from strandline.store.lineage.known_jobs import SharedJobs
from strandline.store.lineage.lookup import Node, newest_datasets, node_called
from strandline.store.lineage.run_state import View
from strandline.store.lineage.table_graph import Question
from strandline.store.lineage.table_lineage import lineage_of, only_nodes
from strandline.store.questions.differences import Span, differences
from strandline.store.questions.impact import Removal, impact_of
from strandline.store.questions.lineage_map import lineage_map
from strandline.store.questions.namespaces import namespace_overview
from strandline.store.questions.past_schemas import refuse_absent, refuse_misspelt, without_later
from strandline.store.questions.paths import Way, paths_between, selected_paths
from strandline.store.questions.run_graph import run_graph
from strandline.store.questions.selection import Selection

Answer = dict[str, Any]
Asked = Mapping[str, Any]


def selection_of(query: Asked) -> Selection:
    """Return which nodes are to be shown."""
    named = (tuple(query.get(name) or ()) for name in ("namespace", "kind", "tag", "facet"))
    return Selection(*named)


def selection_between(query: Asked, *, jobs: bool = False) -> Selection:
    """Return the selection of a graph's nodes; raise QuestionError for an unknown kind.

    jobs: whether jobs are nodes even between columns.
    """
    selection, by_column = selection_of(query), query.get("granularity") == "column"
    if "column" in selection.kinds and not by_column:
        raise QuestionError(
            "kind=column needs granularity=column: a graph of tables has no columns"
        )
    if "job" in selection.kinds and by_column and not jobs:
        raise QuestionError(
            "kind=job needs granularity=table: in a graph of columns each edge names its job"
        )
    return selection


def question_of(connection: Connection, query: Asked, view: View) -> Question:
    """Return the lineage of one or several nodes."""
    return _question(nodes_called(connection, query["node"]), query, view)


def _question(nodes: Sequence[Node], query: Asked, view: View) -> Question:
    node, *others = nodes
    return Question(
        node,
        view,
        Direction(query.get("direction") or "both"),
        query.get("depth"),
        query.get("limit") or MOST_NODES,
        query.get("collapse") or "none",
        tuple(others),
        tuple(query.get("dependency") or ()),
    )


def lineage(connection: Connection, query: Asked, view: View) -> Answer:
    """The lineage of one or several nodes."""
    selection = selection_between(query)
    if query.get("granularity") != "column":
        return selection.of(
            connection, lineage_of(connection, question_of(connection, query, view))
        )
    texts = (
        (query["node"],) if isinstance(query["node"], str) else tuple(dict.fromkeys(query["node"]))
    )
    if len(texts) > 1:
        nodes, column = nodes_called(connection, texts), query.get("column")
    else:
        node, column = node_and_column(connection, texts[0], view, query.get("column"))
        nodes = [node]
    answer = column_lineage_of(connection, _question(nodes, query, view), column)
    if view.past:
        answer = _known_then(connection, answer, nodes[0], column, view)
    return selection.of(connection, answer)


def _known_then(
    connection: Connection, answer: Answer, node: Node, column: str | None, view: View
) -> Answer:
    """The answer with columns that were there at its moment.

    A NotFoundError where the one that was asked for was not.
    """
    if column is None:
        return without_later(connection, answer, node, view)
    if not answer["edges"]:
        refuse_absent(connection, node, column, view)
    return answer


def lineage_nodes(connection: Connection, query: Asked, view: View) -> Answer:
    """The nodes of the lineage of one or several nodes, without edges."""
    limit = min(query.get("limit") or MOST_OF_DATABASE, MOST_OF_DATABASE)
    return only_nodes(lineage(connection, {**query, "limit": limit}, view))


def nodes_called(connection: Connection, texts: str | Sequence[str]) -> list[Node]:
    """The nodes that texts mean, each once."""
    named = (texts,) if isinstance(texts, str) else texts
    return list(dict.fromkeys(node_called(connection, text) for text in named))


def impact(
    connection: Connection, query: Asked, view: View, shared: SharedJobs | None = None
) -> Answer:
    """Return the dependents of a table, a column or a job; `shared` are jobs in memory."""
    node, column = node_and_column(connection, query["node"], view, query.get("column"))
    limit = query.get("limit") or MOST_NODES
    removal = Removal(node, column, view, query.get("depth"), limit, selection_of(query))
    answer = impact_of(connection, removal, shared)
    if view.past and column is not None and not answer["items"]:
        refuse_absent(connection, node, column, view)
    return answer


def node_and_column(
    connection: Connection, text: str, view: View, column: str | None
) -> tuple[Node, str | None]:
    """Return the node of TABLE or TABLE.COLUMN.

    The whole text as a node, else its longest beginning that is one.
    """
    try:
        node = node_called(connection, text)
    except NotFoundError as error:
        if column is not None or (node_found := _table_and_column(connection, text)) is None:
            raise
        node, column = node_found
        if node.kind != "dataset":
            raise error from None
    if column is not None:
        column = spelled(connection, node, column, view)
        refuse_misspelt(connection, node, column, view)
    return node, column


def _table_and_column(connection: Connection, text: str) -> tuple[Node, str] | None:
    for end in [place for place, sign in enumerate(text) if sign == "."][:-11:-1]:
        try:
            return node_called(connection, text[:end]), text[end + 1 :]
        except NotFoundError:
            continue
    return None


def paths(connection: Connection, query: Asked, view: View) -> Answer:
    """The ways between two nodes, or between two columns."""
    ends = (("from", "fromColumn"), ("to", "toColumn"))
    ends_found = [
        node_and_column(connection, query[name], view, query.get(column)) for name, column in ends
    ]
    (first, last), columns = (node for node, _ in ends_found), (ends_found[0][1], ends_found[1][1])
    by_column = query.get("granularity") == "column" or any(columns)
    selection = selection_between({**query, "granularity": "column" if by_column else "table"})
    way = Way(
        first, last, view, query.get("depth"), query.get("limit") or MOST_NODES, columns, by_column
    )
    return selected_paths(connection, paths_between(connection, way), last, selection)


def changes(connection: Connection, query: Asked, view: View) -> Answer:
    """Return the differences between two moments; `view` is the later one."""
    refuse_backward_span(query["since"], until=view.at)
    selection = selection_between(query, jobs=True)
    nodes = tuple(nodes_called(connection, query.get("node") or ()))
    limit = query.get("limit") or MOST_NODES
    datasets, more = ([], 0) if nodes else newest_datasets(connection, None, limit)
    span = Span(
        nodes,
        tuple(datasets),
        replace(view, at=query["since"], past=True),
        view,
        Direction(query.get("direction") or "both"),
        query.get("depth"),
        limit,
        query.get("granularity") == "column",
        selection,
    )
    answer = differences(connection, span)
    return answer | cut_answer(answer, more) if more else answer


def cut_answer(answer: Answer, more: int) -> Answer:
    """Return the fields that say that an answer left out so many datasets."""
    hidden = answer["hidden"] | {"nodes": answer["hidden"]["nodes"] + more}
    return {"complete": False, "truncatedBy": "nodes", "hidden": hidden}


def namespaces(connection: Connection, query: Asked, view: View) -> Answer:
    """Return how namespaces feed each other."""
    return namespace_overview(connection, view, query.get("limit") or MOST_NODES)


def map_of_places(connection: Connection, query: Asked, view: View) -> Answer:
    """The whole graph as boxes of places."""
    return lineage_map(connection, view, query.get("under") or ())


ANSWERS: Mapping[str, Callable[[Connection, Asked, View], Answer]] = {
    "/lineage": lineage,
    "/lineage/nodes": lineage_nodes,
    "/lineage/map": map_of_places,
    "/impact": impact,
    "/lineage/paths": paths,
    "/lineage/changes": changes,
    "/namespaces": namespaces,
    "/runs/lineage": run_graph,
}
