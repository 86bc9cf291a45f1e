"""What the operations on versions share: the follower of the application, bodies as checked values, tables by name."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from sqlalchemy import Connection

from strandline.api.operation import Ask, ParameterError
from strandline.core.barriers import Table
from strandline.core.model import Model
from strandline.store.follower import Follower
from strandline.store.version_names import table_of

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
    """The body as a value of `kind`; what is wrong is said with its place."""
    try:
        return msgspec.convert(ask.body, kind)
    except msgspec.ValidationError as error:
        raise ParameterError(f"the body is not as it should be: {error}") from None


def tables_of(connection: Connection, model: Model, named: tuple[Named, ...]) -> list[Table]:
    """The tables that a body names, each once, in its order."""
    return list(dict.fromkeys(table_of(connection, model, one.namespace, one.name) for one in named))


def named(table: tuple[str, str]) -> Mapping[str, Any]:
    """A table or job as JSON shows it."""
    return {"namespace": table[0], "name": table[1]}
