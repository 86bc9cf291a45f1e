"""Names and what is made of them.

Ids, the (catalog, database, table) of a dataset, what is stripped from paths.

Everything here is a pure function of the name (and the configured patterns), so that no order of
events can matter.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, wraps
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote
from uuid import UUID

from strandline.core.job_families import pattern_of
from strandline.core.openlineage.times import moment_of
from strandline.core.redaction.text import redact_text

# Schemes whose names are tables: database.table or catalog.database.table.
TABLE_SCHEMES = frozenset(
    re.findall(
        r"\w+",
        """
    athena awsathena azurecosmos bigquery cassandra clickhouse cockroach cosmos crate
    databricks db2 dremio druid duckdb exasol glue hive iceberg impala mariadb mongodb mssql
    mysql nessie oceanbase oracle paimon phoenix polaris postgres postgresql presto redshift
    saphana snowflake spanner spark sqlite sqlserver starrocks synapse teradata trino unity
    unitycatalog vertica
        """,
    )
)
# Schemes whose names are keys of objects: with or without a slash before them, as the producer
# likes.
OBJECT_STORES = frozenset(re.findall(r"\w+", "abfs abfss cos gcs gs obs oss s3 s3a s3n wasb wasbs"))
ICEBERG_METADATA = frozenset(
    re.findall(
        r"\w+",
        """
    all_data_files all_delete_files all_entries all_files all_manifests data_files
    delete_files entries files history manifests metadata_log_entries partitions
    position_deletes refs snapshots
        """,
    )
)
LONGEST_REMEMBERED = 1000
LONGEST_NAME, LONGEST_NAMESPACE = (
    40_000,
    10_000,
)  # as an address has them, which holds 65,536 signs; names of 200 KB are real
MOST_SIGNS = 12  # in which an address writes one character
KEY_LENGTH = 200  # PostgreSQL cannot index rows of more than 2,704 bytes

_SCHEME = re.compile(r"(?:jdbc:)?([a-zA-Z][\w+.-]*?)(?::|$)")
_PART = re.compile(r"`(?:[^`]|``)+`|[^.`]+")
_QUOTED_NAME = re.compile(rf"(?:{_PART.pattern})(?:\.(?:{_PART.pattern}))*")
_GLUE = re.compile(r"arn:aws[\w-]*:glue")  # its names are table/DATABASE/TABLE
_S3 = re.compile("^s3[an]:", re.IGNORECASE)  # Hadoop's names of its clients of S3
_UUID = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
)  # as most producers write it
_DELTA_LOG = re.compile(r"/_delta_log(/|$)")
_STREAMED_FILE = re.compile(
    r"/[^/]+\.(?:avro|csv|json|jsonl|ndjson|orc|parquet|txt|xml)(?:\.\w{2,7})?$"
)

T = TypeVar("T")


class TableName(NamedTuple):
    """The three names of a table in queries and in the proposals' paths."""

    catalog: str
    database: str
    table: str

    def called(self, namespace: str, name: str) -> str:
        """Return the dataset's label here: its place, where it is in a database.

        An address is no catalog's name.

        >>> TableName("lake", "bank", "t").called("file", "/lake/bank/t")
        'lake.bank.t'
        >>> TableName("file:/lake", "bank", "t").called("file", "/lake/bank/t")
        'bank.t'
        >>> TableName("lake", "a", "b.t").called("file", "/lake/a/b.t")
        'lake.a.`b.t`'
        """
        if not self.database:
            return name
        is_address = self.catalog == namespace or ":" in self.catalog or "/" in self.catalog
        catalog = "" if is_address else self.catalog
        return ".".join(filter(None, (catalog, self.database, quoted(self.table))))


