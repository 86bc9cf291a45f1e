"""Values, bounds and help of the parameters that HTTP and commands share.

Query models and options are both made from these. The help of a command needs neither pydantic nor
the store.
"""

from typing import NamedTuple

from strandline.core.limits import MOST_OF_DATABASE
from strandline.core.openlineage.moments import EXAMPLES
from strandline.core.openlineage.run_states import STATES_LISTED


class Parameter(NamedTuple):
    """A parameter: its help, its values if they are few, its bounds if it is a whole number."""

    about: str
    values: tuple[str, ...] = ()
    low: int = 0
    high: int = 0

    @property
    def sentence(self) -> str:
        """The help as the API's documentation begins it."""
        return self.about[:1].upper() + self.about[1:]


DIRECTION = Parameter(
    "what it was made from, what was made from it, or both", ("upstream", "downstream", "both")
)
DEPTH = Parameter(
    "maximum number of jobs on a path; without it to the ends of the graph", low=0, high=1_000_000
)
MOST_NODES = Parameter("maximum number of nodes", low=1, high=MOST_OF_DATABASE)
EDGE_STATE = Parameter(
    "recent: all edges of each job's last runs; latest: those of its latest run alone; running: "
    "only what runs now",
    ("recent", "latest", "running"),
)
GRANULARITY = Parameter("from table to table, or from column to column", ("table", "column"))
COLUMN = Parameter("with granularity column: only this column of the dataset")
DEPENDENCY = Parameter(
    "with granularity column: only edges that carry a value (direct), that filter, join or sort by "
    "it (indirect), or without column lineage (opaque)",
    ("direct", "indirect", "opaque"),
)
COLLAPSE = Parameter(
    "show jobs as their parent or root job: tasks as their DAG, statements as their application",
    ("none", "parent", "root"),
)
SHOWN_NAMESPACE = Parameter("show only nodes of this namespace; `*` stands for anything")
SHOWN_KIND = Parameter("show only nodes of this kind", ("dataset", "job", "column"))
SHOWN_TAG = Parameter("show only nodes with this tag (KEY, or KEY=VALUE; `*` stands for anything)")
SHOWN_FACET = Parameter(
    "show only nodes with this value in a facet: KEY.FIELD=VALUE, such as "
    "jobType.processingType=STREAMING; `*` stands for anything"
)
ONE_COLUMN = Parameter("only this column of the table")
FROM_COLUMN = Parameter("only from this column")
TO_COLUMN = Parameter("only to this column")
AS_OF = Parameter(f"as it was at this time: {EXAMPLES}")
EARLIER = Parameter(f"the earlier moment: {EXAMPLES}")
LATER = Parameter("the later moment (default: now)")
SINCE = Parameter(f"from this time on: {EXAMPLES}")
UNTIL = Parameter("before this time")
RUN_STATE = Parameter(
    f"of runs in this state: {STATES_LISTED}, or several with commas; those that have ended in "
    "the span"
)
NAMESPACE = Parameter("only of this namespace; `*` stands for anything")
TAG = Parameter("only with this tag (KEY, or KEY=VALUE; `*` stands for anything)")
OWNER = Parameter("only of this owner, as `owners` shows it; `*` stands for anything")
SEARCHED = Parameter(
    "a part of a name, of catalog.database.table, of a tag, a column or an SQL text, in any case; "
    "the beginning of a run's id; the id of a Spark application or of a snapshot"
)
BARRIER = Parameter("the barrier whose delay is shown (default: the last one)")
EVENTS_OF_JOB = Parameter("of this job: job:NAMESPACE:NAME, or its name where only one has it")
EVENTS_OF_RUN = Parameter("of this run")
EVENTS_OF_DATASET = Parameter(
    "that name this dataset: dataset:NAMESPACE:NAME, or a short name like database.table"
)
