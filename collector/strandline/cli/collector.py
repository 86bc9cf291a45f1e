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


def ask_collector(url: str, key: str | None) -> Ask:
    """Asks the API at `url`."""
    import urllib.error  # a command that asks the database does not wait for them
    import urllib.parse
    import urllib.request

    headers = {"Authorization": f"Bearer {key}"} if key else {}

    def ask(path: str, asked: Mapping[str, Any]) -> dict[str, Any]:
        query = urllib.parse.urlencode(
            {name: value for name, value in asked.items() if value is not None}, doseq=True
        )
        try:
            request = urllib.request.Request(
                f"{url.rstrip('/')}/api/v2{path}?{query}", headers=headers
            )
            with urllib.request.urlopen(request, timeout=SECONDS) as response:
                answer: dict[str, Any] = orjson.loads(response.read())
                return answer
        except urllib.error.HTTPError as error:
            raise _refusal(error, url) from None
        except (OSError, ValueError) as error:
            raise CollectorError(f"cannot ask the collector at {url}: {error}") from None

    return ask


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
