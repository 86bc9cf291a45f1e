"""The parts of the lineage graph that this process keeps in memory, in step with the store's log.

Safe for many threads.

Each question first looks at the log in its own transaction, so it sees what was committed before
it. What is missing is read by whoever needs it, and kept unless news of it came meanwhile that this
transaction may not have seen.
"""

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection

from strandline.core.changes.extraction import SINK, SOURCE
from strandline.runtime.graph_shelf import JobsOfRuns, Shelf
from strandline.store.graph.answers import answer_from, may_answer
from strandline.store.graph.entries import DatasetEntry, JobEntry
from strandline.store.graph.leads import Leads, LeadShelf, leads_of
from strandline.store.graph.load import load_datasets, load_jobs
from strandline.store.graph.looked import LookedAt, NotKeptError
from strandline.store.graph.news import PRUNED, Changed, LogLook, LogPlace, around, is_written, look
from strandline.store.graph.packing import (
    packed_dataset,
    packed_job,
    unpacked_dataset,
    unpacked_job,
)
from strandline.store.graph.reach import LeadEntries, reach_from
from strandline.store.lineage.relations import RECENT_RUNS, View
from strandline.store.lineage.table_lineage import Question
from strandline.store.sql.engine import by_index
from strandline.store.sql.narrowed import access_of

Found = TypeVar("Found")

REMEMBERED = 1_000  # news: who began to read before all of these keeps nothing of it
STAMP = ("epoch", "recent_runs", "silent_seconds")  # settings whose change changes everything
ROOM = 0.98  # of the bound: what is left when entries made room for others
OPEN = (
    0.25  # of the bound: what is left of it for entries as they are used, where not all of them fit
)


@dataclass(frozen=True, slots=True)
class _AppliedNews:
    """News that were applied: in which order, under which number in the log, and what it changed.

    None: everything.
    """

    order: int
    id: int
    ids: frozenset[int] | None


@dataclass(slots=True)
class GraphCounts:
    """What became of questions: answered from memory, left to the database.

    And how many entries were read.
    """

    answered: int = 0
    left: int = 0
    loaded: int = 0
    dropped: int = 0


