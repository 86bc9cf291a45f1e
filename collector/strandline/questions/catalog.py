"""Questions for lists and details of datasets, jobs and runs, and the search for a name."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from strandline.questions import declared
from strandline.questions.parameters import (
    CURSOR,
    MOST_VALUES,
    OPAQUE,
    Limit,
    ListQuery,
    NamedQuery,
    PageQuery,
    Query,
    SpanQuery,
    Text,
    Word,
    cursor_of,
    each_once,
)
from strandline.store.catalog.proposal_tables import TABLES

Within = Annotated[Text | None, Field(description=declared.NAMESPACE.sentence)]
RunId = Annotated[
    Word,
    Field(description="The id of the run", examples=["0196a1c2-0000-7000-8000-000000000001"]),
]


class NodeListQuery(SpanQuery, PageQuery):
    """Datasets or jobs by name."""

    namespace: Within = None
    tag: Annotated[
        tuple[Word, ...],
        Field(
            max_length=MOST_VALUES,
            description=declared.TAG.sentence,
            examples=[["pii"]],
        ),
        AfterValidator(each_once),
    ] = ()
    owner: Annotated[
        tuple[Word, ...],
        Field(
            max_length=MOST_VALUES,
            description=declared.OWNER.sentence,
            examples=[["team-a"]],
        ),
        AfterValidator(each_once),
    ] = ()
    cursor: Annotated[Any, cursor_of(str, str), OPAQUE, CURSOR] = None


class JoinedNamesQuery(PageQuery):
    """Datasets that have several names, by name."""

    cursor: Annotated[Any, cursor_of(str, str), OPAQUE, CURSOR] = None


class SimilarJobsQuery(ListQuery):
    """Jobs whose names differ only in a date, an id or a number."""

    namespace: Within = None
    limit: Limit = 100


class PartsQuery(NamedQuery, PageQuery):
    """The snapshots of a dataset, or the barriers of a job."""

    cursor: Annotated[Any, cursor_of(int, str), OPAQUE, CURSOR] = None


class OfJobQuery(Query):
    """The runs of one job, or of all."""

    namespace: Annotated[
        Text | None,
        Field(
            description="Namespace of the job (`default` where only a name is given), or of all "
            "jobs (`*` stands for anything)"
        ),
    ] = None
    name: Annotated[
        Text | None, Field(description="Name of the job; without it the runs of all jobs")
    ] = None
    job: Annotated[
        Word | None,
        Field(
            description="The same as one text, as for events: job:NAMESPACE:NAME, or its name "
            "where only one has it"
        ),
    ] = None


class RunListQuery(OfJobQuery, SpanQuery, PageQuery):
    """Runs, the newest first."""

    parent: Annotated[
        Word | None, Field(description="The id of a run; only the runs directly below it")
    ] = None
    cursor: Annotated[Any, cursor_of(int, int), OPAQUE, CURSOR] = None


class RunQuery(OfJobQuery):
    """One run."""

    run_id: RunId


class SearchQuery(PageQuery):
    """Datasets, jobs and runs by a part of a name or another text."""

    q: Annotated[
        Word,
        Field(
            description=declared.SEARCHED.sentence,
            examples=["balance"],
        ),
    ]
    cursor: Annotated[Any, cursor_of(int, str, str, str), OPAQUE, CURSOR] = None


class TableQuery(Query):
    """One of the proposals' tables."""

    format: Annotated[
        Literal["json", "csv"],
        Field(description="An array of objects, or comma-separated values"),
    ] = "json"
    state: Annotated[
        Literal["running", "history"],
        Field(description="What runs now, or what ran, with valid_from and valid_to"),
    ] = "running"


TABLE_ABOUT = f"One of {', '.join(TABLES)}"
