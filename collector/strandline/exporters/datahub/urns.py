"""DataHub's urns, exactly as its own OpenLineage converter makes them, so that entities of both merge instead of standing twice.

Imports nothing: listeners in Spark use it too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

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


@dataclass(frozen=True, slots=True)
class Urns:
    """How urns are made. platforms: other names for platforms.

    `iceberg` stands for Iceberg tables, which are hive's without it.

    >>> Urns().dataset("s3a://bank", "/lake/transfers")
    'urn:li:dataset:(urn:li:dataPlatform:s3,bank/lake/transfers,PROD)'
    >>> Urns().job(Urns().flow("spark", "bank.debits", "default"), "bank.debits")
    'urn:li:dataJob:(urn:li:dataFlow:(spark,bank,default),bank.debits)'
    """

    env: str | None = None
    platform_instance: str | None = None
    platforms: Mapping[str, str] = field(default_factory=dict)

    def dataset(
        self,
        namespace: str,
        name: str,
        symlinks: Iterable[tuple[str, str, str]] = (),
        *,
        iceberg: bool = False,
    ) -> str:
        """A dataset's urn. symlinks: namespace, name and type of each.

        The last of type TABLE wins.
        """
        platform, called = self._of_name(namespace, name)
        for other_namespace, other_name, kind in symlinks:
            if kind == TABLE:
                platform, called = self._of_table(other_namespace, other_name, iceberg)
        if self.platform_instance:
            called = f"{self.platform_instance}.{called}"
        return f"urn:li:dataset:({platform_urn(platform)},{escaped(called)},{self.env or ENV})"

    def platform_of(self, urn: str) -> str:
        """The urn of a dataset's platform."""
        return urn.removeprefix("urn:li:dataset:(").partition(",")[0]

    def flow(self, orchestrator: str, job_name: str, namespace: str) -> str:
        """A flow's urn: of the application that a job's name begins with."""
        cluster = self.platform_instance or self.env or namespace
        return f"urn:li:dataFlow:({escaped(orchestrator.lower())},{escaped(flow_name(job_name))},{escaped(cluster)})"

    def job(self, flow: str, job_name: str) -> str:
        """A job's urn."""
        return f"urn:li:dataJob:({flow},{escaped(job_name)})"

    def _of_table(self, namespace: str, name: str, iceberg: bool) -> tuple[str, str]:
        platform = "glue" if namespace.startswith(GLUE) else "hive"
        called = (
            name.removeprefix("table/").replace("/", ".") if name.startswith("table/") else name
        )
        if iceberg and "iceberg" in self.platforms:
            return self.platforms["iceberg"], called
        return self.platforms.get(platform, platform), called

    def _of_name(self, namespace: str, name: str) -> tuple[str, str]:
        scheme, has_scheme, rest = namespace.partition("://")
        platform = (
            OTHER_NAMES.get(scheme, scheme) if has_scheme else OTHER_NAMES.get(namespace, namespace)
        )
        if platform in OBJECT_STORES:
            name = "/".join(part for part in (rest.strip("/"), name.strip("/")) if part)
        return self.platforms.get(platform, platform), name


def flow_name(job_name: str) -> str:
    """The application that a job's name begins with."""
    return job_name.partition(".")[0]


def job_title(job_name: str) -> str:
    """What is shown of a job's name."""
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
    """Who runs a job: what is configured, else the first that its events say, in small letters."""
    stated = next((one for one in (configured, integration, engine) if one), None)
    return (stated or producer.rstrip("/").rpartition("/")[2] or "spark").lower()
