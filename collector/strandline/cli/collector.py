"""Who answers a command's questions: the database, or with --url and --key a running collector."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import orjson
from sqlalchemy import Engine

from strandline.cli.open_store import existing_store
from strandline.errors import AmbiguousError, NotFoundError, StrandlineError
from strandline.settings import Settings
from strandline.store.sql.engine import reading

if TYPE_CHECKING:
    from urllib.error import HTTPError

Ask = Callable[[str, Mapping[str, Any]], dict[str, Any]]
"""Answers a path of /api/v2 with parameters as JSON."""

SECONDS = 60


class CollectorError(StrandlineError):
    """A running collector could not be asked, or refused to answer."""

    code = "collector"


def add_collector_arguments(parser: ArgumentParser) -> None:
    """--url and --key."""
    parser.add_argument(
        "--url", help="ask a running collector, e.g. http://127.0.0.1:5000, instead of the database"
    )
    parser.add_argument(
        "--key",
        help="with --url: the key of an API that asks for one; or STRANDLINE_KEY, STRANDLINE_KEY_FILE",
    )


@contextmanager
def answering(
    options: Namespace, settings: Settings, of_database: Callable[[Engine], Ask]
) -> Iterator[Ask]:
    """Whoever answers: the collector that --url names, else the database of the settings."""
    if options.url:
        yield ask_collector(options.url, options.key or settings.client_key())
        return
    engine = existing_store(settings)
    try:
        yield of_database(reading(engine))
    finally:
        engine.dispose()


class Collector:
    """A running collector at `url`, asked with an API key if there is one."""

    def __init__(self, url: str, key: str | None) -> None:
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    def ask(self, path: str, query: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer of a path of /api/v2; parameters that are None are left out."""
        import urllib.parse  # a command that asks the database does not wait for it

        given = {name: value for name, value in query.items() if value is not None}
        return self.request("GET", f"{path}?{urllib.parse.urlencode(given, doseq=True)}")

    def request(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """Return the answer of a path of /api/v2 to any method; nothing where it has no body."""
        import urllib.error  # a command that asks the database does not wait for them
        import urllib.request

        data = None if body is None else orjson.dumps(body)
        headers = self._headers | {"Content-Type": "application/json"}
        try:
            request = urllib.request.Request(
                f"{self._url}/api/v2{path}", data, headers, method=method
            )
            with urllib.request.urlopen(request, timeout=SECONDS) as response:
                answer: dict[str, Any] = orjson.loads(response.read() or b"{}")
                return answer
        except urllib.error.HTTPError as error:
            raise _refusal(error, self._url) from None
        except (OSError, ValueError) as error:
            raise CollectorError(f"cannot ask the collector at {self._url}: {error}") from None


def ask_collector(url: str, key: str | None) -> Ask:
    """Return a function that asks the API at `url`."""
    return Collector(url, key).ask


def _refusal(error: "HTTPError", url: str) -> StrandlineError:
    try:
        problem = orjson.loads(error.read())
        detail, candidates = problem["detail"], problem.get("candidates", ())
    except (ValueError, KeyError, TypeError):
        return CollectorError(f"{url} answers: {error.code} {error.reason}")
    if problem.get("code") == AmbiguousError.code:
        return AmbiguousError(detail, candidates)
    return (
        NotFoundError(detail, candidates)
        if error.code == 404
        else CollectorError(f"{url} answers: {detail}")
    )
