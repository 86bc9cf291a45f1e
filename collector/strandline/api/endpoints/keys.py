"""API keys: make one, list them, end one; what `strandline keys --url` asks."""

from datetime import timedelta
from typing import Any

import msgspec

from strandline.api.endpoints.version_requests import body_as
from strandline.api.http.operations import Ask, Operation, Parameter, ParameterError, Text
from strandline.core.access.granted import SCOPES, faults_of
from strandline.store.api_keys import LONGEST_DAYS, add_key, keys_of, revoke_key
from strandline.store.sql.engine import read_from

TEXTS = {"type": "array", "items": {"type": "string"}}
WANTED_KEY = {
    "type": "object",
    "required": ["name", "scopes", "namespaces"],
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "scopes": {"type": "array", "minItems": 1, "items": {"enum": list(SCOPES)}},
        "namespaces": TEXTS | {"minItems": 1},
        "days": {"type": "integer", "minimum": 1, "maximum": LONGEST_DAYS},
    },
}
MADE_KEY = {
    "type": "object",
    "required": ["name", "key"],
    "properties": {"name": {"type": "string"}, "key": {"type": "string"}},
}
KEYS = {
    "type": "object",
    "required": ["items"],
    "properties": {"items": {"type": "array", "items": {"type": "object"}}},
}


class WantedKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A key that shall be made, valid for `days` or until it is revoked."""

    name: str
    scopes: tuple[str, ...]
    namespaces: tuple[str, ...]
    days: int | None = None


def make_key(ask: Ask) -> dict[str, str]:
    """Make a key; this answer is the only place that shows it."""
    wanted = body_as(ask, WantedKey)
    faults = faults_of(wanted.scopes, wanted.namespaces)
    if not wanted.name.strip() or not wanted.name.isprintable():
        faults.append("the name is empty, or not one line")
    if wanted.days is not None and not 1 <= wanted.days <= LONGEST_DAYS:
        faults.append(f"days is not a whole number from 1 to {LONGEST_DAYS}")
    if faults:
        raise ParameterError("; ".join(faults))
    ends = None if wanted.days is None else ask.now + timedelta(days=wanted.days)
    with ask.whole_engine.begin() as connection:
        key = add_key(connection, wanted.name, ask.now, wanted.scopes, wanted.namespaces, ends)
    return {"name": wanted.name, "key": key}


def list_keys(ask: Ask) -> dict[str, Any]:
    """Return all keys, the oldest first, without what opens anything."""
    with read_from(ask.whole_engine) as connection:
        return {"items": [key.document for key in keys_of(connection)]}


def end_key(ask: Ask) -> None:
    """Revoke a key."""
    with ask.whole_engine.begin() as connection:
        revoke_key(connection, ask.given["name"], ask.now)


_NAME = Parameter("name", "The name of the key, or its id", Text(1), required=True)
OPERATIONS = (
    Operation(
        "POST",
        "/api/v2/keys",
        "Make an API key; it is shown once",
        make_key,
        body=WANTED_KEY,
        answer=MADE_KEY,
        status=201,
        refusals=(409,),
        scope="admin",
        whole=True,
    ),
    Operation(
        "GET",
        "/api/v2/keys",
        "All API keys with their scopes, namespaces and times",
        list_keys,
        answer=KEYS,
        scope="admin",
        whole=True,
    ),
    Operation(
        "DELETE",
        "/api/v2/keys/{name}",
        "End an API key, within five seconds on every server",
        end_key,
        (_NAME,),
        status=204,
        refusals=(404,),
        scope="admin",
        whole=True,
    ),
)
