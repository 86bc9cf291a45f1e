"""The jobs that this process keeps for questions about lineage, in step with the store's log.

Safe for many threads. Each question first reads the log in its own transaction, so it sees what was
committed before it. What a question reads is kept unless it changed meanwhile.
"""

import threading
from collections import OrderedDict, deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

from strandline.store.lineage.graph_log import PRUNED, LogLook, LogPlace, around, is_written, look
from strandline.store.lineage.known_jobs import KnownJob
from strandline.store.lineage.run_state import View
from strandline.store.sql.narrowed import access_of

STAMP = ("epoch", "recent_runs", "silent_seconds")  # settings that change every answer
REMEMBERED_CHANGES = 1_000  # a question that began before all of these keeps nothing
JOB_BYTES = 1_200
EDGE_BYTES = 700  # with its places in the dicts of a job
SOURCE_BYTES = 100
LINK_BYTES = 320  # from a dataset to a view; equal runs share them


@dataclass(frozen=True, slots=True)
class _Change:
    """Jobs that changed, under the number of the change; None stands for all jobs."""

    number: int
    jobs: frozenset[int] | None


class JobMemory:
    """The jobs that were asked for lately, up to a number of bytes (0: none)."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._lock = threading.Lock()
        self._jobs: OrderedDict[int, KnownJob] = OrderedDict()
        self._place: LogPlace | None = None
        self._stamp: tuple[str | None, ...] = ()
        self._pruned = ""
        self._number = 0
        self._changes: deque[_Change] = deque(maxlen=REMEMBERED_CHANGES)
        self.size = 0

    def view(self, connection: Connection, view: View) -> "MemoryView | None":
        """Return the memory as this transaction sees it.

        None if the question is not about recent runs, the key does not see everything, or nobody
        writes the log.
        """
        is_usual = not (view.live or view.past or view.newest) and view.runs is None
        if not (self._most and is_usual and access_of(connection).everything):
            return None
        with self._lock:
            number, since, pruned = self._number, self._place, self._pruned
        log = look(connection, since)
        if not is_written(log.settings) or self._is_older(connection, log, since):
            return None
        changed = [frozenset(around(connection, [update]).jobs) for update in log.news.values()]
        with self._lock:
            is_next = number == self._number
            self._apply(log, changed, missed=since is None or log.missed(since, pruned))
            number = self._number if is_next else number
        return MemoryView(self, number)

    @staticmethod
    def _is_older(connection: Connection, log: LogLook, since: LogPlace | None) -> bool:
        """Return whether a transaction on SQLite began before the newest change in memory."""
        if since is None or connection.dialect.name != "sqlite":
            return False
        newest = max(log.place.horizon, int(log.settings.get(PRUNED) or 0))
        return newest < since.horizon

    def _apply(self, log: LogLook, changed: Collection[frozenset[int]], *, missed: bool) -> None:
        stamp = tuple(log.settings.get(key) for key in STAMP)
        if missed or stamp != self._stamp:
            self._jobs.clear()
            self.size = 0
            self._note(None)
        for jobs in changed:
            for id_ in jobs:
                self._drop(id_)
            self._note(jobs)
        self._stamp, self._pruned = stamp, log.settings.get(PRUNED, "")
        if self._place is None or log.place.horizon >= self._place.horizon:
            self._place = log.place

    def _note(self, jobs: frozenset[int] | None) -> None:
        self._number += 1
        self._changes.append(_Change(self._number, jobs))

    def among(self, ids: Collection[int]) -> dict[int, KnownJob]:
        """Return those of these jobs that are kept."""
        with self._lock:
            jobs = {id_: job for id_ in ids if (job := self._jobs.get(id_)) is not None}
            for id_ in jobs:
                self._jobs.move_to_end(id_)
        return jobs

    def keep(self, jobs: Mapping[int, KnownJob], number: int) -> None:
        """Keep jobs as they were after a change, but for those that changed since.

        A job with an open batch run is not kept: silence alone may change what it wrote.
        """
        with self._lock:
            changed = self._changed_after(number)
            if changed is None:
                return
            for id_, job in jobs.items():
                if not job.is_open and id_ not in changed:
                    self._drop(id_)
                    self._jobs[id_] = job
                    self.size += _bytes_of(job)
            while self.size > self._most:
                _, oldest = self._jobs.popitem(last=False)
                self.size -= _bytes_of(oldest)

    def _changed_after(self, number: int) -> set[int] | None:
        """Return the jobs that changed after a change; None if that may be any."""
        if self._changes and self._changes[0].number > number + 1:
            return None
        changed: set[int] = set()
        for change in reversed(self._changes):
            if change.number <= number:
                break
            if change.jobs is None:
                return None
            changed |= change.jobs
        return changed

    def _drop(self, id_: int) -> None:
        job = self._jobs.pop(id_, None)
        if job is not None:
            self.size -= _bytes_of(job)


def _bytes_of(job: KnownJob) -> int:
    sources = sum(len(stated.sources) for stated in job.stated.of_sinks.values())
    views = {id(of_run): of_run for of_run in job.stated.views.values()}
    links = sum(len(above) for of_run in views.values() for above in of_run.above.values())
    return JOB_BYTES + EDGE_BYTES * len(job.edges) + SOURCE_BYTES * sources + LINK_BYTES * links


class MemoryView:
    """The memory as one question sees it, and the numbers of jobs that it had and had not."""

    def __init__(self, memory: JobMemory, number: int) -> None:
        self._memory = memory
        self._number = number
        self.from_memory = self.from_database = 0

    def among(self, ids: Collection[int]) -> dict[int, KnownJob]:
        """Return those of these jobs that are kept."""
        jobs = self._memory.among(ids)
        self.from_memory += len(jobs)
        return jobs

    def keep(self, jobs: Mapping[int, KnownJob]) -> None:
        """Keep jobs that the question read."""
        self.from_database += len(jobs)
        self._memory.keep(jobs, self._number)
