"""DataHub as a target: each entity is an item of its own.

It is sent when its aspects change, over REST or into a file. Aspects replace what DataHub has, so
nothing is sent of a run without datasets, and what is sent of a job is all that is known of it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol

import orjson
from sqlalchemy import Connection

from strandline.core.openlineage.names import id_of
from strandline.errors import UnavailableError
from strandline.exporters.datahub import aspects
from strandline.exporters.datahub.aspects import DatasetUrns, Proposal
from strandline.exporters.datahub.urns import Urns, orchestrator_of
from strandline.exporters.http_client import Client
from strandline.exporters.job_states import JobState, job_states, live_jobs
from strandline.exporters.openlineage_events import without
from strandline.exporters.run_records import (
    DatasetRecord,
    RunRecord,
    changed_records,
    dataset_records,
)
from strandline.exporters.target import Change, Item, Namespaces, digest
from strandline.store.ingest.export_news import DATASET

KEEP, CLEAR, REMOVE = "keep", "clear_edges", "soft_delete"
ENTITY = 4  # kind of items: an entity by its urn
PASSING = (
    "lastModified",
    "properties",
    "customProperties",
    "timestampMillis",
    "durationMillis",
    "created",
)


class Emitter(Protocol):
    """Takes proposals, all or none."""

    def send(self, proposals: Sequence[Proposal]) -> None:
        """Send them; UnavailableError or RefusedItemError where they were not taken."""

    def close(self) -> None:
        """Let go of connections."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The selection and names of DataHub's items."""

    urns: Urns
    namespaces: Namespaces
    on_end: str = KEEP
    orchestrator: str | None = None
    schemas: bool = False


class DataHub:
    """One DataHub."""

    name = "datahub"
    kinds = "runs"
    at_once = 50

    def __init__(self, emitter: Emitter, rules: Rules) -> None:
        self._emitter = emitter
        self._rules = rules
        self._urns = DatasetUrns(rules.urns)

    def merged(self) -> dict[str, list[str]]:
        """Return the urns, of those made so far, that stand for several datasets or jobs."""
        return self._urns.merged()

    def items(self, connection: Connection, changes: Sequence[Change], now: float) -> list[Item]:
        """Flows, jobs, runs and, where asked, datasets; each entity once, as it is now."""
        records = self._records(connection, changes, now)
        jobs = {record.job.id for record, _ in records}
        states = job_states(connection, jobs, now, live=self._rules.on_end == CLEAR) if jobs else {}
        running = (
            live_jobs(connection, jobs, now) if self._rules.on_end == REMOVE and jobs else jobs
        )
        items: dict[str, Item] = {}
        for record, change in records:
            for item in self._of_run(
                record, change, states.get(record.job.id), record.job.id in running
            ):
                items.pop(item.about, None)
                items[item.about] = item
        for item in self._of_datasets(connection, changes, [record for record, _ in records]):
            items[item.about] = item
        return list(items.values())

    def _records(
        self, connection: Connection, changes: Sequence[Change], now: float
    ) -> list[tuple[RunRecord, Change]]:
        """The runs that read or write anything, each with its change."""
        records = changed_records(connection, changes, now, self._rules.namespaces)
        return [(record, change) for record, change in records if record.inputs or record.outputs]

    def _of_run(
        self, record: RunRecord, change: Change, state: JobState | None, runs: bool
    ) -> Iterator[Item]:
        flow = self._rules.urns.flow(
            self._orchestrator(record), record.job.name, record.job.namespace
        )
        job = self._rules.urns.job(flow, record.job.name)
        self._urns.note(job, record.job)
        removed = self._rules.on_end == REMOVE and not runs and not record.design
        yield _item(aspects.flow_proposal(flow, record.job), change, record)
        about = aspects.job_proposal(
            job, flow, record.job, streaming=record.state.streaming, removed=removed
        )
        if state is not None:
            related = aspects.input_output(state, self._urns)
        elif self._rules.on_end == CLEAR and not record.design:
            related = aspects.no_input_output()
        else:
            related = {}
        more = {"dataJobInputOutput": related} if related else {}
        yield _item(
            about._replace(aspects=about.aspects | more), change, record, live=not record.is_over
        )
        if not record.design:
            begun, now = aspects.run_proposals(record, job, self._urns)
            first = (begun,) if record.is_over else ()
            yield _item(now, change, record, live=not record.is_over, first=first)

    def _orchestrator(self, record: RunRecord) -> str:
        kind = record.job.facets.get("jobType", {})
        engine = record.facets.get("processing_engine", {})
        producer = str(kind.get("_producer") or "spark")
        return orchestrator_of(
            self._rules.orchestrator, kind.get("integration"), engine.get("name"), producer
        )

    def _of_datasets(
        self, connection: Connection, changes: Sequence[Change], records: Iterable[RunRecord]
    ) -> Iterator[Item]:
        if not self._rules.schemas:
            return
        marks = {change.entity_id: change for change in changes if change.kind == DATASET}
        named: dict[int, DatasetRecord] = (
            {} if not marks else dataset_records(connection, list(marks))
        )
        for record in records:
            named |= {link.dataset.id: link.dataset for link in (*record.inputs, *record.outputs)}
        for dataset in named.values():
            platform = self._rules.urns.platform_of(self._urns.of(dataset))
            proposal = aspects.schema_proposal(dataset, self._urns, platform)
            if proposal is not None:
                yield _item(proposal, marks.get(dataset.id, changes[-1]), None)

    def send(self, items: Sequence[Item]) -> None:
        """All aspects of these entities."""
        self._emitter.send([proposal for item in items for proposal in item.content])

    def close(self) -> None:
        """Let go of the emitter's connections."""
        self._emitter.close()


