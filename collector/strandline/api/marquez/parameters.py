"""The parameters that Marquez' clients send, read as they send them."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path
from pydantic import BeforeValidator, Field, WithJsonSchema

from strandline.api.http.route import Route
from strandline.questions.parameters import Query, Text, Whole, Word

N = "/namespaces/{namespace:name}"
D = N + "/datasets/{dataset:name}"
J = N + "/jobs/{job:name}"
MOST = 1_000  # of one page
JSON = dict[str, Any]


def marquez_router(prefix: str = "/api/v1") -> APIRouter:
    """Return a router of Marquez' API."""
    return APIRouter(prefix=prefix, tags=["marquez"], route_class=Route)


def any_case(*words: str) -> Any:
    """Return the validator of one of a few words; Marquez' page writes them in upper case."""

    def word(text: str) -> str:
        if text and text.upper() not in words:
            raise ValueError(f"is not one of {', '.join(words)}")
        return text.upper()

    return BeforeValidator(word)


def _flag(value: Any) -> bool:
    """Return a truth value; marquez-python sends it as Python writes it."""
    if str(value).lower() not in ("true", "false"):
        raise ValueError("is neither true nor false")
    return str(value).lower() == "true"


Flag = Annotated[bool, BeforeValidator(_flag), WithJsonSchema({"type": "boolean"})]
NamespaceName = Annotated[Text, Path(alias="namespace", description="The namespace")]
DatasetName = Annotated[Text, Path(alias="dataset", description="The dataset's name")]
JobName = Annotated[Text, Path(alias="job", description="The job's name")]
FieldName = Annotated[Word, Path(alias="field", description="The column's name")]
TagName = Annotated[Word, Path(alias="tag", description="The tag's name")]
SourceName = Annotated[Word, Path(alias="source", description="The source's name")]
RunId = Annotated[Word, Path(alias="id", description="The id of the run")]
VersionId = Annotated[Word, Path(alias="version", description="The id of the version")]
Number = Annotated[int, Whole(0, 2**31 - 1)]


class PageQuery(Query):
    """A part of a list."""

    limit: Annotated[Number, Field(description=f"Maximum number of items, up to {MOST}")] = 100
    offset: Annotated[Number, Field(description="Items to skip at the beginning")] = 0

    @property
    def page(self) -> tuple[int, int]:
        """Limit and offset."""
        return min(self.limit, MOST), self.offset


Depth = Annotated[int, Whole(0, 1_000), Field(description="Maximum number of jobs on a path")]


class NodeQuery(Query):
    """A graph around a node."""

    node_id: Annotated[Word, Field(description="dataset:NAMESPACE:NAME or job:NAMESPACE:NAME")]
    depth: Depth = 20


Period = Annotated[
    str,
    any_case("DAY", "WEEK"),
    WithJsonSchema({"type": "string", "enum": ["", "DAY", "WEEK"]}),
    Field(description="DAY: the last 24 hours; WEEK: the last seven days"),
]
Facets = Literal["run", "job", "dataset"]
