"""Questions of lineage: between tables, columns, snapshots, namespaces and runs."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from strandline.core.limits import MOST_OF_DATABASE
from strandline.core.walk import MOST_NODES
from strandline.questions import declared
from strandline.questions.parameters import (
    MOST_VALUES,
    AsOf,
    Depth,
    Direction,
    EdgeState,
    Granularity,
    GraphQuery,
    ListQuery,
    MostNodes,
    NamedQuery,
    SelectedQuery,
    Text,
    When,
    Whole,
    Word,
    each_once,
)
from strandline.store.questions import run_graph

NODE = (
    "dataset:NAMESPACE:NAME or job:NAMESPACE:NAME (the longest known namespace counts, symlinks "
    "are followed); or a short name such as database.table where only one node has it"
)
NODE_EXAMPLES = [["dataset:file:/lake/bank/balance"]]
Nodes = Annotated[
    tuple[Word, ...],
    Field(min_length=1, max_length=MOST_VALUES, description=NODE, examples=NODE_EXAMPLES),
    AfterValidator(each_once),
]
NodesOrAround = Annotated[
    tuple[Word, ...],
    Field(max_length=MOST_VALUES, description=f"{NODE}; or give `around`", examples=NODE_EXAMPLES),
    AfterValidator(each_once),
]


class LineageQuery(SelectedQuery, GraphQuery):
    """The lineage of a dataset or job, or of several together."""

    node: NodesOrAround = ()
    direction: Direction = "both"
    depth: Depth = None
    granularity: Granularity = "table"
    column: Annotated[Word | None, Field(description=declared.COLUMN.sentence)] = None
    dependency: Annotated[
        tuple[Literal[declared.DEPENDENCY.values], ...],  # type: ignore[name-defined]
        Field(max_length=MOST_VALUES, description=declared.DEPENDENCY.sentence),
        AfterValidator(each_once),
    ] = ()
    state: EdgeState = "recent"
    as_of: AsOf = None
    collapse: Annotated[
        Literal[declared.COLLAPSE.values],  # type: ignore[name-defined]
        Field(description=declared.COLLAPSE.sentence),
    ] = "none"
    limit: MostNodes = MOST_NODES
    around: Annotated[
        Word | None,
        Field(
            description="Instead of `node`: the steps around this node (one job each way, if no "
            "`depth` says more), at most 12 boxes a step; a box of type `rest` stands for all "
            "others of its step"
        ),
    ] = None
    pin: Annotated[
        tuple[Word, ...],
        Field(max_length=MOST_VALUES, description="With around: show this node in any case"),
        AfterValidator(each_once),
    ] = ()
    step: Annotated[
        Annotated[int, Whole(-declared.DEPTH.high, declared.DEPTH.high)] | None,
        Field(
            description="With around: list the nodes of this step (below 0: upstream), a page at "
            "a time"
        ),
    ] = None
    cursor: Annotated[
        Word | None, Field(description="With step: `nextCursor` of the page or box before")
    ] = None

    @model_validator(mode="after")
    def _fit_start(self) -> Self:
        if self.node and self.around:
            raise ValueError("parameter around replaces node: give one of them")
        if not self.node and not self.around:
            raise ValueError(f"parameter node is missing: {NODE}; or give `around`")
        if self.around and self.granularity == "column":
            raise ValueError("parameter around needs granularity=table")
        if not self.around and self.pin:
            raise ValueError("parameter pin needs around")
        if not self.around and self.step is not None:
            raise ValueError("parameter step needs around")
        return self

    @model_validator(mode="after")
    def _fit_granularity(self) -> Self:
        if self.granularity == "column":
            if self.collapse != "none":
                raise ValueError("parameter collapse needs granularity=table")
            return self
        for name in ("column", "dependency"):
            if getattr(self, name):
                raise ValueError(f"parameter {name} needs granularity=column")
        return self


class NodesQuery(SelectedQuery, ListQuery):
    """The nodes of a lineage without its edges."""

    node: Nodes
    direction: Direction = "both"
    depth: Depth = None
    state: EdgeState = "recent"
    as_of: AsOf = None
    limit: MostNodes = MOST_OF_DATABASE


class MapQuery(GraphQuery):
    """The whole graph as boxes of places."""

    under: Annotated[
        tuple[Word, ...],
        Field(
            max_length=MOST_VALUES,
            description="The id of a box to open; those around it are open as well. The last one "
            "gets the room first",
            examples=[["catalog:lake"]],
        ),
        AfterValidator(each_once),
    ] = ()
    as_of: AsOf = None


class WholeGraphQuery(GraphQuery):
    """The whole graph, of one namespace or of all."""

    namespace: Annotated[Text | None, Field(description=declared.NAMESPACE.sentence)] = None
    state: EdgeState = "recent"
    as_of: AsOf = None
    limit: MostNodes = MOST_NODES


class SnapshotLineageQuery(NamedQuery, GraphQuery):
    """The lineage of a snapshot."""

    snapshot_id: Annotated[
        Word | None, Field(description="The snapshot; without it the newest that is known")
    ] = None
    direction: Direction = "both"
    depth: Depth = None
    as_of: AsOf = None
    limit: MostNodes = MOST_NODES


class ImpactQuery(SelectedQuery, ListQuery):
    """A question for the dependents of a table, a column or a job."""

    node: Annotated[
        Word,
        Field(
            description="A table, a column of one as TABLE.COLUMN, or a job: "
            "dataset:NAMESPACE:NAME, job:NAMESPACE:NAME or a short name",
            examples=["bank.balance"],
        ),
    ]
    column: Annotated[Word | None, Field(description=declared.ONE_COLUMN.sentence)] = None
    depth: Depth = None
    state: EdgeState = "recent"
    as_of: AsOf = None
    limit: MostNodes = MOST_NODES


class PathsQuery(SelectedQuery, GraphQuery):
    """The ways from one node to another."""

    first: Annotated[
        Word,
        Field(
            alias="from",
            description="Start of the paths, as `node` elsewhere",
            examples=["bank.transfers"],
        ),
    ]
    last: Annotated[
        Word, Field(alias="to", description="End of the paths", examples=["bank.balance"])
    ]
    from_column: Annotated[Word | None, Field(description=declared.FROM_COLUMN.sentence)] = None
    to_column: Annotated[Word | None, Field(description=declared.TO_COLUMN.sentence)] = None
    granularity: Granularity = "table"
    depth: Depth = None
    state: EdgeState = "recent"
    as_of: AsOf = None
    limit: MostNodes = MOST_NODES


class ChangesQuery(SelectedQuery, ListQuery):
    """A question for the changes between two moments."""

    node: Annotated[
        tuple[Word, ...],
        Field(
            max_length=MOST_VALUES,
            description="Only around this node, as far as `depth` goes; without one around the "
            "datasets with the newest events",
        ),
        AfterValidator(each_once),
    ] = ()
    since: Annotated[
        When,
        Field(description=declared.EARLIER.sentence, examples=["2026-11-20T12:00:00Z"]),
    ]
    until: Annotated[When | None, Field(description=declared.LATER.sentence)] = None
    direction: Direction = "both"
    depth: Depth = None
    granularity: Granularity = "table"
    state: EdgeState = "recent"
    limit: MostNodes = MOST_NODES


class NamespacesQuery(GraphQuery):
    """A question for the flow between namespaces."""

    as_of: AsOf = None
    limit: MostNodes = MOST_NODES


class RunGraphQuery(GraphQuery):
    """The runs that made what a run read, and those that made what they read."""

    run_id: Annotated[
        Word,
        Field(description="The id of the run", examples=["0196a1c2-0000-7000-8000-000000000001"]),
    ]
    depth: Annotated[int, Whole(0, 100), Field(description="Maximum number of runs on a path")] = (
        run_graph.DEPTH
    )
    as_of: AsOf = None
