"""Targets of OpenLineage events: Marquez, OpenMetadata, and any endpoint, topic or file.

They get clean events, as Strandline sees each run, in a dialect of their own. An OpenLineage target
may also get the events as they were received.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection, select, tuple_

from strandline.core.openlineage.events import decode
from strandline.errors import InvalidEventError
from strandline.exporters.http_client import segment
from strandline.exporters.job_states import live_jobs
from strandline.exporters.openlineage_events import (
    dataset_event,
    facet,
    job_event,
    newest_of,
    shape_of,
    start_of,
)
from strandline.exporters.run_records import Json, RunRecord, changed_records, dataset_records
from strandline.exporters.senders import Message, Sender, message_of
from strandline.exporters.target import Change, Item, Namespaces, digest
from strandline.store.ingest.export_news import DATASET, EVENTS, RUN, RUNS
from strandline.store.schema.received_tables import raw_events
from strandline.store.sql.compression import Expansion

KEEP, CLEAR, DELETE = "keep", "clear", "delete"


def _is_known(record: RunRecord) -> bool:
    return record.design or record.state.state != "NONE"


def _unchanged(event: Json) -> Json:
    return event


@dataclass(frozen=True, slots=True)
class Dialect:
    """The differences between targets of clean events.

    `shows` returns whether a run is sent, `rewrite` changes each of its events, and `at_end`
    returns the requests that follow, by the record and whether the job still runs. A target that
    takes COMPLETE events alone gets no START and no dataset by itself.
    """

    shows: Callable[[RunRecord], bool] = _is_known
    rewrite: Callable[[Json], Json] = _unchanged
    at_end: Callable[[RunRecord, bool], list[Json]] | None = None
    complete_only: bool = False


CLEAN = Dialect()


class OpenLineageTarget:
    """A target of clean events.

    It gets one START and one end a run, RUNNING where a stream's datasets or columns change, and
    explicit edges.
    """

    kinds = RUNS

    def __init__(
        self, name: str, sender: Sender, namespaces: Namespaces, dialect: Dialect = CLEAN
    ) -> None:
        self.name = name
        self._sender = sender
        self._namespaces = namespaces
        self._dialect = dialect

    @property
    def at_once(self) -> int:
        """The number of items in one request."""
        return self._sender.at_once

    def items(self, connection: Connection, changes: Sequence[Change], now: float) -> list[Item]:
        """Return the runs, designs, and datasets by themselves that changed."""
        records = changed_records(connection, changes, now, self._namespaces)
        running = set[int]()
        if self._dialect.at_end and records:
            running = live_jobs(connection, {record.job.id for record, _ in records}, now)
        items = [
            self._run_item(record, change, is_running=record.job.id in running)
            for record, change in records
            if self._dialect.shows(record)
        ]
        if not self._dialect.complete_only:
            items += self._dataset_items(connection, changes, now)
        return items

    def _run_item(self, record: RunRecord, change: Change, *, is_running: bool) -> Item:
        dialect = self._dialect
        content = [dialect.rewrite(newest_of(record))]
        if dialect.at_end:
            content += dialect.at_end(record, is_running)
        shape = dialect.rewrite(shape_of(record))
        first: tuple[Json, ...] = ()
        if dialect.complete_only:
            del shape["eventType"]
            shape.pop("eventTime", None)
        elif not record.design:
            first = (dialect.rewrite(start_of(record)),)
        job = f"job {record.job.namespace} {record.job.name}"
        return Item(
            kind=RUN,
            entity_id=record.id,
            change=change,
            about=f"run {record.run_id} of {job} ({record.state.state})",
            content=tuple(content),
            shape=digest((shape, len(content))),
            detail=digest(content),
            run=record.id,
            live=not record.is_over and not record.design,
            first=first,
        )

    def _dataset_items(
        self, connection: Connection, changes: Sequence[Change], now: float
    ) -> list[Item]:
        change_of = {change.entity_id: change for change in changes if change.kind == DATASET}
        items = []
        for record in dataset_records(connection, list(change_of)).values():
            change = change_of.get(record.id)
            if change is None or not self._namespaces.allow(record.namespace):
                continue
            event = dataset_event(record, round(now * 1_000_000))
            shape = digest((record.namespace, record.name, record.facets))
            about = f"dataset {record.namespace} {record.name}"
            items.append(Item(DATASET, record.id, change, about, (event,), shape, shape))
        return items

    def send(self, items: Sequence[Item]) -> None:
        """Send the events of these items, in order."""
        self._sender.send([message_of(event) for item in items for event in item.content])

    def close(self) -> None:
        """Close the sender's connections."""
        self._sender.close()


