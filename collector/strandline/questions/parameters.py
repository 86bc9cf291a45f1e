"""Shared parameters of questions: texts, numbers, moments, filters, cursors and pages.

A model of this package is the only declaration of a question's parameters: HTTP reads requests with
it and documents it.
"""

import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, core_schema

from strandline.core.exports import formats
from strandline.core.openlineage.moments import EXAMPLES, exact_moment, moment
from strandline.core.openlineage.run_states import STATES
from strandline.questions import declared
from strandline.store.catalog.filters import states_called
from strandline.store.questions.selection import facet_value
from strandline.store.sql.pages import decode_cursor

MOST_VALUES = 100  # of one parameter that may be given several times


class Query(BaseModel):
    """The parameters of a question; names are camelCase outside."""

    model_config = ConfigDict(
        alias_generator=to_camel, validate_by_name=True, validate_by_alias=True, frozen=True
    )
    exported_as: ClassVar[Literal["list", "graph"] | None] = None

    def asked(self) -> dict[str, Any]:
        """Return the parameters under the names that the outside gives them."""
        fields = type(self).model_fields
        return {field.alias or name: getattr(self, name) for name, field in fields.items()}


@dataclass(frozen=True)
class Whole:
    """Marks a whole number from `low` to `high`, written in digits alone."""

    low: int = 0
    high: int = 2**63 - 1

    def __get_pydantic_core_schema__(self, _: Any, __: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.parse)

    def __get_pydantic_json_schema__(self, _: CoreSchema, __: GetJsonSchemaHandler) -> Any:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}

    def parse(self, value: Any) -> int:
        """Return the number; raise ValueError with both bounds if it is none."""
        number = int(value) if re.fullmatch(r"-?[0-9]{1,19}", str(value)) else None
        if number is None or not self.low <= number <= self.high:
            raise ValueError(f"is not a whole number from {self.low} to {self.high}")
        return number


def _storable(text: str) -> str:
    """Return the text, unless a database could not hold it."""
    if "\x00" in text or (
        not text.isascii() and any("\ud800" <= sign <= "\udfff" for sign in text)
    ):
        raise ValueError("has a character that no name can have")
    return text


def _not_empty(text: str) -> str:
    if not text:
        raise ValueError("is empty")
    return text


