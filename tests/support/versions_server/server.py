"""The application on a database, with a client that says what went wrong."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Engine, Select, column, select, table
from starlette.testclient import TestClient

from strandline.api.app import create_app
from strandline.runtime.follower import Follower
from strandline.settings import Settings
from versions_server.events import LAKE

JSON = dict[str, Any]


class Server:
    """What a user does with a server."""

    def __init__(self, client: TestClient, engine: Engine, follower: Follower) -> None:
        self.client = client
        self.engine = engine
        self.follower = follower

    def post(self, *events: JSON) -> None:
        """Send events, one request each, as emitters do."""
        for event in events:
            answer = self.client.post("/api/v1/lineage", json=event)
            assert answer.status_code == 201, answer.text

    def ask(self, path: str, body: JSON, status: int = 200) -> JSON:
        """POST a question to /api/v2."""
        answer = self.client.post(f"/api/v2{path}", json=body)
        assert answer.status_code == status, answer.text
        found: JSON = answer.json()
        return found

    def get(self, path: str, status: int = 200) -> JSON:
        """GET a path."""
        answer = self.client.get(path)
        assert answer.status_code == status, answer.text
        found: JSON = answer.json()
        return found

    def send(self, method: str, path: str, status: int = 204) -> JSON:
        """A request without a body; the problem document where there is one."""
        answer = self.client.request(method, path)
        assert answer.status_code == status, answer.text
        found: JSON = answer.json() if answer.content else {}
        return found

    def versions(self, *names: str, status: int = 200, **more: Any) -> JSON:
        """POST /versions for tables of the catalog `lake`."""
        return self.ask("/versions", {"tables": tables(*names), **more}, status)

    def snapshots(self, *names: str, **more: Any) -> dict[str, str]:
        """Table to snapshot of an answer."""
        return {one["name"]: one["snapshotId"] for one in self.versions(*names, **more)["tables"]}

    def barriers(self, *names: str, **more: Any) -> dict[str, int]:
        """Table to barrier of an answer."""
        return {one["name"]: one["barrier"] for one in self.versions(*names, **more)["tables"]}

    def domain(self, name: str, *roots: str) -> JSON:
        """Declare a domain."""
        return self.ask("/domains", {"name": name, "tables": tables(*roots)})

    def rows(self, view: str, *columns: str) -> set[tuple[Any, ...]]:
        """Rows of one of the proposals' tables."""
        with self.engine.connect() as connection:
            query: Select[*tuple[Any, ...]] = select(*map(column, columns)).select_from(table(view))
            return {tuple(row) for row in connection.execute(query)}


def tables(*names: str) -> Sequence[JSON]:
    """Names of tables in the catalog `lake`."""
    return [{"namespace": LAKE, "name": name} for name in names]


@contextmanager
def running(engine: Engine, **settings: Any) -> Iterator[Server]:
    """A server on a database, with its threads."""
    app = create_app(engine, Settings(**settings))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        yield Server(client, engine, app.state.follower)
