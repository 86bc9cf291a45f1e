"""POST /api/v2/forget counts first, then forgets.

It is for admins and keeps names out of the log.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import httpx
from sqlalchemy import Engine

from fixtures.servers import SETTINGS, bearer, client_of, serving
from strandline.store.api_keys import add_key
from worlds.builders import dataset, event, store

TABLE = {"kind": "dataset", "namespace": "hive://lake", "name": "shop.zzsecretzz"}
NODE = "dataset:hive://lake:shop.zzsecretzz"


def test_only_an_admin_can_forget_a_table(engine: Engine) -> None:
    store(
        engine,
        [event("COMPLETE", inputs=[dataset("shop.zzsecretzz")], outputs=[dataset("shop.sums")])],
    )
    with engine.begin() as connection:
        now = datetime(2026, 11, 20, tzinfo=UTC)
        keys = {
            scope: add_key(connection, scope, now, (scope,), ("*",))
            for scope in ("admin", "read", "ingest")
        }
    with (
        serving(engine, replace(SETTINGS, auth="required")) as address,
        client_of(address, "") as client,
    ):

        def ask(body: Mapping[str, object], scope: str = "admin") -> httpx.Response:
            return client.post("/api/v2/forget", json=body, headers=bearer(keys[scope]))

        def found() -> int:
            found = client.get(
                "/api/v2/lineage", params={"node": NODE}, headers=bearer(keys["read"])
            )
            return found.status_code

        refused = [ask(TABLE, scope).status_code for scope in ("read", "ingest")]
        wrong = [
            ask(one).status_code
            for one in ({"kind": "table"}, {"kind": "job"}, {"kind": "event", "id": "x"})
        ]
        counted = [ask(body).json() for body in (TABLE, {**TABLE, "dryRun": True})]
        there = found()
        done = ask({**TABLE, "dryRun": False}).json()

        assert refused == [403, 403]
        assert wrong == [400, 400, 409]
        assert there == 200
        assert [(one["executed"], one["message"]) for one in counted] == [
            (False, 'nothing was changed: {"dryRun": false} forgets it')
        ] * 2
        assert (done["executed"], done["message"]) == (True, "it is forgotten")
        assert [one["gone"] for one in counted] == [done["gone"]] * 2
        assert {"table": "datasets", "rows": 1} in done["gone"]
        assert {"table": "raw_events", "rows": 1} in done["changed"]
        assert found() == 404
        audit = client.get("/api/v2/audit", headers=bearer(keys["admin"]))
        assert "forget dataset" in audit.text
        assert "zzsecretzz" not in audit.text
