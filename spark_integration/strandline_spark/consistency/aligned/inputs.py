"""The inputs of an aligned job.

Waiting until they can be read at one barrier, and reading them there.

The collector is asked where that is needed. For several base tables whose barriers are not written
in their snapshots, only the coordinator knows the cuts and where a new job begins. Everywhere else
the snapshots themselves tell more, sooner.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from strandline_spark.consistency.aligned.decisions import FEW, Decision, common_of, decide
from strandline_spark.consistency.collector import Collector, CollectorAwayError, ConsistencyError
from strandline_spark.consistency.table_history import MissingTableError, TableAtError, TableHistory
from strandline_spark.jvm.iceberg_snapshot import GROUP

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5


class InputsLateError(TimeoutError):
    """An input did not complete the next barrier in time; the message names table and barrier."""


class Inputs:
    """The input tables of one job, seen through the session of its micro-batches."""

    def __init__(
        self,
        session: SparkSession,
        tables: Mapping[str, str],
        group: str | None,
        job: tuple[str, str],
        collector: Collector | None,
        max_behind: int | None = FEW,
    ) -> None:
        self._max_behind = max_behind
        self._drains = False  # it was too far behind, and has not caught up since
        self._derived: bool | None = (
            None  # whether a micro-batch's number is no barrier of an input, once that is known
        )
        self._histories = {
            table: TableHistory(session, table) for table in dict.fromkeys(tables.values())
        }
        self._group = group
        self._job = job
        self._collector = collector

    def refresh(self) -> None:
        """See the tables as they are now.

        Raises TableAtError when one shows another group's barriers.
        """
        for history in self._histories.values():
            history.refresh()
            self._check_group(history)

    def _check_group(self, history: TableHistory) -> None:
        carrier = history.last_carrier()
        if carrier is not None and carrier.group is not None and carrier.group != self._group:
            raise TableAtError(
                f"{history.name}: its barriers are of group {carrier.group!r}, this job's of "
                f"{self._group!r} ({GROUP} of snapshot {carrier.snapshot_id}); "
                "barriers of two groups are never compared"
            )

    def newest_common(self) -> int | None:
        """The greatest barrier that all inputs completed."""
        decision = (
            self._coordinator_decision(0, most=0)
            if self._asks(None) and self._without_barriers()
            else None
        )
        if decision is not None and self._derived:
            return decision.barrier
        return max(common_of([history.done for history in self._histories.values()]), default=None)

    def decision(self, position: int | None) -> Decision:
        """Return the next step after barrier `position`."""
        self.refresh()
        decision = (
            self._coordinator_decision(position, self._max_behind) if self._asks(position) else None
        )
        if decision is not None and (
            position is None or self._derived or self._needs_coordinator()
        ):
            return decision
        done = {table: history.done for table, history in self._histories.items()}
        behind = sum(barrier > (position or 0) for barrier in common_of(list(done.values())))
        return decide(done, position, self._most_behind(position, behind))

    def _most_behind(self, position: int | None, behind: int) -> int | None:
        """Return how far behind the job may fall before it takes the newest barrier.

        At once, while it drains or joins.
        """
        most = self._max_behind
        if (
            most is not None
            and behind > 1
            and (self._drains or behind > most or self._joins(position))
        ):
            most = 1
        self._drains = most is not None and behind > most
        return most

    def _joins(self, position: int | None) -> bool:
        """Return whether the collector knows the job as one that joins.

        Only at the newest barrier it can meet the others.
        """
        if self._collector is None:
            return False
        try:
            return bool(self._answer(position, self._max_behind).get("joining"))
        except ConsistencyError:
            return False

    def _asks(self, position: int | None) -> bool:
        """Return whether the collector is asked at all.

        For cuts through several base tables, and for where a new job begins. Also for the barriers
        of a table that a plain stream makes of others: they only follow from what that has read.

        It may not have heard yet of a barrier that all inputs have, from a job that was killed, and
        would leave it out.
        """
        unknown = self._derived is None and bool(self._without_barriers())
        return self._collector is not None and (
            position is None or unknown or bool(self._derived) or self._needs_coordinator()
        )

    def _coordinator_decision(
        self, position: int | None, most: int | None = FEW
    ) -> Decision | None:
        """The coordinator's answer, or None where the snapshots themselves are to decide."""
        try:
            answer = self._answer(position, most)
            if answer.get("joining") and most is not None and most > 1:
                answer = self._answer(position, 1)
        except ConsistencyError:
            return Decision("PROCEED") if self._needs_coordinator() or self._derived else None
        if answer.get("decision") == "PROCEED":
            return Decision("PROCEED") if self._needs_coordinator() or self._derived else None
        return self._checked(answer, position)

    def _answer(self, position: int | None, most: int | None) -> dict[str, Any]:
        assert self._collector is not None
        namespace, name = self._job
        question: dict[str, Any] = {"namespace": namespace, "name": name, "position": position}
        if most != FEW:
            question["maxBehind"] = most
        answer = self._collector.ask("POST", "/api/v2/jobs/decision", question)
        if "decision" not in answer:  # events may go to another server: Marquez, a proxy
            raise CollectorAwayError(
                f"what answers at {self._collector.url} is no collector: it gives no decision"
            )
        return answer

    def _needs_coordinator(self) -> bool:
        """Return true if two or more inputs only count barriers by their own micro-batches."""
        return len(self._without_barriers()) > 1

    def _without_barriers(self) -> list[TableHistory]:
        """The inputs whose snapshots state no barrier."""
        return [
            h for h in self._histories.values() if (c := h.last_carrier()) is None or not c.stated
        ]

    def _checked(self, answer: Mapping[str, Any], position: int | None) -> Decision | None:
        """Return the decision, if each input has the snapshot and no other carries the barrier."""
        barrier = int(answer["barrier"])
        answered = [str(snapshot["snapshotId"]) for snapshot in answer.get("snapshots", ())]
        snapshots, derived = {}, False
        for table, history in self._histories.items():
            own = _points_in(history, answered)
            if len(own) != 1:
                return None
            if history.done.get(barrier, own[0]) != own[0]:
                if history not in self._without_barriers():
                    return None
                derived = True  # the number of a micro-batch is no barrier of that table
            snapshots[table] = own[0]
        if position is not None and barrier <= position:
            return None
        self._derived = derived or bool(self._derived)
        return Decision(answer["decision"], barrier, tuple(answer.get("abort", ())), snapshots)

    def wait(
        self, position: int | None, timeout: float | None, goes_on: Callable[[], bool]
    ) -> Decision | None:
        """The next checkpoint after `position`; None once `goes_on` returns False.

        Raises InputsLateError.
        """
        begun, pause = time.monotonic(), _FIRST_PAUSE
        while (decision := self.decision(position)).kind == "PROCEED":
            waited = time.monotonic() - begun
            if timeout is not None and waited > timeout:
                raise InputsLateError(self._lateness(position, waited))
            if not goes_on():
                return None
            time.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)
        return decision

    def _lateness(self, position: int | None, waited: float) -> str:
        late = [
            h
            for h in self._histories.values()
            if h.position is None or h.position <= (position or 0)
        ]
        where = f"after barrier {position}" if position is not None else "at the first barrier"
        newest = "; ".join(map(_newest_of, late or list(self._histories.values())))
        reason = "" if late else "no barrier is common to all inputs: "
        return f"job {self._job[1]} waited {waited:.0f} s {where} for its inputs: {reason}{newest}"

    def at(self, table: str, snapshot_id: str) -> DataFrame:
        """A table's rows at a snapshot."""
        return self._histories[table].at(snapshot_id)

    def since(self, table: str, after: str | None, until: str) -> DataFrame:
        """The rows that a table got after one snapshot (None: ever), up to another."""
        history = self._histories[table]
        return history.at(until) if after is None else history.between(after, until)


