"""Filters on the lists of datasets, jobs and runs.

Those of a namespace, of some states, of a span of time.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import ColumnElement, or_

from strandline.core.openlineage.run_states import NAMES, RUNNING, STATES, STATES_LISTED
from strandline.errors import QuestionError
from strandline.store.lineage.run_state import RunState, iso
from strandline.store.schema.run_tables import runs

ENDED = frozenset({"COMPLETE", "FAIL", "ABORT", "LOST"})


def refuse_backward_span(since: int | None, **ends: int | None) -> None:
    """Raise a QuestionError if a span of microseconds ends before it begins.

    `ends` has its ends by the names of their parameters.
    """
    for name, end in ends.items():
        if since is not None and end is not None and since > end:
            raise QuestionError(f"since ({iso(since)}) is after {name} ({iso(end)})")


@dataclass(frozen=True, slots=True)
class Filter:
    """The filter of a list; `since` is inclusive, `until` exclusive, all in microseconds.

    as_of: the past moment that the list is of; None: now. A QuestionError where `since` is after
    it or after `until`.

    tags, owners: of datasets and jobs, those with one of these of today; `*` stands for anything.

    A run is of a span if it ran in it. Where states are asked for, a run that has ended is of the
    span in which it ended: what failed last night perhaps began the day before.
    """

    namespace: str | None = None
    states: frozenset[str] = frozenset()
    since: int | None = None
    until: int | None = None
    as_of: int | None = None
    tags: tuple[str, ...] = ()
    owners: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        refuse_backward_span(self.since, until=self.until, asOf=self.as_of)

    @property
    def leaves_few(self) -> bool:
        """True if what a row itself does not tell decides."""
        return bool(self.states or self.tags or self.owners) or self.has_span

    @property
    def has_span(self) -> bool:
        """True if the filter has a time."""
        return self.since is not None or self.until is not None

    def admits(self, run: RunState) -> bool:
        """Return whether the list shows a run in this state."""
        if self.states and run.state not in self.states:
            return False
        if self.states and run.state in ENDED:
            return self._holds(run.until, run.until)
        return self._holds(run.since, run.until if run.state in ENDED else None)

    def spans(self, first: int | None, last: int | None) -> bool:
        """Return whether something reported from `first` to `last` lies in the span.

        It does not if no event reported it.
        """
        return not self.has_span or (last is not None and self._holds(first, last))

    def _holds(self, begin: int | None, end: int | None) -> bool:
        after = self.since is None or end is None or end >= self.since
        return after and (self.until is None or begin is None or begin < self.until)


ALL = Filter()


_WORDS = {"STOPPED": "ABORT", "FAILED": "FAIL"}


def states_called(words: Iterable[str]) -> frozenset[str]:
    """Return the states of a filter, in any case, also by the page's words.

    RUNNING includes START. Raises ValueError for an unknown state.

    >>> sorted(states_called(["fail", "running"]))
    ['FAIL', 'RUNNING', 'START']
    >>> sorted(states_called(["stopped", "failed"]))
    ['ABORT', 'FAIL']
    """
    upper = [word.strip().upper() for word in words]
    states = {_WORDS.get(word, word) for word in upper}
    if not states or not states <= set(STATES):
        raise ValueError(f"is not one of {STATES_LISTED}, or several of them with commas")
    return frozenset(states | ({"START"} if "RUNNING" in states else set()))


def may_be_of(criteria: Filter) -> list[ColumnElement[bool]]:
    """Return the clauses on `runs` alone: they leave out no run that the filter admits.

    A run that told of no end of its own may be LOST, or have ended with the run above it. At a past
    moment, one that was heard of again may have been in another state.
    """
    open_ended = runs.c.state <= RUNNING
    clauses = []
    if criteria.states:
        ranks = [rank for rank, name in enumerate(NAMES) if name in criteria.states]
        others = [] if criteria.as_of is None else [runs.c.newest_at > criteria.as_of]
        clauses.append(or_(runs.c.state.in_(ranks), open_ended, *others))
    if criteria.since is not None:
        clauses.append(or_(runs.c.newest_at >= criteria.since, open_ended))
    if criteria.until is not None:
        clauses.append(runs.c.first_at < criteria.until)
    if criteria.as_of is not None:
        clauses.append(runs.c.first_at <= criteria.as_of)
    return clauses
