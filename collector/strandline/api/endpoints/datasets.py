"""Lists and details of datasets, jobs and runs; their snapshots and barriers.

The search for a name.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from strandline.api.http.filters import SPAN, filter_of
from strandline.api.http.operations import Ask, Operation, Parameter, ParameterError, Text
from strandline.api.http.paging import (
    AS_OF,
    NAME,
    NAMESPACE,
    WITHIN,
    connected,
    page_of,
    paged,
    shape,
)
from strandline.core.openlineage.times import micros_of
from strandline.store.catalog import details
from strandline.store.catalog import lists as listing
from strandline.store.catalog.search import search_page
from strandline.store.lineage.lookup import Node, dataset_of, job_called, job_of
from strandline.store.lineage.snapshot_lineage import snapshot_answer, snapshots_of

OF_JOB = (
    Parameter(
        "namespace",
        "Namespace of the job (`default` where only a name is given), or of all jobs (`*` stands for anything)",
        Text(),
    ),
    Parameter("name", "Name of the job; without it the runs of all jobs", Text()),
    Parameter(
        "job",
        "The same as one text, as for events: job:NAMESPACE:NAME, or its name where only one has it",
        Text(1),
    ),
)
RUN = Parameter("runId", "The id of the run", Text(1), required=True,
                example="0196a1c2-0000-7000-8000-000000000001")  # fmt: skip
QUERY = Parameter(
    "q",
    "A part of a name, of catalog.database.table, of a tag, a column or an SQL text, in any case; or the beginning of a run's id",
    Text(1),
    required=True,
    example="balance",
)

Answer = dict[str, Any]


def datasets(ask: Ask) -> Answer:
    """A page of datasets."""
    with connected(ask) as connection:
        return listing.datasets_page(connection, filter_of(ask), micros_of(ask.now), *_page(ask))


def dataset(ask: Ask) -> Answer:
    """Everything about a dataset."""
    with connected(ask) as connection:
        found = dataset_of(connection, ask.given["namespace"], ask.given["name"])
        return details.dataset_detail(connection, found, micros_of(ask.now))


def snapshots(ask: Ask) -> Answer:
    """A page of a dataset's snapshots."""
    with connected(ask) as connection:
        found = dataset_of(connection, ask.given["namespace"], ask.given["name"])
        page = snapshots_of(connection, found, ask.given["limit"], ask.given["cursor"])
        return page.of([snapshot_answer(row) for row in page.rows])


def jobs(ask: Ask) -> Answer:
    """A page of jobs."""
    with connected(ask) as connection:
        return listing.jobs_page(connection, filter_of(ask), micros_of(ask.now), *_page(ask))


def job(ask: Ask) -> Answer:
    """Everything about a job."""
    with connected(ask) as connection:
        found = job_of(connection, ask.given["namespace"], ask.given["name"])
        return details.job_detail(connection, found, micros_of(ask.now))


def barriers(ask: Ask) -> Answer:
    """A page of a job's barriers."""
    with connected(ask) as connection:
        found = job_of(connection, ask.given["namespace"], ask.given["name"])
        return listing.barriers_page(connection, found, ask.given["limit"], ask.given["cursor"])


def runs(ask: Ask) -> Answer:
    """A page of runs."""
    with connected(ask) as connection:
        job = _of_job(connection, ask.given)
        return listing.runs_page(connection, job, filter_of(ask), micros_of(ask.now), *_page(ask))


def run(ask: Ask) -> Answer:
    """Everything about a run."""
    given = ask.given
    with connected(ask) as connection:
        return details.run_detail(
            connection, given["runId"], micros_of(ask.now), _of_job(connection, given)
        )


def _of_job(connection: Connection, given: Mapping[str, Any]) -> Node | None:
    named = None
    if given["name"] is not None:
        named = job_of(
            connection,
            "default" if given["namespace"] is None else given["namespace"],
            given["name"],
        )
    if given["job"] is None:
        return named
    called = job_called(connection, given["job"])
    if named is not None and named != called:
        raise ParameterError(f"parameters job and name are two jobs: {called} and {named}")
    return called


def _page(ask: Ask) -> tuple[int, Any]:
    return ask.given["limit"], ask.given["cursor"]


def search(ask: Ask) -> Answer:
    """A page of what a search finds."""
    with connected(ask) as connection:
        return search_page(connection, ask.given["q"], *_page(ask))


NAMED = shape("id", "type", "namespace", "name")
DETAIL = shape("namespace", "name", facets="object", quarantined="object")
RUN_SHAPE = shape(
    "runId", "state", running="boolean", job="object", startedAt="string|null", endedAt="string|null",
    error="string|null", failedChildren="integer",
)  # fmt: skip
SNAPSHOT_SHAPE = shape(
    "snapshotId", observed="boolean", barrierId="integer|null", committedAt="string|null"
)
BARRIER_SHAPE = shape(
    "phase", barrierId="integer", batchId="integer|null", committedAt="string|null"
)
NODE = (NAMESPACE, NAME)
BASE = "/api/v2"
OPERATIONS = (
    Operation("GET", f"{BASE}/datasets", "Datasets by name, each with its latest write", datasets,
              (WITHIN, *SPAN, AS_OF, *paged(str, str)),
              export="list", answer=page_of(NAMED), scope="read"),
    Operation("GET", f"{BASE}/datasets/detail", "A dataset with all its names and facets", dataset, NODE,
              answer=DETAIL, refusals=(404,), scope="read"),
    Operation("GET", f"{BASE}/datasets/snapshots", "The snapshots of a dataset, the newest first", snapshots,
              (*NODE, *paged(int, str)), export="list", answer=page_of(SNAPSHOT_SHAPE), refusals=(404,), scope="read"),
    Operation("GET", f"{BASE}/jobs", "Jobs by name, each with its latest run", jobs,
              (WITHIN, *SPAN, AS_OF, *paged(str, str)),
              export="list", answer=page_of(NAMED), scope="read"),
    Operation("GET", f"{BASE}/jobs/detail", "A job with its latest run, what ran below it, and all its facets; "
              "of a streaming query its batches", job, NODE,
              answer=DETAIL, refusals=(404,), scope="read"),
    Operation("GET", f"{BASE}/jobs/barriers", "How far a streaming job is: its barriers, the greatest first", barriers,
              (*NODE, *paged(int, str)), export="list", answer=page_of(BARRIER_SHAPE), refusals=(404,), scope="read"),
    Operation("GET", f"{BASE}/runs", "Runs, the newest first, failed ones with the reason", runs,
              (*OF_JOB, *SPAN, AS_OF, *paged(int, int)),
              export="list", answer=page_of(RUN_SHAPE), refusals=(404,), scope="read"),
    Operation("GET", f"{BASE}/runs/detail", "A run with inputs, outputs, what ran below it, and all facets", run,
              (RUN, *OF_JOB),
              answer=RUN_SHAPE, refusals=(404,), scope="read"),
    Operation("GET", f"{BASE}/search", "Datasets, jobs and runs by a part of a name, a tag, a column or an SQL text; `matched` says of which", search,
              (QUERY, *paged(int, str, str, str)), export="list", answer=page_of(NAMED), scope="read"),
)  # fmt: skip
