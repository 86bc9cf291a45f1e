"""The keys of Spark conf that the emitter reads, each with its default and its meaning.

`make reference` writes them to docs/reference/spark-conf.md. Words in capitals stand for a name.
"""

from __future__ import annotations


class ConfKey(str):
    """A key of Spark conf; as a string it goes wherever Spark takes a key.

    An empty `default` means that the key is unset, or that `about` says what holds instead.
    """

    default: str
    about: str

    def __new__(cls, key: str, default: str, about: str) -> ConfKey:  # noqa: PYI034
        """Declare a key."""
        declared = super().__new__(cls, key)
        declared.default, declared.about = default, about
        return declared


ENABLED = ConfKey("spark.strandline.enabled", "false", "switches the emitter on")
COLLECTOR_URL = ConfKey(
    "spark.strandline.collector.url",
    "",
    "the collector's address: readers in Spark ask it, and events go there unless "
    "`spark.openlineage.transport.type` or `.url` names another place",
)
COLLECTOR_TOKEN = ConfKey(
    "spark.strandline.collector.token",
    "",
    "the collector's API key; Spark shows its conf in its page and in command lines",
)
COLLECTOR_TOKEN_FILE = ConfKey(
    "spark.strandline.collector.token.file",
    "",
    "a file on the driver that holds the key; without it, the driver's environment does: "
    "`STRANDLINE_KEY`, or `STRANDLINE_KEY_FILE` for a file",
)
GROUP = ConfKey(
    "spark.strandline.group", "", "the group whose barriers the application's micro-batches carry"
)
COMPLETES = ConfKey(
    "spark.strandline.completes",
    "false",
    "batch jobs assert that their tables show the state of their inputs after each run, even if "
    "they append or merge; for one statement: `with strandline_spark.completes(spark):`",
)
CONSISTENCY = ConfKey(
    "spark.strandline.consistency",
    "latest",
    "`strong` or `weak`: `spark.sql` reads the tables of all catalogs at one version",
)
CATALOG_CONSISTENCY = ConfKey(
    "spark.strandline.catalog.NAME.consistency", "", "the same for the tables of one catalog"
)
CATALOG_UNTRACKED = ConfKey(
    "spark.strandline.catalog.NAME.untracked",
    "refuse",
    "`latest`: tables without barriers may be read, as they are, beside those at a version",
)
TABLE_UNTRACKED = ConfKey(
    "spark.strandline.catalog.NAME.untracked.DATABASE.TABLE", "", "the same for one table"
)
CATALOG_TABLE_LINEAGE = ConfKey(
    "spark.strandline.catalog.NAME.table-lineage",
    "true",
    "`false`: the proposals' tables do not show the catalog's edges; needs a key with the scope "
    "`admin`",
)
CATALOG_DATA_LINEAGE = ConfKey(
    "spark.strandline.catalog.NAME.data-lineage",
    "true",
    "`false`: they do not show its snapshots; needs a key with the scope `admin`",
)
JOB_NAME = ConfKey(
    "spark.strandline.job.name",
    "{app}.{output}",
    "names of jobs: `{output}` is the name of the output (`lake.bank.credits`, "
    "`s3://lake/silver/orders`) or of the streaming query; a session may set another before each "
    "statement",
)
REMOVE_PATTERN = ConfKey(
    "spark.strandline.job.removePattern",
    "",
    "text that matches this pattern (a date, a UUID) is cut from `spark.app.name` in names of "
    "jobs, but not from `spark.openlineage.appName`",
)
READS = ConfKey(
    "spark.strandline.reads", "false", "report actions that only read (`collect`, `show`)"
)
HEARTBEAT_SECONDS = ConfKey(
    "spark.strandline.heartbeat.seconds",
    "60",
    "silence after which a run is LOST; a heartbeat is sent at least every third of it",
)
LISTENERS = ConfKey(
    "spark.strandline.listeners",
    "",
    "factories of FLIP-314 listeners, `module.Class`, separated by commas",
)
QUEUE_SIZE = ConfKey(
    "spark.strandline.queue.size",
    "1000",
    "how many of Spark's events, and of ours, wait in memory at most",
)
EVENT_BYTES = ConfKey(
    "spark.strandline.event.bytes",
    "900000",
    "the largest event: a larger one loses optional facets, then inputs, and says so",
)
SPOOL_DIR = ConfKey(
    "spark.strandline.spool.dir",
    "~/.local/state/strandline/spool",
    "where events wait while the backend is away; choose a disk that outlives the driver. Unset: "
    "below `XDG_STATE_HOME`, where the environment has it",
)
SPOOL_BYTES = ConfKey(
    "spark.strandline.spool.bytes",
    "268435456",
    "how much of that disk a driver may take; events beyond it are dropped and counted. A replayed "
    "file may take twice its size meanwhile",
)
RECOVER_BATCHES = ConfKey(
    "spark.strandline.recover.batches",
    "10",
    "how many micro-batches a start reports again if it does not know which were reported",
)
APP_NAME = ConfKey(
    "spark.openlineage.appName",
    "",
    "name of the application in names of jobs; unset: `spark.app.name`, or the script or notebook "
    "that runs in a shell",
)
NAMESPACE = ConfKey("spark.openlineage.namespace", "default", "namespace of jobs")
PARENT_NAMESPACE = ConfKey(
    "spark.openlineage.parentJobNamespace",
    "",
    "namespace of the job whose run started this application; unset: the application's",
)
PARENT_NAME = ConfKey("spark.openlineage.parentJobName", "", "name of that job")
PARENT_RUN_ID = ConfKey("spark.openlineage.parentRunId", "", "id of that run, a UUID")
ROOT_NAMESPACE = ConfKey(
    "spark.openlineage.rootParentJobNamespace",
    "",
    "namespace of the job whose run is above all; unset: the application's",
)
ROOT_NAME = ConfKey(
    "spark.openlineage.rootParentJobName", "", "name of that job; unset: the parent is above all"
)
ROOT_RUN_ID = ConfKey("spark.openlineage.rootParentRunId", "", "id of that run, a UUID")
CAPTURED_PROPERTIES = ConfKey(
    "spark.openlineage.capturedProperties",
    "spark.master,spark.app.name",
    "properties of Spark that each START carries",
)
FACETS_DISABLED = ConfKey(
    "spark.openlineage.facets.disabled", "", "facets to leave out: `[NAME;NAME]`"
)
FACET_DISABLED = ConfKey("spark.openlineage.facets.NAME.disabled", "false", "leaves one facet out")
REMOVE_PATH_PATTERN = ConfKey(
    "spark.openlineage.dataset.removePath.pattern",
    "",
    "the group `remove` of this pattern is cut from dataset names",
)
SCHEMA_SIZE_LIMIT = ConfKey(
    "spark.openlineage.columnLineage.schemaSizeLimit",
    "",
    "outputs with more columns are reported without column lineage",
)
DATASET_LINEAGE_ENABLED = ConfKey(
    "spark.openlineage.columnLineage.datasetLineageEnabled",
    "true",
    "report filters and joins once an output; `false`: with each of its columns",
)
DISABLED = ConfKey(
    "spark.openlineage.disabled",
    "false",
    "switches the emitter off; `OPENLINEAGE_DISABLED=true` in the environment does, too",
)
TRANSPORT_TYPE = ConfKey(
    "spark.openlineage.transport.type",
    "",
    "`http`, `kafka`, `file`, `console` or `composite`; unset: `http` if there is an address, "
    "otherwise `console`",
)
TRANSPORT_URL = ConfKey(
    "spark.openlineage.transport.url",
    "",
    "for `http`: the address; readers in Spark ask it if there is no "
    "`spark.strandline.collector.url`",
)
TRANSPORT_ENDPOINT = ConfKey(
    "spark.openlineage.transport.endpoint",
    "/api/v1/lineage",
    "for `http`: the path after the address; an address with a path of its own needs none",
)
TRANSPORT_KEY = ConfKey(
    "spark.openlineage.transport.auth.apiKey",
    "",
    "for `http`: the API key; unset: the collector's, if events go to "
    "`spark.strandline.collector.url`",
)
TRANSPORT_OPTIONS = (
    ConfKey("spark.openlineage.transport.auth.api_key", "", "the same"),
    ConfKey(
        "spark.openlineage.transport.timeoutInMillis",
        "5000",
        "for `http`: how long an answer may take",
    ),
    ConfKey("spark.openlineage.transport.compression", "", "for `http`: `gzip`"),
    ConfKey("spark.openlineage.transport.headers.NAME", "", "for `http`: a header"),
    ConfKey(
        "spark.openlineage.transport.urlParams.NAME", "", "for `http`: a parameter of the address"
    ),
    ConfKey(
        "spark.openlineage.transport.sslContextConfig.caFile",
        "",
        "for `http`: the authorities to trust",
    ),
    ConfKey(
        "spark.openlineage.transport.sslContextConfig.certFile",
        "",
        "for `http`: the emitter's own certificate",
    ),
    ConfKey("spark.openlineage.transport.sslContextConfig.keyFile", "", "for `http`: its key"),
    ConfKey(
        "spark.openlineage.transport.topicName", "openlineage.events", "for `kafka`: the topic"
    ),
    ConfKey(
        "spark.openlineage.transport.messageKey",
        "",
        "for `kafka`: the key of all messages; unset: the run's",
    ),
    ConfKey(
        "spark.openlineage.transport.properties.bootstrap.servers",
        "",
        "for `kafka`: the brokers, `HOST:PORT,...`",
    ),
    ConfKey(
        "spark.openlineage.transport.properties.NAME",
        "",
        "for `kafka`: another property of Kafka's Java producer, SASL and SSL too",
    ),
    ConfKey("spark.openlineage.transport.location", "", "for `file`: a file of JSON lines"),
    ConfKey(
        "spark.openlineage.transport.transports.NAME.KEY",
        "",
        "for `composite`: the transports, each with keys of its own. Each gets every event; one "
        "with wrong conf is left out, and named in the log",
    ),
)


def declared_keys() -> list[ConfKey]:
    """Return every key, in the order of this module."""
    single = [key for key in globals().values() if isinstance(key, ConfKey)]
    return [*single, *TRANSPORT_OPTIONS]
