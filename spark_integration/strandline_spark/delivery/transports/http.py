"""Events by HTTP POST, one each, over one kept connection, to any OpenLineage endpoint.

2xx is delivery. 400, 413 and 422 refuse that event alone, if whoever says so takes events or speaks
JSON: a server of something else says 400 to everything. Every other answer, and anything that is no
answer, leaves the event for later. Redirects are not followed: they would take events to where
nobody configured them.
"""

from __future__ import annotations

import gzip
import http.client
import io
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlencode, urlsplit

from strandline_spark.delivery.transport import Delivery, Message, TransportConfError
from strandline_spark.delivery.transports.destinations import way_out

_REFUSED = {400, 413, 422}
_TAKEN = range(200, 300)
_IN_A_ROW = 3  # events that fail one after the other: then it is not the events


@dataclass(frozen=True, slots=True)
class HttpConf:
    """The address, headers and options of posts."""

    url: str
    timeout: float = 5.0
    headers: Mapping[str, str] = field(default_factory=dict)
    gzip: bool = False
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None


class HttpTransport:
    """Posts to one address."""

    def __init__(self, conf: HttpConf) -> None:
        self._conf = conf
        self._url = urlsplit(conf.url)
        self._connection: http.client.HTTPConnection | None = None
        self._takes_events = False
        self._tls = _tls(conf) if self._url.scheme == "https" else None

    def send(self, messages: Sequence[Message], seconds: float) -> Delivery:
        """Post in order; stop where there is no answer, or a bad one to several in a row."""
        until = time.monotonic() + seconds
        refused: list[Message] = []
        unsent: list[Message] = []
        reason, failed = "", 0
        for position, message in enumerate(messages):
            reused = self._connection is not None
            status, answer = self._attempt(message, until)
            if (
                status is None and reused
            ):  # a kept connection may have been closed meanwhile: that is no outage
                status, answer = self._attempt(message, until)
            if status in _TAKEN:
                failed = 0
                continue
            reason = answer
            if status in _REFUSED and self._takes_events:
                refused.append(message)
                continue
            unsent.append(message)
            failed += 1
            if status is None or failed == _IN_A_ROW:
                unsent += messages[position + 1 :]
                break
        return Delivery(tuple(unsent), tuple(refused), reason)

    def _attempt(self, message: Message, until: float) -> tuple[int | None, str]:
        left = min(self._conf.timeout, until - time.monotonic())
        if left <= 0:
            return None, f"{self._place}: out of time"
        try:
            status = self._post(message, left)
        except (OSError, http.client.HTTPException) as error:
            self._drop()
            return None, f"{self._place}: {type(error).__name__}: {error}"
        except ValueError as error:  # its text may show a header's value
            self._drop()
            return None, f"{self._place}: {type(error).__name__}"
        return (
            status,
            (
                f"{self._place}: status "
                f"{status}{way_out(status, 'Authorization' in self._conf.headers)}"
            ),
        )

    def _post(self, message: Message, seconds: float) -> int:
        until = time.monotonic() + seconds
        connection = self._connection = self._connection or self._connect()
        if connection.sock is None:
            connection.timeout = seconds
            connection.connect()
        connection.sock.settimeout(max(0.001, until - time.monotonic()))
        connection.response_class = partial(_WholeAnswer, until)  # type: ignore[assignment]
        body, headers = self._framed(message.body)
        connection.request("POST", self._target, body, headers)
        answer = connection.getresponse()
        answer.read(65_536)
        self._takes_events |= answer.status in _TAKEN or "json" in answer.headers.get_content_type()
        sound = answer.status in _TAKEN or answer.status in _REFUSED
        if (
            answer.will_close or not answer.isclosed() or not sound
        ):  # who has failed once may not answer again at all
            self._drop()
        return answer.status

    def _framed(self, body: bytes) -> tuple[bytes, dict[str, str]]:
        headers = {"Content-Type": "application/json", **self._conf.headers}
        if not self._conf.gzip:
            return body, headers
        return gzip.compress(body, 1), {**headers, "Content-Encoding": "gzip"}

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._url.hostname or "", self._url.port
        if self._tls is not None:
            return http.client.HTTPSConnection(host, port, context=self._tls)
        return http.client.HTTPConnection(host, port)

    @property
    def _place(self) -> str:
        url = self._url
        return f"{url.scheme}://{url.hostname}:{url.port or url.scheme}{url.path}"

    @property
    def _target(self) -> str:
        return self._url.path + (f"?{self._url.query}" if self._url.query else "")

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def close(self) -> None:
        """Close the connection."""
        self._drop()


