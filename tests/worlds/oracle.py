"""Oracle of the public tables for a set of events: slow, obvious and independent.

It reads plain dictionaries, keeps no state, and asks every question of the whole set again.
"""

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from worlds.oracle_makers import claim, claims, has_failed_as_batch, has_read, is_maker

Json = dict[str, Any]
Row = tuple[Any, ...]
RANK = {"FAIL": 5, "COMPLETE": 4, "ABORT": 3, "RUNNING": 2, "START": 1}
DAY = 86_400
APART = "@"  # between a shared run's id and the name of one of its jobs


@dataclass(frozen=True)
class Statement:
    """The statement of one event about the snapshot of one table at one barrier."""

    query_id: str
    time: str
    stated: bool
    snapshot: str
    run: str
    written: bool

    def standing(self) -> tuple[bool, float, str]:
        """Stated before observed; the newest, but of observed reads the first."""
        second = moment(self.time).timestamp()
        return (self.stated, second if self.stated or self.written else -second, self.snapshot)


class Oracle:
    """The answers for a set of (event, time of receipt)."""

    def __init__(self, events: Sequence[tuple[Json, datetime]], now: datetime) -> None:
        unique = {repr(event): (event, received) for event, received in reversed(events)}
        events_in_time = [timed(event, received) for event, received in unique.values()]
        receipts = [received for _, received in unique.values()]
        self.events = list(zip(apart(events_in_time), receipts, strict=True))
        self.now = now

    # ---- runs

    def runs(self) -> set[str]:
        return {event["run"]["runId"] for event, _ in self.events} | {
            self.parent(event) or "" for event, _ in self.events
        }

    def of_run(self, run: str) -> list[tuple[Json, datetime]]:
        """The events of a run; of a streaming query's those that describe a micro-batch of it."""
        return [
            one for one in self.events if run in (one[0]["run"]["runId"], self.described(one[0]))
        ]

    def described(self, event: Json) -> str | None:
        """The query within an application that an event describes: "application|query"."""
        facets = event["run"]["facets"]
        if "spark_jobDetails" not in facets:
            return None
        parent = self.parent(event)
        words = facets["spark_jobDetails"]["jobDescription"].replace("<br/>", " ").split()
        return f"{parent if parent != event['run']['runId'] else ''}|{words[words.index('id') + 2]}"

    def is_query(self, run: str) -> bool:
        return "|" in run

    def parent(self, event: Json) -> str | None:
        facet = event["run"]["facets"].get("parent")
        return facet["run"]["runId"] if facet else None

    def named_above(self, event: Json) -> set[str]:
        """The runs that an event names above its own.

        Who names a root tells that it goes on as well.
        """
        facet = event["run"]["facets"].get("parent")
        return {facet["run"]["runId"], facet.get("root", facet)["run"]["runId"]} if facet else set()

    def newest(self, found: list[tuple[str, Any]]) -> Any:
        """The value with the latest time; the tests give no two events of a run the same time."""
        return max(found, key=lambda one: one[0])[1] if found else None

    def state(self, run: str) -> str:
        kinds = [event.get("eventType") for event, _ in self.of_run(run)]
        if self.is_query(run):  # its micro-batches end, it does not
            return "RUNNING" if any(kind in RANK for kind in kinds) else "NONE"
        return max(
            (kind for kind in kinds if kind in RANK), key=lambda kind: RANK[kind], default="NONE"
        )

    def times(self, run: str, *kinds: str) -> list[datetime]:
        return [
            moment(event["eventTime"])
            for event, _ in self.of_run(run)
            if event.get("eventType") in kinds
        ]

    def started(self, run: str) -> datetime | None:
        return min(
            self.times(run, *(RANK if self.is_query(run) else ("START", "RUNNING"))), default=None
        )

    def ended(self, run: str) -> datetime | None:
        return self.end(run)[0]

    def end(self, run: str, levels: int = 2) -> tuple[datetime | None, str]:
        """Return time and kind of the end.

        By its own event, or with its parent or root, unless a later event came.
        """
        own = (
            None
            if self.is_query(run)
            else min(self.times(run, "COMPLETE", "FAIL", "ABORT"), default=None)
        )
        above = self.above(run) if own is None and levels else []
        heard = (
            []
            if self.is_query(run)
            else [moment(event["eventTime"]) for event, _ in self.of_run(run)]
        )
        for ended, state in (self.end(one, levels - 1) for one in above):
            if ended is not None and not any(time > ended for time in heard):
                return ended, state
        return own, self.state(run)

    def above(self, run: str) -> list[str]:
        """The run's parent, then its root."""
        said = [(event["eventTime"], event["run"]["facets"]["parent"])
                for event, _ in self.of_run(run) if self.parent(event) not in (None, event["run"]["runId"])]  # fmt: skip
        facet = self.newest(said)
        return [facet["run"]["runId"], facet.get("root", facet)["run"]["runId"]] if facet else []

    def silent_at(self, run: str) -> float:
        heard = [received.timestamp() for _, received in self.of_run(run)]
        # The facet is the event's own run's: a micro-batch's says nothing of its query.
        own = [e for e, _ in self.of_run(run) if e["run"]["runId"] == run]
        leases = [(e["eventTime"], e["run"]["facets"]["strandline_heartbeat"]["timeoutSeconds"])
                  for e in own if "strandline_heartbeat" in e["run"]["facets"]]  # fmt: skip
        if leases:
            return max(heard) + float(self.newest(leases))
        children = [
            received.timestamp()
            for event, received in self.events
            if run in self.named_above(event)
        ]
        return max(heard + children) + DAY

    def announced(self, run: str) -> bool:
        ours = ("strandline_heartbeat", "strandline_barrier")
        return any(name in event["run"]["facets"] for event, _ in self.of_run(run) for name in ours)

    def is_micro_batch(self, run: str) -> bool:
        return not self.announced(run) and (self.is_streaming(run) or self.query(run) is not None)

    def query(self, run: str) -> tuple[str, int] | None:
        said = [(event["eventTime"], event["run"]["facets"]["spark_jobDetails"]["jobDescription"])
                for event, _ in self.of_run(run) if "spark_jobDetails" in event["run"]["facets"]]  # fmt: skip
        text = self.newest(said)
        if text is None or self.announced(run):
            return None
        words = text.replace("<br/>", " ").split()
        return words[words.index("id") + 2], int(words[words.index("batch") + 2])

    def parent_of(self, run: str) -> tuple[str, str] | None:
        said = [(event["eventTime"], event["run"]["facets"]["parent"])
                for event, _ in self.of_run(run) if self.parent(event) not in (None, run)]  # fmt: skip
        facet = self.newest(said)
        return (facet["run"]["runId"], facet["job"]["name"]) if facet else None

    def owner(self, run: str) -> str:
        if self.query(run):
            said = [
                (event["eventTime"], one)
                for event, _ in self.of_run(run)
                if (one := self.described(event))
            ]
            return str(self.newest(said))
        parent = self.parent_of(run)
        return parent[0] if parent and self.is_micro_batch(run) else run

    def job(self, run: str) -> str:
        query, parent = self.query(run), self.parent_of(run)
        if query:
            return "q"
        if self.is_micro_batch(run) and parent:
            return parent[1]
        events = [event for event, _ in self.of_run(run)]
        later = [event for event in events if event.get("eventType") != "START"]
        names = [(event["eventTime"], event["job"]["name"]) for event in later or events]
        return str(self.newest(names))

    # ---- datasets

    def links(self) -> set[tuple[str, str, str]]:
        found = set()
        for event, _ in self.events:
            for dataset in (*event["inputs"], *event["outputs"]):
                for other in dataset["facets"].get("symlinks", {}).get("identifiers", ()):
                    found.add((dataset["name"], other["name"], other["type"]))
        return {link for link in found if link[0] != link[1]}

    def group(self, name: str) -> set[str]:
        members, grown = {name}, True
        while grown:
            more = {
                one for a, b, _ in self.links() for one in (a, b) if a in members or b in members
            }
            members, grown = members | more, not more <= members
        return members

    def canonical(self, name: str) -> str:
        def standing(member: str) -> tuple[int, str]:
            types = {type_ for _, other, type_ in self.links() if other == member}
            return (2 if "TABLE" in types else 0 if "LOCATION" in types else 1, member)

        return min(self.group(name), key=standing)

    def table(self, name: str) -> str:
        """Return the tables' entry for a dataset.

        The first name that somebody calls its TABLE, else the canonical one.
        """
        called = {other for _, other, type_ in self.links() if type_ == "TABLE"} & self.group(name)
        canonical = self.canonical(name)
        return canonical if canonical in called or not called else min(called)

    # ---- the tables

    def relations(self, side: str) -> Iterator[tuple[str, str]]:
        """(run, dataset as the tables show it), without what a run only altered or dropped."""
        for run, name in self.touched(side):
            if side == "inputs" or name in self.brought(run):
                yield run, self.table(name)

    def touched(self, side: str) -> Iterator[tuple[str, str]]:
        """(run, dataset as the run calls it), without what a failed CREATE TABLE AS made."""
        for run in self.runs():
            named: dict[str, bool] = {}
            for event, _ in self.of_run(run):
                for name in self.declared(event, side):
                    named.setdefault(name, False)
                for dataset in event[side]:
                    created = (
                        dataset["facets"]
                        .get("lifecycleStateChange", {})
                        .get("lifecycleStateChange")
                        == "CREATE"
                    )
                    named[dataset["name"]] = named.get(dataset["name"], False) or (
                        created and side == "outputs"
                    )
            failed = self.state(run) in ("FAIL", "ABORT") and not self.is_streaming(run)
            yield from ((run, name) for name, created in named.items() if not (created and failed))

    def declared(self, event: Json, side: str) -> set[str]:
        """Return the names in the job's lineage facet that the event lacks, under whatever name."""
        entries = event["job"]["facets"].get("lineage", {}).get("entries", ())
        if side == "inputs":
            return {
                one["name"]
                for entry in entries
                if entry["type"] == "JOB"
                for one in entry.get("inputs", ())
            }
        there = {one["name"] for one in event["outputs"]}
        for one in event["outputs"]:
            there |= {
                other["name"] for other in one["facets"].get("symlinks", {}).get("identifiers", ())
            }
        return {entry["name"] for entry in entries if entry["type"] == "DATASET"} - there

    def steps(self) -> set[tuple[str | None, str, str]]:
        """(source, job, sink) of what runs: as stated, else what the sink's own run reads."""
        return {step for run in self.runs() if self.is_live(run) for step in self.steps_of(run)}

    def steps_of(self, run: str) -> set[tuple[str | None, str, str]]:
        stated, found = self.stated(), set()
        reads = {
            self.canonical(name)
            for of, name in self.touched("inputs")
            if of == run or self.is_beside(of, run)
        }
        own_reads = {self.canonical(name) for of, name in self.touched("inputs") if of == run}
        unnamed = own_reads.difference(
            *(sources for (of, _), (_, sources) in stated.items() if of == run)
        )
        for sink in {self.canonical(name) for of, name in self.touched("outputs") if of == run}:
            rule, own = stated.get((run, sink), ("", reads))
            sources: set[str | None] = {*own, *(unnamed if rule == "columnLineage" else ())}
            found |= {(source, self.job(run), sink) for source in sources or {None}}
        return found

    def is_beside(self, other: str, run: str) -> bool:
        """Return true if the other is of the same query, and writes nothing.

        What it reads goes into what this one writes.
        """
        same = self.is_query(self.owner(run)) and self.owner(other) == self.owner(run)
        return same and all(writer != other for writer, _ in self.touched("outputs"))

    def known(self, runs: int) -> list[Row]:
        """(source, job, sink, last seen, in how many runs, of how many, whether in the newest) by each job's last runs."""
        touching = {run for side in ("inputs", "outputs") for run, _ in self.touched(side)}
        found: dict[Row, tuple[set[str], int, str, set[datetime]]] = {}
        for job in {self.job(run) for run in touching}:
            of_job = [run for run in touching if self.job(run) == job]
            last = self.last_owners(of_job, runs)
            for run in of_job:
                for step in self.made_by(run) if self.owner(run) in last else ():
                    owners, _, _, times = found.setdefault(step, (set(), len(last), last[0], set()))
                    owners.add(self.owner(run))
                    times.add(self.written_at(run, step[2]))
        return sorted(
            (
                (*step, max(times), len(owners), of, newest in owners)
                for step, (owners, of, newest, times) in found.items()
            ),
            key=str,
        )

    def made_by(self, run: str) -> set[tuple[str | None, str, str]]:
        """Its steps but for those into what it did not write.

        A batch run that failed wrote nothing, and one that gave up wrote no table with snapshots,
        unless its own facet states a snapshot.
        """
        steps = self.steps_of(run)
        if self.is_query(self.owner(run)) or self.is_streaming(run):
            return steps
        written = {self.canonical(name) for name in self.brought(run)}
        steps = {step for step in steps if step[2] in written}
        stated = {
            self.canonical(one[2])
            for one, said in claims(self).items()
            if one[0] == run and said[0]
        }
        if has_failed_as_batch(self, run):
            return {step for step in steps if step[2] in stated}
        if not self.has_given_up(run):
            return steps
        return {step for step in steps if step[2] in stated or not self.commits(run, step[2])}

    def brought(self, run: str) -> set[str]:
        """The names of the outputs but for those that a run that has ended only altered or dropped."""
        outputs = {name for of, name in self.touched("outputs") if of == run}
        if self.is_query(self.owner(run)) or self.is_streaming(run):
            return outputs
        if not self.times(run, "COMPLETE", "FAIL", "ABORT"):
            return outputs
        return {name for name in outputs if not self.only_defines(run, name)}

    def only_defines(self, run: str, name: str) -> bool:
        """Return true if each event says so, and nothing comes from elsewhere."""
        changes = set()
        for event, _ in self.of_run(run):
            changes |= {"" for declared in self.declared(event, "outputs") if declared == name}
            for dataset in event["outputs"]:
                if dataset["name"] == name:
                    change = dataset["facets"].get("lifecycleStateChange", {})
                    changes.add(change.get("lifecycleStateChange", ""))
        if not changes <= {"ALTER", "DROP"}:
            return False
        table = self.canonical(name)
        sources = {self.canonical(one) for of, one in self.touched("inputs") if of == run}
        for (_, sink), said in self.newest_statements(run).items():
            sources |= {self.canonical(one) for one in said or () if sink == name}
        states_snapshot = any(
            one[0] == run and said[0] and self.canonical(one[2]) == table
            for one, said in claims(self).items()
        )
        return sources <= {table} and not states_snapshot

    def has_given_up(self, run: str) -> bool:
        """Return true if a run without an end of its own is LOST, or failed with a run above it."""
        if self.state(run) not in ("START", "RUNNING"):
            return False
        ended, state = self.end(run)
        return state == "FAIL" if ended else self.silent_at(run) < self.now.timestamp()

    def commits(self, run: str, table: str) -> bool:
        """Return true if a table has snapshots, or the run creates it."""
        for event, _ in self.events:
            for side in ("inputs", "outputs"):
                for dataset in event[side]:
                    own = dataset["inputFacets"].get("strandline_snapshot")
                    change = dataset["facets"].get("lifecycleStateChange", {})
                    is_created = change.get("lifecycleStateChange") == "CREATE"
                    creates = is_created and side == "outputs" and event["run"]["runId"] == run
                    if self.canonical(dataset["name"]) == table and (own or creates):
                        return True
        return False

    def last_owners(self, runs: list[str], most: int) -> list[str]:
        """Of the owners of these runs all below the newest one's application, and so many before.

        The newest first.
        """

        def heard(owner: str) -> datetime:
            return max(
                moment(event["eventTime"])
                for run in runs
                if self.owner(run) == owner
                for event, _ in self.of_run(run)
            )

        owners = sorted({self.owner(run) for run in runs}, key=heard, reverse=True)
        application = {owner: (self.above(owner) or [owner])[0] for owner in owners}
        before = [owner for owner in owners if application[owner] != application[owners[0]]][:most]
        return [
            owner
            for owner in owners
            if owner in before or application[owner] == application[owners[0]]
        ]

    def written_at(self, run: str, sink: str) -> datetime:
        """Return the last report that the run writes it, under any name that stands."""
        names = {name for name in self.brought(run) if self.canonical(name) == sink}
        return max(
            moment(event["eventTime"])
            for event, _ in self.of_run(run)
            if names & ({one["name"] for one in event["outputs"]} | self.declared(event, "outputs"))
        )

    def stated(self) -> dict[tuple[str, str], tuple[str, frozenset[str]]]:
        """(run, sink) -> rule and sources, where its events state them.

        Under any of the sink's names, the newest of each.
        """
        found: dict[tuple[str, str], tuple[str, frozenset[str]]] = {}
        for run in self.runs():
            said = self.newest_statements(run)
            for (rule, sink), sources in sorted(said.items()):  # lineage comes last, and counts
                if sources is not None:
                    key = run, self.canonical(sink)
                    known = found[key][1] if key in found and found[key][0] == rule else frozenset()
                    found[key] = rule, known | {self.canonical(one) for one in sources}
        return found

    def newest_statements(self, run: str) -> dict[tuple[str, str], set[str] | None]:
        """(rule, sink) -> sources, as the newest event of the run that states them has them."""
        said: dict[tuple[str, str], set[str] | None] = {}
        for event, _ in sorted(self.of_run(run), key=lambda one: one[0]["eventTime"]):
            for rule in ("columnLineage", "lineage"):
                said |= {(rule, sink): sources for sink, sources in self.statements(event, rule)}
        return said

    def statements(self, event: Json, rule: str) -> Iterator[tuple[str, set[str] | None]]:
        """(sink, its sources) as an event states them by a rule; None.

        It takes back what was stated. The last counts.
        """
        of_job = event["job"]["facets"].get("lineage", {}) if rule == "lineage" else {}
        facets = [
            (one["name"], one["facets"][rule]) for one in event["outputs"] if rule in one["facets"]
        ]
        gone = [name for name, facet in facets if facet.get("_deleted")]
        if of_job.get("_deleted"):
            gone += [one["name"] for one in event["outputs"]]
        yield from ((name, None) for name in gone)
        together: dict[str, set[str]] = {}
        for entry in of_job.get("entries", ()):
            sources = self.sources(entry)
            if entry["type"] == "DATASET" and sources is not None:
                together.setdefault(entry["name"], set()).update(sources)
        yield from together.items()
        for name, facet in facets:
            sources = self.sources(facet)
            if sources is not None:
                yield name, sources

    def sources(self, facet: Json) -> set[str] | None:
        """Return the sources that a facet or entry names; only empty inputs say "none"."""
        columns = [*facet.get("fields", {}).values(), {"inputs": facet.get("inputs", [])}]
        named = {
            one["name"]
            for column in columns
            for one in column.get("inputs", column.get("inputFields", ()))
        }
        return named if named or "inputs" in facet else None

    def is_live(self, run: str) -> bool:
        owner = self.owner(run)
        started = self.started(owner) or self.started(run)
        return (
            started is not None
            and not self.ended(owner)
            and self.silent_at(owner) >= self.now.timestamp()
        )

    def job_lineage(self, side: str) -> list[Row]:
        return sorted(
            {(self.job(run), name) for run, name in self.relations(side) if self.is_live(run)}
        )

    def history(self, side: str) -> list[Row]:
        found = set()
        for run, name in self.relations(side):
            owner = self.owner(run)
            first = [moment(event["eventTime"]) for event, _ in self.of_run(owner)]
            since = (
                self.started(owner)
                or self.started(run)
                or min(first or [moment(e["eventTime"]) for e, _ in self.of_run(run)])
            )
            ended, silent = self.ended(owner), self.silent_at(owner)
            if ended or silent < self.now.timestamp():
                own = self.state(run) if RANK.get(self.state(run), 0) >= 3 else None
                state = own or (self.end(owner)[1] if ended else "LOST")
                until = ended.timestamp() if ended else silent
                begun = min(since.timestamp(), until)
                found.add((self.job(run), name, state, round(begun * 1000), round(until * 1000)))
        return sorted(found)

    def snapshot_lineage(self, side: str) -> list[Row]:
        """(job, barrier, table, snapshot).

        The newest query's, and in it the surest and newest statement.
        """
        said: dict[Row, list[Statement]] = {}
        for event, _ in self.events:
            run = event["run"]["runId"]
            barrier, query_id = self.barrier(event)
            for dataset in event[side] if barrier else ():
                own = dataset["inputFacets"].get("strandline_snapshot")
                if own and (
                    has_read(event, dataset)
                    if side == "inputs"
                    else is_maker(self, claim(event, dataset))
                ):
                    key = (self.job(run), barrier, self.table(dataset["name"]))
                    one = Statement(
                        query_id,
                        event["eventTime"],
                        not own.get("observed"),
                        own["snapshotId"],
                        run,
                        side == "outputs",
                    )
                    said.setdefault(key, []).append(one)
        return sorted((*key, self.best(found)) for key, found in said.items())

    def is_streaming(self, run: str) -> bool:
        said = [event["job"]["facets"].get("jobType", {}) for event, _ in self.of_run(run)]
        return any(one.get("processingType") == "STREAMING" for one in said)

    def barrier(self, event: Json) -> tuple[int, str]:
        """Barrier and query_id of an event.

        Of its barrier facet, else of the micro-batch that its run is.
        """
        facet = event["run"]["facets"].get("strandline_barrier")
        if facet and facet["phase"] == "committed":
            return facet["barrierId"], facet["queryId"]
        run = event["run"]["runId"]
        query = self.query(run)
        return (query[1] + 1, query[0]) if query and self.state(run) == "COMPLETE" else (0, "")

    def best(self, found: list[Statement]) -> str:
        """Of the newest query what is stated, the newest of it.

        Else what was written last, or read first.
        """
        kept = []
        for run in {one.run for one in found}:
            own = [one for one in found if one.run == run]
            kept += [one for one in own if one.stated] or [max(own, key=Statement.standing)]
        newest = max((one.time, one.query_id) for one in kept)[1]
        return max((one for one in kept if one.query_id == newest), key=Statement.standing).snapshot


