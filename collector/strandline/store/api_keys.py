"""API keys, `st_<id>_<secret>`: made once, shown once, kept only as a hash.

Each has scopes, namespaces and perhaps an end.

A revoked or expired key stays listed and is never valid again.
"""

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection, Row, Select, insert, or_, select, update

from strandline.core.access.granted import SCOPES, Access, Scope, faults_of
from strandline.errors import NotFoundError, RefusedError
from strandline.store.schema.access_tables import api_keys

LONGEST_DAYS = 36_500
FIRST_NAME = "first-admin"
PREFIX = "st_"  # so that scanners for leaked secrets can know one
ID_BYTES = 4
USED_EVERY = 60_000_000  # microseconds: a last use is written once a minute at most


@dataclass(frozen=True)
class ApiKey:
    """The stored part of a key."""

    id: str
    name: str
    scopes: tuple[Scope, ...]
    patterns: tuple[str, ...]
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime | None
    revoked_at: datetime | None

    @property
    def document(self) -> dict[str, object]:
        """The key as JSON shows it."""
        return {
            "id": self.id,
            "name": self.name,
            "scopes": self.scopes,
            "namespaces": self.patterns,
            "createdAt": self.created_at.isoformat(),
            "expiresAt": self.expires_at and self.expires_at.isoformat(),
            "lastUsedAt": self.used_at and self.used_at.isoformat(),
            "revokedAt": self.revoked_at and self.revoked_at.isoformat(),
        }

    @property
    def access(self) -> Access:
        """The rights of the key."""
        return Access(f"key {self.name} ({self.id})", frozenset(self.scopes), self.patterns)

    def is_valid(self, now: datetime) -> bool:
        """Return whether it opens anything now."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


def add_key(
    connection: Connection,
    name: str,
    now: datetime,
    scopes: Sequence[str] = ("admin",),
    patterns: Sequence[str] = ("*",),
    expires_at: datetime | None = None,
) -> str:
    """Make a key and return it: nobody can ask for it again."""
    if faults := faults_of(name, scopes, patterns):
        raise RefusedError("; ".join(faults), code="key")
    if connection.scalar(_valid(now).where(api_keys.c.name == name)):
        raise RefusedError(f"there is a key {name} already; revoke it first", code="exists")
    id_ = secrets.token_hex(ID_BYTES)
    key = f"{PREFIX}{id_}_{secrets.token_urlsafe(32)}"
    values = {
        "hash": _hash(key),
        "id": id_,
        "name": name,
        "scopes": ",".join(scope for scope in SCOPES if scope in scopes),
        "namespaces": "\n".join(dict.fromkeys(patterns)),
        "created_at": _micros(now),
        "expires_at": None if expires_at is None else _micros(expires_at),
    }
    connection.execute(insert(api_keys).values(values))
    return key


def add_first_key(connection: Connection, key: str, now: datetime) -> None:
    """Store a key that somebody else has made, for admin on everything.

    Raise RefusedError for a key that was stored before: it has ended.
    """
    hash_ = _hash(key)
    if connection.scalar(select(api_keys.c.id).where(api_keys.c.hash == hash_)) is not None:
        raise RefusedError("the admin key in the settings is revoked; set another one", "key")
    values = {
        "hash": hash_,
        "id": secrets.token_hex(ID_BYTES),
        "name": FIRST_NAME,
        "scopes": "admin",
        "namespaces": "*",
        "created_at": _micros(now),
    }
    connection.execute(insert(api_keys).values(values))


def has_admin_key(connection: Connection, now: datetime) -> bool:
    """Return whether a key opens everything now."""
    return any(
        key.is_valid(now) and key.access.may("admin") and key.access.everything
        for key in keys_of(connection)
    )


def revoke_key(connection: Connection, name: str, now: datetime) -> None:
    """End the key of that name or id, within five seconds everywhere."""
    called = or_(api_keys.c.name == name, api_keys.c.id == name.removeprefix(PREFIX))
    ended = (
        update(api_keys)
        .where(called, api_keys.c.revoked_at.is_(None))
        .values(revoked_at=_micros(now))
    )
    if not connection.execute(ended).rowcount:
        raise NotFoundError(
            f"there is no valid key named {name}",
            candidates=[key.name for key in keys_of(connection)],
        )


def keys_of(connection: Connection) -> list[ApiKey]:
    """All keys, oldest first."""
    rows = connection.execute(select(api_keys).order_by(api_keys.c.created_at, api_keys.c.name))
    return [_key(row) for row in rows]


def key_of(connection: Connection, key: str, now: datetime) -> ApiKey | None:
    """Return this key's rights, if it is one of ours, not revoked and not expired."""
    row = connection.execute(select(api_keys).where(api_keys.c.hash == _hash(key))).first()
    found = None if row is None else _key(row)
    return found if found is not None and found.is_valid(now) else None


def has_key(connection: Connection, now: datetime) -> bool:
    """Return whether there is a key that opens anything now."""
    return connection.execute(_valid(now).limit(1)).first() is not None


def is_stale(key: ApiKey, now: datetime) -> bool:
    """Return whether its last use is worth being written anew."""
    return key.used_at is None or _micros(now) - _micros(key.used_at) >= USED_EVERY


def note_use(connection: Connection, key: ApiKey, now: datetime) -> None:
    """Write that a key was used now."""
    connection.execute(update(api_keys).where(api_keys.c.id == key.id).values(used_at=_micros(now)))


def _valid(now: datetime) -> Select[str]:
    alive = or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > _micros(now))
    return select(api_keys.c.name).where(api_keys.c.revoked_at.is_(None), alive)


def _key(row: Row[tuple[object, ...]]) -> ApiKey:
    created, expires, used, revoked = map(
        _moment, (row.created_at, row.expires_at, row.used_at, row.revoked_at)
    )
    assert created is not None
    scopes: tuple[Scope, ...] = tuple(scope for scope in SCOPES if scope in row.scopes.split(","))
    return ApiKey(
        row.id, row.name, scopes, tuple(row.namespaces.split("\n")), created, expires, used, revoked
    )


def _hash(key: str) -> bytes:
    """Return a plain hash: it is enough for 256 random bits, which nobody can guess."""
    return hashlib.sha256(key.encode()).digest()


def _micros(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000_000)


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else datetime.fromtimestamp(micros / 1_000_000, UTC)
