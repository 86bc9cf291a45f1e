"""`strandline serve`: API and, where a topic is set, the consumer, in one process.

`strandline consume`: the consumer.

Both end cleanly on SIGTERM and SIGINT: what was accepted is written, and partitions are left in
good order.
"""

import sys
import threading
import time
from argparse import Namespace
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from socket import socket

import prometheus_client
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError
from structlog.typing import FilteringBoundLogger

from strandline.alerts.webhooks import Alerting, targets_of
from strandline.api.app import create_app
from strandline.api.listening import address_of, listen
from strandline.api.serving import STOP_SECONDS, SWITCH_SECONDS, Server
from strandline.cli.commands.keys import no_key
from strandline.cli.first_key import add_key_of_settings
from strandline.cli.open_store import open_store, wait_for_database
from strandline.cli.signals import end_on_signals
from strandline.errors import SettingsError, StrandlineError
from strandline.logs import Bugs, adopt_library_logs, make_log
from strandline.metrics import Metrics
from strandline.runtime.expiring import expiring, telling
from strandline.runtime.follower import Follower
from strandline.runtime.heap import give_back_large_blocks
from strandline.runtime.periodic import Turns
from strandline.runtime.sampling import sampling
from strandline.settings import TARGETS, Settings, faulty_files, missing_setting
from strandline.store.api_keys import has_key
from strandline.store.ingest.following import follow_graph
from strandline.store.sql.db_errors import reason_of
from strandline.store.sql.engine import file_of, reading
from strandline.store.sql.private_files import held_by_one_server
from strandline.store.sql.shared_settings import agree
from strandline.transports.dead_letters import take_unread
from strandline.transports.kafka import Consumer


def serve(options: Namespace, settings: Settings) -> int:
    """Serve until a signal ends it; of an SQLite file this is the one server."""
    with held_by_one_server(file_of(settings.database_url)):
        return _serve(settings)


def _serve(settings: Settings) -> int:
    sys.setswitchinterval(SWITCH_SECONDS)
    give_back_large_blocks()
    _check_files(settings)
    log, metrics = _log_of(settings), Metrics()
    listening = listen(settings)
    _serve_metrics(settings, metrics)
    engine, began = _opened(settings, log), time.monotonic()
    add_key_of_settings(engine, settings, log)
    _refuse_without_key(engine, settings, listening)
    follower = Follower(engine)
    consumes = settings.kafka_bootstrap_servers is not None
    consumer = (
        Consumer(engine, settings, metrics, log, follower.take_news, follower.follow)
        if consumes
        else None
    )
    checks = {"consumer": lambda: consumer.state} if consumer else {}
    app = create_app(
        engine,
        settings,
        log=log,
        metrics=metrics,
        checks=checks,
        follower=follower,
        in_process=False,
    )
    alerting = _alerting(engine, follower, settings, log)
    server = Server(app, settings)
    stopping = threading.Event()
    thread = threading.Thread(
        target=_consume, args=(consumer, log, stopping), name="consumer", daemon=True
    )

    def end() -> None:
        stopping.set()
        server.end()
        if consumer:
            consumer.stop()

    end_on_signals(end)
    if consumer:
        thread.start()
    address = address_of(listening)
    with engine.begin() as connection:
        agree(connection, "address", settings.public_url or address)
    log.info("listening", address=address, docs=f"{address}/docs")
    alerting.start()
    threading.Thread(target=_take_unread, args=(engine, log), name="unread", daemon=True).start()
    with (
        _expiring(engine, settings, metrics, log),
        _sampling(engine, follower, metrics, settings, log),
        _exporting(engine, settings, log),
    ):
        server.run(sockets=[listening])
    alerting.stop()
    if consumer:
        stopping.set()
        consumer.stop()
        thread.join(STOP_SECONDS)
    engine.dispose()
    _log_stop(log, metrics, began)
    return 0


def consume(options: Namespace, settings: Settings) -> int:
    """Take records until a signal ends it."""
    if not settings.kafka_bootstrap_servers:
        raise missing_setting("kafka_bootstrap_servers", "there is no topic to consume")
    _check_files(settings)
    log, metrics = _log_of(settings), Metrics()
    _serve_metrics(settings, metrics)
    engine, began = _opened(settings, log), time.monotonic()
    consumer = Consumer(engine, settings, metrics, log, Follower(engine).take_news)
    end_on_signals(consumer.stop)
    threading.Thread(target=_take_unread, args=(engine, log), name="unread", daemon=True).start()
    with _expiring(engine, settings, metrics, log), _exporting(engine, settings, log):
        consumer.run()
    engine.dispose()
    _log_stop(log, metrics, began)
    return 0


