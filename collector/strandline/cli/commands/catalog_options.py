"""`strandline catalog-options`.

What a catalog shows of lineage in the proposals' tables, listed, set and reset.
"""

from argparse import Namespace
from collections.abc import Iterable

from sqlalchemy import Connection

from strandline.cli.answers import show, tell_list
from strandline.cli.open_store import existing_store
from strandline.errors import SettingsError
from strandline.settings import Settings
from strandline.store.versions.catalog_options import drop_option, options_of, set_option


def run(options: Namespace, settings: Settings) -> int:
    """Set the options that are given, and list all."""
    wrong = [
        f"{option}: is not KEY=VALUE" for option in options.options if not option.partition("=")[1]
    ]
    if wrong:
        raise SettingsError(wrong)
    engine = existing_store(settings)
    try:
        with engine.begin() as connection:
            _change(connection, options.catalog, options.options)
            chosen = [
                option for option in options_of(connection) if options.catalog in (None, option[0])
            ]
    finally:
        engine.dispose()
    rows = [{"catalog": catalog, "key": key, "value": value} for catalog, key, value in chosen]
    lines = [f"{catalog}  {key}={value}" for catalog, key, value in chosen]
    if not tell_list(options, rows, rows, columns=("catalog", "key", "value")):
        show(lines or ["no catalog has an option: table-lineage and data-lineage are on"])
    return 0


def _change(connection: Connection, catalog: str, changes: Iterable[str]) -> None:
    for key, _, value in (change.partition("=") for change in changes):
        if value:
            set_option(connection, catalog, key, value)
        else:
            drop_option(connection, catalog, key)
