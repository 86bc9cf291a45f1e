"""Clients that trust only answers.

They send each event until it is answered with 201, and look whether it is there then.
"""

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import httpx
from sqlalchemy import Connection, Engine, func, select

from strandline.core.openlineage.facets import content_hash
from strandline.store.schema.received_tables import raw_events

SENDERS, PATIENCE = 4, 60
SECONDS = 600


@dataclass
class Heard:
    """The answers to clients: how often each status (0: no answer).

    missing: events that were answered with 201 and were not there.
    """

    statuses: Counter[int] = field(default_factory=Counter)
    missing: list[bytes] = field(default_factory=list)


def post_all(address: str, bodies: Sequence[bytes], engine: Engine) -> Heard:
    """Several clients send at once until everything was answered with 201.

    `engine` is not the server's.
    """
    heard = Heard()
    parts = [bodies[number::SENDERS] for number in range(SENDERS)]
    threads = [
        threading.Thread(target=_post, args=(address, part, engine, heard), daemon=True)
        for part in parts
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
        assert not thread.is_alive(), "senders do not come to an end"
    return heard


def status_of(client: httpx.Client, body: bytes) -> int:
    """The status of an answer; 0 where none came."""
    try:
        return client.post("/api/v1/lineage", content=body).status_code
    except httpx.TransportError:
        return 0


def is_stored_once(connection: Connection, body: bytes) -> bool:
    """Return true if the event is there now."""
    query = (
        select(func.count()).select_from(raw_events).where(raw_events.c.hash == content_hash(body))
    )
    found = connection.execute(query).scalar_one()
    connection.rollback()
    return found == 1


def _post(address: str, bodies: Sequence[bytes], engine: Engine, heard: Heard) -> None:
    limits = httpx.Limits(max_keepalive_connections=1)
    with (
        httpx.Client(base_url=address, timeout=PATIENCE, limits=limits) as client,
        engine.connect() as eyes,
    ):
        for body in bodies:
            while (status := status_of(client, body)) != 201:
                heard.statuses[status] += 1
            heard.statuses[201] += 1
            if not is_stored_once(eyes, body):
                heard.missing.append(body)