def _item(
    proposal: Proposal,
    change: Change,
    record: RunRecord | None,
    *,
    live: bool = False,
    first: tuple[Proposal, ...] = (),
) -> Item:
    shape = proposal.entity_type, without(proposal.aspects, PASSING)
    hashes = digest(shape), digest(tuple(proposal))
    run = record.id if record is not None else 0
    key = id_of("urn", proposal.urn)
    return Item(
        ENTITY, key, change, proposal.urn, (proposal,), *hashes, run, live, slow=True, first=first
    )


class RestEmitter:
    """DataHub's OpenAPI v3: a request for each kind of entity in a row."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def send(self, proposals: Sequence[Proposal]) -> None:
        """Upsert, and wait until DataHub has stored it."""
        for entity_type, group in groupby(proposals, key=lambda proposal: proposal.entity_type):
            for batch in _apart(list(group)):
                body = [
                    {
                        "urn": proposal.urn,
                        **{name: _valued(value) for name, value in proposal.aspects.items()},
                    }
                    for proposal in batch
                ]
                self._client.send(
                    "POST", f"/openapi/v3/entity/{entity_type}?async=false", orjson.dumps(body)
                )

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()


def _valued(value: Any) -> dict[str, Any]:
    return {"value": value, "systemMetadata": None, "headers": {}}


def _apart(proposals: Sequence[Proposal]) -> Iterator[list[Proposal]]:
    """Return the proposals in requests, so that no request has two for one urn.

    DataHub promises no order within a request.
    """
    batch: list[Proposal] = []
    for proposal in proposals:
        if any(other.urn == proposal.urn for other in batch):
            yield batch
            batch = []
        batch.append(proposal)
    yield batch


class FileEmitter:
    """A file of metadata for `datahub ingest`: written as a whole when it is closed."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._proposals: list[dict[str, Any]] = []

    def send(self, proposals: Sequence[Proposal]) -> None:
        """Keep them for the file."""
        self._proposals += [
            file_entry for proposal in proposals for file_entry in file_entries(proposal)
        ]

    def close(self) -> None:
        """Write the file, in the place of an older one."""
        beside = self._file.with_name(f"{self._file.name}.new")
        try:
            beside.write_bytes(orjson.dumps(self._proposals, option=orjson.OPT_INDENT_2))
            beside.replace(self._file)
        except OSError as error:
            raise UnavailableError(f"{self._file}: {error.strerror or error}") from error


def file_entries(proposal: Proposal) -> Iterator[dict[str, Any]]:
    """A proposal as entries of a file, one an aspect."""
    for name, value in proposal.aspects.items():
        yield {
            "entityType": proposal.entity_type,
            "entityUrn": proposal.urn,
            "changeType": "UPSERT",
            "aspectName": name,
            "aspect": {"json": value},
        }
