"""DataHub's urns.

A table of a lakehouse is on the platform of its format, with its catalog in its name, so that
tables of the same name in two catalogs stay apart. A file of rules gives the urns of an
installation whose DataHub has a source of its own. Imports nothing: listeners in Spark use it too.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

ENV = "PROD"
OTHER_NAMES = {
    "s3a": "s3",
    "s3n": "s3",
    "gs": "gcs",
    "awsathena": "athena",
    "sqlserver": "mssql",
} | dict.fromkeys(("abfs", "abfss", "wasb", "wasbs"), "abs")
OBJECT_STORES = ("s3", "gcs", "abs")
GLUE = ("aws:glue:", "arn:aws:glue:")
TABLE = "TABLE"
ESCAPED = {"%": "%25", ",": "%2C", "(": "%28", ")": "%29", "\u241f": "%E2%90%9F"}


FORMAT_PLATFORMS = {
    "iceberg": "iceberg",
    "delta": "delta-lake",
    "hudi": "hudi",
    "paimon": "paimon",
}
DEFAULT_CATALOGS = ("", "spark_catalog")


@dataclass(frozen=True, slots=True)
class MappingRule:
    """A rule for the urns of the datasets that match all three patterns.

    `name` may contain `{catalog}`, `{table}` (its name in the catalog) and `{name}` (its name in
    events). What is empty stays as it is without the rule.
    """

    namespace: str = "*"
    catalog: str = "*"
    format: str = "*"
    platform: str = ""
    platform_instance: str = ""
    name: str = ""

    def matches(self, namespace: str, catalog: str, table_format: str) -> bool:
        """Return whether the rule is for such a dataset."""
        return (
            fnmatchcase(namespace, self.namespace)
            and fnmatchcase(catalog, self.catalog)
            and fnmatchcase(table_format, self.format)
        )


@dataclass(frozen=True, slots=True)
class Urns:
    """The rules by which urns are made; of `mapping` the first rule that matches applies.

    >>> Urns().dataset("s3a://bank", "/lake/transfers")
    'urn:li:dataset:(urn:li:dataPlatform:s3,bank/lake/transfers,PROD)'
    >>> Urns().job(Urns().flow("spark", "bank.debits", "default"), "bank.debits")
    'urn:li:dataJob:(urn:li:dataFlow:(spark,bank,default),bank.debits)'
    """

    env: str | None = None
    platform_instance: str | None = None
    mapping: tuple[MappingRule, ...] = ()

    def dataset(
        self,
        namespace: str,
        name: str,
        symlinks: Iterable[tuple[str, str, str]] = (),
        *,
        catalog: str = "",
        table_format: str = "",
    ) -> str:
        """Return a dataset's urn. Of the symlinks (namespace, name, type) the last TABLE counts."""
        platform, called = _of_name(namespace, name)
        table = called
        for other_namespace, other_name, kind in symlinks:
            if kind == TABLE:
                table = other_name.removeprefix("table/")
                table = table.replace("/", ".") if table != other_name else table
                is_glue = other_namespace.startswith(GLUE)
                platform, called = _of_table(table, catalog, table_format, is_glue=is_glue)
        instance = self.platform_instance
        for rule in self.mapping:
            if rule.matches(namespace, catalog, table_format):
                platform = rule.platform or platform
                instance = rule.platform_instance or instance
                names = {"{catalog}": catalog, "{table}": table, "{name}": name}
                called = _filled(rule.name, names) or called
                break
        if instance:
            called = f"{instance}.{called}"
        return f"urn:li:dataset:({platform_urn(platform)},{escaped(called)},{self.env or ENV})"

    def platform_of(self, urn: str) -> str:
        """The urn of a dataset's platform."""
        return urn.removeprefix("urn:li:dataset:(").partition(",")[0]

    def flow(self, orchestrator: str, job_name: str, namespace: str) -> str:
        """A flow's urn: of the application that a job's name begins with."""
        cluster = self.platform_instance or self.env or namespace
        parts = (orchestrator.lower(), flow_name(job_name), cluster)
        return f"urn:li:dataFlow:({','.join(map(escaped, parts))})"

    def job(self, flow: str, job_name: str) -> str:
        """A job's urn."""
        return f"urn:li:dataJob:({flow},{escaped(job_name)})"


def _of_table(table: str, catalog: str, table_format: str, *, is_glue: bool) -> tuple[str, str]:
    """Return the platform and name of a table in a catalog."""
    if is_glue:
        return "glue", table
    platform = FORMAT_PLATFORMS.get(table_format)
    if platform is None:
        return "hive", table
    if catalog in DEFAULT_CATALOGS or table.startswith(f"{catalog}."):
        return platform, table
    return platform, f"{catalog}.{table}"


def _of_name(namespace: str, name: str) -> tuple[str, str]:
    """Return the platform and name of a dataset without a catalog."""
    scheme, has_scheme, rest = namespace.partition("://")
    platform = OTHER_NAMES.get(scheme, scheme) if has_scheme else namespace
    platform = OTHER_NAMES.get(platform, platform)
    if platform in OBJECT_STORES:
        name = "/".join(part for part in (rest.strip("/"), name.strip("/")) if part)
    return platform, name


def _filled(template: str, names: dict[str, str]) -> str:
    for placeholder, value in names.items():
        template = template.replace(placeholder, value)
    return template


def flow_name(job_name: str) -> str:
    """The application that a job's name begins with."""
    return job_name.partition(".")[0]


def job_title(job_name: str) -> str:
    """Return the shown part of a job's name."""
    return job_name.partition(".")[2] or job_name


def run_urn(run_id: str) -> str:
    """A run's urn."""
    return f"urn:li:dataProcessInstance:{run_id}"


def field_urn(dataset: str, column: str) -> str:
    """A column's urn."""
    return f"urn:li:schemaField:({dataset},{escaped(column)})"


def platform_urn(platform: str) -> str:
    """A platform's urn."""
    return f"urn:li:dataPlatform:{escaped(platform)}"


def user_urn(name: str) -> str:
    """The urn of an owner: `team:ops` is a group, everybody else a user."""
    kind, sign, rest = name.partition(":")
    if sign and kind in ("team", "group"):
        return f"urn:li:corpGroup:{escaped(rest)}"
    return f"urn:li:corpuser:{escaped(rest if sign and kind == 'user' else name)}"


def tag_urn(name: str) -> str:
    """A tag's urn."""
    return f"urn:li:tag:{escaped(name)}"


def escaped(part: str) -> str:
    """A part of a urn: commas, brackets and DataHub's own separator would end it."""
    return "".join(ESCAPED.get(sign, sign) for sign in part)


def orchestrator_of(
    configured: str | None, integration: str | None, engine: str | None, producer: str
) -> str:
    """Return the orchestrator of a job, in small letters.

    The configured one, else the first in its events.
    """
    stated = next((name for name in (configured, integration, engine) if name), None)
    return (stated or producer.rstrip("/").rpartition("/")[2] or "spark").lower()
