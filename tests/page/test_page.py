"""The page as a user sees and operates it, in a real browser."""

import re
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

import recordings
from fixtures.servers import SETTINGS, client_of, serving
from page.conftest import Tab, tab_of
from strandline.store.sql.engine import make_engine
from worlds.company import HOSTILE, World, run_id, snapshot_id, table

BALANCE = "namespace=file&name=/lake/shop/balance"
REPORT = "dataset:file:/lake/shop/report"
SCREENS = (
    "/", "/graph", "/group?name=shop", "/tables", f"/table?{BALANCE}",
    "/impact?namespace=file&name=/lake/shop/orders&column=amount", "/jobs", f"/run?id={run_id('nightly')}",
)  # fmt: skip
MORE_SCREENS = (
    f"/graph?node={REPORT}", "/groups", f"/table?{BALANCE}&tab=delay", f"/table?{BALANCE}&tab=expiry",
    f"/table?{BALANCE}&snapshot={snapshot_id('balance', 20)}", "/table?namespace=file&name=/lake/shop/report&tab=columns",
    "/impact?namespace=file&name=/lake/shop/orders", "/impact?node=job:airflow:nightly.load_customers",
    "/compare?tables=dataset:file:/lake/shop/balance~dataset:file:/lake/shop/orders",
    "/job?namespace=airflow&name=nightly.report&tab=code", "/runs", "/events", "/trouble", "/search?q=shop",
    f"/graph?node={REPORT}&selected={REPORT}", f"/table?{BALANCE}&tab=lineage", f"/table?{BALANCE}&tab=facets",
    "/group?name=shop&cell=/lake/shop/balance~20", "/job?namespace=shop&name=shop_jobs.refunds",
    "/job?namespace=shop&name=shop_jobs.refunds&tab=barriers", f"/run?id={run_id('nightly.margins')}", "/compare", "/words", "/login",
)  # fmt: skip


@pytest.mark.parametrize(
    "path", [*SCREENS, *(pytest.param(path, marks=pytest.mark.slow) for path in MORE_SCREENS)]
)
def test_screens_have_no_errors_foreign_requests_or_serious_axe_findings(
    tab: Tab, path: str
) -> None:
    page = tab.open(path)

    found = Axe().run(page)

    serious = [
        one["id"]
        for one in found.response["violations"]
        if one["impact"] in ("serious", "critical")
    ]
    assert (tab.faults, serious) == ([], [])
    assert page.locator("h1:visible").count() == 1


@pytest.mark.slow
@pytest.mark.parametrize("path", [*SCREENS, *MORE_SCREENS])
def test_all_that_the_tab_key_reaches_shows_that_it_is_reached(tab: Tab, path: str) -> None:
    page = tab.open(path)
    page.evaluate("document.getElementById('content').focus()")
    reached = 0

    for _ in range(60):
        page.keyboard.press("Tab")
        width = page.evaluate("""() => { const one = document.activeElement;
            return one.closest('main') ? parseFloat(getComputedStyle(one).outlineWidth) : null; }""")
        if width is None:
            break
        reached += 1
        assert width > 0, page.evaluate("document.activeElement.outerHTML")
    assert reached > 0 or path == "/words"


def test_board_and_snapshots_are_operated_by_the_keyboard_alone(tab: Tab) -> None:
    page = tab.open("/group?name=shop")
    page.focus("[aria-label='lake.shop.balance barrier 20: done']")
    page.keyboard.press("Enter")
    page.wait_for_selector("pre:has-text('VERSION AS OF')")

    page = tab.open(f"/table?{BALANCE}")
    page.focus(".snap[aria-label$='barrier 18']")
    page.keyboard.press("Shift+Enter")
    page.wait_for_selector("h2:has-text('Between')")
    assert tab.faults == []


def test_narrow_screen_has_no_serious_axe_finding(browser: Any, address: str) -> None:
    for tab in tab_of(browser, address, viewport={"width": 390, "height": 780}):
        found = Axe().run(tab.open("/"))

        assert [
            one["id"]
            for one in found.response["violations"]
            if one["impact"] in ("serious", "critical")
        ] == []


@pytest.mark.parametrize("path", ["/", "/graph", "/group?name=shop", f"/table?{BALANCE}"])
def test_dark_theme_has_enough_contrast(browser: Any, address: str, path: str) -> None:
    for tab in tab_of(browser, address, color_scheme="dark"):
        found = Axe().run(tab.open(path))

        assert [
            one["id"]
            for one in found.response["violations"]
            if one["impact"] in ("serious", "critical")
        ] == []


@pytest.mark.parametrize("path", ["/", "/graph", "/group?name=shop", "/runs"])
def test_a_narrow_screen_is_never_scrolled_sideways(browser: Any, address: str, path: str) -> None:
    for tab in tab_of(browser, address, viewport={"width": 390, "height": 780}):
        page = tab.open(path)

        assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("path", ["/", "/tables", "/jobs", "/events"])
def test_narrow_screen_does_not_break_names_letter_by_letter(
    browser: Any, address: str, path: str
) -> None:
    for tab in tab_of(browser, address, viewport={"width": 390, "height": 780}):
        page = tab.open(path)

        lines = page.eval_on_selector_all(
            "td > a",
            "all => all.map(one => new Set([...one.getClientRects()].map(part => part.top)).size)",
        )

        assert 1 <= max(lines) <= 2  # of names of 6 to 20 letters


def test_narrow_screen_distinguishes_tables_of_the_same_name(browser: Any, address: str) -> None:
    for tab in tab_of(browser, address, viewport={"width": 390, "height": 780}):
        page = tab.open("/graph")

        assert "lake.shop.report" in page.locator(".neighbours li a").all_inner_texts()


def test_long_unknown_name_fits_a_narrow_screen(browser: Any, address: str) -> None:
    for tab in tab_of(browser, address, viewport={"width": 390, "height": 780}):
        tab.page.goto(f"{tab.root}/table?namespace=hive&name={'a_long_name_without_a_break.' * 6}")
        tab.page.wait_for_selector(".error")

        assert tab.page.evaluate("document.documentElement.scrollWidth") <= 390