def marquez_dialect(on_end: str) -> Dialect:
    """Return Marquez's dialect; `on_end` says what becomes of the relations of a job that ends.

    Marquez shows the datasets of a job's current version: of a batch job the one that an end makes,
    of a stream also that of a RUNNING.
    """
    at_end = None if on_end == KEEP else partial(_marquez_at_end, on_end)
    return Dialect(rewrite=_without_foreign_parent, at_end=at_end)


def _without_foreign_parent(event: Json) -> Json:
    """Return the event without a parent that would give its job another name.

    Marquez calls a job below its parent by both names, unless its own begins with the parent's.
    """
    facets = event.get("run", {}).get("facets", {})
    parent = facets.get("parent")
    if parent is None or event["job"]["name"].startswith(f"{parent['job']['name']}."):
        return event
    others = {key: value for key, value in facets.items() if key != "parent"}
    return event | {"run": event["run"] | {"facets": others}}


def _marquez_at_end(on_end: str, record: RunRecord, is_running: bool) -> list[Json]:
    """Return events that show a running batch job's edges, and hide them afterwards."""
    if record.design:
        return []
    if not record.is_over:
        if record.state.streaming:
            return []
        event = newest_of(record)
        return [job_event(record, record.newest_at, event["inputs"], event["outputs"])]
    if is_running:
        return []
    if on_end == CLEAR:  # a version without datasets
        return [job_event(record, record.ended_at or record.newest_at, [], [])]
    job = record.job
    return [{"delete": f"/api/v1/namespaces/{segment(job.namespace)}/jobs/{segment(job.name)}"}]


def _openmetadata_shows(record: RunRecord) -> bool:
    """Return whether a run has both sides, and is complete or a running stream."""
    if record.design or not record.inputs or not record.outputs:
        return False
    is_running_stream = record.state.streaming and record.state.live
    return record.state.state == "COMPLETE" or is_running_stream


def _openmetadata_event(event: Json) -> Json:
    """Return a COMPLETE with a parent, which its connector wants.

    Of symlinks it takes the first for a table's name.
    """
    event = event | {"eventType": "COMPLETE"}
    facets = event["run"]["facets"]
    if "parent" not in facets:
        job = {key: event["job"][key] for key in ("namespace", "name")}
        own = {"run": {"runId": event["run"]["runId"]}, "job": job}
        facets["parent"] = facet("ParentRunFacet", "1-1-0", **own)
    for dataset in (*event["inputs"], *event["outputs"]):
        symlinks = dataset["facets"].get("symlinks")
        if symlinks:
            links = symlinks.get("identifiers") or []
            tables_first = sorted(links, key=lambda link: link.get("type") != "TABLE")
            dataset["facets"]["symlinks"] = symlinks | {"identifiers": tables_first}
    return event


# It takes nothing but COMPLETE with datasets on both sides, so a stream's datasets are sent as a
# COMPLETE whenever they change.
OPENMETADATA = Dialect(shows=_openmetadata_shows, rewrite=_openmetadata_event, complete_only=True)


class ReceivedEvents:
    """A target of the events as they came, but for their secrets, in the order of their storage."""

    name = "openlineage"
    kinds = EVENTS

    def __init__(self, sender: Sender, namespaces: Namespaces) -> None:
        self._sender = sender
        self._namespaces = namespaces

    @property
    def at_once(self) -> int:
        """The number of items in one request."""
        return self._sender.at_once

    def items(self, connection: Connection, changes: Sequence[Change], now: float) -> list[Item]:
        """Return the events that are still stored and can be read."""
        expansion = Expansion(connection)
        keys = [(change.at, change.hash) for change in changes]
        rows = connection.execute(
            select(raw_events).where(tuple_(raw_events.c.received_at, raw_events.c.hash).in_(keys))
        )
        bodies: dict[bytes, bytes] = {}
        for row, body in expansion.expanded(rows):
            if isinstance(body, bytes):
                bodies[bytes(row.hash)] = body
        items = []
        for change in changes:
            hash_ = bytes(change.hash or b"")
            message = self._message(bodies[hash_]) if hash_ in bodies else None
            if message is None:
                continue
            about = f"event {hash_.hex()} of {message.key}"
            items.append(
                Item(change.kind, change.entity_id, change, about, (message,), hash_, hash_)
            )
        return items

    def _message(self, body: bytes) -> Message | None:
        try:
            event = decode(body)
        except InvalidEventError:
            return None
        subject = event.job or event.dataset
        if subject is None or not self._namespaces.allow(subject.namespace):
            return None
        return Message(body, f"run:{subject.namespace}/{subject.name}")

    def send(self, items: Sequence[Item]) -> None:
        """Send the events, in order."""
        self._sender.send([message for item in items for message in item.content])

    def close(self) -> None:
        """Close the sender's connections."""
        self._sender.close()