@dataclass(frozen=True, slots=True)
class Naming:
    """The naming of datasets and jobs.

    `strip` holds regular expressions whose matches are cut out of names that are paths. `families`
    holds (namespace, pattern) of the jobs that are one job, called by their pattern.
    """

    strip: tuple[re.Pattern[str], ...] = ()
    families: frozenset[tuple[str, str]] = frozenset()

    def name_of(
        self, namespace: str, name: str, *, iceberg: bool = False, streamed: bool = False
    ) -> tuple[str, str]:
        """Namespace and name as they are stored.

        Secrets, the suffix of a metadata table, the file of a batch and stripped parts are gone.
        """
        name = clean(bare(name))
        if iceberg:
            part = metadata_table_in(name)
            name = name[: -len(part) - 1] if part else name
        if streamed and "/" in name:
            name = _STREAMED_FILE.sub("", name) or name
        for pattern in self.strip if "/" in name else ():
            name = pattern.sub("", name) or name
        return stored_name(namespace, LONGEST_NAMESPACE), shortened(name)

    def job_name_of(self, namespace: str, name: str) -> tuple[str, str]:
        """Namespace and name of a job as they are stored."""
        own_name = own_job_name(namespace, name)
        if not self.families:
            return own_name
        family = own_name[0], pattern_of(own_name[1])
        return family if family in self.families else own_name


DEFAULT_NAMING = Naming()


def _remembered(maxsize: int) -> Callable[[Callable[[str], T]], Callable[[str], T]]:
    """Return an lru_cache for functions of a name that keeps no long ones.

    Thousands of those would fill the memory.
    """

    def decorate(function: Callable[[str], T]) -> Callable[[str], T]:
        remembered = lru_cache(maxsize)(function)

        @wraps(function)
        def look(name: str) -> T:
            return remembered(name) if len(name) <= LONGEST_REMEMBERED else function(name)

        return look

    return decorate


@_remembered(10_000)
def bare(name: str) -> str:
    """Return a name without secrets."""
    return redact_text(name)


def stored_name(name: str, longest: int = LONGEST_NAME) -> str:
    """Return a job's name, or a namespace, as it is stored."""
    return shortened(clean(bare(name)), longest)


def own_job_name(namespace: str, name: str) -> tuple[str, str]:
    """Return namespace and name of a job as they are stored if it is joined with no others."""
    return stored_name(namespace, LONGEST_NAMESPACE), stored_name(name)


def shortened(name: str, longest: int = LONGEST_NAME) -> str:
    """Return a name that fits into an address: a hash replaces the rest of a longer one.

    Twice is once.

    >>> shortened("lake.bank"), len(shortened("x" * 200_000))
    ('lake.bank', 817)
    """
    if len(name) * MOST_SIGNS <= longest or len(quote(name, safe="", errors="replace")) <= longest:
        return name
    return f"{name[:800]}~{id_of('text', name):016x}"


def former_name(name: tuple[str, str], renamed_to: tuple[str, str], at: int) -> tuple[str, str]:
    """Return namespace and name of what a name meant until its table was renamed at this moment.

    >>> former_name(("hive", "bank.a"), ("hive", "bank.b"), 1_500_000)
    ('hive', 'bank.a (renamed to bank.b at 1970-01-01T00:00:01.500000+00:00)')
    """
    namespace, new_name = renamed_to
    shown = new_name if namespace == name[0] else f"{namespace}:{new_name}"
    renamed = f"renamed to {shown} at {moment_of(at).isoformat()}"
    return name[0], shortened(f"{name[1]} ({renamed})")


def naming_of(patterns: Sequence[str], families: Iterable[tuple[str, str]] = frozenset()) -> Naming:
    """Return a Naming of regular expressions as text; raise re.error for an invalid one."""
    return Naming(tuple(re.compile(pattern) for pattern in patterns), frozenset(families))


_EMPTY_HASH = blake2b(digest_size=8)


def named(pair: tuple[str, str]) -> dict[str, Any]:
    """Return a table or job as JSON shows it."""
    return {"namespace": pair[0], "name": pair[1]}


def id_of(kind: str, *parts: str) -> int:
    """Return the id of a name: 63 bits of a hash, the same in every process and database.

    >>> id_of("job", "a", "bc") == id_of("job", "ab", "c")
    False
    """
    text = kind + "".join([f"|{len(part)}:{part}" for part in parts])
    hash_ = _EMPTY_HASH.copy()  # in a quarter less time than a new one
    hash_.update(text.encode("utf-8", "surrogatepass"))
    return int.from_bytes(hash_.digest(), "big") >> 1


@_remembered(10_000)
def namespace_id(namespace: str) -> int:
    """Return the id of a namespace."""
    return id_of("namespace", namespace)


