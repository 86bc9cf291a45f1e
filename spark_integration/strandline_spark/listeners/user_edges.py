"""A user's own lineage edges.

For the session's next action, or for a streaming query by its name.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from strandline_spark.model.flip314 import LineageEdge

_lock = threading.Lock()
_by_session: dict[
    int, tuple[float, tuple[LineageEdge, ...]]
] = {}  # identity of the JVM's session -> since, edges
_by_query: dict[str, tuple[LineageEdge, ...]] = {}
_KEPT = 1000  # sessions that never run an action leave theirs behind


def add_lineage_edges(spark: Any, *edges: LineageEdge, query: str | None = None) -> None:
    """Override the edges that would be found.

    They hold for the next action of the session, or for the next run of the streaming query named
    `query`, and are gone then. Added twice before that, they add up.
    """
    with _lock:
        if query is not None:
            _by_query[query] = (*_by_query.get(query, ()), *edges)
            return
        session = int(spark._jsparkSession.hashCode())
        since, earlier = _by_session.pop(session, (time.time() * 1000, ()))
        _by_session[session] = (since, (*earlier, *edges))
        while len(_by_session) > _KEPT:
            del _by_session[next(iter(_by_session))]


def edges_of_action(session: int, at: float) -> tuple[LineageEdge, ...]:
    """Take the edges for an action that began at `at` (milliseconds).

    Those added later wait for the next one.
    """
    with _lock:
        since, edges = _by_session.get(session, (0.0, ()))
        if not edges or at < since - 1:
            return ()
        del _by_session[session]
        return edges


def edges_of_query(name: str | None) -> tuple[LineageEdge, ...]:
    """Take the edges of a streaming query."""
    with _lock:
        return _by_query.pop(name, ()) if name is not None else ()


def any_waiting() -> bool:
    """Return whether asking for a session's identity is worth a call into the JVM."""
    return bool(_by_session)
