"""`strandline expire TABLE`: the expirable snapshots, and why others are pinned.

It drops nothing by itself.

With --execute it drops what it names from an Iceberg table; with --watch it does so again and
again.
"""

import sys
import time
from argparse import Namespace

from sqlalchemy import Connection

from strandline.cli.answers import counted, warn
from strandline.cli.models import model_of, table_called, tell
from strandline.core.versions.expirable import Expiry, pins
from strandline.core.versions.facts import Table
from strandline.core.versions.model import Model
from strandline.errors import SettingsError, StrandlineError
from strandline.escaping import escaped
from strandline.execution.expiry import Round
from strandline.execution.iceberg_tables import IcebergTables, catalog_properties
from strandline.settings import Settings
from strandline.store.versions.answers import expiry_answer, expiry_of
from strandline.store.versions.outside_readers import outside_of

SHOWN = 20


def run(options: Namespace, settings: Settings) -> int:
    """Print what is expirable and what is kept, or drop it."""
    if options.watch is not None and not (options.execute and options.watch > 0):
        raise SettingsError(["--watch needs --execute, and a number of seconds above 0"])
    if options.execute:
        return _execute(options, settings)
    with model_of(settings) as (connection, model):
        table = table_called(connection, model, options.table)
        expiry = _found(connection, model, table, settings)
    answer = expiry_answer(table, expiry)
    tell(answer, lambda: _lines(model.call(table), expiry), as_json=options.json)
    return 0


def _execute(options: Namespace, settings: Settings) -> int:
    tables = IcebergTables(catalog_properties(options.catalog_property))
    while True:
        try:
            look(options.table, settings).carry_out(tables, _say, tags=not options.no_tags)
        except StrandlineError as error:
            if options.watch is None:
                raise
            warn(str(error))  # the next look may find it mended
        if options.watch is None:
            return 0
        time.sleep(options.watch)


def look(text: str, settings: Settings) -> Round:
    """Return the expirable snapshots of a table."""
    with model_of(settings) as (connection, model):
        table = table_called(connection, model, text)
        return Round(model.call(table), _found(connection, model, table, settings))


def _found(connection: Connection, model: Model, table: Table, settings: Settings) -> Expiry:
    now, needed = time.time(), pins(model, table, settings.keep_barriers)
    outside = outside_of(model, settings.retention_days, now)
    return expiry_of(connection, table, needed, now, model.readers.get(table, ()), outside)


def _say(line: str) -> None:
    sys.stdout.write(escaped(line) + "\n")
    sys.stdout.flush()


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _lines(name: str, expiry: Expiry) -> list[str]:
    if not expiry.ancestry and not expiry.others:
        return [f"{name}: no snapshot of it is known, so there is nothing to expire"]
    number, kept = len(expiry.expirable), expiry.kept_count
    lines = [
        f"{name}: {counted(number, 'snapshot')} {_are(number)} expirable, {kept} {_are(kept)} kept"
    ]
    lines += [f"  expirable {snapshot}" for snapshot in expiry.expirable[:SHOWN]]
    if len(expiry.expirable) > SHOWN:
        lines.append(f"  ... and {len(expiry.expirable) - SHOWN} more: --json shows all")
    pinned = [(expiry.ancestry[place], expiry.reasons[place]) for place in sorted(expiry.reasons)]
    lines += [f"  kept {snapshot}: {'; '.join(reasons)}" for snapshot, reasons in pinned]
    if between := len(expiry.ancestry) - expiry.first - len(pinned):
        lines.append(f"  kept {between} more, each because it comes after one that is needed")
    if expiry.others:
        lines.append(
            f"  kept {len(expiry.others)} outside the main ancestry: nothing is known of "
            "their readers"
        )
    return lines
