"""GET /api/v2/impact, /lineage/paths, /lineage/changes and /namespaces.

What breaks, which way, what changed, who feeds whom.
"""

from typing import Any

from strandline.api.endpoints.lineage import EDGE_SHAPE, GRANULARITY, NODE_SHAPE
from strandline.api.http.filters import SELECTION, SINCE, UNTIL
from strandline.api.http.operations import Ask, Operation, Parameter, Text
from strandline.api.http.paging import (
    AS_OF,
    DEPTH,
    DIRECTION,
    MOST,
    STATE,
    answer_to,
    graph_of,
    listed,
    shape,
)
from strandline.core.openlineage.times import micros_of

NODE = Parameter(
    "node",
    "A table, a column of one as TABLE.COLUMN, or a job: dataset:NAMESPACE:NAME, job:NAMESPACE:NAME or a short name",
    Text(1),
    required=True,
    example="bank.balance",
)
COLUMN = Parameter("column", "Only this column of the table", Text(1))
FIRST = Parameter(
    "from",
    "Where the ways begin: as `node` elsewhere",
    Text(1),
    required=True,
    example="bank.transfers",
)
LAST = Parameter("to", "Where they end", Text(1), required=True, example="bank.balance")
FIRST_COLUMN = Parameter("fromColumn", "Only from this column", Text(1))
LAST_COLUMN = Parameter("toColumn", "Only to this column", Text(1))
AROUND = Parameter(
    "node", "Only around this node, as far as `depth` goes; without one around the datasets heard of last", Text(1),
    many=True,
)  # fmt: skip
BEFORE = Parameter("since", SINCE.about.replace("From this time on", "The earlier moment"), SINCE.kind, required=True,
                   example="2026-11-20T12:00:00Z")  # fmt: skip
AFTER = Parameter("until", "The later moment (default: now)", UNTIL.kind)


def impact(ask: Ask) -> dict[str, Any]:
    """What depends on a table, a column or a job."""
    return answer_to(ask, "/impact")


def paths(ask: Ask) -> dict[str, Any]:
    """The ways between two nodes."""
    return answer_to(ask, "/lineage/paths")


def changes(ask: Ask) -> dict[str, Any]:
    """What came and went."""
    given = dict(ask.given) | {"since": micros_of(ask.given["since"])}
    return answer_to(ask, "/lineage/changes", given)


def namespaces(ask: Ask) -> dict[str, Any]:
    """How namespaces feed each other."""
    return answer_to(ask, "/namespaces")


ITEM = shape(
    "id", "type", "namespace", "name", column="string|null", distance="integer", dependency="string|null", jobs="array",
    owners="array", lastReadAt="string|null", lastReadBy="object|null", lastRunAt="string|null", lastRunState="string|null",
    inSchema="boolean|null",
)  # fmt: skip
CHANGE = shape(
    "change", "kind", id="string|null", source="string|null", target="string|null", job="string|null",
    dependency="string|null", transform="string|null", before="string|null", after="string|null",
)  # fmt: skip


OPERATIONS = (
    Operation(
        "GET",
        "/api/v2/impact",
        "What breaks if a table or a column goes: columns, tables and jobs, with owners and who read last",
        impact,
        (NODE, COLUMN, DEPTH, STATE, AS_OF, *SELECTION, MOST),
        answer=listed(
            ITEM, node="object", affected="object", truncatedBy="string|null", asOf="string"
        ),
        refusals=(404,),
        export="list",
        scope="read",
    ),
    Operation(
        "GET",
        "/api/v2/lineage/paths",
        "The ways from one node to another: all that lies on any, and a shortest one",
        paths,
        (
            FIRST,
            LAST,
            FIRST_COLUMN,
            LAST_COLUMN,
            GRANULARITY,
            DEPTH,
            STATE,
            AS_OF,
            *SELECTION,
            MOST,
        ),
        answer=graph_of(NODE_SHAPE, EDGE_SHAPE),
        refusals=(404,),
        export="graph",
        scope="read",
    ),
    Operation(
        "GET",
        "/api/v2/lineage/changes",
        "What came and went between two moments: datasets, jobs, edges between them; by column also columns and their types",
        changes,
        (AROUND, BEFORE, AFTER, DIRECTION, DEPTH, GRANULARITY, STATE, *SELECTION, MOST),
        answer=listed(
            CHANGE,
            since="string",
            until="string",
            added="integer",
            removed="integer",
            changed="integer",
            labels="object",
        ),
        refusals=(404,),
        export="list",
        scope="read",
    ),
    Operation(
        "GET",
        "/api/v2/namespaces",
        "Namespaces, and how many jobs read from one and write to another",
        namespaces,
        (AS_OF, MOST),
        answer=graph_of(
            shape("id", "type", "namespace", "name"), shape("source", "target", jobs="integer")
        ),
        export="graph",
        scope="read",
    ),
)
