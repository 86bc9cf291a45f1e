"""The forms of answers that several routes share, for OpenAPI and the columns of CSV."""

from typing import Any, Generic, Literal, NotRequired, TypeVar

from typing_extensions import TypedDict

Item = TypeVar("Item")
Node = TypeVar("Node")
Edge = TypeVar("Edge")
JSON = dict[str, Any]


class Page(TypedDict, Generic[Item]):
    """A page of a list; `nextCursor` null: this was the last.

    `total`: of datasets and jobs, where the first page is not all; not of a past moment, nor if
    states, tags, owners or a time are asked for.
    """

    items: list[Item]
    nextCursor: str | None
    total: NotRequired[int]


class Hidden(TypedDict, total=False):
    """Numbers of hidden things.

    Counted are nodes behind the depth or the limit (nothing further was looked at), and nodes that
    were filtered out (of changes: lines). So are edges that were reported but are not in the state
    asked for, and edges of other dependencies. So is what is in namespaces that the key does not
    see, and datasets whose schema is not known at one of two moments.
    """

    nodes: int
    edges: int
    filtered: int
    dependencies: int
    access: int
    schemas: int


class Graph(TypedDict, Generic[Node, Edge]):
    """Nodes with edges between them."""

    nodes: list[Node]
    edges: list[Edge]
    complete: bool
    truncatedBy: Literal["depth", "nodes", "edges", "access"] | None
    asOf: str
    hidden: Hidden


class Named(TypedDict):
    """A dataset, job or run by its names."""

    id: str
    type: str
    namespace: str
    name: str


class TableName(TypedDict):
    """A table or job."""

    namespace: str
    name: str


class LineageNode(Named):
    """A dataset, column or job of a graph.

    `latestRun` (with `around`): of a job whose edges are of an older run than the latest.
    """

    distance: NotRequired[int]
    state: NotRequired[str | None]
    running: NotRequired[bool]
    latestRun: NotRequired[JSON | None]


class LineageEdge(TypedDict):
    """An edge of a lineage graph.

    `latestRun`: of the job, where it failed, was aborted or lost after the edge was seen.
    """

    source: str
    target: str
    rule: NotRequired[str | None]
    state: NotRequired[str | None]
    running: NotRequired[bool]
    origins: NotRequired[list[Any]]
    lastSeen: NotRequired[str | None]
    runs: NotRequired[int | None]
    ofRuns: NotRequired[int | None]
    inLatest: NotRequired[bool | None]
    latestRun: NotRequired[JSON | None]