class LineageGraph:
    """Entries of jobs and datasets, at most so many bytes of them (0.

    Nothing is ever kept or answered).
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._lock = threading.Lock()
        self._turn = (
            threading.Lock()
        )  # to put an answer together: many would take the interpreter from each other
        self._datasets = Shelf[DatasetEntry](self._lock, packed_dataset, unpacked_dataset)
        self._jobs = Shelf[JobEntry](self._lock, packed_job, unpacked_job)
        self._canonical: dict[int, int] = {}  # of other names of datasets
        self._by_run = JobsOfRuns()
        self._leads = LeadShelf()
        self._place: LogPlace | None = None
        self._stamp: tuple[str | None, ...] = ()
        self._pruned = ""
        self._order = 0
        self._heard: deque[_AppliedNews] = deque(maxlen=REMEMBERED)
        self.counts = GraphCounts()

    @property
    def size(self) -> int:
        """About how many bytes the entries take."""
        packed = self._datasets.packed_bytes + self._jobs.packed_bytes
        return self._open_bytes + packed + self._by_run.size + self._leads.size

    @property
    def _open_bytes(self) -> int:
        return self._datasets.open_bytes + self._jobs.open_bytes

    def answer(self, connection: Connection, asked: Question) -> bytes | None:
        """The answer to a question as JSON, as of all that was committed before; None.

        The database has to be asked.
        """
        return self.ask(connection, asked, partial(answer_from, connection))

    def reach(self, connection: Connection, asked: Question) -> bytes | None:
        """Which nodes a question leads to, as JSON; None: the database has to be asked."""
        return self.ask(connection, asked, reach_from)

    def ask(
        self,
        connection: Connection,
        asked: Question,
        answer: Callable[[LeadEntries, Question], Found],
    ) -> Found | None:
        """What a function makes of the entries of a question; None: only the database has it."""
        if not self._most or not may_answer(asked) or not access_of(connection).everything:
            return None
        entries = self._entries(connection, asked.view)
        found = None
        if entries is not None:
            with self._turn, suppress(NotKeptError):
                found = answer(entries, asked)
        with self._lock:
            self.counts.answered += found is not None
            self.counts.left += found is None
        return found

    def _entries(self, connection: Connection, view: View) -> "_Entries | None":
        """What this transaction sees; None if writers write no log."""
        with self._lock:
            order, since, pruned = self._order, self._place, self._pruned
        seen = look(connection, since)
        if not is_written(seen.settings):
            return None
        changed = {id_: around(connection, [news]) for id_, news in seen.news.items()}
        with self._lock:
            unseen = self._unseen(order, frozenset(seen.news))
            self._apply(seen, changed, missed=since is None or seen.missed(since, pruned))
            order = order if unseen is None or unseen else self._order
        runs = int(seen.settings.get("recent_runs", RECENT_RUNS))
        return _Entries(self, connection, View(view.at, runs=runs), order, frozenset(seen.news))

    def _apply(self, seen: LogLook, changed: Mapping[int, Changed], *, missed: bool) -> None:
        stamp = tuple(seen.settings.get(key) for key in STAMP)
        if missed or stamp != self._stamp:
            self._drop_all()
        for id_, one in changed.items():
            self._drop_changed(one)
            self._order += 1
            self._heard.append(_AppliedNews(self._order, id_, frozenset(one.ids)))
        self._stamp, self._pruned = stamp, seen.settings.get(PRUNED, "")
        if self._place is None or seen.place.horizon >= self._place.horizon:
            self._place = seen.place

    def _drop_all(self) -> None:
        self.counts.dropped += len(self._jobs) + len(self._datasets)
        for kept in (self._datasets, self._jobs, self._canonical, self._by_run, self._leads):
            kept.clear()
        self._order += 1
        self._heard.append(_AppliedNews(self._order, 0, None))

    def _drop_changed(self, changed: Changed) -> None:
        jobs = changed.jobs.union(*(self._by_run.jobs(run) for run in changed.runs))
        for id_ in jobs:
            self._drop_job(id_)
        for id_ in changed.datasets:
            self._drop_dataset(self._canonical.get(id_, id_))
            self._drop_dataset(id_)
        for job, direction, dataset in changed.touched:
            id_ = self._canonical.get(dataset, dataset)
            self._leads.discard(direction, id_)
            entry = self._datasets.peek(id_)
            if entry is not None and job not in entry.touching[direction]:
                self._datasets.take(id_)
                entry.touching[direction][job] = None
                self._datasets.put(id_, entry)

    def _drop_job(self, id_: int) -> None:
        entry = self._jobs.take(id_)
        if entry is not None:
            self.counts.dropped += 1
            self._leads.discard_around(entry)
            for run in entry.depends_on:
                self._by_run.discard(run, id_)

    def _drop_dataset(self, id_: int) -> None:
        entry = self._datasets.take(id_)
        if entry is not None:
            self.counts.dropped += 1
            for direction in (SOURCE, SINK):
                self._leads.discard(direction, id_)
            for name in entry.names:
                self._canonical.pop(name, None)

    def kept_datasets(self, ids: Collection[int]) -> dict[int, DatasetEntry]:
        """Those of these datasets that are kept."""
        found = self._datasets.among(ids)
        self._keep_bound()
        return found

    def kept_jobs(self, ids: Collection[int], moment: int) -> dict[int, JobEntry]:
        """Those of these jobs that are kept, and whose states are still so."""
        found = self._jobs.among(ids)
        self._keep_bound()
        if all(entry.since < moment <= entry.until for entry in found.values()):
            return found
        return {id_: entry for id_, entry in found.items() if entry.since < moment <= entry.until}

    def keep(
        self,
        datasets: Mapping[int, DatasetEntry],
        jobs: Mapping[int, JobEntry],
        order: int,
        seen: frozenset[int],
    ) -> None:
        """Keep entries that were read by a transaction that began after the news of this order and saw these besides."""
        with self._lock:
            self.counts.loaded += len(datasets) + len(jobs)
            unseen = self._unseen(order, seen)
            if unseen is None:
                return
            for id_, entry in datasets.items():
                if unseen.isdisjoint((id_, *entry.names)):
                    self._keep_dataset(id_, entry)
            for id_, job in jobs.items():
                if _is_older(job, unseen):
                    self._keep_job(id_, job)
        self._keep_bound()

    def kept_leads(self, near: int, ids: Collection[int], moment: int) -> dict[int, Leads]:
        """What is kept of where these datasets lead, and still so."""
        return self._leads.among(near, ids, moment)

    def keep_leads(
        self,
        near: int,
        leads: Mapping[int, Leads],
        looked: LookedAt,
        order: int,
        seen: frozenset[int],
    ) -> None:
        """Keep where datasets lead, of those whose entries are kept and were no news meanwhile (see `keep`)."""
        with self._lock:
            if self._leads.size > self._most * OPEN:
                self._leads.clear()
            unseen = self._unseen(order, seen)
            if unseen is None:
                return
            fresh = {
                id_
                for id_, job in looked.jobs.items()
                if id_ in self._jobs and _is_older(job, unseen)
            }
            for id_, one in leads.items():
                entry = looked.datasets[id_]
                around = entry.touching[near].keys() | looked.jobs_around(id_, near)
                is_news = id_ not in self._datasets or not unseen.isdisjoint((id_, *entry.names))
                if not is_news and fresh.issuperset(around):
                    self._leads.put(near, id_, one)
        self._keep_bound()

    def _unseen(self, order: int, seen: frozenset[int]) -> set[int] | None:
        """What was news since that the transaction may not have seen; None.

        That may be anything.
        """
        if self._heard and self._heard[0].order > order + 1:
            return None
        found: set[int] = set()
        for heard in reversed(self._heard):
            if heard.order <= order:
                break
            if heard.ids is None and heard.id not in seen:
                return None
            if heard.id not in seen:
                found |= heard.ids or frozenset()
        return found

    @contextmanager
    def elsewhere(self) -> Iterator[None]:
        """While the database is asked for an answer's entries, others may put theirs together."""
        self._turn.release()
        try:
            yield
        finally:
            self._turn.acquire()

    def _keep_dataset(self, id_: int, entry: DatasetEntry) -> None:
        self._drop_dataset(id_)
        self._datasets.put(id_, entry)
        self._canonical.update(dict.fromkeys(entry.names, id_))

    def _keep_job(self, id_: int, entry: JobEntry) -> None:
        self._drop_job(id_)
        self._jobs.put(id_, entry)
        for run in entry.depends_on:
            self._by_run.add(run, id_)

    def _keep_bound(self) -> None:
        """Make room where there is none, a little at a time: others wait for no more."""
        if self.size > self._most:
            while self.size > self._most * ROOM and (self._jobs or self._datasets):
                with self._lock:
                    self._make_some_room()

    def _make_some_room(self) -> None:
        """Forget where datasets lead, pack what was opened first, and where that does not do, drop what is packed longest."""
        jobs, datasets = self._jobs, self._datasets
        if self._leads.size:
            self._leads.clear()
        elif self._open_bytes > self._most * OPEN:
            (jobs if jobs.open_bytes >= datasets.open_bytes else datasets).pack_oldest()
        elif len(jobs) >= len(datasets):
            for id_ in jobs.oldest():
                self._drop_job(id_)
        else:
            for id_ in datasets.oldest():
                self._drop_dataset(id_)


