"""`strandline keys`: makes, lists and revokes the API keys that are needed on any address but loopback."""

from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime, timedelta

from sqlalchemy import Engine

from strandline.cli.answers import add_list_output, show_table, tell, tell_list
from strandline.cli.command import Command
from strandline.cli.open_store import existing_store, open_store
from strandline.core.access.granted import SCOPES, faults_of
from strandline.errors import SettingsError
from strandline.settings import Settings
from strandline.store.api_keys import ApiKey, add_key, keys_of, revoke_key
from strandline.store.audit import note_command

USAGE = "strandline keys add NAME --scope ingest|read|admin --namespace PATTERN"
LONGEST_DAYS = 36_500


def arguments(parser: ArgumentParser) -> None:
    """`add NAME`, `revoke NAME`, `list`."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    add = actions.add_parser("add", help="make a key; it is shown once")
    add.add_argument("name", help="who will use it")
    add.add_argument(
        "--scope", action="append", default=[], choices=SCOPES,
        help="what for: ingest sends events, read asks questions and takes leases, admin does everything; may be given again",
    )  # fmt: skip
    add.add_argument(
        "--namespace", action="append", default=[], metavar="PATTERN",
        help="which namespaces of jobs and datasets, * for any text; may be given again",
    )  # fmt: skip
    add.add_argument(
        "--days", type=int, help="how long it is valid; without it until it is revoked"
    )
    revoke = actions.add_parser("revoke", help="end a key, within five seconds on every node")
    revoke.add_argument("name", help="the name that it was made with, or its id")
    listing = actions.add_parser("list", help="all keys, with their scopes, namespaces and times")
    add_list_output(listing, "for programs")
    for one in (add, revoke):
        one.add_argument("--json", action="store_true", help="for programs")


def run(options: Namespace, settings: Settings) -> int:
    """Do one of the three."""
    engine = (
        _migrated_store(options, settings) if options.action == "add" else existing_store(settings)
    )
    now = datetime.now(UTC)
    with engine.begin() as connection:
        match options.action:
            case "add":
                ends = None if options.days is None else now + timedelta(days=options.days)
                key = add_key(connection, options.name, now, options.scope, options.namespace, ends)
                allowed = f"{', '.join(options.scope)} on {', '.join(options.namespace)}"
                note_command(connection, now, "keys add", f"{options.name}: {allowed}")
                tell(
                    options.json,
                    {"name": options.name, "key": key},
                    lambda: _shown(key, options, settings),
                )
            case "revoke":
                revoke_key(connection, options.name, now)
                note_command(connection, now, "keys revoke", options.name)
                tell(
                    options.json,
                    {"name": options.name, "revoked": True},
                    lambda: [f"{options.name}: revoked"],
                )
            case _:
                _print(keys_of(connection), now, options)
    engine.dispose()
    return 0


def _shown(key: str, options: Namespace, settings: Settings) -> list[str]:
    """The key; for one that sends events also the lines of Spark conf that use it."""
    if "ingest" not in options.scope and "admin" not in options.scope:
        return [key]
    return [
        key,
        "",
        "For spark-defaults.conf:",
        "spark.strandline.enabled          true",
        f"spark.strandline.collector.url    http://{settings.host}:{settings.port}",
        f"spark.strandline.collector.token  {key}",
        "",
        "Spark's page and command lines show conf. So better instead of the last line, one of",
        "  spark.strandline.collector.token.file  FILE     a file on the driver that holds the key",
        "  STRANDLINE_KEY, STRANDLINE_KEY_FILE             in the driver's environment",
    ]


def no_key(settings: Settings) -> str:
    """That nobody could ask a collector on this address, and the command that makes the first key."""
    return (
        f"{settings.host} needs API keys and there is none: "
        "strandline keys add NAME --scope admin --namespace '*' makes one (ingest or read for the others)"
    )


def _migrated_store(options: Namespace, settings: Settings) -> Engine:
    """The store, which is made if it is not there yet.

    A key is often the first thing that a new server needs.
    """
    from strandline.logs import make_log  # for this one action

    faults = faults_of(options.scope, options.namespace)
    if not options.name.strip() or not options.name.isprintable():
        faults.insert(0, "the name is empty, or not one line: say who will use the key")
    if options.days is not None and not 1 <= options.days <= LONGEST_DAYS:
        faults.append(f"--days is not a whole number from 1 to {LONGEST_DAYS}")
    if faults:
        raise SettingsError([f"keys add: {fault} ({USAGE})" for fault in faults])
    return open_store(settings, make_log(settings.log_format, "warning"))


def _print(keys: list[ApiKey], now: datetime, options: Namespace) -> None:
    documents = [_document(key) for key in keys]
    if tell_list(options, documents, documents, columns=COLUMNS):
        return
    if not keys:
        tell(False, None, lambda: [f"there is no key yet: {USAGE} makes one"])
        return
    titles = ("ID", "NAME", "SCOPES", "NAMESPACES", "SINCE", "LAST USE", "STATE")
    show_table(titles, [_row(key, now) for key in keys])


COLUMNS = (
    "id",
    "name",
    "scopes",
    "namespaces",
    "createdAt",
    "expiresAt",
    "lastUsedAt",
    "revokedAt",
)


def _document(key: ApiKey) -> dict[str, object]:
    return {
        "id": key.id,
        "name": key.name,
        "scopes": key.scopes,
        "namespaces": key.patterns,
        "createdAt": key.created_at.isoformat(),
        "expiresAt": key.expires_at and key.expires_at.isoformat(),
        "lastUsedAt": key.used_at and key.used_at.isoformat(),
        "revokedAt": key.revoked_at and key.revoked_at.isoformat(),
    }


def _row(key: ApiKey, now: datetime) -> list[str]:
    used = f"{key.used_at:%Y-%m-%d %H:%M}" if key.used_at else "never"
    scopes, patterns = ", ".join(key.scopes), ", ".join(key.patterns)
    return [
        key.id,
        key.name,
        scopes,
        patterns,
        f"{key.created_at:%Y-%m-%d %H:%M}",
        used,
        _state(key, now),
    ]


def _state(key: ApiKey, now: datetime) -> str:
    if key.revoked_at:
        return f"revoked {key.revoked_at:%Y-%m-%d %H:%M}"
    if key.expires_at:
        return f"{'valid until' if now < key.expires_at else 'expired'} {key.expires_at:%Y-%m-%d %H:%M}"
    return "valid"


KEYS = Command("keys", run, arguments)