def _refuse_without_key(engine: Engine, settings: Settings, listening: socket) -> None:
    """Raise an error if the collector asks for keys, has none and takes no tokens."""
    if not settings.auth_required or settings.oidc_issuer:
        return
    with reading(engine).connect() as connection:
        if has_key(connection, datetime.now(UTC)):
            return
    engine.dispose()
    listening.close()
    raise StrandlineError(no_key(settings))


def _check_files(settings: Settings) -> None:
    if faults := faulty_files(settings):
        raise SettingsError(faults)


def _serve_metrics(settings: Settings, metrics: Metrics) -> None:
    """Serve /metrics on a port of its own, if one is set."""
    if not settings.metrics_port:
        return
    try:
        prometheus_client.start_http_server(settings.metrics_port, settings.host, metrics.registry)
    except OSError as error:
        raise StrandlineError(
            f"cannot serve metrics on {settings.host}:{settings.metrics_port}: {error.strerror}; "
            "take another port with --metrics-port or STRANDLINE_METRICS_PORT"
        ) from error


def _opened(settings: Settings, log: FilteringBoundLogger) -> Engine:
    """Return the store, which has noted the settings that its views and answers go by."""
    wait_for_database(settings, log)
    engine = open_store(settings, log)
    with engine.begin() as connection:
        agree(connection, "silent_seconds", str(settings.silent_seconds))
        agree(connection, "recent_runs", str(settings.recent_runs))
    if settings.graph_bytes:
        with engine.begin() as connection:
            follow_graph(connection)
    return engine


def _expiring(
    engine: Engine, settings: Settings, metrics: Metrics, log: FilteringBoundLogger
) -> Turns:
    """Return the thread that drops what is old, if anything ever is."""
    tell = telling(metrics, log)
    return expiring(
        engine,
        settings.retention_days,
        tell,
        lambda why: log.warning("nothing expires", reason=why),
    )


def _sampling(
    engine: Engine,
    follower: Follower,
    metrics: Metrics,
    settings: Settings,
    log: FilteringBoundLogger,
) -> Turns:
    """Return the thread that looks at the store for its metrics."""
    return sampling(
        engine,
        follower,
        metrics.store,
        settings.retention_days,
        lambda why: log.warning("the store is not sampled for metrics", reason=why),
    )


def _log_stop(log: FilteringBoundLogger, metrics: Metrics, began: float) -> None:
    """Write the last line: a process that ends without it was killed."""
    log.info("stopped", seconds=round(time.monotonic() - began), events=metrics.events.total())


def _exporting(
    engine: Engine, settings: Settings, log: FilteringBoundLogger
) -> AbstractContextManager[None]:
    """Return the threads that export, if there is a target."""
    if not any(getattr(settings, f"{target}_url") for target in TARGETS):
        return nullcontext()
    from strandline.exporters.exporting import Exporting  # nobody waits for them who has no target
    from strandline.exporters.registry import targets_of

    targets = targets_of(settings)
    log.info("exporting", targets=[target.name for target in targets])
    return Exporting(
        engine,
        targets,
        lambda why: log.warning("export waits", reason=why),
        settings.export_max_waiting,
    )


def _alerting(
    engine: Engine, follower: Follower, settings: Settings, log: FilteringBoundLogger
) -> Alerting:
    return Alerting(
        engine,
        follower,
        targets_of(settings.alert_targets),
        lambda why: log.warning("alerts are not checked", reason=why),
        staleness_bound=settings.alert_staleness_seconds,
        interval=settings.alert_seconds,
        networks=settings.export_networks,
        public_url=settings.public_url or "",
    )


def _log_of(settings: Settings) -> FilteringBoundLogger:
    log = make_log(settings.log_format, settings.log_level)
    adopt_library_logs(settings.log_format)
    for unknown in settings.unknown:
        log.warning("unknown setting", reason=unknown)
    return log


def _consume(consumer: Consumer, log: FilteringBoundLogger, stopping: threading.Event) -> None:
    try:
        consumer.run()
    except Exception as error:
        if stopping.is_set() and isinstance(
            error, StrandlineError
        ):  # a signal ended it, and it reports what it left
            log.info("the consumer has stopped", reason=str(error))
            return
        consumer.state = f"the consumer has given up: {error}"
        log.error("the consumer has given up; the API goes on, and is not ready", reason=str(error))
        if not isinstance(error, StrandlineError):
            raise


def _take_unread(engine: Engine, log: FilteringBoundLogger) -> None:
    """Read the unread events of an earlier program again.

    If the database is away, the next start does it.
    """
    try:
        counts = take_unread(engine, Bugs(log))
    except DBAPIError as error:
        log.warning("unread events wait for the next start", reason=reason_of(error))
        return
    if counts:
        log.info("unread events were read again", **counts)