def test_label_of_the_collector_is_shown(browser: Any, sqlite_url: str) -> None:
    engine = make_engine(sqlite_url)
    with serving(engine, replace(SETTINGS, label="Recorded demo")) as root:
        for tab in tab_of(browser, root, viewport={"width": 390, "height": 780}):
            page = tab.open("/")

            page.wait_for_selector("header :text-is('Recorded demo')")
            assert page.evaluate("document.documentElement.scrollWidth") <= 390
    engine.dispose()


def test_first_screen_names_late_tables_and_failed_jobs(tab: Tab) -> None:
    text = tab.open("/").inner_text("main")

    assert re.search(r"lake\.shop\.\w+ is .* behind, in group shop\.", text)
    assert re.search(r"job nightly.margins failed: \S", text)
    assert "a version of group shop is blocked by shop_jobs.refunds: job stopped" in text


def test_tables_are_listed_with_writer_commit_rows_and_lag(tab: Tab) -> None:
    page = tab.open("/tables")

    heads = [one.lower() for one in page.locator("thead th").all_inner_texts()]
    assert heads == ["name", "namespace", "writer", "last commit", "rows", "lag"]
    cells = page.locator("tr:has(a:text-is('lake.shop.balance')) td").all_inner_texts()
    assert re.fullmatch(r"shop_jobs\.balance\s+●? ?running", cells[2])
    assert re.fullmatch(r"\d+ (s|min|h) ago", cells[3])
    assert re.fullmatch(r"◷ \d+ (s|min|h)", cells[5])


def test_board_frames_the_strong_version_and_names_the_blocker(tab: Tab) -> None:
    page = tab.open("/group?name=shop")

    assert page.inner_text("thead th.strong") == "20"
    assert re.match(
        r"Newest consistent version: 20 .* Blocked by shop_jobs.refunds: job stopped",
        page.inner_text(".sentence"),
    )
    assert page.locator("td.skipped").count() == 2  # of refunds and balance, barrier 16
    assert page.locator("td.missing").count() == 6


@pytest.mark.parametrize("path", ["/", "/group?name=shop", "/job?namespace=shop&name=shop_jobs.refunds",
                                  "/compare?tables=dataset:file:/lake/shop/balance~dataset:file:/lake/shop/orders"])  # fmt: skip
def test_command_in_a_reason_is_set_as_code(tab: Tab, path: str) -> None:
    page = tab.open(path)

    assert page.inner_text("main :is(p, li, .note) code") == "strandline retire shop_jobs.refunds"
    assert tab.faults == []


@pytest.mark.parametrize("width", [1280, 1600])
def test_board_shows_the_blocker_without_scrolling(browser: Any, address: str, width: int) -> None:
    for tab in tab_of(browser, address, viewport={"width": width, "height": 800}):
        page = tab.open("/group?name=shop")

        frame = page.locator(".panel.scroll:has(.board)")

        assert page.locator(".board .num").count() > 10
        assert frame.evaluate("one => one.scrollWidth - one.clientWidth") == 0


@pytest.mark.parametrize(("name", "job"), [("refunds", "its job"), ("balance", "upstream job")])
def test_late_table_says_whether_its_own_job_or_one_upstream_is_late(
    tab: Tab, name: str, job: str
) -> None:
    page = tab.open(f"/table?namespace=file&name=/lake/shop/{name}")

    late = f"barrier 21 is missing; {job} shop_jobs.refunds has not made it."
    page.wait_for_selector(f".sentence:has-text('{late}')")


def test_delay_says_when_the_inputs_lack_the_barrier(tab: Tab) -> None:
    page = tab.open(f"/table?{BALANCE}&tab=delay")

    assert re.search(
        r"Barrier 21 has been missing for .*; its inputs are not ready yet\.",
        page.inner_text("main"),
    )


def test_failed_delay_request_is_not_shown_as_an_unknown_delay(tab: Tab) -> None:
    refusal = {
        "status": 503,
        "content_type": "application/json",
        "body": '{"detail": "no database", "code": "unavailable"}',
    }
    tab.page.route("**/api/v2/delays?*", lambda route: route.fulfill(**refusal))

    page = tab.open(f"/table?{BALANCE}&tab=delay")

    assert "no database" in page.inner_text("main")
    assert "Its delay is not known" not in page.inner_text("main")


def test_a_table_without_barriers_has_no_delay(tab: Tab) -> None:
    page = tab.open("/table?namespace=file&name=/lake/shop/report&tab=delay")

    assert page.inner_text(".note") == (
        "Its delay is not known: it has no barriers. A table has them as the base table of a group, "
        "or where one job that carries barriers writes it."
    )
    assert tab.faults == []


def test_a_run_shows_the_snapshots_that_it_read_and_made(tab: Tab) -> None:
    page = tab.open("/runs")
    tab.click("tr:has(a:has-text('shop_jobs.refunds')) a:has(.chip)")

    rows = page.locator("td:has(> a) + td").all_inner_texts()

    assert [row.count("barrier") for row in rows] == [
        5,
        5,
    ]  # the newest five of what it read, and of what it wrote
    assert "lake.shop.refunds" in page.inner_text("main")


def test_board_cell_gives_sql_with_the_whole_snapshot_id(tab: Tab) -> None:
    page = tab.open("/group?name=shop")

    tab.click("[aria-label='lake.shop.refunds barrier 19: done']")

    expected = f"SELECT * FROM lake.shop.refunds VERSION AS OF {snapshot_id('refunds', 19)}"
    assert page.inner_text(".panel.pad pre") == expected
    assert "cell=" in page.url


