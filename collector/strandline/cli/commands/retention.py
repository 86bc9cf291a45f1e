"""`strandline retention`: drops what is older than STRANDLINE_RETENTION_DAYS.

Servers do so once a day. If more than half of the events would go, they wait for a day, or for
this command with --execute.
"""

from argparse import Namespace
from datetime import timedelta

from strandline.cli.answers import counted, tell
from strandline.cli.open_store import existing_store
from strandline.core.openlineage.times import micros_of, moment_of
from strandline.runtime.expiring import expire_and_tell
from strandline.settings import Settings, missing_setting
from strandline.store.ingest.retention import Expired, clock_of, count_events
from strandline.store.sql.engine import read_from


def run(options: Namespace, settings: Settings) -> int:
    """Count the old events, or drop them with everything else that is old."""
    days = settings.retention_days
    if days is None:
        raise missing_setting("retention_days", "nothing is too old")
    engine = existing_store(settings)
    dropped: dict[str, int] = {}

    def add(expired: Expired, _returned_bytes: int) -> None:
        dropped.update({table: rows for table, rows in sorted(expired.rows.items()) if rows})

    try:
        with read_from(engine) as connection:
            before = moment_of(clock_of(connection).now) - timedelta(days=days)
            old, all_events = count_events(connection, micros_of(before))
        if options.execute:
            expire_and_tell(engine, days, add, execute=True)
    finally:
        engine.dispose()
    answer = {"executed": options.execute, "before": before.isoformat(), "events": all_events}
    lines = [f"{counted(old, 'event')} of {all_events} came before {before:%Y-%m-%d %H:%M} UTC"]
    if options.execute:
        lines += [f"  {counted(rows, 'row')} of {table} dropped" for table, rows in dropped.items()]
        lines += [] if dropped else ["nothing was dropped: less than a day of events is too old"]
    else:
        lines += ["nothing was changed: --execute drops what is older"]
    tell(answer | {"old": old, "dropped": dropped}, lambda: lines, as_json=options.json)
    return 0
