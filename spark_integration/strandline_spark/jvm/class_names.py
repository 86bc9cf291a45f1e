"""Names of classes in Spark, Scala and Spark's libraries.

The one file to open for a new Spark.

Classes by their full names, private fields, and texts that are parsed. All were seen on Spark
3.5.9, 4.0.5, 4.1.4, 4.2.1 and 4.3.0 unless a line says otherwise. Elsewhere a class is known by the
last part of its name only, because packages move: `IncrementalExecution` was in
`execution.streaming` before Spark 4.1. What a table format has of its own stands in that format's
folder. `internals` tries fields and texts at the start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SPARK = "org.apache.spark."

# Listening. Without one of these nothing is captured.
LISTENER = f"{SPARK}scheduler.SparkListenerInterface"
SPARK_CONTEXT = f"{SPARK}SparkContext"
SQL_EVENT = f"{SPARK}sql.execution.ui.SparkListenerSQLExecution"  # with Start and End behind it

# Plans. Without one of these plans are read as Spark's own JSON, which takes longer.
EXPRESSIONS = f"{SPARK}sql.catalyst.expressions."
LOGICAL = f"{SPARK}sql.catalyst.plans.logical."
SOURCES = f"{SPARK}sql.execution.datasources."
TREE = f"{SPARK}sql.catalyst.trees.TreeNode"
TREE_TAG = f"{SPARK}sql.catalyst.trees.TreeNodeTag"
CONNECTOR_CATALOG = f"{SPARK}sql.connector.catalog."
QUERY_EXECUTION = f"{SPARK}sql.execution.QueryExecution"
PHYSICAL_PLAN = f"{SPARK}sql.execution.SparkPlan"
METADATA = f"{SPARK}sql.types.Metadata"
# Failed statements: the class of a refused one, and the words for an error.
ANALYSIS_EXCEPTION = f"{SPARK}sql.AnalysisException"
UTILS = f"{SPARK}util.Utils"
# By class: where the plan is that did the work of a write. One may be in the other; one that is not
# here is passed over.
WITHIN: Mapping[str, str] = {
    f"{SPARK}sql.execution.adaptive.AdaptiveSparkPlanExec": "executedPlan",
    f"{SPARK}sql.execution.CommandResultExec": "commandPhysicalPlan",
    # since Spark 4, around what has a shuffle
    f"{SPARK}sql.execution.adaptive.ResultQueryStageExec": "plan",
}

# Names and places.
TABLE_IDENTIFIER = f"{SPARK}sql.catalyst.TableIdentifier"
IDENTIFIER = f"{SPARK}sql.connector.catalog.Identifier"
V2_FILE_TABLES = (
    f"{SPARK}sql.execution.datasources.v2."  # only with an empty spark.sql.sources.useV1SourceList
)
HADOOP_RELATION = f"{SOURCES}HadoopFsRelation"
KAFKA = f"{SPARK}sql.kafka010."
HADOOP_PATH, FILE_SYSTEM = "org.apache.hadoop.fs.Path", "org.apache.hadoop.fs.FileSystem"
# Without these a refused write of a DataFrame to a table of such a source is named by its path.
DATA_SOURCE = f"{SOURCES}DataSource"
OPTIONS_MAP = f"{SPARK}sql.util.CaseInsensitiveStringMap"

# Consistent reads: they raise an error where one is not here.
COMMANDS = (f"{LOGICAL}Command", f"{LOGICAL}ParsedStatement")
VIEW_CATALOG = f"{CONNECTOR_CATALOG}ViewCatalog"
STAGING_CATALOG = f"{CONNECTOR_CATALOG}StagingTableCatalog"

# Helpers of Spark's own, and of the libraries that it brings along.
THREADS = f"{SPARK}util.ThreadUtils"
CLASS_UTILS = (
    "org.apache.commons.lang3.ClassUtils"  # without it: two calls for a class's name instead of one
)
IO_UTILS = "org.apache.commons.io.IOUtils"  # without it: where a stream began is not known
OBJECT_MAPPER = "com.fasterxml.jackson.databind.ObjectMapper"
SPARK_JSON = "org.json4s.jackson.JsonMethods$"
SCALA_SEQ, SCALA_OPTION, SCALA_MAP = (
    "scala.collection.Seq",
    "scala.Option",
    "scala.collection.immutable.Map",
)
SCALA_LIST, SCALA_FUNCTION = "scala.collection.immutable.List", "scala.Function1"
SCALA_CONVERTERS = "scala.collection.JavaConverters"


@dataclass(frozen=True, slots=True)
class Internal:
    """A private field, and what the emitter does not know without it."""

    owner: str
    field: str
    lost: str


CURRENT = tuple(  # of a session
    Internal(
        f"{CONNECTOR_CATALOG}CatalogManager",
        field,
        "statements for which Spark makes no execution",
    )
    for field in ("_currentCatalogName", "_currentNamespace")
)
FIELDS = (
    *CURRENT,
    Internal(f"{KAFKA}KafkaRelation", "sourceOptions", "Kafka: the topics of a batch read"),
    Internal(
        f"{KAFKA}KafkaMicroBatchStream",
        "executorKafkaParams",
        "Kafka: the brokers of a streamed read",
    ),
)