def test_graph_draws_all_nodes_and_follows_arrow_keys(tab: Tab) -> None:
    page = tab.open("/graph")

    assert page.locator(".node.job").count() == 8
    assert page.locator(".node.dataset").count() == 9
    assert page.locator(".node.live").count() == 3
    page.focus("svg.graph")
    page.keyboard.press("ArrowRight")
    first = page.wait_for_selector(".node.selected").get_attribute("data-id")
    page.keyboard.press("ArrowRight")
    page.wait_for_function(
        "first => document.querySelector('.node.selected')?.dataset.id !== first", arg=first
    )
    assert "selected=" in page.url


def test_cut_graph_does_not_say_that_all_is_shown(tab: Tab) -> None:
    page = tab.open(f"/graph?node={REPORT}")

    note = page.inner_text(".hidden-note")
    assert note.endswith("edges. More lies further than 1 job away.")


def test_selected_column_highlights_only_its_path(tab: Tab) -> None:
    page = tab.open(f"/graph?node={REPORT}&column=country&of={REPORT}")

    lit = page.eval_on_selector_all(
        ".node:not(.off)", "all => all.map(one => one.dataset.id).sort()"
    )

    assert lit == [  # not margins: its only run failed, so nothing was made from this column
        "dataset:file:/lake/shop/customers",
        "dataset:file:/lake/shop/report",
        "dataset:postgres://crm:5432:crm.public.customers",
        "job:airflow:nightly.load_customers",
        "job:airflow:nightly.report",
    ]


def test_drawer_says_how_each_edge_is_known(tab: Tab) -> None:
    page = tab.open(f"/graph?node={REPORT}&selected={REPORT}")

    edges = page.locator(".drawer li").all_inner_texts()

    assert "← nightly.report from column lineage" in edges
    about = page.locator(".drawer li:has-text('nightly.report') .dim").get_attribute("title")
    assert re.fullmatch(r"seen \d+ (s|min|h) ago in 1 run", about)


def test_changing_the_time_does_not_move_boxes(tab: Tab) -> None:
    page = tab.open("/graph")
    places = (
        "all => Object.fromEntries(all.map(one => [one.dataset.id, one.getAttribute('transform')]))"
    )
    before = page.eval_on_selector_all(".node", places)

    page.evaluate("""() => { const slider = document.getElementById('moment'); slider.value = Number(slider.min) + 60e3;
        slider.dispatchEvent(new Event('input', {bubbles: true})); slider.dispatchEvent(new Event('change', {bubbles: true})); }""")
    tab.settle()

    assert page.eval_on_selector_all(".node", places) == before
    assert "asOf=" in page.url
    counts = [
        page.locator(one).count()
        for one in (
            ".node.dataset:not(.ghost)",
            ".node.job:not(.ghost)",
            ".edge:not(.ghost)",
            ".node.ghost",
            ".edge.ghost",
        )
    ]
    assert min(counts) > 0
    assert page.inner_text(".hidden-note") == (
        "{} tables, {} job, {} edges at that moment. "
        "{} more boxes, {} more edges at other moments, drawn faintly."
    ).format(*counts)


def test_inconsistent_tables_are_explained_with_consistent_sql(tab: Tab) -> None:
    page = tab.open(
        "/compare?tables=dataset:file:/lake/shop/balance~dataset:file:/lake/shop/daily_totals"
    )

    assert page.inner_text(".sentence") == (
        "Their newest snapshots disagree: barriers 20 to 23. lake.shop.balance lacks what the others show."
    )
    assert page.inner_text("pre") == (
        f"SELECT * FROM lake.shop.balance VERSION AS OF {snapshot_id('balance', 20)};\n"
        f"SELECT * FROM lake.shop.daily_totals VERSION AS OF {snapshot_id('daily_totals', 20)};"
    )


def test_barriers_of_two_groups_are_never_shown_as_consistent(
    browser: Any, empty_address: str
) -> None:
    for tab in tab_of(browser, empty_address):
        for group in ("one", "two"):
            tab.page.request.post(
                f"{empty_address}/api/v1/lineage", data=World(datetime.now(UTC)).root_of(group)
            )

        page = tab.open("/compare?tables=dataset:file:/lake/shop/one~dataset:file:/lake/shop/two")

        assert (
            "tables of 2 groups (one, two), whose barriers are not comparable"
            in page.inner_text(".sentence")
        )


@pytest.mark.parametrize(
    "path",
    [
        "/table?namespace=none&name=none",
        "/job?namespace=none&name=none",
        f"/run?id={run_id('unknown')}",
        "/impact?namespace=none&name=none",
        "/group?name=none",
        "/graph?node=dataset:none:none",
    ],
)
def test_screen_of_an_unknown_thing_has_a_heading_and_a_reason(tab: Tab, path: str) -> None:
    page = tab.open(path)

    page.wait_for_selector(".error")
    assert page.locator("h1:visible").inner_text() != ""


@pytest.mark.parametrize(
    ("path", "first"),
    [(f"/table?{BALANCE}", "Snapshots"), ("/job?namespace=shop&name=shop_jobs.refunds", "Runs")],
)
def test_unknown_tab_in_the_address_is_the_first_tab(tab: Tab, path: str, first: str) -> None:
    page = tab.open(f"{path}&tab=none")

    assert page.inner_text(".tabs [aria-current]") == first
    assert page.locator(".strip, .grid").count() > 0


def test_unknown_address_says_so_and_leads_on(tab: Tab) -> None:
    page = tab.open("/lineage/lake.shop.balance")

    assert page.inner_text("h1") == "There is no page /lineage/lake.shop.balance"
    found = Axe().run(page).response["violations"]
    assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []
    tab.click("main a:has-text('Search for “lake.shop.balance”')")
    page.wait_for_selector("h1:text-is('lake.shop.balance')")
    # the browser itself tells that the document's answer was a 404
    assert len(tab.faults) == 1
    assert "404" in tab.faults[0]


def test_address_with_a_slash_too_many_offers_the_one_without(tab: Tab) -> None:
    page = tab.open("/runs/?state=failed")

    page.click("main .sentence a")

    page.wait_for_url("**/runs?state=failed")
    page.wait_for_selector("h1:text-is('Runs')")


