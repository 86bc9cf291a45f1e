"""Names of datasets as the OpenLineage naming specification has them.

A namespace for the place, a name inside it.

Pure functions from what Spark holds (paths, JDBC addresses, bootstrap servers) to (namespace,
name). Whatever a path or address carries besides scheme, host, port and path (users, passwords,
keys, options) is not part of the result.
"""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

_SAME_SCHEME = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}
_OBJECT_STORES = {"s3", "gs", "abfs", "abfss", "wasb", "wasbs", "oss", "cos", "obs"}
_CONTAINER_IN_USER = {"abfs", "abfss", "wasb", "wasbs"}
_BROKEN_LOGIN = re.compile(
    r"^//[^/?#@]*:(?!\d*(?:[/,?#]|$))[^?#@]*/[^?#]*@"
)  # a password with a slash in it


def qualified(*parts: str) -> str:
    """Return a table's name as Spark says it; a part that contains a dot stands in backquotes.

    >>> qualified("lake", "a", "b.t"), qualified("lake", "a.b", "t")
    ('lake.a.`b.t`', 'lake.`a.b`.t')
    """
    return ".".join("`" + part.replace("`", "``") + "`" if "." in part else part for part in parts)


def of_path(location: str, default: str = "file:///") -> tuple[str, str]:
    """Namespace and name of a file or folder.

    A path without scheme lies in the default file system.

    >>> of_path("file:/tmp/a/"), of_path("s3a://KEY:SECRET@bucket/a/b")
    (('file', '/tmp/a'), ('s3://bucket', 'a/b'))
    """
    scheme, colon, rest = location.partition(":")
    if not colon or "/" in scheme:
        return of_path(default.rstrip("/") + "/" + location.lstrip("/"))
    scheme = _SAME_SCHEME.get(scheme.lower(), scheme.lower())
    authority, path = _authority_and_path(rest)
    if scheme == "file" or not authority:
        return scheme, path or "/"
    namespace = f"{scheme}://{_without_secret(scheme, authority)}"
    return namespace, (path.lstrip("/") if scheme in _OBJECT_STORES else path) or "/"


def _authority_and_path(rest: str) -> tuple[str, str]:
    if not rest.startswith("//"):
        return "", "/" + rest.strip("/")
    authority, _, path = _BROKEN_LOGIN.sub("//", rest)[2:].partition("/")
    return authority, "/" + path.strip("/")


def _without_secret(scheme: str, authority: str) -> str:
    if scheme in _CONTAINER_IN_USER:
        return authority if ":" not in authority.split("@")[0] else authority.rpartition("@")[2]
    return authority.rpartition("@")[2]


_JDBC_PORTS = {
    "postgres": 5432, "mysql": 3306, "sqlserver": 1433, "oracle": 1521, "db2": 50000,
    "redshift": 5439, "hive": 10000, "crate": 5432, "teradata": 1025, "trino": 8080,
    "oceanbase": 2881,
}  # fmt: skip
_JDBC_SCHEMES = {"postgresql": "postgres", "mariadb": "mysql", "jtds": "sqlserver", "hive2": "hive"}
_DATABASE_PARAMETERS = ("databaseName", "database", "db")