def run_id_of(run_id: str, namespace: str, job: str) -> int:
    """Return the id of a run.

    A UUID is its own identity in any spelling, any other text only within its job, by that job's
    own name: joining jobs joins no runs.
    """
    if _UUID.fullmatch(run_id):
        return id_of("run", run_id)
    try:
        return id_of("run", str(UUID(run_id)))
    except ValueError:
        return id_of("run", bare(run_id), *own_job_name(namespace, job))


def shared_run_id_of(id_: int, namespace: str, job: str) -> int:
    """Return the id of one job's run where several jobs reported the run of this id."""
    return id_of("shared run", str(id_), *own_job_name(namespace, job))


def run_ids_of(run_id: str, namespace: str, job: str) -> tuple[int, int]:
    """Return the ids that a job's run may have: its own, or that of a run id which is shared."""
    own = run_id_of(run_id, namespace, job)
    return own, shared_run_id_of(own, namespace, job)


def is_of_one_job(id_: int, run_id: str) -> bool:
    """Return whether the row with this id is all of a run; several jobs may have reported it."""
    try:
        return id_ == id_of("run", str(UUID(run_id)))
    except ValueError:
        return True


def run_name(run_id: str) -> str:
    """Return a run's id as it is stored.

    A UUID in its usual spelling, so that every event of the run says the same.

    >>> run_name("00000000-0000-4000-8000-00000000000A"), run_name("scheduled__2026-11-20")
    ('00000000-0000-4000-8000-00000000000a', 'scheduled__2026-11-20')
    """
    if _UUID.fullmatch(run_id):
        return run_id
    try:
        return str(UUID(run_id))
    except ValueError:
        return key_text(bare(run_id))


def clean(text: str) -> str:
    r"""Text that both databases take: PostgreSQL has no \0 in text."""
    return text.replace("\0", "\ufffd") if "\0" in text else text


def complaint(text: str) -> str:
    """Return a message without the secrets that it may quote from what cannot be read."""
    return clean(redact_text(text))


def key_text(text: str) -> str:
    """Text that fits into an index: a longer one is cut and marked with its hash."""
    if len(text) <= KEY_LENGTH and text.isascii() and "\0" not in text:
        return text
    return _shortened(clean(text))


def _shortened(text: str) -> str:
    if len(text.encode()) <= KEY_LENGTH * 4 and len(text) <= KEY_LENGTH:
        return text
    return f"{text[:150]}~{id_of('text', text):016x}"


def is_delta_log(name: str) -> bool:
    """Return whether a dataset is Delta's own log, which every query reads: it is no lineage."""
    return "_delta_log" in name and _DELTA_LOG.search(name) is not None


@_remembered(10_000)
def names_tables(namespace: str) -> bool:
    """Return whether the names under this namespace are dotted names of tables.

    They are those of a catalog or a database, not paths or topics.
    """
    scheme = _SCHEME.match(namespace)
    return bool(scheme and scheme[1].lower() in TABLE_SCHEMES) or _GLUE.match(namespace) is not None


def place_of(namespace: str, name: str, catalog: str | None = None) -> TableName:
    """Return the place of a dataset by its own name; `catalog` is what its catalog facet says.

    >>> place_of("hive://metastore:9083", "bank.transfers", "lake")
    TableName(catalog='lake', database='bank', table='transfers')
    >>> place_of("kafka://broker:9092", "payments.in")
    TableName(catalog='kafka://broker:9092', database='', table='payments.in')
    """
    if not names_tables(namespace):
        return TableName(catalog or namespace, "", name)
    return table_place(namespace, name, catalog)


def table_place(namespace: str, name: str, catalog: str | None = None) -> TableName:
    """Return the place of a dotted table name: its last part, in the database before it.

    A first part that is the catalog is dropped. Without a catalog three or more parts begin with
    it, and two are in the namespace.

    >>> table_place("arn:aws:glue:eu-west-1:123456789012", "table/bank/transfers", "lake")
    TableName(catalog='lake', database='bank', table='transfers')
    >>> table_place("hive://m", "lake.bank.eu.t")
    TableName(catalog='lake', database='bank.eu', table='t')
    >>> table_place("hive://m", "`a.b`.t")
    TableName(catalog='hive://m', database='`a.b`', table='t')
    >>> table_place("hive://m", "a.`b.t`")
    TableName(catalog='hive://m', database='a', table='b.t')
    """
    is_glue = name.startswith("table/") and _GLUE.match(namespace)
    *before, table = name.split("/")[1:] if is_glue else parts_of(name)
    if catalog is None and len(before) > 1:
        catalog, before = before[0], before[1:]
    elif before and before[0] == catalog:
        before = before[1:]
    return TableName(catalog or namespace, joined(before), table)


