"""Leases of readers on the snapshots that they were answered.

While one lasts, expiry keeps what it names.

A lease that is over stays over: its snapshots may be gone. A reader who comes late gets an error
and asks anew.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
from sqlalchemy import Connection, delete, insert, select, update

from strandline.core.versions.expirable import Pin
from strandline.core.versions.facts import Table
from strandline.errors import NotFoundError, RefusedError
from strandline.store.schema.version_tables import reader_leases
from strandline.store.versions.renamed_tables import rows_of

KEPT_OVER = 86_400 * 1_000_000  # how long one that is over is remembered, to say so
Claims = list[tuple[str, str, str]]


@dataclass(frozen=True, slots=True)
class StoredLease:
    """A lease, valid until `expires_at` (microseconds)."""

    id: str
    expires_at: int


def take_lease(
    connection: Connection, snapshots: Mapping[Table, str], seconds: float, now: int, holder: str
) -> StoredLease:
    """Lease snapshots for some seconds."""
    connection.execute(delete(reader_leases).where(reader_leases.c.expires_at < now - KEPT_OVER))
    lease = StoredLease(secrets.token_urlsafe(16), now + round(seconds * 1_000_000))
    body = msgspec.json.encode(
        [(*table, snapshot) for table, snapshot in sorted(snapshots.items())]
    )
    values = {
        "id": lease.id,
        "created_at": now,
        "expires_at": lease.expires_at,
        "holder": holder,
        "body": body,
    }
    connection.execute(insert(reader_leases).values(values))
    return lease


def renew_lease(connection: Connection, id_: str, seconds: float, now: int) -> StoredLease:
    """Renew a lease; refused when it is over already (code `expired`)."""
    expires_at = now + round(seconds * 1_000_000)
    valid = (reader_leases.c.id == id_, reader_leases.c.expires_at > now)
    if not connection.execute(
        update(reader_leases).where(*valid).values(expires_at=expires_at)
    ).rowcount:
        _tell_why(connection, id_)
    return StoredLease(id_, expires_at)


def end_lease(connection: Connection, id_: str) -> None:
    """End a lease."""
    if not connection.execute(delete(reader_leases).where(reader_leases.c.id == id_)).rowcount:
        raise NotFoundError(f"unknown lease: {id_}")


def tables_claimed(connection: Connection, id_: str) -> list[Table]:
    """The tables that a lease names; none if there is no such lease."""
    body = connection.scalar(select(reader_leases.c.body).where(reader_leases.c.id == id_))
    return (
        []
        if body is None
        else [(namespace, name) for namespace, name, _ in msgspec.json.decode(body, type=Claims)]
    )


def lease_pins(connection: Connection, table: Table, now: int) -> list[Pin]:
    """Return the leased snapshots of a table, under any name that it had."""
    valid: Sequence[tuple[str, str, bytes]] = [
        (row.id, row.holder, row.body)
        for row in connection.execute(select(reader_leases).where(reader_leases.c.expires_at > now))
    ]
    names = rows_of(connection, table).names if valid else frozenset[Table]()
    return [
        Pin(snapshot, f"lease {id_}" + (f" of {holder}" if holder else ""))
        for id_, holder, body in valid
        for namespace, name, snapshot in msgspec.json.decode(body, type=Claims)
        if (namespace, name) in names
    ]


def _tell_why(connection: Connection, id_: str) -> None:
    if connection.scalar(select(reader_leases.c.id).where(reader_leases.c.id == id_)) is None:
        raise NotFoundError(f"unknown lease: {id_}")
    raise RefusedError(
        f"lease {id_} is over: its snapshots may be gone, ask for a version again", "expired"
    )
