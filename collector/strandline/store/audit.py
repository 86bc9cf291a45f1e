"""The audit log: who changed what, when and from where, with the status of the answer.

Nothing is ever changed in it.
"""

import getpass
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, insert, select

from strandline.core.openlineage.times import micros_of, moment_of
from strandline.store.schema.access_tables import audit_log


class Entry(NamedTuple):
    """One change.

    `who` is the name of an API key, `command NAME` for a user of this machine, empty where no key
    is asked.
    """

    at: datetime
    who: str
    what: str
    address: str
    status: int
    details: str


def note(connection: Connection, entry: Entry) -> None:
    """Add an entry, in the transaction of the change where the caller has one."""
    connection.execute(insert(audit_log).values(entry._asdict() | {"at": micros_of(entry.at)}))


def note_command(connection: Connection, at: datetime, what: str, details: str) -> None:
    """Add what a command of this machine did."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        user = "unknown"
    note(connection, Entry(at, f"command {user}", what, "", 0, details))


def entries(
    connection: Connection, limit: int, before: int | None = None
) -> list[tuple[int, Entry]]:
    """Return the newest entries with their numbers, or those before a number."""
    query = select(audit_log).order_by(audit_log.c.id.desc()).limit(limit)
    if before is not None:
        query = query.where(audit_log.c.id < before)
    return [
        (row.id, Entry(moment_of(row.at), row.who, row.what, row.address, row.status, row.details))
        for row in connection.execute(query)
    ]
