"""The source of a command's answers: a running collector or the database."""

import sys
from abc import ABC, abstractmethod
from argparse import Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from sqlalchemy import Engine

from strandline.cli.open_store import existing_store, missing_file, no_database
from strandline.core.openlineage.names import TableName
from strandline.errors import (
    AmbiguousError,
    CollectorError,
    NotFoundError,
    ParameterError,
    SchemaError,
    StrandlineError,
)
from strandline.escaping import escaped
from strandline.settings import Settings, default_database, setting_called
from strandline.store.sql.engine import file_of, reading
from strandline.store.sql.private_files import has_server

if TYPE_CHECKING:
    from urllib.error import HTTPError

    from strandline.questions.reader import Reader

SECONDS = 60
PAGE = 1_000
PROBE_SECONDS, PROBE_BYTES = 1, 1000
LOCAL_COLLECTOR = "http://127.0.0.1:5000"


@contextmanager
def source_of(options: Namespace, settings: Settings) -> "Iterator[Collector | Database]":
    """Give the collector that --url or STRANDLINE_URL names, else the database.

    Where neither is named and there is no database yet, a collector on this machine answers. Where
    two could answer, stderr names the one that does.
    """
    options.url = chosen_url(options, settings) or _local_collector(settings)
    if options.url:
        yield Collector(options.url, options.key or settings.client_key())
        return
    if file := missing_file(settings.database_url):
        asked = LOCAL_COLLECTOR if settings.database_url == default_database() else None
        raise SchemaError(no_database(file, takes_url=True, silent_collector=asked))
    engine = existing_store(settings)
    try:
        yield Database(engine, settings)
    finally:
        engine.dispose()


def chosen_url(options: Namespace, settings: Settings) -> str | None:
    """Return the collector that is named; flags win over the environment."""
    if options.url:
        return str(options.url)
    if settings.url is None or vars(options).get("setting_database_url"):
        return None
    if settings.database_url != default_database():
        _note(f"asking the collector at {settings.url} (STRANDLINE_URL), not the database")
    return settings.url


def _local_collector(settings: Settings) -> str | None:
    """Return the collector on this machine, if it has to answer instead of the default database."""
    if settings.database_url != default_database() or not _answers(LOCAL_COLLECTOR):
        return None
    if missing_file(settings.database_url):
        _note(f"asking the collector at {LOCAL_COLLECTOR}")
        return LOCAL_COLLECTOR
    file = file_of(settings.database_url)
    if file is None or not has_server(file):  # else that collector serves this very database
        _note(
            "asking the database in your data folder; "
            f"a collector answers too: --url {LOCAL_COLLECTOR}"
        )
    return None


def _note(text: str) -> None:
    print(f"strandline: {escaped(text)}", file=sys.stderr)


def _answers(url: str) -> bool:
    """Return whether a collector answers at `url`."""
    import urllib.request  # a command that asks a named database does not wait for it

    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=PROBE_SECONDS) as response:
            answer = orjson.loads(response.read(PROBE_BYTES))
    except (OSError, ValueError):
        return False
    return isinstance(answer, dict) and answer.keys() - {"label"} == {"status", "version"}


class NamedTable(NamedTuple):
    """A table; `label` is its name for people."""

    namespace: str
    name: str
    label: str

    @property
    def named(self) -> dict[str, str]:
        """The table as the API names it."""
        return {"namespace": self.namespace, "name": self.name}


class Source(ABC):
    """A source of answers; a path is one below /api/v2."""

    @abstractmethod
    def ask(self, path: str, query: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer of a path; parameters that are None are left out."""

    @abstractmethod
    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a question that is a document."""

    @abstractmethod
    def table(self, text: str) -> NamedTable:
        """Return the table that a person means."""

    def pages(
        self, path: str, query: Mapping[str, Any], limit: int, most: int = PAGE
    ) -> dict[str, Any]:
        """Return a list's first `limit` items as one page; `most` is how many one may have."""
        answer = self.ask(path, {**query, "limit": min(most, limit)})
        items, cursor = answer["items"], answer["nextCursor"]
        while cursor is not None and len(items) < limit:
            wanted = min(most, limit - len(items))
            page = self.ask(path, {**query, "limit": wanted, "cursor": cursor})
            items, cursor = items + page["items"], page["nextCursor"]
        return answer | {"items": items, "nextCursor": cursor}


class Database(Source):
    """The store, asked as the API asks it."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self._engine = reading(engine)
        self._settings = settings

    @cached_property
    def _reader(self) -> "Reader":
        from strandline.questions.reader import Reader  # a collector is asked without it

        return Reader.of_everything(self._engine, self._settings)

    def ask(self, path: str, query: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer of a path."""
        from strandline.questions.answers import DUMPED, answer_of

        answer = orjson.dumps(answer_of(self._reader, path, query), option=DUMPED)
        plain: dict[str, Any] = orjson.loads(answer)
        return plain

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a question that is a document."""
        return self.ask(path, body)

    def table(self, text: str) -> NamedTable:
        """Return the table that a person means."""
        from strandline.store.lineage.lookup import dataset_called, labels_of

        with self._reader.connected() as connection:
            dataset = dataset_called(connection, text)
            pair = dataset.namespace, dataset.name
            return NamedTable(*pair, labels_of(connection, [pair])[pair])


class Collector(Source):
    """A running collector at `url`, asked with an API key if there is one."""

    def __init__(self, url: str, key: str | None) -> None:
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    def ask(self, path: str, query: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer of a path of /api/v2; parameters that are None are left out."""
        import urllib.parse  # a command that asks the database does not wait for it

        stated = {name: value for name, value in query.items() if value is not None}
        return self.request("GET", f"{path}?{urllib.parse.urlencode(stated, doseq=True)}")

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to a question that is a document."""
        return self.request("POST", path, body=body)

    def table(self, text: str) -> NamedTable:
        """Return the table that a person means."""
        node = self.ask("/lineage", {"node": text, "depth": 0})["nodes"][0]
        if node["type"] != "dataset":
            raise NotFoundError(f"{text}: is a job, not a table")
        place = TableName(node["catalog"], node["database"], node["table"])
        label = place.called(node["namespace"], node["name"])
        return NamedTable(node["namespace"], node["name"], label)

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
            reason = getattr(error, "reason", error)  # without `<urlopen error ...>` around it
            raise CollectorError(
                f"cannot reach the collector at {self._url} ({reason}): "
                f"start strandline serve there, or set {setting_called('url')}"
            ) from None


def _refusal(error: "HTTPError", url: str) -> StrandlineError:
    try:
        problem = orjson.loads(error.read())
        detail, candidates = problem["detail"], problem.get("candidates", ())
    except (ValueError, KeyError, TypeError):
        return CollectorError(f"{url} answers: {error.code} {error.reason}")
    if problem.get("code") == AmbiguousError.code:
        return AmbiguousError(detail, candidates)
    match error.code:
        case 400:
            return ParameterError(detail)
        case 404:
            return NotFoundError(detail, candidates)
    return CollectorError(f"{url} answers: {detail}")