def of_jdbc(url: str, table: str) -> tuple[str, str]:
    """Namespace and name of a table behind a JDBC address.

    >>> of_jdbc("jdbc:postgresql://u:p@db:5432/shop?password=x", "public.orders")
    ('postgres://db:5432', 'shop.public.orders')
    >>> of_jdbc("jdbc:mysql://u:p/w:x@db/shop", "orders")
    ('mysql://db:3306', 'shop.orders')
    >>> [of_jdbc("jdbc:postgresql://db/shop", name)[1] for name in ("Orders", '"Orders"')]
    ['shop.public.orders', 'shop.public.Orders']
    >>> [of_jdbc("jdbc:sqlite:/shop.db", name)[1] for name in ("orders", "main.ORDERS")]
    ['/shop.db.orders', '/shop.db.orders']
    >>> of_jdbc("jdbc:snowflake://org-acc.snowflakecomputing.com/?db=SHOP&schema=PUBLIC", "ORDERS")
    ('snowflake://org-acc', 'SHOP.PUBLIC.ORDERS')
    """
    scheme, _, rest = url.removeprefix("jdbc:").partition(":")
    scheme = _JDBC_SCHEMES.get(scheme, scheme)
    table = _as_kept(scheme, rest, table)
    if not rest.startswith("//"):
        return _jdbc_without_host(scheme, rest, table)
    authority = urlsplit("jdbc:" + _BROKEN_LOGIN.sub("//", rest.split(";")[0]))
    host = authority.hostname or "localhost"
    port = _port(authority.netloc) or _JDBC_PORTS.get(scheme)
    database = _jdbc_database(rest, authority.path)
    if scheme == "snowflake":
        return f"snowflake://{host.partition('.')[0]}", _jdbc_name(
            database, _in_schema(table, rest)
        )
    place = _redshift_place(host) if scheme == "redshift" else host
    return f"{scheme}://{place}{f':{port}' if port else ''}", _jdbc_name(database, table)


def _as_kept(scheme: str, rest: str, table: str) -> str:
    """Return a table's name as its database keeps it: in its own letters, with its schema.

    SQLite compares names without case. PostgreSQL keeps names in lower case unless they are quoted.
    """
    if scheme == "sqlite":
        return re.sub(r"^[\"`\[]?main[\"`\]]?\.", "", table.lower())
    if scheme != "postgres":
        return table
    parts = re.findall(r'"[^"]*"|[^".]+', table)
    if len(parts) == 1:
        schema = unquote(_parameter(rest, "currentSchema") or "public").split(",")[0]
        parts.insert(0, schema)
    return ".".join(part if part.startswith('"') else part.lower() for part in parts)


def _in_schema(table: str, rest: str) -> str:
    schema = _parameter(rest, "schema")
    return f"{schema}.{table}" if schema and "." not in table else table


def _redshift_place(host: str) -> str:
    """cluster.region of cluster.account.region.redshift.amazonaws.com."""
    parts = host.split(".")
    return f"{parts[0]}.{parts[2]}" if len(parts) > 3 and parts[3] == "redshift" else host


def _jdbc_database(address: str, path: str) -> str:
    """Return the database that a parameter names, else the path.

    DB2 and Teradata have their parameters behind the path.
    """
    for name in _DATABASE_PARAMETERS:
        if database := _parameter(address, name):
            return database
    first = re.split(r"[:,]", unquote(path.strip("/")))[0]
    return "" if "=" in first else first.replace("/", ".")  # Trino's is catalog/schema


def _jdbc_without_host(scheme: str, rest: str, table: str) -> tuple[str, str]:
    oracle = (
        re.match(r"thin:(?:[^@]*)@(?://)?([^:/]+)(?::(\d+))?[:/](\w+)", rest)
        if scheme == "oracle"
        else None
    )
    if oracle:
        return f"oracle://{oracle[1]}:{oracle[2] or 1521}", _jdbc_name(oracle[3], table)
    return scheme, _jdbc_name(re.split(r"[;?]", rest)[0], table)


def _port(authority: str) -> str | None:
    match = re.search(r":(\d+)$", authority.split(",")[0])
    return match[1] if match else None


def _parameter(rest: str, name: str) -> str | None:
    match = re.search(rf"[;?&/,:]{name}=([^;&,]+)", rest, re.IGNORECASE)
    return match[1] if match else None


def _jdbc_name(database: str, table: str) -> str:
    clean = table.replace('"', "").replace("`", "").replace("[", "").replace("]", "")
    return f"{database}.{clean}" if database and not clean.startswith(database + ".") else clean


def of_topic(servers: str, topic: str) -> tuple[str, str]:
    """Namespace and name of a Kafka topic: the first bootstrap server stands for the cluster.

    >>> of_topic("PLAINTEXT://b:9092,a:9092", "orders")
    ('kafka://b:9092', 'orders')
    """
    first = servers.split(",")[0].strip().rpartition("://")[2]
    return f"kafka://{first if ':' in first else first + ':9092'}", topic
