"""Questions to the collector over HTTP, and its refusals as exceptions with its reason.

ConsistencyError                 anything that keeps a consistent answer from being given
├── RefusedError                 the collector knows the tables and says no, with a reason
│   ├── NoVersionError           no barrier was completed by all of them yet
│   ├── UntrackedError           a table has no barriers: no job in a group writes it
│   ├── GroupsError              tables of two groups are never compared
│   └── LagError                 the newest version is older than the bound
├── UnknownTableError            the collector has never heard of a table
├── UnreadableStatementError     a statement reads a table in a way that takes no version
├── LeaseLostError               the lease on a version is lost and snapshots may be gone: ask again
├── WaitedInVainError            the barrier did not come in time
├── CertificateError             the tables' own metadata contradict the answer
├── ConfigurationError           the conf is at fault: its address or its key is missing or wrong
└── CollectorAwayError           no collector answers, or it asks for patience: ask again later
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import cache
from http.client import HTTPException
from typing import Any, cast
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

from pyspark.sql import SparkSession

from strandline_spark.collector_key import collector_key
from strandline_spark.conf_keys import (
    COLLECTOR_URL,
    TRANSPORT_KEY,
    TRANSPORT_TYPE,
    TRANSPORT_URL,
)


class ConsistencyError(Exception):
    """Anything that keeps a consistent answer from being given."""

    code = ""


class RefusedError(ConsistencyError):
    """The collector knows the tables and says no, with a reason."""

    code = "refused"


class NoVersionError(RefusedError):
    """No barrier was completed by all of the tables yet."""

    code = "no_version"


class UntrackedError(RefusedError):
    """A table has no barriers: no job in a group writes it."""

    code = "untracked"


class GroupsError(RefusedError):
    """Tables of two groups are never compared."""

    code = "groups"


class LagError(RefusedError):
    """The newest version is older than the bound."""

    code = "lag"


class UnknownTableError(ConsistencyError):
    """The collector has never heard of a table."""

    code = "unknown"


class UnreadableStatementError(ConsistencyError):
    """A statement reads a table in a way that takes no version.

    Run it otherwise, or at the latest.
    """

    code = "unreadable"


class LeaseLostError(ConsistencyError):
    """The lease on a version is lost: its snapshots may be gone, ask for a version again."""

    code = "lease"


class WaitedInVainError(ConsistencyError):
    """The barrier did not come in time."""

    code = "waited"


class CertificateError(ConsistencyError):
    """The tables' own metadata contradict the answer."""

    code = "certificate"


class ConfigurationError(ConsistencyError):
    """The conf is at fault, so asking again does not help."""

    code = "configuration"


class CollectorAwayError(ConsistencyError):
    """Nobody answers, what answers is not a collector, or it asks for patience.

    Asking again may help.
    """

    code = "away"


_OF_CODE: Mapping[str, type[ConsistencyError]] = {
    kind.code: kind for kind in (NoVersionError, UntrackedError, GroupsError, LagError)
} | {"expired": LeaseLostError}
_OF_STATUS: Mapping[int, type[ConsistencyError]] = {
    401: ConfigurationError,
    403: ConfigurationError,
    404: UnknownTableError,
    408: CollectorAwayError,
    425: CollectorAwayError,
    429: CollectorAwayError,  # the key asked too often
    504: WaitedInVainError,
}