def each_once(values: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
    """Return the values without those that came before."""
    return tuple(dict.fromkeys(values))


def _moment(text: Any) -> Any:
    return moment(text, datetime.now(UTC)) if isinstance(text, str) else text


def _states(text: Any) -> Any:
    return states_called(text.split(",")) if isinstance(text, str) else text


def _facet(text: Any) -> Any:
    return facet_value(_not_empty(_storable(text))) if isinstance(text, str) else text


def cursor_of(*types: type) -> Any:
    """Return the validator of a cursor of a list whose keys have these types."""
    return BeforeValidator(lambda text: text if text is None else decode_cursor(text, types))


_PATTERN = {"type": "string", "pattern": "^[^\\x00]*$"}
_STATE = "|".join(STATES)
Text = Annotated[str, AfterValidator(_storable), WithJsonSchema(_PATTERN)]
Word = Annotated[
    str,
    AfterValidator(_not_empty),
    AfterValidator(_storable),
    WithJsonSchema(_PATTERN | {"minLength": 1}),
]
When = Annotated[
    datetime,
    BeforeValidator(_moment),
    WithJsonSchema({
        "type": "string", "minLength": 1, "examples": EXAMPLES.replace(" or ", ", ").split(", "),
    }),
]  # fmt: skip
Moment = Annotated[
    datetime,
    BeforeValidator(lambda text: exact_moment(text) if isinstance(text, str) else text),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
# A type that is a set would be read as a parameter that may be given several times.
RunStates = Annotated[
    Any,
    BeforeValidator(_states),
    WithJsonSchema({"type": "string", "pattern": f"^ *({_STATE}) *(, *({_STATE}) *)*$"}),
]
FacetHas = Annotated[
    Any,
    BeforeValidator(_facet),
    WithJsonSchema({"type": "string", "pattern": r"^[^.=\x00]+(\.[^.=\x00]+)*=[^\x00]*$"}),
]
Direction = Annotated[
    Literal[declared.DIRECTION.values],  # type: ignore[name-defined]
    Field(description=declared.DIRECTION.sentence),
]
Depth = Annotated[
    Annotated[int, Whole(declared.DEPTH.low, declared.DEPTH.high)] | None,
    Field(description=declared.DEPTH.sentence),
]
EdgeState = Annotated[
    Literal[declared.EDGE_STATE.values],  # type: ignore[name-defined]
    Field(description=declared.EDGE_STATE.about),
]
Granularity = Annotated[
    Literal[declared.GRANULARITY.values],  # type: ignore[name-defined]
    Field(description=declared.GRANULARITY.sentence),
]
MostNodes = Annotated[
    int,
    Whole(declared.MOST_NODES.low, declared.MOST_NODES.high),
    Field(description=declared.MOST_NODES.sentence),
]
AsOf = Annotated[
    When | None,
    Field(description=declared.AS_OF.sentence, examples=["2026-11-20T12:00:00Z"]),
]
Since = Annotated[When | None, Field(description=declared.SINCE.sentence)]
Until = Annotated[When | None, Field(description=declared.UNTIL.sentence)]
Limit = Annotated[int, Whole(1, 1000), Field(description="Maximum number of items")]
CURSOR = Field(description="`nextCursor` of the page before")
OPAQUE = WithJsonSchema({"type": "string", "minLength": 1})
Namespace = Annotated[Text, Field(description="The namespace", examples=["file"])]
Name = Annotated[Text, Field(description="The name in it", examples=["/lake/bank/balance"])]
ListFormat = Annotated[
    Literal["json", "csv"] | None,
    Field(description="json or csv; without it as the Accept header says, else json"),
]
GraphFormat = Annotated[
    formats.GraphFormat | None,
    Field(
        description=f"{', '.join(formats.GRAPH_FORMATS[:-1])} or {formats.GRAPH_FORMATS[-1]}; "
        "without it as the Accept header says, else json"
    ),
]


class ListQuery(Query):
    """A question whose answer is a list, which can be had as CSV, too."""

    exported_as: ClassVar[Literal["list", "graph"] | None] = "list"
    format: ListFormat = None


class GraphQuery(Query):
    """A question whose answer is a graph, which can be had in other formats as well."""

    exported_as: ClassVar[Literal["list", "graph"] | None] = "graph"
    format: GraphFormat = None


class PageQuery(ListQuery):
    """A question that is answered a page at a time; subclasses say what a cursor is."""

    limit: Limit = 100


class SelectedQuery(Query):
    """The selection of a graph's nodes.

    What lies behind a node that is not shown stays, joined by edges with `through`.
    """

    namespace: Annotated[
        tuple[Word, ...],
        Field(
            max_length=MOST_VALUES,
            description=declared.SHOWN_NAMESPACE.sentence,
            examples=[["prod*"]],
        ),
        AfterValidator(each_once),
    ] = ()
    kind: Annotated[
        tuple[Literal[declared.SHOWN_KIND.values], ...],  # type: ignore[name-defined]
        Field(max_length=MOST_VALUES, description=declared.SHOWN_KIND.sentence),
        AfterValidator(each_once),
    ] = ()
    tag: Annotated[
        tuple[Word, ...],
        Field(
            max_length=MOST_VALUES,
            description=declared.SHOWN_TAG.sentence,
            examples=[["pii"]],
        ),
        AfterValidator(each_once),
    ] = ()
    facet: Annotated[
        tuple[FacetHas, ...],
        Field(
            max_length=MOST_VALUES,
            description=declared.SHOWN_FACET.sentence,
            examples=[["jobType.processingType=STREAMING"]],
        ),
        AfterValidator(each_once),
    ] = ()


class SpanQuery(Query):
    """Of what time and state the items of a list are."""

    state: Annotated[
        RunStates,
        Field(description=declared.RUN_STATE.sentence),
    ] = frozenset()
    since: Since = None
    until: Until = None
    as_of: AsOf = None


class NamedQuery(Query):
    """The namespace and name of a thing."""

    namespace: Namespace
    name: Name


def reason_of(fault: Mapping[str, Any]) -> str:
    """Say what a model found wrong with a value."""
    context = fault.get("ctx") or {}
    match fault["type"]:
        case "value_error":
            return str(context["error"])
        case "literal_error":
            words = context["expected"].replace("'", "").replace(" or ", ", ")
            return f"is not one of {words}"
        case "too_long":
            return f"is given more than {MOST_VALUES} times"
        case "extra_forbidden":
            return "is not known here"
        case "missing":
            return "is missing"
    message: str = fault["msg"]
    return f"is wrong: {message[:1].lower()}{message[1:]}"