def _newest_of(history: TableHistory) -> str:
    carrier, newest = history.last_carrier(), history.newest
    if newest is None:
        return f"{history.name} has no snapshot"
    if carrier is None:
        return (
            f"none of the snapshots of {history.name} carries a barrier (no "
            "streaming job writes it)"
        )
    at = datetime.fromtimestamp(carrier.committed_ms / 1000, UTC).isoformat(timespec="seconds")
    return (
        f"{history.name} has barrier {carrier.barrier} as its newest (snapshot "
        f"{carrier.snapshot_id}, {at})"
    )


def inputs_once_there(
    ask: Callable[[], Inputs], job: str, timeout: float | None, goes_on: Callable[[], bool]
) -> Inputs:
    """The inputs, as soon as all their tables are there.

    A job may be started before the one above it.
    """
    begun = time.monotonic()
    while True:
        try:
            return ask()
        except MissingTableError as error:
            waited = time.monotonic() - begun
            if (timeout is not None and waited > timeout) or not goes_on():
                raise InputsLateError(
                    f"job {job} waited {waited:.0f} s for an input that is not there: {error}"
                ) from error
        time.sleep(_LONGEST_PAUSE)


def _points_in(history: TableHistory, snapshots: Iterable[str]) -> list[str]:
    """The snapshots that a table has."""
    return [snapshot for snapshot in snapshots if history.point(snapshot) is not None]
