"""Refuse requests that a page of another origin makes a browser send.

It could write to a collector on this machine, and read it.

A browser names the page in `Origin` and `Sec-Fetch-Site`; a page whose name was pointed at this
machine afterwards gives itself away by `Host`. Programs send neither of the first two, and the
address that they were given as the third.
"""

from collections.abc import Iterable

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from strandline.api.http.problems import on_error
from strandline.errors import ForbiddenError, MediaTypeError, RequestError, StrandlineError
from strandline.settings import is_loopback

LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]", "0.0.0.0"})
READING = frozenset({"GET", "HEAD"})
FOREIGN = frozenset({"cross-site", "same-site"})
ASKED = frozenset({b"host", b"origin", b"sec-fetch-site", b"sec-fetch-mode", b"content-type"})


class RefuseForeignPages:
    """ASGI middleware; `hosts` are the names by which it is reached, None: any."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str] | None) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 400, 403 or 415, or pass the request on."""
        if scope["type"] == "http":
            error = self._objection(scope)
            if error is not None:
                refused = await on_error(Request(scope), error)
                await refused(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _objection(self, scope: Scope) -> StrandlineError | None:
        named = sum(name == b"host" for name, _ in scope["headers"])
        if named > 1:
            return RequestError("the request has more than one Host header")
        if named == 0 and scope["http_version"] != "1.0":
            return RequestError("the request has no Host header")
        headers = {
            name: value.decode("latin-1") for name, value in scope["headers"] if name in ASKED
        }
        host = headers.get(b"host", "")
        # No browser leaves it out; health checks of load balancers speak HTTP/1.0 without it.
        if self._hosts is not None and named and _name_of(host) not in self._hosts:
            return ForbiddenError(
                f"the host name {_name_of(host)[:200]!r} is not allowed; "
                "add it to STRANDLINE_ALLOWED_HOSTS if it is this collector's"
            )
        if _is_foreign(headers, scope["method"], host):
            return ForbiddenError("requests from a page of another origin are refused")
        if scope["method"] in READING or scope["path"] == "/ui/session":
            return None
        media = headers.get(b"content-type", "application/json").partition(";")[0].strip().lower()
        if media != "application/json" and not media.endswith("+json"):
            return MediaTypeError(f"send application/json, not {media[:100]!r}")
        return None


def hosts_of(host: str, allowed: Iterable[str]) -> frozenset[str] | None:
    """Return the names that requests may be sent to: those that were set; on loopback also its own.

    Elsewhere any if none were set.

    >>> sorted(hosts_of("127.0.0.1", [])) == sorted(LOOPBACK)
    True
    >>> hosts_of("10.0.0.1", []), "lineage.example" in hosts_of("10.0.0.1", ["Lineage.example"])
    (None, True)
    """
    names = frozenset(name.lower() for name in allowed)
    if not is_loopback(host) and not names:
        return None
    return names | LOOPBACK | {host.lower()} if is_loopback(host) else names | LOOPBACK


def _is_foreign(headers: dict[bytes, str], method: str, host: str) -> bool:
    if b"origin" in headers:
        return headers[b"origin"].partition("://")[2].lower() != host.lower()  # "null" is nobody's
    # A link on another page may lead to ours: the browser shows it, and its page reads nothing.
    leads_here = method in READING and headers.get(b"sec-fetch-mode") == "navigate"
    return headers.get(b"sec-fetch-site") in FOREIGN and not leads_here


def _name_of(host: str) -> str:
    """Return a Host header without its port.

    >>> _name_of("LocalHost:5000"), _name_of("[::1]:5000"), _name_of("[::1]")
    ('localhost', '[::1]', '[::1]')
    """
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdigit() else host.lower()
