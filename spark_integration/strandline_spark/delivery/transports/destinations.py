"""The destination of events in words.

It stands in the first line of a job's log, and in a check of the conf.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from typing import Any

from strandline_spark.conf import Conf
from strandline_spark.openlineage.redaction import clean_address

_LOG = logging.getLogger("strandline")
_WAYS_OUT = {
    401: "it wants an API key: {}",
    403: (
        "the API key is not allowed to send events: "
        "the collector's `strandline keys` says what it may"
    ),
    404: (
        "nothing takes events at this path: "
        "is spark.openlineage.transport.url, or .endpoint, right?"
    ),
}
_NO_KEY = "spark.openlineage.transport.auth.apiKey (or spark.strandline.collector.token) is not set"
_WRONG_KEY = (
    "it does not know the one in spark.openlineage.transport.auth.apiKey (or "
    "spark.strandline.collector.token)"
)


def say_where(conf: Conf, jvm: Any = None) -> None:
    """Says in the job's log where events go and under which names.

    That is Python's log, or standard error where that does not show it. What runs under
    spark-submit has no standard error of its own, only the output that people parse: there it is
    Spark's log.
    """
    names = conf.job_name.replace("{app}", conf.app_name)
    line = (
        f"strandline: events go to {destination_of(conf.transport)}; "
        f"jobs are {names} in namespace {conf.namespace}"
    )
    if _LOG.isEnabledFor(logging.INFO) and _LOG.hasHandlers():
        _LOG.info(line)
    elif jvm is not None and "PYSPARK_GATEWAY_PORT" in os.environ:
        jvm.org.slf4j.LoggerFactory.getLogger("strandline").info(line)
    else:
        print(line, file=sys.stderr)


def destination_of(conf: Mapping[str, str]) -> str:
    """Return where the conf of a transport sends events.

    >>> destination_of({"type": "http", "url": "http://collector:5000"})
    'http://collector:5000/api/v1/lineage'
    >>> destination_of({"type": "kafka", "properties.bootstrap.servers": "b1:9092,b2:9092"})
    'topic openlineage.events of Kafka at b1:9092,b2:9092'
    """
    kind = conf.get("type", "console")
    if kind == "http":
        return _of_http(conf)
    if kind == "kafka":
        servers = conf.get("properties.bootstrap.servers", "(no bootstrap.servers)")
        return f"topic {conf.get('topicName') or 'openlineage.events'} of Kafka at {servers}"
    if kind == "file":
        return f"the file {clean_address(conf.get('location', '(no location)'))}"
    if kind == "composite":
        return "; ".join(destination_of(part) for part in parts_of(conf).values())
    return (
        "standard output, because no transport is configured"
        if kind == "console" and "type" not in conf
        else kind
    )


def _of_http(conf: Mapping[str, str]) -> str:
    url = clean_address(conf.get("url", "")).rstrip("/")
    has_path = "/" in url.partition("://")[2]
    endpoint = conf.get("endpoint", "" if has_path else "/api/v1/lineage").strip("/")
    return f"{url}/{endpoint}" if endpoint else url


def parts_of(conf: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The confs of a composite transport's parts, by their names."""
    parts: dict[str, dict[str, str]] = {}
    for key, value in conf.items():
        if key.startswith("transports."):
            name, _, rest = key.removeprefix("transports.").partition(".")
            parts.setdefault(name, {})[rest] = value
    return parts


def way_out(status: int, has_key: bool) -> str:
    """Return the remedy for an HTTP status; empty if the status says it all.

    >>> way_out(401, has_key=False).partition(" (or ")[0]
    ': it wants an API key: spark.openlineage.transport.auth.apiKey'
    """
    hint = _WAYS_OUT.get(status, "").format(_WRONG_KEY if has_key else _NO_KEY)
    return f": {hint}" if hint else ""
