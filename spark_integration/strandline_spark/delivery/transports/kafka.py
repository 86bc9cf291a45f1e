"""Events to a Kafka topic by kafka-python.

Value = the event as JSON, key as OpenLineage clients have it, acks=all.

The producer is made on the first send, because its constructor may wait for brokers. It is thrown
away when a send fails, because an idempotent producer that timed out holds its records and would
send them again beside ours.
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from strandline_spark.delivery.transport import Delivery, Message, TransportConfError

TOPIC = "openlineage.events"
_NUMBERS = {
    "request_timeout_ms",
    "linger_ms",
    "batch_size",
    "max_request_size",
    "retry_backoff_ms",
    "metadata_max_age_ms",
}
_NAMES = {
    "bootstrap.servers": "bootstrap_servers",
    "client.id": "client_id",
    "compression.type": "compression_type",
    "security.protocol": "security_protocol",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.username": "sasl_plain_username",
    "sasl.password": "sasl_plain_password",
    "ssl.ca.location": "ssl_cafile",
    "ssl.truststore.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "ssl.key.password": "ssl_password",
    "request.timeout.ms": "request_timeout_ms",
    "linger.ms": "linger_ms",
    "batch.size": "batch_size",
    "max.request.size": "max_request_size",
    "retry.backoff.ms": "retry_backoff_ms",
    "metadata.max.age.ms": "metadata_max_age_ms",
}
_PASSED_OVER = {
    "key.serializer",
    "value.serializer",
    "acks",
    "retries",
    "enable.idempotence",
    "sasl.jaas.config",
}
_LOGIN = re.compile(r'\b(username|password)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|\'([^\']*)\'|([^\s;]+))')


class KafkaTransport:
    """Sends to one topic."""

    def __init__(self, topic: str, settings: Mapping[str, Any], key: str | None = None) -> None:
        self._topic = topic
        self._settings = dict(settings)
        self._key = key
        self._producer: Any = None
        self._client: Any = None  # the producer's, which it leaves open when its constructor fails

    def send(self, messages: Sequence[Message], seconds: float) -> Delivery:
        """Hands all to the producer, then waits for their acknowledgements."""
        until = time.monotonic() + seconds
        refused: list[Message] = []
        waiting: list[tuple[Message, Any]] = []
        try:
            producer = self._connected(seconds)
            until = max(
                until, time.monotonic() + seconds / 2
            )  # to connect may have taken all of it
            for message in messages:
                future = self._handed_over(producer, message)
                if future is None:
                    refused.append(message)
                else:
                    waiting.append((message, future))
        except (
            Exception
        ) as error:  # the client's errors have no common root: configuration, network, login, ...
            left = tuple(message for message in messages if message not in refused)
            return Delivery(left, tuple(refused), self._gave_up(error))
        return self._acknowledged(waiting, refused, until)

    def _handed_over(self, producer: Any, message: Message) -> Any:
        """The future of its acknowledgement; None for one that no broker would take."""
        from kafka.errors import MessageSizeTooLargeError

        try:
            return producer.send(
                self._topic, key=(self._key or message.key).encode(), value=message.body
            )
        except MessageSizeTooLargeError:
            return None

    def _acknowledged(
        self, waiting: list[tuple[Message, Any]], refused: list[Message], until: float
    ) -> Delivery:
        from kafka.errors import MessageSizeTooLargeError

        unsent: list[Message] = []
        reason = "larger than the broker takes" if refused else ""
        for message, future in waiting:
            try:
                future.get(timeout=max(0.001, until - time.monotonic()))
            except MessageSizeTooLargeError as error:
                refused.append(message)
                reason = str(error)
            except Exception as error:
                unsent.append(message)
                reason = self._gave_up(error)
        return Delivery(tuple(unsent), tuple(refused), reason)

    def _connected(self, seconds: float) -> Any:
        if self._producer is None:
            KafkaProducer = _installed()  # noqa: N806 - a class
            _quieten()
            alarm = threading.Timer(
                seconds + 1, self._close_client
            )  # a TLS handshake has no end of its own
            alarm.daemon = True
            alarm.start()
            try:
                producer = KafkaProducer(**self._arguments(max(100, int(seconds * 1000))))
                # at the interpreter's end it would close before the last events are sent
                producer._unregister_cleanup()
                self._producer = producer
            finally:
                alarm.cancel()
        return self._producer

    def _arguments(self, wait: int) -> dict[str, Any]:
        """Return the arguments of the producer, which may block for `wait` milliseconds."""
        return {
            "client_id": "strandline",  # of the threads too
            "acks": "all",
            "linger_ms": 5,
            "request_timeout_ms": 5000,
            "max_block_ms": wait,
            "bootstrap_timeout_ms": wait,
            "delivery_timeout_ms": max(wait, 10_000),
            "metrics_enabled": False,
            "kafka_client": self._connect,
            **self._settings,
        }

    def _connect(self, **settings: Any) -> Any:
        from kafka import KafkaProducer

        self._client = KafkaProducer.DEFAULT_CONFIG["kafka_client"](**settings)
        return self._client

    def _gave_up(self, error: Exception) -> str:
        self.close()
        return f"kafka {self._settings['bootstrap_servers']}: {type(error).__name__}: {error}"

    def close(self) -> None:
        """Give the producer up without waiting for what it still holds.

        Its own `close` gives up itself while records wait, and leaves thread and sockets to
        themselves.
        """
        producer, self._producer = self._producer, None
        with contextlib.suppress(Exception):
            if producer is not None:
                producer.close(timeout=0)
        with contextlib.suppress(Exception):
            if producer is not None:
                producer._sender.force_close()
                producer._sender.join(1)  # it closes its client
        self._close_client()

    def _close_client(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(Exception):
                client.close()


def _installed() -> Any:
    """kafka-python's producer."""
    try:
        from kafka import KafkaProducer
    except ImportError as error:
        raise TransportConfError(
            f"transport.type kafka: {error}: "
            "install it with `pip install 'strandline-spark[kafka]'`"
        ) from error
    return KafkaProducer