def test_search_without_words_does_not_say_that_nothing_matches(tab: Tab) -> None:
    page = tab.open("/search")

    assert page.inner_text("main p") == (
        "Type into the field above: a table, a column, a job, or an id."
    )
    assert page.locator("main .note").count() == 0


def test_narrow_screen_says_what_a_bare_number_is(browser: Any, address: str) -> None:
    for tab in tab_of(browser, address, viewport={"width": 390, "height": 780}):
        page = tab.open("/job?namespace=shop&name=shop_jobs.refunds&tab=barriers")
        page.wait_for_selector(".grid td")

        label = "getComputedStyle(document.querySelector('.grid td'), '::before').content"
        assert page.evaluate(label) == '"barrier "'


def test_group_without_a_name_is_the_list_of_groups(tab: Tab) -> None:
    page = tab.open("/group")

    page.wait_for_selector("h2 a:text-is('shop')")
    assert tab.faults == []


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/table?namespace=none&name=balence", "lake.shop.balance"),
        ("/table?node=shop_jobs.refund", "shop_jobs.refunds"),
        ("/job?node=lake.shop.balence", "lake.shop.balance"),
        ("/group?name=shops", "shop"),
    ],
)
def test_unknown_name_offers_names_that_lead_to_their_screens(
    tab: Tab, path: str, name: str
) -> None:
    page = tab.open(path)

    page.locator(".error").get_by_role("link", name=name, exact=True).click()

    page.get_by_role("heading", name=name, exact=True, level=1).wait_for()


def test_first_screen_and_the_list_of_failures_count_alike(tab: Tab) -> None:
    tab.open("/")

    assert tab.page.inner_text(".card.bad") == "1\nfailed in 24 hours"
    tab.click(".card.bad")

    assert tab.page.inner_text("main p.dim") == "1 run"


def test_failed_application_and_its_query_are_one_failure(browser: Any, empty_address: str) -> None:
    world = World(datetime.now(UTC))
    application = {"run": {"runId": run_id("app")}, "job": {"namespace": "shop", "name": "app"}}
    for tab in tab_of(browser, empty_address):
        for event in (
            world.event("FAIL", 60, "app.query", run_facets={"parent": application}),
            world.event("FAIL", 59, "app"),
        ):
            tab.page.request.post(f"{empty_address}/api/v1/lineage", data=event)

        page = tab.open("/")

        assert page.inner_text(".card.bad b") == "1"
        assert page.inner_text(".sentence") == "job app failed: no reason given."
        tab.click(".card.bad")
        assert page.inner_text("main p.dim") == "1 run and 1 below it"


def test_list_that_is_cut_says_of_how_many(browser: Any, empty_address: str) -> None:
    written = [table(f"part_{number}", ["id"]) for number in range(600)]
    event = World(datetime.now(UTC)).event("COMPLETE", 60, "load", [], written)
    for tab in tab_of(browser, empty_address):
        tab.page.request.post(f"{empty_address}/api/v1/lineage", data=event)

        page = tab.open("/tables")

        assert page.inner_text("main p.dim").startswith("First 500 of 600 datasets.")
        assert page.locator("tbody tr").count() == 500


@pytest.mark.parametrize(
    ("path", "things"),
    [
        ("/tables?namespace=none", "tables"),
        ("/jobs?namespace=none", "jobs"),
        ("/runs?namespace=none", "runs"),
    ],
)
def test_filter_that_leaves_nothing_leads_to_the_whole_list(
    tab: Tab, path: str, things: str
) -> None:
    note = tab.open(path).locator(".note")

    assert note.inner_text() == f"No {things} match. Show all {things}."
    assert note.locator("a").get_attribute("href") == f"/{things}"


def test_job_without_stored_runs_is_not_told_how_to_send_events(
    browser: Any, empty_address: str
) -> None:
    event = {
        "eventTime": datetime.now(UTC).isoformat(),
        "producer": "page",
        "schemaURL": "page",
        "job": {"namespace": "shop", "name": "planned"},
    }
    for tab in tab_of(browser, empty_address):
        tab.page.request.post(f"{empty_address}/api/v1/lineage", data=event)

        page = tab.open("/job?namespace=shop&name=planned")

        page.wait_for_selector(".note")
        assert page.inner_text(".note") == "No runs are stored."


def test_jobs_that_start_each_other_are_listed(browser: Any, empty_address: str) -> None:
    world = World(datetime.now(UTC))

    def below(job: str, run: str) -> dict[str, Any]:
        facet = {"job": {"namespace": "shop", "name": job}, "run": {"runId": run_id(run)}}
        return {"parent": {"_producer": "page", "_schemaURL": "page", **facet}}

    for tab in tab_of(browser, empty_address):
        for event in (
            world.event("COMPLETE", 60, "one", run="one 1"),
            world.event("COMPLETE", 50, "two", run="two 1", run_facets=below("one", "one 1")),
            world.event("COMPLETE", 40, "one", run="one 2", run_facets=below("two", "two 1")),
            world.event("COMPLETE", 30, "leaf", run_facets=below("one", "one 2")),
        ):
            tab.page.request.post(f"{empty_address}/api/v1/lineage", data=event)

        page = tab.open("/jobs")

        assert [cells[0] for cells in cells_of(page)] == ["one", "└ leaf", "two"]


