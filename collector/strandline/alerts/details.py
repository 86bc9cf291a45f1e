"""The details of an alert: its reason, owner, page, and what depends on it."""

from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import urlencode

from sqlalchemy import Connection

from strandline.alerts.conditions import Trouble, owners_of
from strandline.core.versions.facts import Table
from strandline.core.walk import Direction
from strandline.errors import NotFoundError
from strandline.store.lineage.failures import failures
from strandline.store.lineage.lookup import node_of, node_text
from strandline.store.lineage.run_state import View
from strandline.store.lineage.table_graph import Question
from strandline.store.lineage.table_lineage import lineage_of

MICRO = 1_000_000
LONGEST_REASON = 500
MOST_NODES = 500
MOST_NAMED = 10


@dataclass(frozen=True, slots=True)
class Details:
    """Details of an alert for its reader. `late` are those dependents that are stale."""

    reason: str = ""
    owners: tuple[str, ...] = ()
    link: str = ""
    dependents: tuple[str, ...] = ()
    late: tuple[str, ...] = ()


def details_of(
    connection: Connection, trouble: Trouble, stale: Collection[Table], public_url: str, now: float
) -> Details:
    """Return the details of a trouble; `stale` are the tables that are too old at `now`."""
    reason = ""
    if trouble.run_row is not None:
        message = failures(connection, [trouble.run_row]).get(trouble.run_row, "")
        reason = message.partition("\n")[0][:LONGEST_REASON]
    tables = _dependents(connection, trouble, now)
    return Details(
        reason,
        tuple(owners_of(connection, trouble.job)) if trouble.job else (),
        f"{public_url}{page_of(trouble)}" if public_url else "",
        tuple(name for _, name in tables[:MOST_NAMED]),
        tuple(name for namespace, name in tables if (namespace, name) in stale),
    )


def page_of(trouble: Trouble) -> str:
    """Return the path of the page that shows a trouble.

    >>> page_of(Trouble("failed", "shop:etl", "job etl failed", job=("shop", "etl")))
    '/job?namespace=shop&name=etl'
    """
    if trouble.job:
        return f"/job?{urlencode({'namespace': trouble.job[0], 'name': trouble.job[1]})}"
    if trouble.table:
        return f"/table?{urlencode({'namespace': trouble.table[0], 'name': trouble.table[1]})}"
    return "/trouble"


def _dependents(connection: Connection, trouble: Trouble, now: float) -> list[Table]:
    """Return the tables downstream of a job or table, the nearest first."""
    if trouble.job:
        start = node_text("job", *trouble.job)
    elif trouble.table:
        start = node_text("dataset", *trouble.table)
    else:
        return []
    try:
        node = node_of(connection, start)
    except NotFoundError:
        return []
    view = View(round(now * MICRO))
    graph = lineage_of(connection, Question(node, view, Direction.DOWNSTREAM, None, MOST_NODES))
    tables = [
        (entry["distance"], entry["namespace"], entry["name"])
        for entry in graph["nodes"]
        if entry["type"] == "dataset" and entry["distance"] > 0
    ]
    return [(namespace, name) for _, namespace, name in sorted(tables)]
