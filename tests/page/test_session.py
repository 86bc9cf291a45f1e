"""Browser sessions with API keys: a cookie that no script and no foreign page can use."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import httpx
import pytest

from fixtures.servers import client_of
from page.conftest import tab_of
from strandline.store.api_keys import add_key
from strandline.store.sql.engine import make_engine


@pytest.fixture
def key(sqlite_url: str, guarded: str) -> str:
    """Return a valid API key of the guarded server."""
    engine = make_engine(sqlite_url)
    with engine.begin() as connection:
        made = add_key(connection, "page", datetime.now(UTC))
    engine.dispose()
    return made


def test_the_page_asks_for_a_key_and_opens_with_it(browser: Any, guarded: str, key: str) -> None:
    for tab in tab_of(browser, guarded):
        tab.page.goto(f"{guarded}/runs")
        tab.page.wait_for_selector("h1:has-text('API key')")
        tab.page.fill("#key", key)
        tab.page.click("text=Open")

        tab.page.wait_for_selector("h1:has-text('Runs')")
        assert tab.page.evaluate("document.cookie") == ""


def test_browser_without_a_key_is_asked_for_one_at_an_unknown_address(
    browser: Any, guarded: str, key: str
) -> None:
    assert httpx.get(f"{guarded}/nothing").json()["code"] == "unauthorized"
    for tab in tab_of(browser, guarded):
        tab.page.goto(f"{guarded}/nothing")
        tab.page.wait_for_selector("h1:has-text('API key')")
        tab.page.fill("#key", key)
        tab.page.click("text=Open")

        tab.page.wait_for_selector("h1:text-is('There is no page /nothing')")


def test_key_opens_only_addresses_of_this_server(browser: Any, guarded: str, key: str) -> None:
    for tab in tab_of(browser, guarded):
        for elsewhere in ("//example.org/", r"/\example.org/", "https://example.org/", "http://["):
            tab.page.goto(f"{guarded}/login?next={quote(elsewhere)}")
            tab.page.fill("#key", key)
            tab.page.click("text=Open")

            tab.page.wait_for_url(f"{guarded}/")
        assert [fault for fault in tab.faults if fault.startswith("asked")] == []


def test_cookie_alone_allows_reads_only(guarded: str, key: str) -> None:
    with client_of(guarded, "") as client:
        client.post(
            "/ui/session", content=key, headers={"X-Strandline-Page": "1"}
        ).raise_for_status()

        assert client.get("/api/v2/jobs").status_code == 200
        assert client.post("/api/v2/groups", json={}).status_code == 401
        assert (
            client.post("/api/v2/groups", json={}, headers={"X-Strandline-Page": "1"}).status_code
            == 400
        )


def test_a_foreign_page_cannot_begin_a_session(guarded: str, key: str) -> None:
    assert httpx.post(f"{guarded}/ui/session", content=key).status_code == 403


def test_leaving_deletes_the_cookie(guarded: str, key: str) -> None:
    with client_of(guarded, "", headers={"X-Strandline-Page": "1"}) as client:
        client.post("/ui/session", content=key)
        client.delete("/ui/session")

        assert client.get("/ui/session").json() == {"keyNeeded": True}