def test_impact_marks_columns_missing_from_the_newest_schema(
    browser: Any, empty_address: str
) -> None:
    orders = {"namespace": "file", "name": "/lake/shop/orders"}
    sums = [
        table("sums", one, {name: [(orders, "id", "IDENTITY")] for name in one})
        for one in (["old", "id"], ["id"])
    ]
    world = World(datetime.now(UTC))
    for tab in tab_of(browser, empty_address):
        for number, one in enumerate(sums):
            event = world.event(
                "COMPLETE",
                60 - number,
                "sum",
                [table("orders", ["id"])],
                [one],
                run=f"sum {number}",
            )
            tab.page.request.post(f"{empty_address}/api/v1/lineage", data=event)

        page = tab.open("/impact?namespace=file&name=/lake/shop/orders&column=id")

        assert page.inner_text(".sentence") == (
            "2 columns in 1 table and 1 job depend on it. 1 of these columns is no longer in the newest schema of its table."
        )
        assert cells_of(page) == [
            ["lake.shop.sums", "id", "yes", "its value goes in", "1"],
            ["lake.shop.sums", "old", "✕ no longer", "its value goes in", "1"],
            ["sum", "", "", "its value goes in", "1"],
        ]
        assert tab.faults == []


def cells_of(page: Any) -> list[list[str]]:
    """Return the first five cells of each row of a table."""
    rows = page.locator("tbody tr").all()
    return [[cell.inner_text() for cell in row.locator("td").all()[:5]] for row in rows]


def test_impact_of_a_table_shows_job_states(tab: Tab) -> None:
    page = tab.open("/impact?namespace=file&name=/lake/shop/report")

    assert (
        page.inner_text(".sentence") == "0 tables and 1 job depend on it."
    )  # a run that failed has made nothing
    assert [row[:3] for row in cells_of(page)] == [["nightly.margins", "job", "1"]]
    assert page.inner_text("tbody .chip") == "✕ failed"


def test_snapshot_tree_reaches_the_base_tables(tab: Tab) -> None:
    page = tab.open(f"/table?{BALANCE}&snapshot={snapshot_id('balance', 20)}")

    tree = page.locator(".tree").first.inner_text()

    assert [
        tree.count(name)
        for name in ("lake.shop.refunds", "lake.shop.daily_totals", "lake.shop.orders")
    ] == [
        1,
        1,
        2,
    ]


def test_snapshot_tree_names_sources_with_unknown_snapshots(
    browser: Any, empty_address: str
) -> None:
    made = {
        "strandline_snapshot": {"_producer": "test://", "_schemaURL": "test://", "snapshotId": "7"}
    }
    sums = table("sums", ["id"]) | {"outputFacets": made}
    event = World(datetime.now(UTC)).event("COMPLETE", 60, "sum", [table("orders", ["id"])], [sums])
    for tab in tab_of(browser, empty_address):
        tab.page.request.post(f"{empty_address}/api/v1/lineage", data=event)

        page = tab.open("/table?namespace=file&name=/lake/shop/sums&snapshot=7")

        said = page.locator(".tree").first.inner_text()
        assert said.split("\n")[-1] == "lake.shop.orders at which snapshot is not known"
        assert tab.faults == []


def test_compacted_snapshot_leads_to_the_snapshot_with_its_rows(
    browser: Any, empty_address: str
) -> None:
    def at(name: str, id_: str, **more: str) -> dict[str, Any]:
        facet = {
            "strandline_snapshot": {
                "_producer": "test://",
                "_schemaURL": "test://",
                "snapshotId": id_,
            }
            | more
        }
        return table(name, ["id"]) | {"inputFacets": facet, "outputFacets": facet}

    world, compacted = (
        World(datetime.now(UTC)),
        at("sums", "8", parentSnapshotId="7", operation="replace"),
    )
    for tab in tab_of(browser, empty_address):
        for job, read, made in (
            ("sum", at("orders", "3"), at("sums", "7")),
            ("copy", compacted, at("copied", "1")),
        ):
            event = world.event("COMPLETE", 60, job, [read], [made], run=job)
            tab.page.request.post(f"{empty_address}/api/v1/lineage", data=event)

        page = tab.open("/table?namespace=file&name=/lake/shop/sums&snapshot=8")

        panels = [one.split("\n") for one in page.locator(".panel:has(.tree)").all_inner_texts()]
        assert [[line.strip() for line in one if line.strip()] for one in panels] == [
            [
                "lake.shop.sums 8",
                "It shows the rows of",
                "lake.shop.sums 7",
                "lake.shop.orders 3 by shop:sum",
            ],
            ["lake.shop.sums 8", "lake.shop.copied 1 by shop:copy"],
        ]
        assert tab.faults == []


def test_application_shows_what_its_query_read_long_before_other_runs(
    browser: Any, empty_address: str
) -> None:
    world = World(datetime.now(UTC))
    application = {"run": {"runId": run_id("app")}, "job": {"namespace": "shop", "name": "app"}}
    below = {"parent": application}
    for tab in tab_of(browser, empty_address):
        for event in (
            world.event("START", 3600, "app"),
            world.event("COMPLETE", 3590, "app.query", [table("orders", ["id"])], run_facets=below),
            world.event("COMPLETE", 3580, "app"),
            *(world.event("COMPLETE", 60, f"other_{number}") for number in range(301)),
        ):
            tab.page.request.post(f"{empty_address}/api/v1/lineage", data=event)

        page = tab.open(f"/run?id={run_id('app')}")

        assert "1 run below it" in page.inner_text("main")
        assert page.locator("td:has-text('lake.shop.orders')").count() == 1


@pytest.mark.parametrize("late", [("FAIL", 60), ("START", 58)])
def test_application_whose_events_give_no_span_shows_the_runs_below_it(
    browser: Any, empty_address: str, late: tuple[str, float]
) -> None:
    """It reported a failure only, or its START is later than its end: clocks differ."""
    world = World(datetime.now(UTC))
    application = {"run": {"runId": run_id("app")}, "job": {"namespace": "shop", "name": "app"}}
    for tab in tab_of(browser, empty_address):
        for event in (
            world.event("COMPLETE", 70, "app.query", run_facets={"parent": application}),
            world.event("FAIL", 60, "app"),
            world.event(*late, "app"),
        ):
            tab.page.request.post(f"{empty_address}/api/v1/lineage", data=event)

        page = tab.open(f"/run?id={run_id('app')}")

        assert "1 run below it" in page.inner_text("main")
        assert tab.faults == []