class Collector:
    """The collector at an address."""

    def __init__(self, url: str, token: str | None = None, seconds: float = 10.0) -> None:
        if urlsplit(url).scheme not in ("http", "https"):
            raise ConfigurationError(f"{COLLECTOR_URL}: {url!r} is not an http or https address")
        self.url = url.rstrip("/")
        self.token = token
        self._seconds = seconds

    @classmethod
    def of(cls, spark: SparkSession) -> Collector | None:
        """The collector that the session's conf names."""
        return cls.in_conf(lambda key: spark.conf.get(key, None))

    @classmethod
    def in_conf(cls, get: Callable[[str], str | None]) -> Collector | None:
        """The collector that a conf names.

        By its own key, else the address to which events go over HTTP.
        """
        url, token = get(COLLECTOR_URL), collector_key(get, os.environ)
        if not url and get(TRANSPORT_TYPE) in (None, "http"):
            url = get(TRANSPORT_URL)
            token = token or get(TRANSPORT_KEY)
        return cls(url, token) if url else None

    def ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, wait: float = 0.0
    ) -> dict[str, Any]:
        """The answer.

        `wait`: how long the collector itself may wait before it answers. Raises ConsistencyError.
        """
        return cast("dict[str, Any]", self._answer(method, path, body, wait) or {})

    def rows(self, path: str) -> list[dict[str, Any]]:
        """The rows of an answer that is a list of them. Raises ConsistencyError."""
        rows_found = self._answer("GET", path)
        if not isinstance(rows_found, list):
            raise CollectorAwayError(
                f"what answers at {self.url} is no collector: GET {path} gives no rows"
            )
        return rows_found

    def _answer(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, wait: float = 0.0
    ) -> Any:
        request = Request(self.url + path, method=method, headers=self._headers())
        request.data = json.dumps(body).encode() if body is not None else None
        try:
            with _opener().open(request, timeout=self._seconds + wait) as answer:
                content = answer.read()
            return json.loads(content) if content else None
        except HTTPError as error:
            with error:
                if 300 <= error.code < 400:
                    raise self._sent_on(error, f"{method} {path}") from None
                raise refusal_of(error.code, error.read(), f"{method} {path}") from None
        except (URLError, OSError, HTTPException, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            raise CollectorAwayError(
                f"the collector at {self.url} does not answer {method} {path}: {reason}"
            ) from None

    def _sent_on(self, error: HTTPError, question: str) -> ConsistencyError:
        place = error.headers.get("Location", "nowhere")
        return CollectorAwayError(
            f"the collector at {self.url} sends {question} on to {place}, which is not followed"
        )

    def _headers(self) -> dict[str, str]:
        token = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return {"Content-Type": "application/json", "Accept": "application/json"} | token

    def register(
        self, job: str, namespace: str, table: str, is_sink: bool, group: str | None
    ) -> None:
        """Announce that a job reads or writes a table.

        Raises RefusedError with the reason of a 409.
        """
        *catalog, database, name = table.split(".")
        parts = (
            "register",
            "sink" if is_sink else "source",
            job,
            ".".join(catalog),
            database,
            name,
        )
        path = (
            "/"
            + "/".join(quote(part, safe="") for part in parts)
            + f"?namespace={quote(namespace, safe='')}"
        )
        self.ask("POST", path + (f"&group={quote(group, safe='')}" if group else ""))


class _NoRedirects(HTTPRedirectHandler):
    """A redirect would take the token to where nobody configured it."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        """Follows none: it becomes an HTTPError."""


@cache
def _opener() -> OpenerDirector:
    return build_opener(_NoRedirects)


def refusal_of(status: int, content: bytes, question: str) -> ConsistencyError:
    """The exception for an answer of 400 and above: problem details where there are some.

    >>> body = b'{"code": "lag", "detail": "bank.balance is 9 s behind"}'
    >>> refusal_of(409, body, "POST /api/v2/versions")
    LagError('bank.balance is 9 s behind')
    """
    try:
        problem = json.loads(content)
        code, detail = (
            str(problem.get("code", "")),
            str(problem.get("detail") or problem.get("title") or ""),
        )
    except (ValueError, AttributeError):
        code, detail = "", content[:200].decode(errors="replace")
    kind = _OF_CODE.get(code) or _OF_STATUS.get(status)
    if kind is None:
        kind = RefusedError if 400 <= status < 500 else CollectorAwayError
    return kind(
        detail
        if detail and issubclass(kind, RefusedError)
        else f"{detail or 'no reason'} ({question}: {status})"
    )
