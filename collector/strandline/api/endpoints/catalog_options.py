"""PUT and DELETE /api/v2/catalog-options: what a catalog shows of lineage.

GET /api/v2/tables/catalog_options lists them.
"""

import msgspec

from strandline.api.endpoints.version_requests import body_as
from strandline.api.http.operations import Ask, Operation, Parameter, Text
from strandline.store.versions.catalog_options import drop_option, set_option


class Option(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An option of a catalog."""

    catalog: str
    key: str
    value: str


def write(ask: Ask) -> None:
    """Write an option, in place of what it was."""
    option = body_as(ask, Option)
    with ask.engine.begin() as connection:
        set_option(connection, option.catalog, option.key, option.value)


def reset(ask: Ask) -> None:
    """Let an option be as it is by default."""
    with ask.engine.begin() as connection:
        drop_option(connection, ask.given["catalog"], ask.given["key"])


_TEXT = {"type": "string"}
_OPTION = {
    "type": "object",
    "properties": {"catalog": _TEXT, "key": _TEXT, "value": _TEXT},
    "required": ["catalog", "key", "value"],
}
_WHICH = (
    Parameter("catalog", "The catalog", Text(1), required=True),
    Parameter("key", "The option: table-lineage, data-lineage or another", Text(1), required=True),
)

OPERATIONS = (
    Operation(
        "PUT",
        "/api/v2/catalog-options",
        "Set an option of a catalog",
        write,
        body=_OPTION,
        status=204,
        refusals=(409,),
        scope="admin",
        whole=True,
    ),
    Operation(
        "DELETE",
        "/api/v2/catalog-options",
        "Reset an option",
        reset,
        _WHICH,
        status=204,
        refusals=(404,),
        scope="admin",
        whole=True,
    ),
)