def below(above: str) -> dict[str, Any]:
    """Return the run facets of a run below the run of a job of the world."""
    job = {"namespace": "shop", "name": above}
    facet = {"_producer": "page", "_schemaURL": "page", "run": {"runId": run_id(above)}, "job": job}
    return {"parent": facet}


def dag_with_steps(world: World) -> list[dict[str, Any]]:
    """Return a DAG with 6 tasks; below one of them an application with a statement that failed.

    Another task reads what that application reads, by the table's name in its catalog.
    """
    by_catalog = {"namespace": "file:/lake", "name": "shop.orders"}
    return [
        world.event("COMPLETE", 60, "dag.task_0", run_facets=below("dag")),
        world.event("COMPLETE", 60, "dag.task_1", [by_catalog], run_facets=below("dag")),
        *(
            world.event("COMPLETE", 60, f"dag.task_{number}", run_facets=below("dag"))
            for number in range(2, 6)
        ),
        world.event("COMPLETE", 58, "app", run_facets=below("dag.task_0")),
        world.event(
            "COMPLETE",
            57,
            "app.good",
            [table("orders", ["id"])],
            [table("sums", ["id"])],
            run_facets=below("app"),
        ),
        world.event("FAIL", 56, "app.bad", run_facets=below("app")),
        world.event("START", 70, "dag"),
        world.event("COMPLETE", 50, "dag"),
    ]


def test_folded_dag_counts_and_names_what_failed_on_any_level(
    browser: Any, empty_address: str
) -> None:
    for tab in tab_of(browser, empty_address):
        for event in dag_with_steps(World(datetime.now(UTC))):
            tab.page.request.post(f"{empty_address}/api/v1/lineage", data=event)

        for path, noun in (("/", "run"), ("/runs", "run"), ("/jobs", "job")):
            page = tab.open(path)
            page.wait_for_selector("tr:has-text('below it')")
            row = page.locator("tr:has-text('below it')").inner_text()
            assert f"▸ 9 {noun}s below it, 1 failed" in row

        page = tab.open(f"/run?id={run_id('dag')}")
        page.wait_for_selector("h2:has-text('Read') + div td")
        text = page.inner_text("main")
        assert "9 runs below it, 1 failed, in " in text
        assert "Failed further below: app.bad" in text
        assert page.locator("h2:text-is('Read') + div tbody tr").all_inner_texts() == [
            "lake.shop.orders\t"
        ]
        assert page.locator("h2:text-is('Wrote') + div tbody tr").all_inner_texts() == [
            "file:/lake/shop/sums\t"
        ]
        assert tab.faults == []


def test_first_screen_lists_several_applications_whatever_runs_below_them(
    browser: Any, empty_address: str
) -> None:
    world = World(datetime.now(UTC))
    for tab in tab_of(browser, empty_address):
        for hour, application in enumerate(("first", "second"), 1):
            for event in (
                world.event("START", 3600 * hour, application),
                *(
                    world.event(
                        "COMPLETE",
                        3600 * hour - 1,
                        f"{application}.{number}",
                        run_facets=below(application),
                    )
                    for number in range(20)
                ),
                world.event("COMPLETE", 3600 * hour - 2, application),
            ):
                tab.page.request.post(f"{empty_address}/api/v1/lineage", data=event)

        page = tab.open("/")
        page.wait_for_selector("tr:has-text('first')")

        names = [row[0] for row in cells_of(page)]
        assert names == ["first▸ 20 runs below it", "second▸ 20 runs below it"]


def test_first_screen_lists_a_running_application_with_more_runs_than_it_reads(
    browser: Any, empty_address: str
) -> None:
    world = World(datetime.now(UTC))
    for tab in tab_of(browser, empty_address):
        with client_of(empty_address, "") as client:
            client.post("/api/v1/lineage", json=world.event("COMPLETE", 950, "nightly"))
            client.post("/api/v1/lineage", json=world.event("START", 900, "app"))
            for number in range(205):
                event = world.event(
                    "COMPLETE", 800 - number, f"app.{number}", run_facets=below("app")
                )
                client.post("/api/v1/lineage", json=event)

        page = tab.open("/")
        page.wait_for_selector("tr:has-text('below it')")

        assert [row[0] for row in cells_of(page)] == ["app▸ at least 200 runs below it"]


def test_cut_list_says_at_least_how_many_runs_are_below_one(
    browser: Any, empty_address: str
) -> None:
    world = World(datetime.now(UTC))
    for tab in tab_of(browser, empty_address):
        with client_of(empty_address, "") as client:
            client.post("/api/v1/lineage", json=world.event("START", 900, "app"))
            for number in range(205):
                event = world.event(
                    "COMPLETE", 800 - number, f"app.{number}", run_facets=below("app")
                )
                client.post("/api/v1/lineage", json=event)
            client.post("/api/v1/lineage", json=world.event("COMPLETE", 500, "app"))

        page = tab.open("/")
        page.wait_for_selector("tr:has-text('below it')")

        assert "at least 199 runs below it" in page.inner_text("tbody tr")


def test_tables_without_barriers_are_no_fault_of_the_page(browser: Any, empty_address: str) -> None:
    event = World(datetime.now(UTC)).event(
        "COMPLETE", 60, "sum", [table("orders", ["id"])], [table("sums", ["id"])]
    )
    for tab in tab_of(browser, empty_address):
        tab.page.request.post(f"{empty_address}/api/v1/lineage", data=event)

        page = tab.open("/table?namespace=file&name=/lake/shop/sums&tab=delay")
        page.wait_for_selector(".note:has-text('Its delay is not known: it has no barriers.')")

        nodes = "dataset:file:/lake/shop/orders~dataset:file:/lake/shop/sums"
        page = tab.open(f"/compare?tables={nodes}")
        page.wait_for_selector(".sentence")
        assert page.inner_text(".sentence").startswith(
            "No job with barriers writes all of these tables, so nothing proves"
        )
        assert "--" not in page.inner_text(".sentence")
        assert tab.faults == []


