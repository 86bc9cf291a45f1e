"""Names of classes in Spark, Scala and Spark's libraries.

The one file to open for a new Spark.

Classes by their full names, and private fields. All were seen on Spark 3.5.9, 4.0.5, 4.1.4, 4.2.1
and 4.3.0 unless a line says otherwise. Elsewhere a class is known by the last part of its name
only, because packages move: `IncrementalExecution` was in `execution.streaming` before Spark 4.1.
What a table format has of its own stands in that format's folder. `internals` looks for the fields
at the start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SPARK = "org.apache.spark."

EXPRESSIONS = f"{SPARK}sql.catalyst.expressions."
LOGICAL = f"{SPARK}sql.catalyst.plans.logical."
SOURCES = f"{SPARK}sql.execution.datasources."
CONNECTOR_CATALOG = f"{SPARK}sql.connector.catalog."
QUERY_EXECUTION = f"{SPARK}sql.execution.QueryExecution"
EXECUTION = f"{SPARK}sql.execution."

# The compiler of `probe.java`, and what stands there by its simple name. Without one of these
# nothing is captured.
COMPILER = "org.codehaus.janino.SimpleCompiler"
IMPORTED = (
    f"{SPARK}SparkContext",
    f"{SPARK}scheduler.SparkListener",
    f"{SPARK}scheduler.SparkListenerApplicationEnd",
    f"{SPARK}scheduler.SparkListenerEvent",
    f"{SPARK}sql.catalyst.AliasIdentifier",
    f"{EXPRESSIONS}Cast",
    f"{EXPRESSIONS}ExprId",
    f"{EXPRESSIONS}Literal",
    f"{SPARK}sql.catalyst.plans.JoinType",
    f"{SPARK}sql.catalyst.trees.TreeNode",
    f"{EXECUTION}SparkPlan",
    f"{SPARK}sql.types.DataType",
    f"{SPARK}sql.types.DatetimeType",
    f"{SPARK}sql.types.Metadata",
    f"{SPARK}sql.types.StructField",
    f"{SPARK}util.ThreadUtils",
    "com.fasterxml.jackson.databind.ObjectMapper",
    "scala.Enumeration",
    "scala.Option",
    "scala.Product",
    "scala.collection.JavaConverters",
    "scala.collection.Seq",
)

# Events, of which the probe says what is asked of them (`jvm.notices`).
SQL_EVENT = f"{EXECUTION}ui.SparkListenerSQLExecution"  # with Start and End behind it
STREAM_EVENT = f"{SPARK}sql.streaming.StreamingQueryListener$Query"  # StartedEvent, TerminatedEvent
APPLICATION_END = f"{SPARK}scheduler.SparkListenerApplicationEnd"

# Failed statements: the class of a refused one, and the words for an error.
ANALYSIS_EXCEPTION = f"{SPARK}sql.AnalysisException"
UTILS = f"{SPARK}util.Utils"
# By class: where the plan is that did the work of a write. One may be in the other.
WITHIN: Mapping[str, str] = {
    f"{EXECUTION}adaptive.AdaptiveSparkPlanExec": "executedPlan",
    f"{EXECUTION}CommandResultExec": "commandPhysicalPlan",
    # since Spark 4, around what has a shuffle
    f"{EXECUTION}adaptive.ResultQueryStageExec": "plan",
}
# Leaves of a physical plan: those that scan, by where the scan is, and those that hold plans.
SCANS: Mapping[str, str] = {
    f"{EXECUTION}datasources.v2.BatchScanExec": "scan",
    f"{EXECUTION}datasources.v2.MicroBatchScanExec": "scan",
    f"{EXECUTION}FileSourceScanExec": "",  # the leaf itself
}
INSIDE: Mapping[str, str] = {
    **WITHIN,
    f"{EXECUTION}adaptive.QueryStageExec": "plan",
    f"{EXECUTION}columnar.InMemoryTableScanExec": "relation.cachedPlan",
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
IO_UTILS = "org.apache.commons.io.IOUtils"  # without it: where a stream began is not known
OBJECT_MAPPER = "com.fasterxml.jackson.databind.ObjectMapper"
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
