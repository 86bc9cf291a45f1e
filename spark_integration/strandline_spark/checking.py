"""A check that the emitter works here, run by hand: `print(strandline_spark.check(spark))`.

It says what the conf means, sends one event of a job of its own, and says what came back.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from strandline_spark.conf import Conf
from strandline_spark.delivery.transport import Message
from strandline_spark.delivery.transports.destinations import destination_of
from strandline_spark.delivery.transports.registry import transport_of

_SECONDS = 10.0
_SCHEMA = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The findings of a check, one a line as text. `delivered`: the test event was accepted."""

    delivered: bool
    findings: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.findings)


def check(spark: Any) -> CheckResult:
    """Send a test event from the session's application, and say what came back.

    The event is of type OTHER, of the job `APPLICATION.strandline_check`: it starts and ends
    nothing.
    """
    from strandline_spark import activation

    context = activation.context_of(spark)
    if context is None:
        return CheckResult(False, (activation.REMOTE,))
    conf = activation.conf_of_context(context)
    on = context.applicationId in activation._emitters
    try:
        delivered, answer = _sent(conf)
    except Exception as error:  # a conf that cannot be used, a missing package
        delivered, answer = False, f"{type(error).__name__}: {error}"
    return CheckResult(delivered, (*_findings(conf, on), f"test event: {answer}"))


def _findings(conf: Conf, on: bool) -> Iterator[str]:
    yield f"emitter: {'on' if on else _why_off(conf)}"
    yield f"events go to: {destination_of(conf.transport)}"
    yield (
        f"jobs are named: {conf.job_name.replace('{app}', conf.app_name)} in "
        f"namespace {conf.namespace}"
    )
    yield from (f"conf: {fault}" for fault in conf.faults)


def _why_off(conf: Conf) -> str:
    if conf.disabled:
        return "off: OPENLINEAGE_DISABLED or spark.openlineage.disabled is true"
    if conf.stock_listener:
        return "off: the OpenLineage listener is on in spark.extraListeners"
    if not conf.enabled:
        return "off: spark.strandline.enabled is not true"
    return "off here: another process of this JVM may have it on; otherwise the log says why"


def _sent(conf: Conf) -> tuple[bool, str]:
    transport = transport_of(conf.transport)
    try:
        delivery = transport.send([_event(conf)], _SECONDS)
    finally:
        transport.close()
    if delivery.refused:
        return False, f"refused: {delivery.reason}"
    if delivery.unsent:
        return False, f"not sent: {delivery.reason}"
    return True, "taken"


def _event(conf: Conf) -> Message:
    from strandline_spark.openlineage.facets import PRODUCER

    job = f"{conf.app_name}.strandline_check"
    event = {
        "eventType": "OTHER",
        "eventTime": datetime.now(timezone.utc).isoformat(),
        "producer": PRODUCER,
        "schemaURL": _SCHEMA,
        "run": {"runId": str(uuid.uuid4()), "facets": {}},
        "job": {"namespace": conf.namespace, "name": job, "facets": {}},
        "inputs": [],
        "outputs": [],
    }
    return Message(f"run:{conf.namespace}/{job}", json.dumps(event).encode())
