"""`strandline keys`: makes, lists and revokes the API keys that are needed on any address but loopback."""

import json
from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime

from sqlalchemy import Engine

from strandline.cli.answers import show_table, tell
from strandline.cli.command import Command
from strandline.cli.open_store import existing_store, open_store
from strandline.errors import SettingsError
from strandline.settings import Settings
from strandline.store.api_keys import ApiKey, add_key, keys_of, revoke_key


def arguments(parser: ArgumentParser) -> None:
    """`add NAME`, `revoke NAME`, `list`."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = actions.add_parser("add", help="make a key; it is shown once")
    add.add_argument("name", help="who will use it")
    revoke = actions.add_parser("revoke", help="end a key, within a minute")
    revoke.add_argument("name", help="the name it was made with")
    listing = actions.add_parser("list", help="all keys, with their names and times")
    for one in (add, revoke, listing):
        one.add_argument("--json", action="store_true", help="for programs")


def run(options: Namespace, settings: Settings) -> int:
    """Do one of the three."""
    engine = _made(options, settings) if options.action == "add" else existing_store(settings)
    now = datetime.now(UTC)
    with engine.begin() as connection:
        match options.action:
            case "add":
                key = add_key(connection, options.name, now)
                tell(options.json, {"name": options.name, "key": key}, lambda: [key])
            case "revoke":
                revoke_key(connection, options.name, now)
                tell(options.json, {"name": options.name, "revoked": True}, lambda: [f"{options.name}: revoked"])
            case _:
                _print(keys_of(connection), as_json=options.json)
    engine.dispose()
    return 0


def _made(options: Namespace, settings: Settings) -> Engine:
    """The store, which is made if it is not there yet: a key is often the first thing that a new server needs."""
    from strandline.logs import make_log  # for this one action

    if not options.name.strip():
        raise SettingsError(["keys add: the name is empty: say who will use the key"])
    return open_store(settings, make_log(settings.log_format, "warning"))


def _print(keys: list[ApiKey], *, as_json: bool) -> None:
    if as_json:
        rows = [
            {
                "name": key.name,
                "createdAt": key.created_at.isoformat(),
                "revokedAt": key.revoked_at and key.revoked_at.isoformat(),
            }
            for key in keys
        ]
        print(json.dumps(rows, indent=2))
        return
    if not keys:
        tell(False, None, lambda: ["there is no key yet: strandline keys add NAME makes one"])
        return
    show_table(("NAME", "SINCE", "STATE"), [_row(key) for key in keys])


def _row(key: ApiKey) -> list[str]:
    ended = f"revoked {key.revoked_at:%Y-%m-%d %H:%M}" if key.revoked_at else "valid"
    return [key.name, f"{key.created_at:%Y-%m-%d %H:%M}", ended]


KEYS = Command("keys", run, arguments)
