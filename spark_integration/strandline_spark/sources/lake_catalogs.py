"""Catalogs of Spark's conf as pyiceberg knows them.

A Python worker has no JVM to ask for a table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from pyiceberg.table import Table

_SPARK = "spark.sql.catalog."
_JDBC = re.compile(r"jdbc:(?P<dialect>sqlite|postgresql):(?P<rest>.*)")
_INSTALL = (
    "strandline_aligned reads tables through pyiceberg: pip install 'pyiceberg[pyarrow,sql-sqlite]'"
)


class CatalogError(Exception):
    """A catalog that pyiceberg cannot open, or a table that it does not give.

    The message names it and the reason.
    """


def catalogs_in(conf: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The properties of each Iceberg catalog of a Spark conf, under pyiceberg's names.

    >>> catalogs_in({
    ...     "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    ...     "spark.sql.catalog.lake.type": "jdbc",
    ...     "spark.sql.catalog.lake.uri": "jdbc:sqlite:/data/lake.db",
    ... })
    {'lake': {'type': 'sql', 'uri': 'sqlite:////data/lake.db'}}
    """
    names = [
        key.removeprefix(_SPARK)
        for key, value in conf.items()
        if key.startswith(_SPARK) and value.startswith("org.apache.iceberg.spark.")
    ]
    return {
        name: _properties({k.removeprefix(own): v for k, v in conf.items() if k.startswith(own)})
        for name in names
        for own in (f"{_SPARK}{name}.",)
    }


def _properties(options: Mapping[str, str]) -> dict[str, str]:
    properties = {
        key: value for key, value in options.items() if not key.startswith(("jdbc.", "cache"))
    }
    if properties.get("type") == "jdbc":
        properties |= {"type": "sql", "uri": _sqlalchemy(properties.get("uri", ""), options)}
    return properties


def _sqlalchemy(uri: str, options: Mapping[str, str]) -> str:
    """The address of a JDBC catalog as pyiceberg's SQL catalog takes it."""
    match = _JDBC.fullmatch(uri)
    if match is None:
        return uri
    if match["dialect"] == "sqlite":
        return f"sqlite:///{match['rest']}"
    user, password = options.get("jdbc.user", ""), options.get("jdbc.password", "")
    secret = f":{quote(password, safe='')}" if password else ""
    login = f"{quote(user, safe='')}{secret}@" if user else ""
    return f"postgresql+psycopg2://{login}{match['rest'].removeprefix('//')}"


def open_table(name: str, catalogs: Mapping[str, Mapping[str, str]]) -> Table:
    """The table as it is now, by catalog.database.table. Raises CatalogError with the reason.

    A catalog without properties here is taken from pyiceberg's own configuration.
    """
    catalog, _, identifier = name.partition(".")
    if "." not in identifier:
        raise CatalogError(f"tables: {name!r} is not catalog.database.table")
    properties = next(
        (dict(catalog_) for key, catalog_ in catalogs.items() if key.lower() == catalog.lower()), {}
    )
    try:
        from pyiceberg.catalog import load_catalog
        from pyiceberg.table import StaticTable
    except ImportError as error:
        raise CatalogError(f"{_INSTALL} ({error})") from error
    try:
        if properties.get("type") == "hadoop":
            return StaticTable.from_metadata(_newest_metadata(properties, identifier), properties)
        return load_catalog(catalog, **properties).load_table(identifier)
    except Exception as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise CatalogError(f"{name}: catalog {catalog} cannot load the table: {reason}") from error


def _newest_metadata(properties: Mapping[str, str], identifier: str) -> str:
    """The newest metadata file of a table in a folder, from the hint on.

    Writers may be ahead of it.
    """
    from pyiceberg.io import load_file_io

    folder = f"{properties['warehouse'].rstrip('/')}/{identifier.replace('.', '/')}/metadata"
    io = load_file_io(dict(properties), folder)
    with io.new_input(f"{folder}/version-hint.text").open() as hint:
        version = int(hint.read())
    while io.new_input(f"{folder}/v{version + 1}.metadata.json").exists():
        version += 1
    return f"{folder}/v{version}.metadata.json"
