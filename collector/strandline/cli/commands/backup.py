"""`strandline backup FILE` and `strandline restore FILE`.

A checked copy of the whole store, and the store of a copy.
"""

from argparse import Namespace

from sqlalchemy import make_url

from strandline.cli.answers import tell
from strandline.cli.open_store import existing_store
from strandline.settings import Settings
from strandline.store.backup import Copied, back_up
from strandline.store.backup import restore as restore_store


def backup(options: Namespace, settings: Settings) -> int:
    """Copy the store while servers write."""
    engine = existing_store(settings)
    try:
        copied = back_up(engine, options.file)
    finally:
        engine.dispose()
    return _report(options, copied, f"{options.file} is a checked copy")


def restore(options: Namespace, settings: Settings) -> int:
    """Make the store of a copy."""
    copied = restore_store(settings.database_url, options.file)
    where = make_url(settings.database_url).render_as_string(hide_password=True)
    return _report(options, copied, f"{where} is restored and checked")


def _report(options: Namespace, copied: Copied, line: str) -> int:
    answer = {"file": str(options.file), "schema": copied.schema, "rows": copied.rows}
    count = copied.rows.get("raw_events", 0)
    tell(
        answer,
        lambda: [
            f"{line}: {count} events, {sum(copied.rows.values())} rows, schema {copied.schema}"
        ],
        as_json=options.json,
    )
    return 0
