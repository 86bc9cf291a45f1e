"""The audit log records changes with author and status, but no reads."""

from dataclasses import replace
from datetime import UTC, datetime

import httpx
from sqlalchemy import Engine

from fixtures.servers import SETTINGS, bearer, client_of, serving
from strandline.cli import main
from strandline.store.api_keys import add_key

SECRET = "hunter2hunter2"
OPTIONS = "/api/v2/catalog-options"
LAKE = {"catalog": "lake", "key": "table-lineage", "value": "true"}


def test_audit_log_records_changes_with_their_author(engine: Engine) -> None:
    now = datetime(2026, 11, 20, tzinfo=UTC)
    with engine.begin() as connection:
        admin = add_key(connection, "the boss", now, ("admin",), ("*",))
        reader = add_key(connection, "a reader", now, ("read",), ("*",))
    with (
        serving(engine, replace(SETTINGS, auth="required")) as address,
        client_of(address, "") as client,
    ):

        def ask(method: str, path: str, key: str, **how: object) -> int:
            return client.request(method, path, headers=bearer(key), **how).status_code  # type: ignore[arg-type]

        done = [
            ask("PUT", OPTIONS, admin, json=LAKE),
            ask("PUT", OPTIONS, reader, json=LAKE),
            ask("DELETE", f"/api/v1/namespaces/none/jobs/none?password={SECRET}", admin),
            ask("GET", "/api/v2/jobs", admin),
        ]
        assert done == [204, 403, 404, 200]
        page = client.get("/api/v2/audit?limit=2", headers=bearer(admin)).json()
        rest = client.get(
            f"/api/v2/audit?cursor={page['nextCursor']}", headers=bearer(admin)
        ).json()
        assert ask("GET", "/api/v2/audit", reader) == 403

    noted = [
        (one["who"].rpartition(" (")[0], one["what"].split()[0], one["status"])
        for one in (*page["items"], *rest["items"])
    ]
    assert noted == [
        ("key the boss", "DELETE", done[2]),
        ("key a reader", "PUT", 403),
        ("key the boss", "PUT", done[0]),
    ]
    assert page["items"][0]["address"] == "127.0.0.1"
    assert SECRET not in page["items"][0]["details"]
    assert '"lake"' in rest["items"][0]["details"]
    assert rest["nextCursor"] is None


def test_audit_log_records_keys_made_by_command(sqlite_url: str, sqlite_engine: Engine) -> None:
    environ = {"STRANDLINE_DATABASE_URL": sqlite_url}

    assert main(["keys", "add", "job", "--scope", "ingest", "--namespace", "shop*"], environ) == 0
    assert main(["keys", "revoke", "job"], environ) == 0

    with serving(sqlite_engine) as address:
        items = httpx.get(f"{address}/api/v2/audit").json()["items"]
    assert [(one["what"], one["details"]) for one in items] == [
        ("keys revoke", "job"),
        ("keys add", "job: ingest on shop*"),
    ]
    assert {one["who"].split()[0] for one in items} == {"command"}
