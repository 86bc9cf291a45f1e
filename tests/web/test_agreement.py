"""What the page says of barriers and of versions that belong together, in a real browser."""

from page_world import snapshot_id
from web.conftest import Tab


def test_a_cut_by_data_lineage_is_shown_with_its_sql(tab: Tab) -> None:
    page = tab.open("/compare?tables=dataset:file:/lake/shop/balance~dataset:file:/lake/shop/daily_totals")

    page.click("button:text-is('cut')")

    page.wait_for_selector("button[aria-pressed=true]:text-is('cut')")
    balance, totals = snapshot_id("balance", 20), snapshot_id("daily_totals", 20)
    assert page.inner_text("pre") == (
        f"SELECT * FROM lake.shop.balance VERSION AS OF {balance};\n"
        f"SELECT * FROM lake.shop.daily_totals VERSION AS OF {totals};"
    )
    shown = page.eval_on_selector_all("td:nth-child(6) .id", "all => all.map(one => one.title.split(':')[0])")
    assert shown == [balance, totals]
    assert tab.faults == []
