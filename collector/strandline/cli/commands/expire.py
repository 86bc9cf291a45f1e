"""`strandline expire TABLE`: the expirable snapshots, and why others are pinned.

It drops nothing by itself.

With --execute it drops what it names from an Iceberg table; with --watch it does so again and
again.
"""

import sys
import time
from argparse import Namespace
from typing import Any

from strandline.cli.answers import counted, tell, warn
from strandline.cli.collector import source_of
from strandline.errors import SettingsError, StrandlineError
from strandline.escaping import escaped
from strandline.execution.expiry import Round
from strandline.execution.iceberg_tables import IcebergTables, catalog_properties
from strandline.settings import Settings

SHOWN = 20
MOST_KEPT = 1_000


def run(options: Namespace, settings: Settings) -> int:
    """Print what is expirable and what is kept, or drop it."""
    if options.watch is not None and not (options.execute and options.watch > 0):
        raise SettingsError(["--watch needs --execute, and a number of seconds above 0"])
    if options.execute:
        return _execute(options, settings)
    name, answer = _asked(options, settings)
    tell(answer, lambda: _lines(name, answer), as_json=options.json)
    return 0


def _asked(options: Namespace, settings: Settings) -> tuple[str, dict[str, Any]]:
    """Return the table as people call it, and what the store says of its snapshots."""
    with source_of(options, settings) as source:
        table = source.table(options.table)
        return table.label, source.ask("/expirable", table.named | {"limit": MOST_KEPT})


def _execute(options: Namespace, settings: Settings) -> int:
    tables = IcebergTables(catalog_properties(options.catalog_property))
    while True:
        try:
            name, answer = _asked(options, settings)
            Round.of(name, answer).carry_out(tables, _say, tags=not options.no_tags)
        except StrandlineError as error:
            if options.watch is None:
                raise
            warn(str(error))  # the next round may find it mended
        if options.watch is None:
            return 0
        time.sleep(options.watch)


def _say(line: str) -> None:
    sys.stdout.write(escaped(line) + "\n")
    sys.stdout.flush()


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _lines(name: str, answer: dict[str, Any]) -> list[str]:
    expirable, kept = answer["expirable"], answer["keptCount"]
    if not expirable and not kept:
        return [f"{name}: no snapshots are known, so there is nothing to expire"]
    number, pinned, outside = len(expirable), answer["pinned"], answer["outsideCount"]
    lines = [f"{name}: {counted(number, 'snapshot')} {_are(number)} expirable, {kept} pinned"]
    lines += [f"  expirable {snapshot}" for snapshot in expirable[:SHOWN]]
    if number > SHOWN:
        lines.append(f"  ... and {number - SHOWN} more: --json shows all")
    lines += [f"  pinned {pin['snapshotId']}: {'; '.join(pin['reasons'])}" for pin in pinned]
    if between := kept - outside - len(pinned):
        lines.append(f"  pinned {between} more, each because it comes after one that is needed")
    if outside:
        lines.append(
            f"  pinned {outside} outside the main ancestry: nothing is known of their readers"
        )
    return lines
