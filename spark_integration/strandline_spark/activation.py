"""Switches the emitter on and off for a SparkContext, and ends it with the process.

One emitter per context, one queue per JVM. `activate` is what conf alone causes; `enable` and `disable` are for
notebooks. All three are safe to call twice and never raise because of the emitter's own faults.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
import uuid
from dataclasses import replace
from typing import Any

from strandline_spark.conf import Conf, conf_of

_LOG = logging.getLogger("strandline")
_EXIT_SECONDS = 2.0
_emitters: dict[str, Any] = {}  # application id -> Emitter
_queues: dict[int, Any] = {}  # gateway -> EventQueue: Iceberg's registry holds what it was given for good
_endings: list[threading.Thread] = []  # emitters of earlier contexts, sending their last events


def enable(spark: Any) -> bool:
    """Switches the emitter on for the session's context, whatever `spark.strandline.enabled` says.

    True if it is on now. It stays off where the environment or the conf disables OpenLineage, and where the stock
    OpenLineage listener is on.
    """
    return activate(spark.sparkContext, asked=True)


def disable(spark: Any) -> None:
    """Switches the emitter off: the runs that are open are told as aborted, and what waits is sent within 2 s."""
    context = spark.sparkContext
    if context._jsc is None:  # the context has ended, and its emitter with it
        return
    app_id = context.applicationId
    if app_id not in _emitters:
        return
    try:
        try:
            _queues[id(context._gateway)].leave(context._jsc.sc())
        finally:
            _emitters.pop(app_id).stop(_EXIT_SECONDS, "ABORT")
    except Exception:
        _LOG.warning("strandline: could not be switched off cleanly", exc_info=True)


def activate(context: Any, asked: bool = False) -> bool:
    """Starts an emitter for a SparkContext whose conf, or user, asks for it."""
    try:
        conf = _conf(context)
        if not (conf.enabled or asked):
            return False
        _read_consistently(context)
        if conf.disabled:
            return False
        if conf.stock_listener:
            _LOG.warning("strandline: the OpenLineage listener is on in spark.extraListeners: Strandline stands back")
            return False
        if context.applicationId not in _emitters:
            for fault in conf.faults:
                _LOG.warning("strandline: %s", fault)
            _start(context, conf)
        return True
    except Exception:
        _LOG.warning("strandline: not active", exc_info=True)
        return False


def _read_consistently(context: Any) -> None:
    """Let `spark.sql` follow the conf, where that asks for consistent reads."""
    keys = [key for key, _ in context.getConf().getAll() if key.startswith("spark.strandline.")]
    if any(key.endswith(".consistency") for key in keys):
        from strandline_spark.consistent_conf import obey

        obey()


def _conf(context: Any) -> Conf:
    return replace(
        conf_of(dict(context.getConf().getAll())), app_id=context.applicationId, spark_version=context.version
    )


def _start(context: Any, conf: Conf) -> None:
    from strandline_spark import snapshots
    from strandline_spark.emitter import Emitter
    from strandline_spark.jvm_queue import EventQueue

    gateway = context._gateway
    _retire_earlier(gateway)
    queue = _queues.get(id(gateway))
    if queue is None:
        queue = _queues[id(gateway)] = EventQueue(gateway, conf.queue_size)
        snapshots.register(gateway.jvm, queue.queue)
    queue.listen(context._jsc.sc())
    emitter = Emitter(conf, queue, context._jsc.sc(), str(uuid.uuid4()))
    _emitters[conf.app_id] = emitter
    emitter.start()


def _retire_earlier(gateway: Any) -> None:
    """A notebook that stops a context and makes the next: the first one's emitter takes its last events first.

    Sending them, or keeping them on disk, goes on beside the new context.
    """
    for app_id, emitter in list(_emitters.items()):
        if not emitter.wait(_EXIT_SECONDS):
            _queues.pop(id(gateway), None)  # the earlier one still empties it
        _emitters.pop(app_id)
        ending = threading.Thread(target=emitter.stop, args=(_EXIT_SECONDS,), name="strandline-ending", daemon=True)
        ending.start()
        _endings[:] = [*(thread for thread in _endings if thread.is_alive()), ending]


@atexit.register
def _at_exit() -> None:
    if not _emitters and not _endings:
        return
    until = time.monotonic() + _EXIT_SECONDS
    from strandline_spark.exits import uncaught

    error = uncaught()
    for emitter in list(_emitters.values()):
        emitter.stop(max(0.2, until - time.monotonic()), "FAIL" if error else "COMPLETE", error)
    for ending in _endings:
        ending.join(max(0.2, until - time.monotonic()))
    _emitters.clear()


def _in_child() -> None:
    """A forked child has the parent's emitters without their threads: it must neither send nor unlock anything."""
    for emitter in _emitters.values():
        emitter.abandon()
    _emitters.clear()
    _queues.clear()
    _endings.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
