"""`strandline exports`: how far each target is, what it refused, and what may be done about it."""

import time
from argparse import Namespace
from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine

from strandline.cli.answers import (
    counted,
    one_line,
    short_time,
    show,
    show_table,
    tell,
    tell_list,
)
from strandline.cli.commands.export import show_item
from strandline.cli.open_store import existing_store
from strandline.errors import NotFoundError
from strandline.exporters import outbox
from strandline.exporters.outbox_answers import parked_of, targets_in
from strandline.exporters.registry import target_called
from strandline.settings import Settings
from strandline.store.sql.engine import reading


def run(options: Namespace, settings: Settings) -> int:
    """Do what is asked."""
    engine = existing_store(settings)
    try:
        with reading(engine).connect() as connection:
            names = [target["name"] for target in targets_in(connection)]
        if options.action not in ("list", "parked") and options.name is None:
            raise NotFoundError(f"name the target: strandline exports {options.action} NAME", names)
        if options.name is not None and options.name not in names:
            raise NotFoundError(f"no target {options.name!r} is known", names)
        ACTIONS[options.action](engine, options, settings)
    finally:
        engine.dispose()
    return 0


TARGET_COLUMNS = (
    "name",
    "kinds",
    "waiting",
    "sent",
    "sentAt",
    "parked",
    "dropped",
    "failures",
    "problem",
    "nextAt",
)
PARKED_COLUMNS = ("target", "about", "reason", "attempts", "at")


def _list(engine: Engine, options: Namespace, settings: Settings) -> None:
    with reading(engine).connect() as connection:
        targets = targets_in(connection)
    if tell_list(options, {"items": targets}, targets, columns=TARGET_COLUMNS):
        return
    if not targets:
        show(["no target is known: set STRANDLINE_MARQUEZ_URL, or another, and start the server"])
        return
    rows = [
        [
            target["name"],
            str(target["waiting"]),
            str(target["sent"]),
            str(target["parked"]),
            short_time(target["sentAt"]),
            _state(target),
        ]
        for target in targets
    ]
    show_table(("TARGET", "WAITING", "SENT", "PARKED", "LAST SENT", "PROBLEM"), rows)


def _state(export: dict[str, Any]) -> str:
    dropped = export["dropped"]
    lost = (
        f"{counted(dropped, 'event')} {'was' if dropped == 1 else 'were'} too old; "
        if dropped
        else ""
    )
    again = f" (again at {short_time(export['nextAt'])})" if export["nextAt"] else ""
    return f"{lost}{one_line(export['problem'])}{again}" if export["problem"] else lost.rstrip("; ")


def _parked(engine: Engine, options: Namespace, settings: Settings) -> None:
    with reading(engine).connect() as connection:
        parked = parked_of(connection, options.name)
    if tell_list(options, {"items": parked}, parked, columns=PARKED_COLUMNS):
        return
    if not parked:
        show(["nothing is parked"])
        return
    rows = [
        [
            item["target"],
            item["about"],
            str(item["attempts"]),
            short_time(item["at"]),
            item["reason"],
        ]
        for item in parked
    ]
    show_table(("TARGET", "WHAT", "TRIES", "SINCE", "REASON"), rows)


def _preview(engine: Engine, options: Namespace, settings: Settings) -> None:
    target = target_called(options.name, settings)
    with engine.begin() as connection:
        outbox.put_in_order(connection)
    with reading(engine).connect() as connection:
        changes = outbox.changes_waiting(connection, options.name, target.kinds)
        for item in target.items(connection, changes, time.time()) if changes else ():
            show_item(item)


def _replay(engine: Engine, options: Namespace, settings: Settings) -> None:
    with engine.begin() as connection:
        count = outbox.replay_parked(connection, options.name, time.time())
    tell(
        {"replayed": count},
        lambda: [f"{count} parked items go to {options.name} again"],
        as_json=options.format == "json",
    )


def _resend(engine: Engine, options: Namespace, settings: Settings) -> None:
    with engine.begin() as connection:
        count = outbox.resend(connection, options.name)
    tell(
        {"resent": count},
        lambda: [
            f"{counted(count, 'run')} {'goes' if count == 1 else 'go'} to {options.name} again"
        ],
        as_json=options.format == "json",
    )


def _forget(engine: Engine, options: Namespace, settings: Settings) -> None:
    with engine.begin() as connection:
        outbox.forget(connection, [options.name])
    tell(
        {"forgotten": options.name},
        lambda: [f"{options.name} is given up"],
        as_json=options.format == "json",
    )


ACTIONS: dict[str, Callable[[Engine, Namespace, Settings], None]] = {
    "list": _list,
    "parked": _parked,
    "preview": _preview,
    "replay": _replay,
    "resend": _resend,
    "forget": _forget,
}
