"""HTTP to one address of the settings.

No redirect is followed, answers are bounded in size and time, TLS is verified.

A name is looked up once for each connection, and its addresses are checked before one is used.
Link-local addresses, where clouds keep their secrets, are never asked; others only if they are in
the configured networks.
"""

import http.client
import ipaddress
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from strandline.errors import RefusedItemError, UnavailableError

SECONDS = 30.0
MOST_BYTES = 1 << 20
MOST_SHOWN = 300
LATER = (408, 425, 429)
OURS = (401, 403, 404, 405, 407)  # the address or the token is wrong: no item is to blame

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class Answer(NamedTuple):
    """A whole answer."""

    status: int
    body: bytes
    retry_after: float | None


class Client:
    """One address, one connection that is kept; not for several threads at once."""

    def __init__(
        self,
        address: str,
        token: str | None = None,
        *,
        networks: Sequence[Network] = (),
        seconds: float = SECONDS,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._parts = urlsplit(address)
        self._token = token
        self._networks = networks
        self._seconds = seconds
        self._most_bytes = most_bytes
        self._connection: http.client.HTTPConnection | None = None

    @property
    def address(self) -> str:
        """The target's address, without user and password."""
        port = f":{self._parts.port}" if self._parts.port else ""
        return f"{self._parts.scheme}://{self._parts.hostname}{port}"

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """The answer; UnavailableError where there is none, or not a whole one."""
        reused = self._connection is not None
        try:
            return self._request(method, path, body, headers or {})
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError) as error:
            self.close()
            if not reused:
                raise UnavailableError(self._why(error)) from error
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise UnavailableError(self._why(error)) from error
        try:  # the connection had been closed meanwhile
            return self._request(method, path, body, headers or {})
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise UnavailableError(self._why(error)) from error

    def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """Return the body of a successful answer.

        Raises UnavailableError or RefusedItemError otherwise.
        """
        answer = self.request(method, path, body, headers)
        if 200 <= answer.status < 300:
            return answer.body
        answered = f"{self.address} answers {answer.status}: {_shown(answer.body)}".rstrip(": ")
        if 300 <= answer.status < 400:
            raise UnavailableError(
                f"{answered} (redirects are not followed: name the address itself)"
            )
        if answer.status in LATER or answer.status in OURS:
            raise UnavailableError(answered, answer.retry_after)
        if answer.status >= 500:
            raise UnavailableError(
                answered, answer.retry_after, doubtful=answer.status not in (502, 503, 504)
            )
        raise RefusedItemError(answered)

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _why(self, error: Exception) -> str:
        return f"{self.address}: {type(error).__name__}: {error}".rstrip(": ")

    def _request(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Answer:
        until = time.monotonic() + self._seconds
        connection = self._connection = self._connection or self._connect()
        own = {"User-Agent": "strandline", "Accept": "application/json"}
        if body is not None:
            own["Content-Type"] = "application/json"
        if self._token:
            own["Authorization"] = f"Bearer {self._token}"
        connection.request(method, self._path(path), body, own | dict(headers))
        response = connection.getresponse()
        content = self._read(response, until)
        if response.will_close:
            self.close()
        return Answer(response.status, content, _seconds_of(response.headers.get("Retry-After")))

    def _path(self, path: str) -> str:
        """The path below the address's own; without one the address itself, with its query."""
        if path:
            return self._parts.path.rstrip("/") + path
        return (self._parts.path or "/") + (f"?{self._parts.query}" if self._parts.query else "")

    def _read(self, response: http.client.HTTPResponse, until: float) -> bytes:
        """Return the whole body within the time of one request.

        A sender that gives a byte now and then is not waited for longer than another one.
        """
        parts: list[bytes] = []
        left = self._most_bytes
        while True:
            if time.monotonic() > until:
                raise TimeoutError("the answer takes too long")
            part = response.read1(65_536)
            parts.append(part)
            left -= len(part)
            if left < 0:
                raise http.client.HTTPException(
                    f"the answer is longer than {self._most_bytes} bytes"
                )
            if not part:
                if response.length:  # fewer bytes came than were announced
                    raise http.client.IncompleteRead(b"", response.length)
                response.close()  # or the connection could not be used again
                return b"".join(parts)

    def _connect(self) -> http.client.HTTPConnection:
        host = self._parts.hostname or ""
        port = self._parts.port or (443 if self._parts.scheme == "https" else 80)
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        last: OSError = OSError(f"{host} has no permitted address")
        for family, _, _, _, where in addresses:
            try:
                check_address(str(where[0]), self._networks)
                return self._connected(family, where, host, port)
            except OSError as error:
                last = error
        raise last

    def _connected(
        self, family: int, where: tuple[object, ...], host: str, port: int
    ) -> http.client.HTTPConnection:
        connected = socket.socket(family, socket.SOCK_STREAM)
        try:
            connected.settimeout(self._seconds)
            connected.connect(where)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._parts.scheme == "https":
                connected = ssl.create_default_context().wrap_socket(
                    connected, server_hostname=host
                )
        except BaseException:
            connected.close()
            raise
        connection = http.client.HTTPConnection(host, port, timeout=self._seconds)
        connection.sock = connected
        connection.auto_open = False
        return connection


def check_address(text: str, networks: Sequence[Network]) -> None:
    """Raise OSError for an address that may not be asked."""
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    if address.is_link_local or address.is_multicast or address.is_unspecified:
        kind = "link-local, multicast or unspecified"
        raise OSError(f"{text} is never contacted: it is a {kind} address")
    if networks and not any(
        address in network for network in networks if network.version == address.version
    ):
        raise OSError(f"{text} is in none of the networks of STRANDLINE_EXPORT_NETWORKS")


def _seconds_of(header: str | None) -> float | None:
    """Retry-After in seconds; a date is not looked at."""
    return float(header) if header is not None and header.strip().isdecimal() else None


def _shown(body: bytes) -> str:
    return " ".join(body.decode(errors="replace").split())[:MOST_SHOWN]


def segment(text: str) -> str:
    """A name as one part of a path."""
    return quote(text, safe="")
