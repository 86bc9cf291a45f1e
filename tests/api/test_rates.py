"""Rate limits of keys, with a fake clock, and the answers of a server beyond them."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import httpx
from sqlalchemy import Engine

from fixtures.servers import SETTINGS, problem
from strandline.api.app import create_app
from strandline.api.http.rates import BURST_SECONDS, MOST_BUCKETS, Rates
from strandline.errors import OverloadError, RateError
from strandline.logs import make_log
from strandline.store.api_keys import add_key

NOW = datetime(2026, 11, 20, tzinfo=UTC)


class Asking:
    """Keys that may read twice and ingest once a second, and a clock that is set by hand."""

    def __init__(self) -> None:
        self.now, self.refused = 0.0, list[str]()
        self.rates = Rates(
            {"read": 2, "ingest": 1, "admin": 0}, self.refused.append, lambda: self.now
        )

    def times(self, who: str, scope: str = "read") -> int:
        """Count the requests that are let through now."""
        for count in range(1000):
            try:
                self.rates.spend(who, scope)
            except (RateError, OverloadError):
                return count
        return 1000


def test_a_bucket_holds_ten_seconds_and_fills_at_its_rate() -> None:
    asking = Asking()
    found = [asking.times("a")]
    for asking.now in (0.4, 1.0, 1.5, 4.0, 1000.0):
        found.append(asking.times("a"))

    assert found == [2 * BURST_SECONDS, 0, 2, 1, 5, 2 * BURST_SECONDS]


def test_each_key_and_scope_has_its_own_bucket_if_it_has_a_rate() -> None:
    asking = Asking()

    assert [
        asking.times("a"),
        asking.times("b"),
        asking.times("a", "ingest"),
        asking.times("a", "admin"),
    ] == [
        20,
        20,
        10,
        1000,
    ]
    assert asking.refused == ["read", "read", "ingest"]


def test_number_of_buckets_is_bounded_and_limits_still_hold() -> None:
    asking = Asking()
    for number in range(MOST_BUCKETS):
        asking.rates.spend(str(number), "read")
    asking.now = BURST_SECONDS
    asking.times("late")

    assert asking.times("late") == 0
    assert len(asking.rates._buckets) == 1


def test_server_answers_429_to_excess_reads_and_503_to_excess_events(sqlite_engine: Engine) -> None:
    with sqlite_engine.begin() as connection:
        job, other = (
            add_key(connection, name, NOW, ["ingest", "read"], ["*"]) for name in ("job", "other")
        )
    settings = replace(SETTINGS, auth="required", max_reads_per_second=1, max_ingests_per_second=1)
    app = create_app(sqlite_engine, settings, log=make_log(level="error"))
    app.state.rates.clock = lambda: 0.0  # the bucket does not fill, however long the test takes

    async def ask() -> tuple[
        list[httpx.Response], list[httpx.Response], httpx.Response, httpx.Response
    ]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            own = {"Authorization": f"Bearer {job}"}
            asked = [await client.get("/docs", headers=own) for _ in range(BURST_SECONDS + 1)]
            sent = [
                await client.delete("/unregister/none", headers=own)
                for _ in range(BURST_SECONDS + 1)
            ]
            metrics = await client.get("/metrics", headers={"Authorization": f"Bearer {other}"})
            return asked, sent, metrics, await client.get("/healthz")

    asked, sent, metrics, health = asyncio.run(ask())

    assert [one.status_code for one in asked] == [200] * BURST_SECONDS + [429]
    assert [one.status_code for one in sent] == [404] * BURST_SECONDS + [503]
    assert [problem(one[-1])[1] for one in (asked, sent)] == ["rate", "overload"]
    assert asked[-1].headers["retry-after"] == sent[-1].headers["retry-after"] == "1"
    counted = [
        line
        for line in metrics.text.splitlines()
        if line.startswith("strandline_over_rate_requests_total")
    ]
    assert counted == [
        'strandline_over_rate_requests_total{scope="read"} 1.0',
        'strandline_over_rate_requests_total{scope="ingest"} 1.0',
    ]
    assert health.status_code == 200