def timed(event: Json, received: datetime) -> Json:
    """Return the event with the time that counts: its receipt where its own is over an hour later."""
    is_ahead = moment(event["eventTime"]) > received + timedelta(hours=1)
    return event | {"eventTime": received.isoformat()} if is_ahead else event


def apart(events: Sequence[Json]) -> list[Json]:
    """Return the events with a run id of its own for each of several jobs that share one.

    A run is shared if several jobs sent a START of it, or several sent something else.
    """
    jobs: dict[tuple[str, bool], set[str]] = {}
    for event in events:
        is_start = event.get("eventType") == "START"
        jobs.setdefault((event["run"]["runId"], is_start), set()).add(event["job"]["name"])
    shared = {run for (run, _), names in jobs.items() if len(names) > 1}
    return [_with_runs_apart(event, shared) for event in events]


def _with_runs_apart(event: Json, shared: set[str]) -> Json:
    event = copy.deepcopy(event)
    named = [event, *filter(None, [event["run"]["facets"].get("parent")])]
    named += [parent["root"] for parent in named[1:] if "root" in parent]
    for one in named:
        if one["run"]["runId"] in shared:
            one["run"]["runId"] += APART + one["job"]["name"]
    return event


def moment(text: str) -> datetime:
    """The time of an event."""
    return datetime.fromisoformat(text)
