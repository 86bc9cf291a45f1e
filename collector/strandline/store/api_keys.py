"""API keys: made once, shown once, kept only as a hash; a revoked key stays listed and is never valid again."""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, Engine, insert, select, update

from strandline.errors import NotFoundError, RefusedError
from strandline.store.schema.tables import api_keys
from strandline.store.sql.engine import reading

PREFIX = "slk_"  # so that scanners for leaked secrets can know one


@dataclass(frozen=True)
class ApiKey:
    """What is known of a key: its name, and since when it is valid, or no longer."""

    name: str
    created_at: datetime
    revoked_at: datetime | None


def add_key(connection: Connection, name: str, now: datetime) -> str:
    """Make a key and return it: nobody can ask for it again."""
    if connection.scalar(select(api_keys.c.name).where(api_keys.c.name == name, api_keys.c.revoked_at.is_(None))):
        raise RefusedError(f"there is a key {name} already; revoke it first", code="exists")
    key = PREFIX + secrets.token_urlsafe(32)
    connection.execute(insert(api_keys).values(hash=_hash(key), name=name, created_at=_micros(now)))
    return key


def revoke_key(connection: Connection, name: str, now: datetime) -> None:
    """End the key of that name, within a minute everywhere."""
    valid = (api_keys.c.name == name, api_keys.c.revoked_at.is_(None))
    if not connection.execute(update(api_keys).where(*valid).values(revoked_at=_micros(now))).rowcount:
        raise NotFoundError(f"no valid key is called {name}", candidates=[key.name for key in keys_of(connection)])


def keys_of(connection: Connection) -> list[ApiKey]:
    """All keys, oldest first."""
    rows = connection.execute(select(api_keys).order_by(api_keys.c.created_at, api_keys.c.name))
    return [
        ApiKey(row.name, _moment(row.created_at), None if row.revoked_at is None else _moment(row.revoked_at))
        for row in rows
    ]


def is_valid_key(engine: Engine, key: str) -> bool:
    """Whether this is one of the keys and not revoked."""
    valid = select(api_keys.c.name).where(api_keys.c.hash == _hash(key), api_keys.c.revoked_at.is_(None))
    with reading(engine).connect() as connection:
        return connection.execute(valid).first() is not None


def _hash(key: str) -> bytes:
    """A plain hash is enough: a key has 256 random bits, there is nothing to guess."""
    return hashlib.sha256(key.encode()).digest()


def _micros(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000_000)


def _moment(micros: int) -> datetime:
    return datetime.fromtimestamp(micros / 1_000_000, UTC)
