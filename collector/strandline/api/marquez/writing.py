"""Writing as Marquez' methods do: as OpenLineage events, taken in by the one writer as if they had been posted."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import orjson
from anyio import from_thread

from strandline import __version__
from strandline.api.http.operations import Ask
from strandline.api.marquez.parameters import author_of
from strandline.api.marquez.shapes.runs import REGISTRATION
from strandline.api.marquez.shapes.times import time_text
from strandline.api.writer.process import Writer
from strandline.core.openlineage.times import micros_of
from strandline.errors import ForbiddenError, InvalidEventError
from strandline.store.catalog.event_filters import event_is_seen
from strandline.store.ingest.take import validated
from strandline.store.marquez.annotations import Note, annotate, withdraw

PRODUCER = f"https://github.com/strandline/strandline/tree/{__version__}/collector"
SCHEMAS = "https://github.com/strandline/strandline/schemas"
SPEC = "https://openlineage.io/spec"
Json = dict[str, Any]


def facet(kind: str, version: str, /, **fields: Any) -> Json:
    """A facet of the standard, with its schema's address."""
    url = f"{SPEC}/facets/{version}/{kind}.json#/$defs/{kind}"
    return {"_producer": PRODUCER, "_schemaURL": url, **fields}


def registration(of: str, /, **fields: Any) -> Json:
    """What a writing method says of a Run, Job or Dataset that OpenLineage has no facet for."""
    url = f"{SCHEMAS}/{REGISTRATION}/1-0-0.json#/$defs/StrandlineRegistration{of}Facet"
    return {"_producer": PRODUCER, "_schemaURL": url, **fields}


def event(kind: str, at: datetime, **parts: Any) -> Json:
    """An event of this kind: RunEvent, JobEvent or DatasetEvent."""
    schema = f"{SPEC}/2-0-2/OpenLineage.json#/$defs/{kind}"
    return {"eventTime": time_text(micros_of(at)), "producer": PRODUCER, "schemaURL": schema, **parts}


def write(ask: Ask, *events: Json) -> None:
    """Have events stored; returns after the commit. For use in a thread of the server."""
    writer: Writer = ask.request.app.state.writer
    records = [validated(orjson.dumps(one), ask.now) for one in events]
    if not all(record.read is not None and event_is_seen(record.read.event, ask.access) for record in records):
        raise ForbiddenError("this key sends no events of this namespace")
    for outcome in from_thread.run(writer.write, records):
        if outcome.kind == "dead":
            raise InvalidEventError(outcome.reason or "it cannot be stored")


def note(ask: Ask, notes: Iterable[Note], gone: Iterable[Note] = ()) -> None:
    """Have annotations stored, and others taken away, in one transaction."""
    author = author_of(ask)
    with ask.engine.begin() as connection:
        for one in notes:
            annotate(connection, one, author)
        for one in gone:
            withdraw(connection, one, author)


def named(namespace: str, name: str, facets: Mapping[str, Any] | None = None) -> Json:
    """A job or dataset in an event."""
    return {"namespace": namespace, "name": name, "facets": dict(facets or {})}
