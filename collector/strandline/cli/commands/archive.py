"""`strandline archive --to TARGET`: events leave the store for a table that Spark reads.

Answers about them stay.
"""

import json
import sys
from argparse import Namespace
from datetime import UTC, datetime, timedelta
from threading import Event

from strandline.cli.answers import counted
from strandline.cli.open_store import existing_store
from strandline.cli.signals import end_on_signals
from strandline.errors import SettingsError
from strandline.execution.iceberg_tables import catalog_properties
from strandline.history.archive import archive
from strandline.history.session import spark_session
from strandline.history.topic_archive import await_end, records_of, started
from strandline.settings import Settings, missing_setting


def run(options: Namespace, settings: Settings) -> int:
    """Move the events."""
    if options.from_topic:
        return _archive_topic(options, settings)
    engine = existing_store(settings)
    before = options.before or datetime.now(UTC) - timedelta(days=7)
    try:
        moved = archive(
            engine, options.to, before, catalog_properties(options.catalog_property), options.batch
        )
    finally:
        engine.dispose()
    if options.json:
        sys.stdout.write(json.dumps({"events": moved.events, "batches": moved.batches}) + "\n")
    else:
        sys.stdout.write(
            f"{counted(moved.events, 'event')} moved to {options.to} in "
            f"{counted(moved.batches, 'batch', 'batches')}\n"
        )
    return 0


def _archive_topic(options: Namespace, settings: Settings) -> int:
    if not settings.kafka_bootstrap_servers:
        raise missing_setting("kafka_bootstrap_servers", "there is no topic to archive")
    if not options.checkpoint:
        raise SettingsError(
            ["archive --from-topic: needs --checkpoint, where Spark keeps its position"]
        )
    with spark_session(options) as spark:
        records = records_of(spark, settings.kafka_bootstrap_servers, settings.kafka_topic)
        stopping = Event()
        end_on_signals(stopping.set)
        query = started(
            spark, records, options.to, options.checkpoint, available_now=options.available_now
        )
        await_end(query, stopping)
    return 0