def parts_of(name: str) -> list[str]:
    """Return the parts of a dotted name; what stands in backquotes is one part.

    >>> parts_of("lake.`b.t`"), parts_of("a.b"), parts_of("a`.b")
    (['lake', 'b.t'], ['a', 'b'], ['a`', 'b'])
    """
    if "`" not in name or not _QUOTED_NAME.fullmatch(name):
        return name.split(".")
    parts = _PART.findall(name)
    return [part[1:-1].replace("``", "`") if part[0] == "`" else part for part in parts]


def quoted(part: str) -> str:
    """Return a part as a dotted name has it: in backquotes if it contains a dot."""
    return "`" + part.replace("`", "``") + "`" if "." in part else part


def joined(parts: Iterable[str]) -> str:
    """Return the dotted name of these parts."""
    return ".".join(map(quoted, parts))


def place_id(place: TableName) -> int:
    """Return the id by which a place is looked up."""
    return id_of("place", *place)


def may_be_metadata_table(name: str, catalog: str) -> bool:
    """Return whether the name ends like one of Iceberg's metadata tables.

    Examples are db.t.snapshots and /warehouse/db/t#snapshots. A table that is really called so may
    have catalog and database before it, and nothing else.

    >>> may_be_metadata_table("lake.sales.history", "lake")
    False
    >>> may_be_metadata_table("lake.sales.orders.history", "lake")
    True
    """
    last = name.rpartition("#" if "#" in name else ".")[2]
    return last.lower() in ICEBERG_METADATA and not is_whole_name(name, catalog)


def is_whole_name(name: str, catalog: str) -> bool:
    """Return whether a name is catalog, database and table, and nothing else."""
    return (
        bool(catalog) and name.startswith(f"{catalog}.") and name.count(".", len(catalog) + 1) == 1
    )


def is_of_a_session(namespace: str, other_namespace: str, other_name: str) -> bool:
    """Return whether another name of a dataset in this namespace is what one session calls it.

    The name of its table in the catalog that Flink keeps in memory, which is reported under the
    namespace of what the table connects to, or under `flink://`.
    """
    is_nobodys = other_namespace.startswith("flink:")
    return is_nobodys or (
        other_namespace == namespace and other_name.startswith("default_catalog.")
    )


@_remembered(10_000)
def is_object_store(namespace: str) -> bool:
    """Return whether the names under this namespace are keys of objects in a bucket."""
    scheme = _SCHEME.match(namespace)
    return bool(scheme and scheme[1].lower() in OBJECT_STORES)


def plain_spelling(namespace: str, name: str) -> tuple[str, str]:
    """Return the name of the same place as most producers spell it.

    In a bucket without slashes around it, in a catalog without backquotes that it does not need.

    >>> plain_spelling("s3a://lake/", "/bank/a/"), plain_spelling("file", "/bank/a/")
    (('s3://lake', 'bank/a'), ('file', '/bank/a/'))
    >>> plain_spelling("hive://m", "`a`.`b.t`")
    ('hive://m', 'a.`b.t`')
    """
    if "`" in name and names_tables(namespace):
        return namespace, joined(parts_of(name))
    if not is_object_store(namespace):
        return namespace, name
    return plain_namespace(namespace), name.strip("/") or name


def plain_namespace(namespace: str) -> str:
    """Return the namespace of a bucket as most producers spell it, any other as it is."""
    if not is_object_store(namespace):
        return namespace
    bucket = _S3.sub("s3:", namespace)
    return bucket if bucket.endswith("//") else bucket.rstrip("/")


def metadata_table_in(name: str) -> str:
    """Return the metadata table at the end of a name.

    `snapshots` of db.t.snapshots and of /warehouse/db/t#snapshots; '' without one.
    """
    head, separator, tail = name.rpartition("#" if "#" in name else ".")
    enough = separator == "#" or "." in head
    return tail if enough and tail.lower() in ICEBERG_METADATA else ""
