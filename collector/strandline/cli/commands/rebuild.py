"""`strandline rebuild --from ARCHIVE --into DATABASE`.

The lineage tables made anew from archived events, on Spark.
"""

import json
import sys
from argparse import Namespace

from sqlalchemy import Engine

from strandline.cli.answers import counted
from strandline.cli.open_store import missing_file
from strandline.errors import SchemaError, SettingsError
from strandline.history.compare import differences
from strandline.history.rebuild import NameRules, Rebuilt, names_of, rebuild
from strandline.history.session import spark_session
from strandline.settings import Settings
from strandline.store.marquez.annotations import carry_over
from strandline.store.sql.engine import make_engine, migrate, reading

SHOWN = 5


def run(options: Namespace, settings: Settings) -> int:
    """Rebuild, and compare if asked; 1 if anything differs."""
    if options.into in (settings.database_url, options.like):
        raise SettingsError(
            [
                (
                    "rebuild: --into names the live store: name a new one, and switch over "
                    "when it is equal"
                )
            ]
        )
    if options.like and (file := missing_file(options.like)):
        raise SchemaError(f"there is no database {file}: --like names the live store")
    target = make_engine(options.into)
    live = make_engine(options.like) if options.like else None
    try:
        migrate(target)
        done = _rebuilt(options, target, live)
        differing = differences(live, target) if live else None
    finally:
        target.dispose()
        if live:
            live.dispose()
    _show(options, done, differing)
    return 1 if differing else 0


def _rebuilt(options: Namespace, target: Engine, live: Engine | None) -> Rebuilt:
    names = NameRules()
    if live is not None:
        with reading(live).connect() as connection:
            names = names_of(connection)
    with spark_session(options) as spark:
        done = rebuild(spark, options.source, target, names)
    if live is not None:
        with reading(live).connect() as source, target.begin() as connection:
            carry_over(source, connection)
    return done


def _show(options: Namespace, done: Rebuilt, differing: dict[str, int] | None) -> None:
    if options.json:
        answer = {
            "events": done.events,
            "rows": done.rows,
            "rejected": done.refused,
            "differing": differing,
        }
        sys.stdout.write(json.dumps(answer) + "\n")
        return
    lines = [
        (
            f"{counted(done.events, 'event')}, {counted(sum(done.rows.values()), 'row')} in "
            f"{counted(len(done.rows), 'table')}"
        )
    ]
    lines += [f"rejected {hash_}: {reason}" for hash_, reason in done.refused[:SHOWN]]
    if len(done.refused) > SHOWN:
        lines.append(f"... and {len(done.refused) - SHOWN} more: --json shows all")
    if differing is not None:
        lines += [
            f"{counted(count, 'row')} of {table} {'differs' if count == 1 else 'differ'}"
            for table, count in differing.items()
        ] or ["equal, row by row"]
    sys.stdout.write("\n".join(lines) + "\n")
