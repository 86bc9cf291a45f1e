"""Switch the emitter on and off for a SparkContext, and ends it with the process.

One emitter per context, also where several Python processes share its JVM: the others stand by.
`activate` is what conf alone causes; `enable` and `disable` are for notebooks. All three are safe
to call twice and never raise because of the emitter's own faults.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from strandline_spark.conf import Conf, conf_of
from strandline_spark.conf_keys import CATALOG_TABLE_LINEAGE

if TYPE_CHECKING:
    from strandline_spark.jvm.claims import Claim

_LOG = logging.getLogger("strandline")
_EXIT_SECONDS = 2.0
REMOTE = (
    "this session is a client of a Spark Connect server: nothing is seen from here. "
    "Switch the emitter on in the server's process, with spark.strandline.enabled=true"
)
_emitters: dict[str, Any] = {}  # application id -> Emitter
_standing_by: dict[str, threading.Event] = {}  # application id -> set when it is to end
_switching = threading.RLock()  # two threads that enable make one emitter
_endings: list[threading.Thread] = []  # emitters of earlier contexts, sending their last events


def enable(spark: Any) -> bool:
    """Switch the emitter on for the session's context, whatever `spark.strandline.enabled` says.

    True if the context's events are reported now, by this process or by another one that shares its
    JVM: then this one stands by. It stays off where the environment or the conf disables
    OpenLineage, and where the stock OpenLineage listener is on.
    """
    context = context_of(spark)
    return context is not None and activate(context, by_hand=True)


def disable(spark: Any) -> None:
    """Switch the emitter off.

    Open runs are reported as aborted, and what waits is sent within 2 s.

    `spark.sql` reads the latest again, whatever the conf says of consistency.
    """
    context = context_of(spark)
    _read_latest()
    if context is None or context._jsc is None:  # the context has ended, and its emitter with it
        return
    app_id = context.applicationId
    with _switching:
        if app_id in _standing_by:
            _standing_by.pop(app_id).set()
        emitter = _emitters.pop(app_id, None)
    try:
        if emitter is not None:
            emitter.leave()
            emitter.stop(_EXIT_SECONDS, "ABORT")
    except Exception:
        _LOG.warning("strandline: could not be switched off cleanly", exc_info=True)


def context_of(spark: Any) -> Any:
    """Return the session's SparkContext.

    None, and a sentence in the log, where it is a client of a remote one.
    """
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        _LOG.warning("strandline: %s", REMOTE)
        return None
    return spark.sparkContext


def activate(context: Any, by_hand: bool = False) -> bool:
    """Start an emitter for a SparkContext whose conf, or user, asks for it."""
    try:
        settings = dict(context.getConf().getAll())  # three round trips each: asked for once
        conf = _conf_of(settings, context)
        if not (conf.enabled or by_hand):
            return False
        _follow_conf(settings)
        if conf.disabled:
            return False
        if conf.stock_listener:
            _LOG.warning(
                "strandline: the OpenLineage listener is on in spark.extraListeners: "
                "Strandline stands back"
            )
            return False
        with _switching:
            if context.applicationId not in _emitters and context.applicationId not in _standing_by:
                for fault in conf.faults:
                    _LOG.warning("strandline: %s", fault)
                _begin(context, conf)
        return True
    except Exception as error:
        _LOG.warning("strandline: not active: %s", error, exc_info=True)
        return False


def _follow_conf(settings: Mapping[str, str]) -> None:
    """Let `spark.sql` follow the conf, and tell the collector of options of catalogs in it."""
    from strandline_spark.consistency.reading.conf import obey

    obey()
    prefix = CATALOG_TABLE_LINEAGE.partition("NAME")[0]
    if any(key.startswith(prefix) and key.endswith("-lineage") for key in settings):
        from strandline_spark.consistency.catalog_options import announce

        announce(settings)


def _read_latest() -> None:
    patching = sys.modules.get("strandline_spark.consistency.reading.conf")
    if patching is not None:
        patching.disobey()


def conf_of_context(context: Any) -> Conf:
    """Return the emitter's settings of a SparkContext."""
    return _conf_of(dict(context.getConf().getAll()), context)


def _conf_of(settings: dict[str, str], context: Any) -> Conf:
    return replace(
        conf_of(settings),
        app_id=context.applicationId,
        spark_version=context.version,
    )


def _begin(context: Any, conf: Conf) -> None:
    """Start an emitter, or wait until the process that has the application's events has ended."""
    from strandline_spark.jvm.claims import Claim

    _retire_earlier()
    claim = Claim(context._gateway, conf.app_id)
    if claim.take():
        _start(context, conf, claim)
        return
    _LOG.info(
        "strandline: another process of this JVM tells of this application: this one stands by"
    )
    claim.stand_by()
    ended = _standing_by[conf.app_id] = threading.Event()
    threading.Thread(
        target=_stand_by, args=(context, conf, claim, ended), name="strandline-standby", daemon=True
    ).start()


def _start(context: Any, conf: Conf, claim: Claim) -> None:
    from strandline_spark.jvm.event_queue import EventQueue
    from strandline_spark.runs.emitter import Emitter

    queue = EventQueue(context._gateway, conf.queue_size)
    queue.listen(context._jsc.sc())
    emitter = Emitter(conf, queue, context._jsc.sc(), str(uuid.uuid4()), claim)
    _emitters[conf.app_id] = emitter
    emitter.start()


def _stand_by(context: Any, conf: Conf, claim: Claim, ended: threading.Event) -> None:
    from strandline_spark.jvm import claims

    try:
        while not ended.wait(claims.SECONDS / 10):
            if context._jsc is None:
                return
            claim.stand_by()
            with _switching:
                if not ended.is_set() and claim.take():
                    del _standing_by[conf.app_id]
                    _start(context, conf, claim)
                    return
    except Exception as error:  # the JVM is gone
        _LOG.info("strandline: no longer standing by: %s", error)
    finally:
        claim.stand_by_no_more()


def _retire_earlier() -> None:
    """Retire the emitter of a context that a notebook stopped before it makes the next.

    The first one's emitter takes and sends its last events beside it.
    """
    for waiting in _standing_by.values():
        waiting.set()
    _standing_by.clear()
    for app_id, emitter in list(_emitters.items()):
        _emitters.pop(app_id)
        ending = threading.Thread(
            target=emitter.stop, args=(_EXIT_SECONDS,), name="strandline-ending", daemon=True
        )
        ending.start()
        _endings[:] = [*(thread for thread in _endings if thread.is_alive()), ending]


@atexit.register
def _at_exit() -> None:
    if not _emitters and not _endings:
        return
    until = time.monotonic() + _EXIT_SECONDS
    from strandline_spark.runs.exits import uncaught

    error = uncaught()
    for emitter in list(_emitters.values()):
        emitter.stop(max(0.2, until - time.monotonic()), "FAIL" if error else "COMPLETE", error)
    for ending in _endings:
        ending.join(max(0.2, until - time.monotonic()))
    _emitters.clear()


def _in_child() -> None:
    """Drop the parent's emitters in a forked child, which has none of their threads.

    It must neither send nor unlock anything.
    """
    global _switching
    _switching = threading.RLock()  # another thread of the parent may have held it
    for emitter in _emitters.values():
        emitter.abandon()
    _emitters.clear()
    _standing_by.clear()
    _endings.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
