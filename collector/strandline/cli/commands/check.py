"""`strandline check`: settings, database and topic, every fault at once, nothing changed."""

from argparse import Namespace
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from strandline.cli.answers import tell, warn
from strandline.cli.commands.keys import no_key
from strandline.cli.open_store import missing_file, no_database
from strandline.cli.outside import token_faults, webhook_faults
from strandline.errors import StrandlineError
from strandline.settings import PREFIX, Settings, faulty_files
from strandline.store.api_keys import has_key
from strandline.store.search.upkeep import is_filled
from strandline.store.sql.engine import (
    check,
    file_of,
    make_engine,
    reading,
    too_few_connections,
    unwritable,
    unwritable_file,
)

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

UNREADABLE = "stored data cannot be read"
LARGEST_EVENT = 32 * 1024 * 1024


def run(options: Namespace, settings: Settings) -> int:
    """Print what is right on stdout and every fault on stderr."""
    faults, fine = [*settings.faults, *settings.unknown], {}
    for name, prefix, look in LOOKS:
        if name in OPTIONAL and not getattr(settings, OPTIONAL[name]):
            continue
        if any(fault.startswith(f"{PREFIX}{prefix}") for fault in settings.faults):
            continue  # the default in its place is not what was meant
        findings = list(look(settings))
        if (
            name == "database"
            and options.data
            and all(UNREADABLE in finding for finding in findings)
        ):
            findings = list(_damage(settings))
        faults += findings
        if not findings:
            fine[name] = _fine(name, settings)
    if not settings.faults:
        fine["settings"] = "ok"
    tell(
        {"fine": fine, "faults": faults},
        lambda: [f"{name}: {state}" for name, state in fine.items()],
        as_json=options.json,
    )
    for fault in faults:
        warn(fault)
    return 1 if faults else 0


def _fine(name: str, settings: Settings) -> str:
    return (
        "none is set, so events come over HTTP only"
        if name == "topic" and not settings.kafka_bootstrap_servers
        else "ok"
    )


def _database(settings: Settings) -> Iterator[str]:
    try:
        if file := missing_file(settings.database_url):
            yield f"database: {no_database(file)}"
            return
        if (file := file_of(settings.database_url)) and (fault := unwritable_file(file)):
            yield f"database: {fault}"
            return
        engine = make_engine(settings.database_url)
        try:
            yield from _store(engine, settings)
        finally:
            engine.dispose()
    except ValueError as error:  # of a decoder
        yield f"database: {UNREADABLE} ({error}): strandline check --data names what is damaged"
    except (StrandlineError, SQLAlchemyError, OSError) as error:
        reason = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
        yield f"database: {reason}"


def _damage(settings: Settings) -> Iterator[str]:
    """Yield each damage of the stored data."""
    from strandline.store.damage import damage_in

    engine = make_engine(settings.database_url)
    try:
        yield from (f"database: {damage}" for damage in damage_in(engine))
    finally:
        engine.dispose()


def _store(engine: Engine, settings: Settings) -> Iterator[str]:
    with reading(engine).connect() as connection:
        yield from (
            f"database: {fault}"
            for fault in (unwritable(connection), too_few_connections(connection))
            if fault
        )
    check(engine)
    with reading(engine).connect() as connection:
        if not is_filled(connection):
            yield (
                "database: the tables of the search are not whole yet (strandline migrate "
                "fills them)"
            )
        wanted = settings.auth_required and not settings.oidc_issuer
        if wanted and not has_key(connection, datetime.now(UTC)):
            yield no_key(settings)
    from strandline.cli.store_findings import store_findings  # nobody else waits for what it asks

    yield from (f"database: {fault}" for fault in store_findings(engine, settings))


def _topic(settings: Settings) -> Iterator[str]:
    if not settings.kafka_bootstrap_servers:
        return
    if faults := faulty_files(settings):
        yield from faults
        return
    from kafka import KafkaAdminClient  # nobody waits for it who has no topic
    from kafka.errors import KafkaError

    where = f"topic {settings.kafka_topic} at {settings.kafka_bootstrap_servers}"
    try:
        admin = KafkaAdminClient(
            bootstrap_servers=settings.kafka_bootstrap_servers.split(","),
            bootstrap_timeout_ms=5000,
            **settings.kafka_security,
        )
    except (KafkaError, ValueError, OSError) as error:
        yield f"{where}: {error!r}"
        return
    try:
        yield from _topic_faults(admin, settings, where)
    except KafkaError as error:
        yield f"{where}: {error!r}"
    finally:
        admin.close()


def _topic_faults(admin: "KafkaAdminClient", settings: Settings, where: str) -> Iterator[str]:
    from kafka.admin import ConfigResource, ConfigResourceType

    from strandline.cli.topic_findings import position_findings

    topic = settings.kafka_topic
    if topic not in admin.list_topics():
        yield f"{where}: there is no such topic (yet)"
        return
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    described = admin.describe_configs([resource], config_filter="all")["topic"][topic]
    values = {name: config["value"] for name, config in described.items()}
    if values.get("message.timestamp.type") != "LogAppendTime":
        yield (
            f"{where}: message.timestamp.type is not LogAppendTime, so heartbeat timeouts go "
            "by the clocks of producers"
        )
    if int(values.get("max.message.bytes", LARGEST_EVENT)) < LARGEST_EVENT:
        yield (
            f"{where}: max.message.bytes is {values['max.message.bytes']}; events can have "
            f"{LARGEST_EVENT} bytes"
        )
    yield from position_findings(admin, settings, where)


LOOKS = (
    ("database", "DATABASE_URL", _database),
    ("topic", "KAFKA_", _topic),
    ("tokens", "OIDC_", token_faults),
    ("alerts", "ALERT_TARGETS", webhook_faults),
)
OPTIONAL = {
    "tokens": "oidc_issuer",
    "alerts": "alert_targets",
}  # what is not spoken of where this is unset
