"""The transport that the conf describes."""

from __future__ import annotations

from collections.abc import Mapping

from strandline_spark.delivery.transport import Transport, TransportConfError


def transport_of(conf: Mapping[str, str]) -> Transport:
    """The transport that `spark.openlineage.transport.*` (keys after that prefix) describes.

    Console when none is.
    """
    kind = conf.get("type", "console")
    if kind == "kafka":
        from strandline_spark.delivery.transports.kafka import kafka_of

        return kafka_of(conf)
    if kind == "http":
        from strandline_spark.delivery.transports.http import http_of

        return http_of(conf)
    if kind == "composite":
        from strandline_spark.delivery.transports.composite import composite_of

        return composite_of(conf, transport_of)
    if kind in ("file", "console"):
        from strandline_spark.delivery.transports.file import file_of

        return file_of(conf)
    raise TransportConfError(
        f"transport.type: {kind!r} is none of kafka, http, file, console, composite"
    )
