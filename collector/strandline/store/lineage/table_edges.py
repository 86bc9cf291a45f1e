"""Edges of an answer between tables and jobs.

What the steps that an edge stands for tell together, and how that is shown.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from strandline.store.lineage.job_steps import ALL_SOURCES, VIEW
from strandline.store.lineage.recent_runs import JobEdge, Seen
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

    def join(self, rule: str, related: JobEdge | None, sighting: Seen) -> None:
        """Let it stand for another step as well."""
        if rule != self.rule:
            self.rule = max(self.rule, rule, key=STRENGTH.index)
        if sighting is not self.seen:
            self.seen = self.seen.joined(sighting)
        if related is not self.related and (
            self.related is None or (related is not None and age(related) > age(self.related))
        ):
            self.related = related


def age(related: JobEdge) -> tuple[int, int, int]:
    """Return the order of an edge: when it was last seen, when first, and its run."""
    return related.at, related.since, related.owner


def edge_answer(
    answer: Answer, edge: FoundEdge, states: Mapping[int, RunState], latest: int | None
) -> Answer:
    """Complete an edge as answers show it.

    That is the run that it was last seen in if that has a state, when it was seen, and the latest
    run of its job if that failed later.
    """
    shown = states.get(edge.related.owner) if edge.related else None
    if edge.related is not None and shown is not None:
        answer["runId"] = shown.run_id
        answer["state"] = shown.state
        answer["running"] = shown.live
        answer["since"] = iso(edge.related.since)
        answer["until"] = iso(shown.until)
    answer.update(seen_answer(edge.seen))
    last = None if latest is None else states.get(latest)
    if shown is not None and last is not None and _failed_later(last, shown):
        run = {"runId": last.run_id, "state": last.state, "endedAt": iso(last.until)}
        answer["latestRun"] = run
    return answer


def _failed_later(last: RunState, shown: RunState) -> bool:
    if last.state not in ("FAIL", "ABORT", "LOST") or last.state == shown.state:
        return False
    return begun_at(last) > begun_at(shown)


def begun_at(state: RunState) -> tuple[int, str]:
    """Return the order of runs: their start, and among equal starts their ids."""
    return state.since or 0, state.run_id


def seen_answer(sighting: Seen) -> Answer:
    """Return when an edge was last seen, in how many of the answer's runs, and if in the latest."""
    return {
        "lastSeen": iso(sighting.at),
        "runs": len(sighting.owners),
        "ofRuns": len(sighting.among),
        "inLatest": not sighting.newest.isdisjoint(sighting.owners),
    }