def test_run_that_failed_without_a_reason_has_written_nothing(
    browser: Any, empty_address: str
) -> None:
    event = World(datetime.now(UTC)).event(
        "FAIL", 60, "sum", [table("orders", ["id"])], [table("sums", ["id"])]
    )
    for tab in tab_of(browser, empty_address):
        tab.page.request.post(f"{empty_address}/api/v1/lineage", data=event)

        page = tab.open(f"/run?id={run_id('sum')}")

        assert page.locator("main h2").all_inner_texts()[:2] == ["Read", "Was to write"]
        assert page.inner_text(".note") == "Its producer gave no reason."


def test_exception_is_named_without_its_package_and_an_empty_namespace_as_none(
    browser: Any, empty_address: str
) -> None:
    error = {"message": "org.apache.spark.SparkException: no rate", "programmingLanguage": "JAVA"}
    facets = {"errorMessage": {"_producer": "page", "_schemaURL": "page", **error}}
    names = [{"namespace": "", "name": f"flink.orders_{number}"} for number in range(60)]
    event = World(datetime.now(UTC)).event("FAIL", 60, "sum", names, run_facets=facets)
    for tab in tab_of(browser, empty_address):
        tab.page.request.post(f"{empty_address}/api/v1/lineage", data=event)

        page = tab.open("/")
        assert page.inner_text(".sentence") == "job sum failed: SparkException: no rate."

        page = tab.open("/runs")
        assert page.inner_text("td .dim.small") == "SparkException: no rate"

        page = tab.open("/tables")
        assert set(page.locator("td[data-label=namespace]").all_inner_texts()) == {"none"}


def test_log_of_an_airflow_task_is_a_link(browser: Any, empty_address: str) -> None:
    log = "http://airflow.example:8080/dags/nightly/grid?dag_run_id=scheduled__2026-11-30&task_id=sum&tab=logs"
    airflow = {"task": {"task_id": "sum"}, "taskInstance": {"try_number": 1, "log_url": log}}
    facets = {"airflow": {"_producer": "page", "_schemaURL": "page", **airflow}}
    event = World(datetime.now(UTC)).event("COMPLETE", 60, "nightly.sum", run_facets=facets)
    for tab in tab_of(browser, empty_address):
        tab.page.request.post(f"{empty_address}/api/v1/lineage", data=event)
        tab.page.context.route(
            "http://airflow.example:8080/**", lambda route: route.fulfill(body="the log")
        )

        page = tab.open(f"/run?id={run_id('nightly.sum')}")
        with page.expect_popup() as opened:
            page.click("text=log of this run")

        opened.value.wait_for_load_state()
        assert (opened.value.url, opened.value.inner_text("body")) == (log, "the log")


def test_lineage_of_a_job_says_what_it_reads_and_writes(tab: Tab) -> None:
    page = tab.open("/job?namespace=shop&name=shop_jobs.refunds&tab=lineage")

    assert page.locator("main h2").all_inner_texts() == ["Reads", "Writes"]
    heads = [one.lower() for one in page.locator("thead th").all_inner_texts()]
    assert heads == ["name", "known from", "last seen"] * 2  # tables have no state


def test_comparing_in_an_empty_store_says_how_to_begin(browser: Any, empty_address: str) -> None:
    for tab in tab_of(browser, empty_address):
        page = tab.open("/compare")

        page.wait_for_selector(".note:has-text('No tables yet') a:text-is('How to send it')")


def test_failed_run_shows_its_reason(tab: Tab) -> None:
    page = tab.open(f"/run?id={run_id('nightly.margins')}")

    assert "[DIVIDE_BY_ZERO] Division by zero" in page.inner_text(".error pre")


def test_a_dag_shows_its_tasks_on_one_axis(tab: Tab) -> None:
    page = tab.open(f"/run?id={run_id('nightly')}")

    names = page.locator(".gantt td:first-child").all_inner_texts()

    assert names == ["nightly", "└ load_customers", "└ report", "└ margins"]


def test_names_below_a_run_are_not_broken_letter_by_letter(browser: Any, address: str) -> None:
    for tab in tab_of(browser, address, viewport={"width": 390, "height": 780}):
        page = tab.open(f"/run?id={run_id('nightly')}")

        lines = page.eval_on_selector_all(
            ".gantt a",
            "all => all.map(one => new Set([...one.getClientRects()].map(part => part.top)).size)",
        )
        assert max(lines) <= 2  # of names of 6 to 16 letters


def test_hostile_name_is_shown_as_text(tab: Tab) -> None:
    page = tab.open("/jobs")

    assert f"odd {HOSTILE}" in page.inner_text("main")
    assert page.locator("img[src='x']").count() == 0


def test_word_leads_to_its_meaning(tab: Tab) -> None:
    page = tab.open("/group?name=shop")

    page.click("main .word:text-is('barrier')")

    assert page.locator("dt.here").inner_text() == "Barrier"
    assert page.url.endswith("/words#barrier")


def test_slash_key_opens_the_search(tab: Tab) -> None:
    page = tab.open("/runs")

    page.keyboard.press("/")
    page.keyboard.type("report")
    page.keyboard.press("Enter")

    page.wait_for_selector("main td:has-text('lake.shop.report')")
    assert "q=report" in page.url


def test_expiry_says_a_reason_of_many_snapshots_once(tab: Tab) -> None:
    page = tab.open(f"/table?{BALANCE}&tab=expiry")
    page.wait_for_selector("td[data-label=reasons]")

    reasons = page.locator("td[data-label=reasons]").all_inner_texts()

    assert "as above" in reasons
    assert not [one for one, above in pairwise(reasons) if one == above != "as above"]


def test_snapshot_id_leads_to_its_table(tab: Tab) -> None:
    page = tab.open("/runs")

    page.keyboard.press("/")
    page.keyboard.type(snapshot_id("orders", 2))
    page.keyboard.press("Enter")

    page.wait_for_selector(f"main h2:has-text('{snapshot_id('orders', 2)}')")
    assert f"snapshot={snapshot_id('orders', 2)}" in page.url