class _OwnThreads(logging.Filter):
    """Drops what the client logs on our threads, each try of each connection as an error.

    The outbox says once what is wrong. The application's own Kafka clients, and the level of their
    logger, stay as they are.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is somebody else's."""
        return not (record.threadName or "").startswith("strandline")


_OTHERS = _OwnThreads()


def _quieten() -> None:
    for name in [
        name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "kafka"
    ]:
        logging.getLogger(name).addFilter(_OTHERS)  # twice is once


def kafka_of(conf: Mapping[str, str]) -> KafkaTransport:
    """The transport for type `kafka`.

    `properties.*` are named as Kafka's Java producer names them.
    """
    _installed()
    properties = {
        key.removeprefix("properties."): v
        for key, v in conf.items()
        if key.startswith("properties.")
    }
    return KafkaTransport(
        conf.get("topicName") or TOPIC, settings_of(properties), conf.get("messageKey")
    )


def settings_of(properties: Mapping[str, str]) -> dict[str, Any]:
    """Kafka's Java property names as kafka-python's; what does not matter here is passed over.

    >>> settings_of({"bootstrap.servers": "b:9092", "acks": "1", "linger.ms": "20"})
    {'bootstrap_servers': ['b:9092'], 'linger_ms': 20}
    """
    settings: dict[str, Any] = {}
    for name, value in properties.items():
        setting = _NAMES.get(name)
        if setting is None:
            if name not in _PASSED_OVER:
                logging.getLogger("strandline").debug("kafka property %s is not used", name)
            continue
        settings[setting] = int(value) if setting in _NUMBERS else value
    if not settings.get("bootstrap_servers"):
        raise TransportConfError(
            "transport.properties.bootstrap.servers: the kafka transport needs it"
        )
    settings["bootstrap_servers"] = [
        server.strip() for server in settings["bootstrap_servers"].split(",")
    ]
    return settings | _login(properties.get("sasl.jaas.config", ""))


def _login(jaas: str) -> dict[str, str]:
    options = {
        m[1]: next(v for v in m.groups()[1:] if v is not None) for m in _LOGIN.finditer(jaas)
    }
    return {f"sasl_plain_{name}": re.sub(r"\\(.)", r"\1", value) for name, value in options.items()}
