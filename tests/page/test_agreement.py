"""Barriers and consistent versions on the page, in a real browser."""

from typing import Any

from fixtures.servers import client_of
from fixtures.versions_server.events import (
    appended,
    barrier_facet,
    committed,
    dataset,
    event,
    moment,
    started,
)
from page.conftest import Tab, tab_of
from worlds.company import snapshot_id

RAW, COPY, LOOKUP = "db.raw", "db.copy", "db.lookup"


def plain_stream(address: str) -> None:
    """Store a base table, a plain stream over it, and a table of no group."""
    made = {"snapshotId": "c1", "committedAt": moment(31), "numberOfRows": 1}
    copied = event("RUNNING", "copy", 31, run_facets=barrier_facet("plain", None, 30, 31, batchId=0),
                   inputs=[dataset(RAW, "input", {"snapshotId": "r2"})], outputs=[dataset(COPY, "output", made)])  # fmt: skip
    roots = (
        committed("ingest", 10 * one, one, {}, {RAW: f"r{one}"}, group="plain") for one in (1, 2, 3)
    )
    starts = (
        started("ingest", 0, [], [RAW], group="plain"),
        started("copy", 1, [RAW], [COPY], group="plain"),
    )
    with client_of(address, "") as client:
        for one in (*starts, *roots, copied, appended("batch", 40, LOOKUP, "l1")):
            client.post("/api/v1/lineage", json=one).raise_for_status()


def test_derived_barriers_have_a_delay_too(browser: Any, empty_address: str) -> None:
    plain_stream(empty_address)
    for tab in tab_of(browser, empty_address):
        page = tab.open(f"/table?namespace=iceberg://lake&name={COPY}&tab=delay")

        text = page.inner_text("main")
        assert "Barrier 2 took 11 s from the base table to this table" in text
        assert "Barrier 3 has been missing for" in text

        tab.open(f"/table?namespace=iceberg://lake&name={COPY}&snapshot=c1")

        assert ", 1 row," in page.get_attribute(".snap", "title")
        assert tab.faults == []


def test_a_cut_by_data_lineage_is_shown_with_its_sql(tab: Tab) -> None:
    page = tab.open(
        "/compare?tables=dataset:file:/lake/shop/balance~dataset:file:/lake/shop/daily_totals"
    )

    assert page.locator("button[aria-pressed=true]").inner_text() == "auto"
    assert page.locator("thead th").all_inner_texts()[3:6] == ["pipeline", "these tables", "cut"]
    tab.click("button:text-is('cut')")

    assert page.locator("button[aria-pressed=true]").inner_text() == "cut"
    balance, totals = snapshot_id("balance", 20), snapshot_id("daily_totals", 20)
    assert page.inner_text("pre") == (
        f"SELECT * FROM lake.shop.balance VERSION AS OF {balance};\n"
        f"SELECT * FROM lake.shop.daily_totals VERSION AS OF {totals};"
    )
    assert page.locator("pre").last.inner_text().splitlines()[1:3] == [
        f"FROM lake.shop.balance VERSION AS OF {balance} AS a",
        f"JOIN lake.shop.daily_totals VERSION AS OF {totals} AS b",
    ]
    shown = page.eval_on_selector_all(
        "td:nth-child(6) .id", "all => all.map(one => one.title.split(':')[0])"
    )
    assert shown == [balance, totals]
    assert tab.faults == []


def test_untracked_tables_are_never_said_to_agree(browser: Any, empty_address: str) -> None:
    plain_stream(empty_address)
    node = "dataset:iceberg://lake:"
    for tab in tab_of(browser, empty_address):
        page = tab.open(f"/compare?tables={node}{COPY}~{node}{LOOKUP}&way=weak")

        assert page.inner_text("h2:has(+ p)") == "SQL without a promise that all agree"
        assert page.inner_text("h2 + p .dim").startswith(
            f"these tables: {LOOKUP} is untracked: its latest snapshot, without any promise"
        )
        assert page.locator("td:nth-child(5)").all_inner_texts() == ["c1 2", "l1 untracked"]

        tab.open(f"/compare?tables={node}{RAW}~{node}{COPY}&way=weak")

        assert page.inner_text("h2:has(+ p)") == "SQL that agrees"
        assert page.inner_text("h2 + p .dim").startswith("these tables: they agree")
        assert tab.faults == []


def test_board_counts_the_barriers_that_it_hides(tab: Tab) -> None:
    page = tab.open("/group?name=shop&columns=2")  # the strong one, 20, and the newest, 23

    assert page.inner_text("thead th.name") == "19 older, 2 between hidden"

    tab.click("a:text-is('← earlier')")

    assert page.inner_text("thead th.name") == "19 older, 1 between, 1 newer hidden"
    assert page.locator("thead th[scope=col]").all_inner_texts() == ["20", "22"]
    assert tab.faults == []