def _is_older(job: JobEntry, news: Collection[int]) -> bool:
    """Whether none of these news is of the job, or of a run that it depends on."""
    return job.id not in news and not any(run in news for run in job.depends_on)


@dataclass(slots=True)
class _Entries:
    """The graph for one question: what is kept, and what is read by its transaction."""

    graph: LineageGraph
    connection: Connection
    view: View
    order: int
    seen: frozenset[int]
    is_planned: bool = False

    def datasets(self, ids: Collection[int]) -> Mapping[int, DatasetEntry]:
        """See store.graph.answers.Entries."""
        found = self.graph.kept_datasets(ids)
        if len(found) < len(ids):
            with self.graph.elsewhere():
                self._plan()
                read = load_datasets(self.connection, [id_ for id_ in ids if id_ not in found])
            self.graph.keep(read, {}, self.order, self.seen)
            found |= read
        return found

    def jobs(self, ids: Collection[int]) -> Mapping[int, JobEntry]:
        """See store.graph.answers.Entries."""
        found = self.graph.kept_jobs(ids, self.view.at)
        others = {job for entry in found.values() if entry.also for job in entry.also}
        if others:
            found |= self.graph.kept_jobs(others, self.view.at)
        if len(found) < len(ids) or others:
            missing = [id_ for id_ in {*ids, *others} if id_ not in found]
            if missing:
                with self.graph.elsewhere():
                    self._plan()
                    read = load_jobs(self.connection, missing, self.view)
                self.graph.keep({}, read, self.order, self.seen)
                found |= read
        return found

    def leads(self, near: int, ids: Collection[int]) -> Mapping[int, Leads]:
        """See store.graph.reach.LeadEntries."""
        found = self.graph.kept_leads(near, ids, self.view.at)
        if len(found) < len(ids):
            looked = LookedAt(self, frozenset())
            read = leads_of(looked, near, [id_ for id_ in ids if id_ not in found])
            self.graph.keep_leads(near, read, looked, self.order, self.seen)
            found |= read
        return found

    def _plan(self) -> None:
        if not self.is_planned:
            by_index(self.connection)
            self.is_planned = True
