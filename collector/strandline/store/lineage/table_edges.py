"""Edges of an answer between tables and jobs.

What the steps that an edge stands for tell together, and how that is shown.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from strandline.store.lineage.job_steps import ALL_SOURCES, VIEW, Reason
from strandline.store.lineage.relations import JobEdge, Seen
from strandline.store.lineage.run_state import RunState, iso

Answer = dict[str, Any]
STRENGTH = (VIEW, ALL_SOURCES, "columnLineage", "lineage")


@dataclass(slots=True)
class FoundEdge:
    """An edge of an answer, of all steps that it stands for.

    The strongest rule, the newest relation.
    """

    rule: str
    related: JobEdge | None
    seen: Seen
    origins: set[str] | None = None

    def join(self, other: "FoundEdge") -> None:
        """Let it stand for the steps of another as well."""
        self.rule = max(self.rule, other.rule, key=STRENGTH.index)
        self.seen = self.seen.joined(other.seen)
        if self.related is None or (
            other.related is not None and age(other.related) > age(self.related)
        ):
            self.related = other.related


def age(related: JobEdge) -> tuple[int, int, int]:
    """Return the order of an edge: when it was last seen, when first, and its run."""
    return related.at, related.since, related.owner


def read_edge(reason: Reason) -> FoundEdge:
    """The edge from a step's source to its job."""
    seen = reason.read.seen if reason.read else reason.seen
    return FoundEdge(reason.rule, reason.read or reason.written, seen)


def written_edge(reason: Reason) -> FoundEdge:
    """The edge from a step's job to its target."""
    return FoundEdge(
        reason.rule, reason.written, reason.written.seen if reason.written else reason.seen
    )


def state_of_edge(edge: FoundEdge, states: Mapping[int, RunState]) -> Answer:
    """The run that an edge was last seen in, if that has a state."""
    related = edge.related
    state = states.get(related.owner) if related else None
    if related is None or state is None:
        return {}
    return {
        "runId": state.run_id,
        "state": state.state,
        "running": state.live,
        "since": iso(related.since),
        "until": iso(state.until),
    }


def seen_answer(seen: Seen) -> Answer:
    """Return when an edge was last seen, in how many of the answer's runs, and whether in the
    latest.
    """
    return {
        "lastSeen": iso(seen.at),
        "runs": len(seen.owners),
        "ofRuns": len(seen.among),
        "inLatest": not seen.newest.isdisjoint(seen.owners),
    }
