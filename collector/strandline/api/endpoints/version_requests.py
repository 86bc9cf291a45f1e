"""What the operations on versions share.

The follower of the application, bodies as checked values, tables by name.
"""

import re
from collections.abc import Mapping
from typing import Any, TypeVar, get_args

import msgspec
from sqlalchemy import Connection

from strandline.api.http.operations import Ask, ParameterError
from strandline.core.versions.facts import Table
from strandline.core.versions.model import Model
from strandline.runtime.follower import Follower
from strandline.store.versions.lookup import call, table_of

Body = TypeVar("Body")

NAMED = {
    "type": "object",
    "properties": {"namespace": {"type": "string"}, "name": {"type": "string"}},
    "required": ["namespace", "name"],
}
TABLES = {"type": "array", "items": NAMED, "minItems": 1}


class Named(msgspec.Struct, frozen=True):
    """A table or job in a body."""

    namespace: str
    name: str

    @property
    def pair(self) -> tuple[str, str]:
        """As the model names it."""
        return (self.namespace, self.name)


def follower_of(ask: Ask) -> Follower:
    """The application's follower."""
    follower: Follower = ask.request.app.state.follower
    return follower


def body_as(ask: Ask, kind: type[Body]) -> Body:
    """The body as a value of `kind`; an error names the place of the fault."""
    try:
        return msgspec.convert(ask.body, kind)
    except msgspec.ValidationError as error:
        raise ParameterError(
            f"the body is not as it should be: {error}{_choices(kind, str(error))}"
        ) from None


def _choices(kind: type[Any], fault: str) -> str:
    """The words that a field takes, where another one was sent."""
    found = re.fullmatch(r"Invalid enum value .* - at `\$\.(\w+)`", fault)
    if found is None:
        return ""
    fields = {one.encode_name: one.type for one in msgspec.structs.fields(kind)}
    words = get_args(fields.get(found[1]))
    return f"; it is one of {', '.join(map(str, words))}" if words else ""


def tables_of(connection: Connection, model: Model, named: tuple[Named, ...]) -> list[Table]:
    """The tables that a body names, each once, in its order.

    Words about them call them as Spark does.
    """
    found = list(
        dict.fromkeys(table_of(connection, model, one.namespace, one.name) for one in named)
    )
    call(connection, model, found)
    return found


def named(table: tuple[str, str]) -> Mapping[str, Any]:
    """A table or job as JSON shows it."""
    return {"namespace": table[0], "name": table[1]}
