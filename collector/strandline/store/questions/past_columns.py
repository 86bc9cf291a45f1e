"""The columns of a dataset at a past moment.

What came later is unknown then, and what went since is not.
"""

from difflib import get_close_matches
from typing import Any

from sqlalchemy import Connection

from strandline.errors import NotFoundError
from strandline.store.lineage.column_lineage import columns_named, refuse_unknown
from strandline.store.lineage.lookup import MOST_CANDIDATES, Node
from strandline.store.lineage.run_state import View, iso
from strandline.store.questions.schemas import columns_at

Answer = dict[str, Any]

MOST_READ_FOR_ALL = 2_000  # events, a tenth of a second: nobody has asked for one of these columns


def refuse_absent(connection: Connection, dataset: Node, column: str, view: View) -> None:
    """A NotFoundError where a dataset had no such column at a past moment.

    Without certainty its newest schema decides.
    """
    if dataset.kind != "dataset" or _stands_for(column, columns_named(connection, dataset, view)):
        return
    then = columns_at(connection, view.at, dataset.id)
    if then is None:
        refuse_unknown(connection, dataset, column, view)
    elif not _stands_for(column, then):
        near = get_close_matches(column, then) or list(then)[:MOST_CANDIDATES]
        raise NotFoundError(f"unknown column of {dataset} at {iso(view.at)}: {column!r}", near)


def refuse_misspelt(connection: Connection, dataset: Node, column: str, view: View) -> None:
    """A NotFoundError where a dataset has no such column, and had none at a past moment."""
    try:
        refuse_unknown(connection, dataset, column, view)
    except NotFoundError:
        if not view.past:
            raise
        refuse_absent(connection, dataset, column, view)


def without_later(connection: Connection, answer: Answer, dataset: Node, view: View) -> Answer:
    """The lineage of all columns of a dataset at a past moment without those that came later."""
    ends = {edge[end] for edge in answer["edges"] for end in ("source", "target")}
    idle = {
        node["id"]
        for node in answer["nodes"]
        if node["type"] == "column" and not (node["distance"] or node["id"] in ends)
    }
    then = columns_at(connection, view.at, dataset.id, MOST_READ_FOR_ALL) if idle else None
    if then is None:
        return answer
    nodes = [
        node
        for node in answer["nodes"]
        if node["id"] not in idle or _stands_for(node["column"], then)
    ]
    return answer | {"nodes": nodes}


def _stands_for(column: str, columns: Any) -> bool:
    """Return whether a column is one of these, or inside of one."""
    return column in columns or column.partition(".")[0] in columns
