"""Statements of which Spark made no execution, and the targets of refused DataFrame writes.

Spark reports a SQL statement that fails in analysis, but not `df.writeTo(t).append()` and its kin.
Such a write is read as the SQL statement with the same target, by the name that the target had
when the write failed. A write to a path has no such statement: its path is its target.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from strandline_spark.extraction.failed_analysis import quoted, whole_name
from strandline_spark.formats.mention import Mention
from strandline_spark.formats.writes import Write
from strandline_spark.jvm.class_names import DATA_SOURCE, OPTIONS_MAP
from strandline_spark.jvm.client import JAVA_FAILED, JavaObject, Jvm, optional
from strandline_spark.model.statement import Operation

_STATEMENTS: Mapping[str, str] = {  # by the writer's method
    "append": "INSERT INTO {table} VALUES (1)",
    "overwrite": "INSERT OVERWRITE {table} VALUES (1)",
    "overwritePartitions": "INSERT OVERWRITE {table} VALUES (1)",
    "create": "CREATE TABLE {table}{using} AS SELECT 1 AS id",
    "replace": "CREATE OR REPLACE TABLE {table}{using} AS SELECT 1 AS id",
    "createOrReplace": "CREATE OR REPLACE TABLE {table}{using} AS SELECT 1 AS id",
    "merge": "MERGE INTO {table} USING (SELECT 1) ON true WHEN MATCHED THEN DELETE",
}
# By the save mode of a writer: the method of the newer writer that does the same.
_INSERTING: Mapping[str, str] = {"Overwrite": "overwrite"}
_SAVING: Mapping[str, str] = {"Append": "append", "Overwrite": "createOrReplace"}
_OPERATIONS: Mapping[str, Operation] = {"Append": "append", "Overwrite": "overwrite"}


@dataclass(frozen=True, slots=True, kw_only=True)
class NotExecuted:
    """A statement of which Spark reports nothing.

    `current`: the catalog and the namespace of the session at that moment; None for the
    namespace that the catalog itself has as its default.
    `error`: the JVM's, or Python's; None for a procedure that ran.
    """

    number: int
    session: JavaObject
    current: tuple[str, tuple[str, ...] | None]
    at: float  # milliseconds since 1970
    until: float
    error: JavaObject | Exception | None
    job_name: str | None = None  # the session's template of names

    @property
    def message(self) -> str | None:
        """The error, as Spark has it for a statement that it reports."""
        if self.error is None:
            return None
        if isinstance(self.error, Exception):
            return f"{type(self.error).__name__}: {self.error}"
        return str(self.error.getMessage() or self.error.toString())

    def current_names(self) -> tuple[str, ...]:
        """Return the catalog and the parts of the namespace that a name may leave out."""
        catalog, namespace = self.current
        if namespace is None:
            manager = self.session.sessionState().catalogManager()
            namespace = tuple(map(str, manager.catalog(catalog).defaultNamespace()))
        return (catalog, *namespace)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedWrite(NotExecuted):
    """A DataFrame write that failed before anything was executed.

    `target`: the table or the path that `method` was given; a newer writer knows its table itself.
    """

    writer: JavaObject
    method: str
    target: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlText(NotExecuted):
    """A SQL statement that failed before anything was executed, or a CALL."""

    text: str


Unreported = RefusedWrite | SqlText


def as_statement(write: RefusedWrite, jvm: Jvm) -> JavaObject | None:
    """Return the parsed SQL statement with the write's target; None for a write to a path."""
    parser = jvm.session.sessionState().sqlParser()
    names, method = jvm.field(write.writer, "tableName"), write.method
    if names is None:
        methods = {"insertInto": _INSERTING, "saveAsTable": _SAVING}.get(method)
        if methods is None:
            return None
        names = parser.parseMultipartIdentifier(write.target)
        otherwise = "append" if method == "insertInto" else "create"
        method = methods.get(_mode(write, jvm), otherwise)
    parts = whole_name(jvm.sequence(names), jvm, write.current_names())
    table = quoted(parts)
    provider = _provider(write, jvm)
    using = f" USING `{provider}`" if provider is not None else ""
    return parser.parsePlan(_STATEMENTS[method].format(table=table, using=using))


def write_to_path(write: RefusedWrite, jvm: Jvm) -> Write:
    """Return the target of `save`, and of its kin."""
    options = jvm.options(jvm.field(write.writer, "extraOptions"))
    if write.target is not None:
        options["path"] = write.target
    provider = _provider(write, jvm) if write.method == "save" else write.method
    operation = _OPERATIONS.get(_mode(write, jvm), "create")
    mention = _in_catalog(str(provider), options, jvm)
    if mention is None:
        mention = Mention(provider=str(provider).lower(), options=options)
    return Write(mention, operation)


def _in_catalog(provider: str, options: Mapping[str, str], jvm: Jvm) -> Mention | None:
    """Return the table of a source that finds its tables in catalogs, as Iceberg's does."""
    try:
        conf = jvm.session.sessionState().conf()
        source = jvm.static(DATA_SOURCE, "lookupDataSourceV2")(provider, conf).get()
        options_map = jvm.new(OPTIONS_MAP, jvm.new("java.util.HashMap", options))
        name = source.extractCatalog(options_map)
        catalog = jvm.session.sessionState().catalogManager().catalog(name)
        identifier = source.extractIdentifier(options_map)
        table = catalog.loadTable(identifier)
    except (*JAVA_FAILED, TypeError):
        return None
    return Mention(table=table, catalog=catalog, identifier=identifier)


def _mode(write: RefusedWrite, jvm: Jvm) -> str:
    mode: JavaObject = jvm.field(write.writer, "curmode") or jvm.field(write.writer, "mode")
    return str(mode.toString())


def _provider(write: RefusedWrite, jvm: Jvm) -> str | None:
    """Return the format that the writer was given, or has by itself."""
    source = jvm.field(write.writer, "source")  # of an older writer
    if source is not None:
        return str(source)
    provider = optional(jvm.field(write.writer, "provider"))
    return str(provider) if provider is not None else None
