"""Puts an emitter's parts together: reader, announcer, outbox.

Imported on the emitter's thread, for it is slow.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from strandline_spark.conf import Conf
from strandline_spark.delivery.outbox import Outbox
from strandline_spark.delivery.safe_batches import SafeBatches
from strandline_spark.delivery.spool import Spool
from strandline_spark.delivery.transports.destinations import say_where
from strandline_spark.delivery.transports.registry import transport_of
from strandline_spark.extraction.reader import PlanReader
from strandline_spark.formats.registry import relied_on
from strandline_spark.jvm.event_queue import EventQueue
from strandline_spark.jvm.iceberg_snapshot import ALL_CAME, REGISTRY
from strandline_spark.jvm.internals import unavailable
from strandline_spark.jvm.streaming_query import StreamHandle, running_queries
from strandline_spark.listeners.notifier import Notices
from strandline_spark.openlineage.events import EventContent, Events, RunOf
from strandline_spark.runs.announcer import Announcer
from strandline_spark.runs.batch_queries import Actions
from strandline_spark.runs.dispatch import Watch
from strandline_spark.runs.streaming_queries import Streams
from strandline_spark.swallowed import counted


@dataclass(frozen=True, slots=True)
class ApplicationParts:
    """The parts that an emitter drives."""

    application: RunOf
    announcer: Announcer
    outbox: Outbox
    watch: Watch
    notices: Notices | None

    def end_application(self, state: str, at: float, error: str | None) -> None:
        """Announce the end of the application's run."""
        self.announcer.say(state, self.application, at, EventContent(error=error))

    def finish(self, state: str, error: str | None, lives_on: bool = False) -> None:
        """End the runs that are still open, then the application's.

        What `lives_on` another process of the JVM tells of.
        """
        at = self.watch.ended_at or time.time() * 1000
        self.watch.finish(at, lives_on)
        self.end_application(state, at, error)

    def close(self, seconds: float) -> None:
        """Lets listeners finish and sends what waits; what cannot be sent in time goes to disk."""
        until = time.monotonic() + seconds
        if self.notices is not None:
            self.notices.close(seconds / 2)
        self.outbox.close(max(0.1, until - time.monotonic()))

    def abandon(self) -> None:
        """In a forked child: sends nothing."""
        self.outbox.abandon()


def assembled(conf: Conf, queue: EventQueue, run_id: str) -> ApplicationParts:
    """The parts for one application; its START is announced."""
    application = RunOf(run_id, conf.app_name, "APPLICATION")
    say_where(conf, queue.gateway.jvm)
    folder = spool_folder(conf)
    safe_batches = SafeBatches(folder)
    outbox = Outbox(
        lambda: transport_of(conf.transport),
        Spool(folder, conf.spool_bytes),
        capacity=conf.queue_size,
        safe=safe_batches.note,
    )
    notices = Notices(conf.listeners, conf.listener_conf) if conf.listeners else None
    announcer = Announcer(conf, Events(conf, application), outbox, notices)
    announcer.say("START", application, time.time() * 1000)
    reader = PlanReader(queue.gateway.jvm)
    reader.jvm.kept[REGISTRY] = queue.registry
    reader.jvm.kept[ALL_CAME] = queue.all_came
    announcer.swallowed = counted
    announcer.unavailable = unavailable(reader.jvm, relied_on())
    streams = Streams(
        conf, reader, announcer, partial(_query, queue.gateway.jvm), safe_batches.last
    )
    for query in running_queries(_session(queue.gateway.jvm)):
        streams.query_started(*query, time.time() * 1000)
    actions = Actions(conf, application, reader, announcer)
    watch = Watch(queue, application, actions, streams, announcer, notices, reader.forget)
    return ApplicationParts(application, announcer, outbox, watch, notices)


def spool_folder(conf: Conf) -> Path:
    """Return where events wait.

    A driver that only prints its own must not take, and print, what others keep for a collector.
    """
    return (
        conf.spool_dir / "console"
        if conf.transport.get("type", "console") == "console"
        else conf.spool_dir
    )


def _query(jvm: Any, qe: Any, query_id: str) -> StreamHandle:
    """Return the running query.

    It is found through the session of its micro-batch, or else through any session.
    """
    return StreamHandle.find(jvm, qe.sparkSession() if qe is not None else _session(jvm), query_id)


def _session(jvm: Any) -> Any:
    """Any session of the JVM's; None if it has none.

    A process that hosts Connect may have made a SparkContext only: then the JVM's default session
    is one.
    """
    from pyspark.sql import SparkSession

    session = getattr(SparkSession, "_instantiatedSession", None)
    if session is not None:
        return session._jsparkSession
    with contextlib.suppress(Exception):
        return jvm.org.apache.spark.sql.SparkSession.getDefaultSession().get()
    return None