class _WholeAnswer(http.client.HTTPResponse):
    """An answer that is all there by a time.

    One that breaks off within its headers is none, whatever its status:
    http.client takes the connection's end for theirs.
    """

    def __init__(self, until: float, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self._file = self.fp  # as long as it lives, the socket stays open to be read
        self._bytes = _TimedBytes(sock, until)
        self.fp = io.BufferedReader(self._bytes)

    def begin(self) -> None:
        """Read status and headers."""
        super().begin()
        if self._bytes.ended:
            raise http.client.IncompleteRead(b"")


class _TimedBytes(io.RawIOBase):
    """A socket's bytes until a time.

    A socket's own time-out bounds each read, and so never an answer that drips.
    """

    def __init__(self, sock: socket.socket, until: float) -> None:
        self._socket = sock
        self._until = until
        self.ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("no whole answer in time")
        self._socket.settimeout(left)
        count = self._socket.recv_into(buffer)
        self.ended = count == 0
        return count


def _tls(conf: HttpConf) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=conf.ca_file)
        if conf.cert_file:
            context.load_cert_chain(conf.cert_file, conf.key_file)
    except (OSError, ssl.SSLError) as error:
        raise TransportConfError(f"transport.sslContext: {error}") from error
    return context


def http_of(conf: Mapping[str, str]) -> HttpTransport:
    """The transport for type `http`; keys as the OpenLineage Java client names them."""
    url = conf.get("url", "")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise TransportConfError("transport.url: its host or port cannot be read") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise TransportConfError("transport.url: the http transport needs an http or https address")
    if (
        "@" in parts.netloc or "@" in url.partition("?")[0]
    ):  # a password with a slash in it is no part of the netloc
        raise TransportConfError(
            "transport.url: put credentials into transport.auth, not into the address"
        )
    path = parts.path.rstrip("/")
    endpoint = conf.get("endpoint", "" if path else "/api/v1/lineage")
    query = urlencode(_under(conf, "urlParams."))
    return HttpTransport(
        HttpConf(
            url=f"{parts.scheme}://{parts.netloc}{path}"
            + (f"/{endpoint.lstrip('/')}" if endpoint else "")
            + (f"?{query}" if query else ""),
            timeout=_seconds(conf),
            headers={**_under(conf, "headers."), **_authorization(conf)},
            gzip=conf.get("compression", "").lower() == "gzip",
            ca_file=conf.get("sslContextConfig.caFile"),
            cert_file=conf.get("sslContextConfig.certFile"),
            key_file=conf.get("sslContextConfig.keyFile"),
        )
    )


def _under(conf: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {key[len(prefix) :]: value for key, value in conf.items() if key.startswith(prefix)}


def _authorization(conf: Mapping[str, str]) -> dict[str, str]:
    key = (
        conf.get("auth.apiKey") or conf.get("auth.api_key") or ""
    ).strip()  # one read from a file ends with a newline
    return {"Authorization": f"Bearer {key}"} if key else {}


def _seconds(conf: Mapping[str, str]) -> float:
    try:
        seconds = float(conf.get("timeoutInMillis", "5000")) / 1000
    except ValueError as error:
        raise TransportConfError(f"transport.timeoutInMillis: {error}") from error
    return seconds if seconds > 0 else 5.0
