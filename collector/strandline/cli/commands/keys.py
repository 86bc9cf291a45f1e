"""`strandline keys`: makes, lists and revokes the API keys that all but loopback needs."""

import shlex
from argparse import Namespace
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection
from sqlalchemy.engine import make_url

from strandline.cli.answers import show, show_table, tell, tell_list
from strandline.cli.collector import Collector, chosen_url
from strandline.cli.open_store import existing_store, open_store
from strandline.core.access.granted import SCOPES, faults_of, is_key_name
from strandline.errors import SettingsError
from strandline.settings import Settings, default_database
from strandline.store.api_keys import LONGEST_DAYS, add_key, keys_of, revoke_key
from strandline.store.audit import note_command
from strandline.store.sql.shared_settings import agreed


def run(options: Namespace, settings: Settings) -> int:
    """Do one of the three, in the database or with a running collector."""
    if options.action == "add":
        _refuse_faults(options)
    options.url = chosen_url(options, settings)
    if options.url:
        _ask_collector(options, settings)
    else:
        _ask_database(options, settings)
    return 0


def _ask_collector(options: Namespace, settings: Settings) -> None:
    collector = Collector(options.url, options.key or settings.client_key())
    match options.action:
        case "add":
            wanted = {
                "name": options.name,
                "scopes": options.scope,
                "namespaces": options.namespace,
                "days": options.days,
            }
            _print_key(collector.request("POST", "/keys", body=wanted)["key"], options, options.url)
        case "revoke":
            collector.request("DELETE", f"/keys/{quote(options.name, safe='')}")
            _print_revoked(options)
        case _:
            _print_keys(collector.request("GET", "/keys")["items"], options)


def _ask_database(options: Namespace, settings: Settings) -> None:
    from strandline.logs import make_log  # only this action writes a log

    now = datetime.now(UTC)
    if options.action == "add":
        engine = open_store(settings, make_log(settings.log_format, "warning"))
    else:
        engine = existing_store(settings, takes_url=True)
    with engine.begin() as connection:
        match options.action:
            case "add":
                ends = None if options.days is None else now + timedelta(days=options.days)
                key = add_key(connection, options.name, now, options.scope, options.namespace, ends)
                allowed = f"{', '.join(options.scope)} on {', '.join(options.namespace)}"
                note_command(connection, now, "keys add", f"{options.name}: {allowed}")
                _print_key(key, options, _address_in(connection, settings))
            case "revoke":
                revoke_key(connection, options.name, now)
                note_command(connection, now, "keys revoke", options.name)
                _print_revoked(options)
            case _:
                _print_keys([key.document for key in keys_of(connection)], options)
    engine.dispose()


def _address_in(connection: Connection, settings: Settings) -> str:
    """Return the address of the collector that serves this database, for its clients."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    of_settings = f"http://{host}:{settings.port}"
    address = settings.public_url or agreed(connection).get("address", of_settings)
    for every_address in ("0.0.0.0", "[::]"):
        address = address.replace(f"//{every_address}:", "//HOST:")
    return address


def _refuse_faults(options: Namespace) -> None:
    faults = faults_of(options.name, options.scope, options.namespace)
    if options.days is not None and not 1 <= options.days <= LONGEST_DAYS:
        faults.append(f"--days is not a whole number from 1 to {LONGEST_DAYS}")
    if not faults:
        return
    scopes = [scope for scope in options.scope if scope in SCOPES] or ["read"]
    parts = ["strandline", "keys", "add", options.name if is_key_name(options.name) else "me"]
    for scope in scopes:
        parts += ["--scope", scope]
    for pattern in options.namespace or ["*"]:
        parts += ["--namespace", pattern]
    command = f"for example: {shlex.join(parts)}"
    raise SettingsError([f"keys add: {fault} ({command})" for fault in faults])


def _print_key(key: str, options: Namespace, collector_url: str) -> None:
    answer = {"name": options.name, "key": key}
    tell(answer, lambda: _shown(key, options, collector_url), as_json=options.json)


def _print_revoked(options: Namespace) -> None:
    answer = {"name": options.name, "revoked": True}
    tell(answer, lambda: [f"{options.name}: revoked"], as_json=options.json)


def _shown(key: str, options: Namespace, collector_url: str) -> list[str]:
    """Return the key, and for one that sends events the lines of Spark conf that use it."""
    if "ingest" not in options.scope and "admin" not in options.scope:
        return [key]
    return [
        key,
        "",
        "For spark-defaults.conf:",
        "spark.strandline.enabled          true",
        f"spark.strandline.collector.url    {collector_url}",
        f"spark.strandline.collector.token  {key}",
        "",
        "Spark's page and command lines show conf. So better instead of the last line, one of",
        "  spark.strandline.collector.token.file  FILE     a file on the driver that holds the key",
        "  STRANDLINE_KEY, STRANDLINE_KEY_FILE             in the driver's environment",
    ]


def no_key(settings: Settings) -> str:
    """Return why nobody could ask a collector on this address, and the command that mends it."""
    command = ["strandline", "keys", "add", "admin", "--scope", "admin", "--namespace", "*"]
    url = settings.database_url
    # A password comes from the environment, which the next command has too.
    if url != default_database() and not make_url(url).password:
        command += ["--database-url", url]
    return (
        f"{settings.host} needs API keys and there is none: {shlex.join(command)} "
        "(or set STRANDLINE_ADMIN_KEY_FILE to a file: the server makes the first key in it)"
    )


def _print_keys(documents: Sequence[Mapping[str, Any]], options: Namespace) -> None:
    if tell_list(options, {"items": documents}, documents, columns=COLUMNS):
        return
    if not documents:
        command = "strandline keys add me --scope read --namespace '*'"
        show([f"there is no key yet; {command} makes one"])
        return
    titles = ("ID", "NAME", "SCOPES", "NAMESPACES", "SINCE", "LAST USE", "STATE")
    show_table(titles, [_row(document) for document in documents])


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


def _row(document: Mapping[str, Any]) -> list[str]:
    return [
        document["id"],
        document["name"],
        ", ".join(document["scopes"]),
        ", ".join(document["namespaces"]),
        _minute(document["createdAt"]),
        _minute(document["lastUsedAt"]) if document["lastUsedAt"] else "never",
        _state(document),
    ]


def _state(document: Mapping[str, Any]) -> str:
    if document["revokedAt"]:
        return f"revoked {_minute(document['revokedAt'])}"
    if not document["expiresAt"]:
        return "valid"
    is_valid = datetime.now(UTC) < datetime.fromisoformat(document["expiresAt"])
    return f"{'valid until' if is_valid else 'expired'} {_minute(document['expiresAt'])}"


def _minute(moment: str) -> str:
    return f"{datetime.fromisoformat(moment):%Y-%m-%d %H:%M}"