def test_application_id_of_the_stock_listener_leads_to_the_application(
    browser: Any, empty_address: str
) -> None:
    """Each of its runs carries the id."""
    with client_of(empty_address, "") as client:
        for event in recordings.events_of("available_now"):
            client.post("/api/v1/lineage", content=event).raise_for_status()
    for tab in tab_of(browser, empty_address):
        page = tab.open("/runs")
        page.keyboard.press("/")
        page.keyboard.type("local-1795422824858")
        page.keyboard.press("Enter")

        page.wait_for_url("**/run?id=*")
        assert page.inner_text("main h1") == "Run of merger"
        assert tab.faults == []


ODD_NAMES = (
    "daily copy", "etl/load orders", "it's \"quoted\"", "copy `a.b`.`c d`", "größe_日本語", "a&b=c?d#e%20+f", "back\\slash", "job:x",
)  # fmt: skip


def test_whole_name_of_a_job_leads_to_its_screen_whatever_characters_it_has(
    browser: Any, empty_address: str
) -> None:
    world = World(datetime.now(UTC))
    with client_of(empty_address, "") as client:
        for name in ODD_NAMES:
            event = world.event("COMPLETE", 60, name, [], [table(f"of {name}", ["id"])])
            client.post("/api/v1/lineage", json=event).raise_for_status()
    for tab in tab_of(browser, empty_address):
        for name in ODD_NAMES:
            page = tab.open("/runs")
            page.keyboard.press("/")
            page.keyboard.type(name)
            page.keyboard.press("Enter")
            page.wait_for_url("**/job?*")
            tab.settle()
            assert page.inner_text("main h1") == name

            page.reload()
            tab.settle()
            assert page.inner_text("main h1") == name
            assert page.title() == f"{name} · Strandline"

            tab.click("main a:text-is('graph')")
            assert page.inner_text("main h1") == f"Around {name}"
        assert tab.faults == []


def test_name_of_a_job_that_a_table_has_too_leads_to_both(browser: Any, empty_address: str) -> None:
    world = World(datetime.now(UTC))
    for tab in tab_of(browser, empty_address):
        for job, made in (("sums", "sums"), ("a_sums_check", "all_sums")):
            event = world.event("COMPLETE", 60, job, [], [table(made, ["id"])])
            tab.page.request.post(f"{empty_address}/api/v1/lineage", data=event)

        page = tab.open("/search?q=sums")

        links = page.locator("tbody td:first-child > a").all_inner_texts()
        assert sorted(links[:2]) == ["lake.shop.sums", "sums"]
        assert len(links) == 4
        assert page.inner_text("main h1") == "Search"


def test_what_is_downstream_of_a_failed_job_is_one_click_away(
    browser: Any, empty_address: str
) -> None:
    world = World(datetime.now(UTC))
    orders, sums = table("orders", ["id"]), table("sums", ["id"])
    with client_of(empty_address, "") as client:
        for event in (
            world.event("COMPLETE", 90, "sum", [orders], [sums], run="first"),
            world.event("COMPLETE", 80, "report", [sums], [table("report", ["id"])]),
            world.event("FAIL", 60, "sum", [orders], [], run="second"),
        ):
            client.post("/api/v1/lineage", json=event).raise_for_status()
    for tab in tab_of(browser, empty_address):
        page = tab.open("/")

        tab.click(".attention a:text-is('downstream')")

        assert page.inner_text("main h1") == "Downstream of sum"
        assert page.inner_text(".sentence") == "2 tables and 1 job depend on it."
        rows = [row[:3] for row in cells_of(page)]
        assert rows == [
            ["lake.shop.sums", "table", "1"],
            ["lake.shop.report", "table", "2"],
            ["report", "job", "2"],
        ]

        page = tab.open(f"/run?id={run_id('second')}")
        page.wait_for_selector("p:has-text('Downstream of this job: 2 tables, 1 job.')")
        assert tab.faults == []


def test_narrow_screen_says_how_to_begin_where_the_graph_is_empty(
    browser: Any, empty_address: str
) -> None:
    for tab in tab_of(browser, empty_address, viewport={"width": 390, "height": 780}):
        page = tab.open("/graph")

        assert page.locator("h2:text-is('No lineage yet')").is_visible()


def test_attempts_of_an_application_are_told_apart(browser: Any, empty_address: str) -> None:
    world, application_id = World(datetime.now(UTC)), "application_1729097245443_0002"
    details = {"_producer": "page", "_schemaURL": "page", "applicationId": application_id}
    facets = {"spark_applicationDetails": details}
    with client_of(empty_address, "") as client:
        for kind, age in (("FAIL", 7200), ("COMPLETE", 3600)):
            event = world.event(kind, age, "etl", run=f"etl {age}", run_facets=facets)
            client.post("/api/v1/lineage", json=event).raise_for_status()
    for tab in tab_of(browser, empty_address):
        page = tab.open(f"/search?q={application_id}")
        page.wait_for_selector("tbody tr")

        cells = page.locator("td[data-label=latest]").all_inner_texts()
        assert sorted(cells) == ["✓ complete started 60 min ago", "✕ failed started 2 h ago"]


def test_empty_store_explains_how_to_begin_and_shows_the_first_event(
    browser: Any, empty_address: str
) -> None:
    for tab in tab_of(browser, empty_address):
        page = tab.open("/")
        assert "No events yet" in page.inner_text("main")
        page.wait_for_selector(".dot.run")

        event = {
            "eventType": "COMPLETE", "eventTime": "2026-11-20T12:00:00Z", "producer": "test://", "schemaURL": "test://",
            "run": {"runId": run_id("first")}, "job": {"namespace": "me", "name": "first"},
        }  # fmt: skip
        page.request.post(f"{empty_address}/api/v1/lineage", data=event)

        page.wait_for_selector("h2:has-text('Latest runs')")
        assert tab.faults == []
