"""Large graphs on the page: a map by place, and a hub whose neighbours fold."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pytest

from fixtures.servers import client_of, serving
from page.conftest import Tab, tab_of
from strandline.store.sql.engine import make_engine
from worlds.company import World, run_id, table

HUB = "dataset:file:/lake/shop/hub"
JOBS = 60


@pytest.fixture(scope="module")
def hub_address(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield a server with a table that 60 jobs read, each of which writes a table of its own."""
    file = tmp_path_factory.mktemp("hub") / "hub.db"
    file.write_bytes(sqlite_template.read_bytes())
    engine = make_engine(f"sqlite:///{file}")
    world = World(datetime.now(UTC))
    with serving(engine) as root:
        with client_of(root, "") as client:
            for number in range(JOBS):
                event = world.event(
                    "FAIL" if number == 7 else "COMPLETE",
                    3600 - number,
                    f"report_{number:02}",
                    [table("hub", ["id"])],
                    [table(f"report_{number:02}", ["id"])],
                    run=f"run {number}",
                )
                client.post("/api/v1/lineage", json=event).raise_for_status()
            for event in application_with_steps(world):
                client.post("/api/v1/lineage", json=event).raise_for_status()
        yield root
    engine.dispose()


def application_with_steps(world: World) -> Iterator[dict[str, Any]]:
    """Yield an application with seven runs below it, one of them failed; none has datasets.

    The name of a job of no application begins with the name of one of them.
    """
    yield world.event("COMPLETE", 60, "loader")
    yield world.event("COMPLETE", 60, "loader.step_1.check")
    parent = {
        "_producer": "https://example.org/page",
        "_schemaURL": "https://openlineage.io/spec/facets/1-1-0/ParentRunFacet.json",
        "run": {"runId": run_id("loader")},
        "job": {"namespace": "shop", "name": "loader"},
    }
    for number in range(7):
        state = "FAIL" if number == 3 else "COMPLETE"
        name = f"loader.step_{number}"
        yield world.event(state, 50 - number, name, run_facets={"parent": parent})


@pytest.fixture
def hub_tab(browser: Any, hub_address: str) -> Iterator[Tab]:
    """Yield a tab on the hub's server."""
    yield from tab_of(browser, hub_address)


def smallest_text(page: Any) -> float:
    """Return the height of the smallest drawn letters, in pixels of the screen."""
    return float(
        page.evaluate("""() => { const zoom = document.querySelector('svg.graph > g').getCTM().a;
          return Math.min(...[...document.querySelectorAll('svg.graph text')].filter(one => getComputedStyle(one).display !== 'none')
            .map(one => parseFloat(getComputedStyle(one).fontSize) * zoom)); }""")
    )


def test_hub_is_drawn_in_few_boxes_of_readable_size(hub_tab: Tab) -> None:
    page = hub_tab.open(f"/graph?node={HUB}")

    assert 2 <= page.locator(".node").count() <= 40
    assert page.locator(".node.rest .title").first.text_content() == "49 more jobs"
    assert page.locator(".node.job.bad").count() == 1  # what failed is never folded
    assert smallest_text(page) >= 10
    assert hub_tab.faults == []


def test_lines_between_a_shown_and_a_folded_box_are_faint(browser: Any, empty_address: str) -> None:
    world = World(datetime.now(UTC))
    with client_of(empty_address, "") as client:
        for number in range(20):
            read = [table("hub", ["id"]), table(f"made_{number % 2}", ["id"])]
            written = [table(f"made_{number}", ["id"])]
            event = world.event("COMPLETE", 90 - number, f"job_{number}", read, written)
            client.post("/api/v1/lineage", json=event).raise_for_status()
    for tab in tab_of(browser, empty_address):
        page = tab.open(f"/graph?node={HUB}")

        assert page.locator(".link.side").count() > 0
        assert page.locator(".link-label.side .edge-label:visible").count() == 0
        assert page.locator(".link:not(.side)").count() > page.locator(".node.job").count()


OVERLAPS = """() => { const box = one => one.getBoundingClientRect();
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  const boxes = [...document.querySelectorAll('.node')];
  const outside = boxes.flatMap(node => [...node.querySelectorAll('text')].filter(
    text => box(text).right > box(node.querySelector('.box:not(.behind)')).right)).map(text => text.textContent);
  const behind = [...document.querySelectorAll('.edge-label')].filter(
    label => boxes.some(node => meet(box(label), box(node)))).map(label => label.textContent);
  return [outside, behind]; }"""


def test_titles_stay_in_their_boxes_and_numbers_beside_theirs(
    browser: Any, empty_address: str
) -> None:
    """Jobs are called as the OpenLineage listener calls them: their names fill the widest box."""
    world = World(datetime.now(UTC))
    name = "balancer.replace_data.lake_bank_balances"
    with client_of(empty_address, "") as client:
        for number in range(40):
            job = f"{name}_{number}"
            event = world.event("COMPLETE", 90 - number, job, [], [table("hub", ["id"])], run=job)
            client.post("/api/v1/lineage", json=event).raise_for_status()
    for tab in tab_of(browser, empty_address):
        page = tab.open(f"/graph?node={HUB}")
        assert page.locator(".edge-label").all_text_contents() == ["29"]
        assert page.evaluate(OVERLAPS) == [[], []]

        page = tab.open(f"/graph?node=job:shop:{name}_1")
        assert page.evaluate(OVERLAPS) == [[], []]


def test_narrow_screen_says_how_much_of_the_graph_it_lists(browser: Any, hub_address: str) -> None:
    for tab in tab_of(browser, hub_address, viewport={"width": 390, "height": 844}):
        page = tab.open(f"/graph?node={HUB}")

        note = page.locator(".hidden-note:visible").inner_text()
        assert note == "23 of 120 tables and jobs shown."


def test_marks_of_runs_ahead_of_the_clock_stay_off_the_bar(
    browser: Any, empty_address: str
) -> None:
    world = World(datetime.now(UTC))
    with client_of(empty_address, "") as client:
        for job, age in (("etl", 3600), ("hurried", -3600)):
            event = world.event("COMPLETE", age, job, [], [table("hub", ["id"])])
            client.post("/api/v1/lineage", json=event).raise_for_status()
    for tab in tab_of(browser, empty_address):
        page = tab.open(f"/graph?node={HUB}")

        left = "all => all.map(one => parseFloat(one.style.left))"
        places = page.eval_on_selector_all(".ticks i", left)
        assert places
        assert 0 <= min(places) <= max(places) <= 100
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") == 0


def test_address_of_a_box_that_is_gone_leads_to_the_map(hub_tab: Tab) -> None:
    page = hub_tab.open("/graph?open=catalog:gone")
    assert page.inner_text(".empty-note") == (
        "What was opened here is not in the map any more. Show the map"
    )

    hub_tab.click("text=Show the map")

    page.wait_for_selector(".node")
    assert "open=" not in page.url


def test_folded_job_is_found_and_pinned(hub_tab: Tab) -> None:
    page = hub_tab.open(f"/graph?node={HUB}")
    hub_tab.click(".node.rest:has-text('more jobs')")
    rest = page.locator(".drawer .rest li")
    name = rest.last.locator("a").inner_text()

    page.fill("[aria-label='Find one of these']", name)
    page.wait_for_function("() => document.querySelectorAll('.drawer .rest li').length === 1")
    hub_tab.click(".drawer .rest button")

    assert page.locator(f".node.selected:has-text('{name}')").count() == 1
    assert "pin=" in page.url
    assert hub_tab.faults == []


@pytest.mark.parametrize("list_of", ["runs", "jobs"])
def test_application_appears_once_with_what_is_below_it_folded(hub_tab: Tab, list_of: str) -> None:
    page = hub_tab.open(f"/{list_of}")
    row = page.locator("tr:has-text('below it')")

    assert page.locator("tr:has-text('loader')").count() == 2
    assert page.locator("tr:has-text('└')").count() == 0
    assert f"7 {list_of} below it, 1 failed" in row.inner_text()

    row.locator("button").first.click()
    page.wait_for_selector("tr:has-text('step_6')")
    assert "└ step_3" in page.locator("tr:has-text('step_3')").inner_text()
    assert hub_tab.faults == []


def test_impact_of_a_hub_begins_with_jobs_and_owners(hub_tab: Tab) -> None:
    page = hub_tab.open("/impact?namespace=file&name=/lake/shop/hub")

    rows = page.locator("h2:has-text('By job and owner') + div tbody tr")
    assert rows.count() == 60
    # the job that failed made no table
    page.click("summary:has-text('All 119 rows')")
    every = page.locator("details:has-text('All 119 rows') tbody tr")
    assert every.count() == 100
    page.click("p:has-text('100 of 119 rows') button")
    assert every.count() == 119
    assert hub_tab.faults == []


def test_clicked_box_stays_in_view_beside_the_drawer(hub_tab: Tab) -> None:
    page = hub_tab.open(f"/graph?node={HUB}")
    page.locator(".node.dataset").last.click()
    hub_tab.settle()

    page.wait_for_function("""() => { const box = document.querySelector('.node.selected')?.getBoundingClientRect();
        const canvas = document.querySelector('.canvas').getBoundingClientRect();
        return box && box.right <= canvas.right && box.bottom <= canvas.bottom && box.left >= canvas.left; }""")


def test_graph_is_framed_when_the_keyboard_reaches_it_and_not_by_a_click(hub_tab: Tab) -> None:
    page = hub_tab.open(f"/graph?node={HUB}")
    style = "getComputedStyle(document.querySelector('svg.graph')).outlineStyle"

    page.locator(".node.dataset").last.click()
    assert page.evaluate(style) == "none"

    page.locator("svg.graph").focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Tab")
    assert page.evaluate(style) == "solid"


def test_map_counts_all_tables_and_opens_in_place(hub_tab: Tab) -> None:
    page = hub_tab.open("/graph")

    assert "60 jobs" in page.inner_text(".hidden-note")
    assert 1 <= page.locator(".node").count() <= 40
    assert smallest_text(page) >= 10
    page.locator(".node.rest, .node.place").first.click()
    hub_tab.settle()
    assert "open=" in page.url
    assert page.locator(".node.dataset").count() >= 1
    assert page.locator(".node").count() <= 41
    page.locator(".node.dataset:has-text('report')").first.dispatch_event("click")
    hub_tab.settle()
    name = page.inner_text(".drawer h2 >> nth=0")
    page.wait_for_selector(".drawer:has-text('No snapshot of it is known')")
    hub_tab.click(".drawer a:text-is('open')")
    assert page.inner_text("main h1") == f"lake.shop.{name}"
    page.go_back()
    hub_tab.settle()
    hub_tab.click("button:text-is('close all')")
    assert "open=" not in page.url
    assert hub_tab.faults == []


def test_failed_latest_run_is_told_beside_edges_of_an_older_run(
    browser: Any, empty_address: str
) -> None:
    world = World(datetime.now(UTC))
    read, written = [table("orders", ["id"])], [table("sums", ["id"])]
    with client_of(empty_address, "") as client:
        for event in (
            world.event("COMPLETE", 60, "sum", read, written, run="first"),
            world.event("FAIL", 30, "sum", read, [], run="second"),
        ):
            client.post("/api/v1/lineage", json=event).raise_for_status()
    for tab in tab_of(browser, empty_address):
        page = tab.open("/graph")

        assert page.locator(".node.job.bad .sub").all_text_contents() == ["✕ failed"]
        labels = page.locator(".edge-label").all_text_contents()
        assert labels == ["latest run ✕ failed"] * 2
        assert page.locator(".edge.old").count() == 1  # the failed run read its input too

        page = tab.open("/table?namespace=file&name=/lake/shop/sums&tab=lineage")
        writer = page.locator("tr:has-text('sum'):has-text('earlier run')")
        assert "✕ failed" in writer.inner_text()


def test_lines_of_a_dense_map_are_counted_and_appear_with_their_box(
    browser: Any, empty_address: str
) -> None:
    world = World(datetime.now(UTC))
    databases = range(7)
    with client_of(empty_address, "") as client:
        for source, target in permutations(databases, 2):
            read = [in_database(source, "sums")]
            written = [in_database(target, name) for name in ("sums", "parts")]
            event = world.event("COMPLETE", 60, f"from_{source}_to_{target}", read, written)
            client.post("/api/v1/lineage", json=event).raise_for_status()
    for tab in tab_of(browser, empty_address):
        page = tab.open("/graph")

        # two databases that feed each other are joined by one line
        drawn = page.locator(".edge").count()
        assert f"{drawn} of 21 lines drawn" in page.inner_text(".hidden-note")
        assert 4 <= drawn <= 7  # each box has one
        page.hover(".node >> nth=0")
        page.wait_for_function("() => document.querySelectorAll('.edge.on').length === 6")
        page.mouse.move(0, 0)
        page.wait_for_function("() => document.querySelectorAll('.edge.on').length === 0")
        page.focus("svg.graph")
        page.keyboard.press("ArrowRight")
        page.wait_for_function("() => document.querySelectorAll('.edge.on').length === 6")


LINES_BEHIND_BOXES = """() => { const boxes = [...document.querySelectorAll('.node')].map(
    node => node.querySelector('.box:not(.behind)').getBoundingClientRect());
  const covered = p => boxes.some(box => p.x > box.left + 6 && p.x < box.right - 6
    && p.y > box.top + 6 && p.y < box.bottom - 6);
  return [...document.querySelectorAll('.edge')].filter(line => [...Array(50).keys()].some(
    i => covered(line.getPointAtLength(i * line.getTotalLength() / 50)
      .matrixTransform(line.getScreenCTM())))).length; }"""


def test_map_of_a_database_that_feeds_all_others_fits_the_window(
    browser: Any, empty_address: str
) -> None:
    """24 databases in one column would be higher than the window."""
    world = World(datetime.now(UTC))
    databases = range(1, 25)
    with client_of(empty_address, "") as client:
        for target in databases:
            for job in ("first", "second"):
                read = [in_database(0, "customers")]
                written = [in_database(target, "sums")]
                event = world.event("COMPLETE", 60, f"{job}_{target}", read, written)
                client.post("/api/v1/lineage", json=event).raise_for_status()
        for source, target in permutations(databases, 2):
            if (target - source) % 24 in (1, 2):
                read, written = [in_database(source, "sums")], [in_database(target, "parts")]
                event = world.event("COMPLETE", 60, f"{source}_{target}", read, written)
                client.post("/api/v1/lineage", json=event).raise_for_status()
    for tab in tab_of(browser, empty_address):
        page = tab.open("/graph")

        assert page.locator(".node").count() == 25
        outside = page.evaluate("""() => { const box = one => one.getBoundingClientRect();
          const window = box(document.querySelector('svg.graph'));
          return [...document.querySelectorAll('.node')].filter(node => box(node).top < window.top
            || box(node).bottom > window.bottom || box(node).left < window.left
            || box(node).right > window.right).length; }""")
        assert outside == 0
        assert smallest_text(page) >= 10
        assert page.evaluate(LINES_BEHIND_BOXES) == 0
        assert page.evaluate(OVERLAPS) == [[], []]


def test_numbers_beside_the_lines_of_a_folded_box_are_apart(
    browser: Any, empty_address: str
) -> None:
    world = World(datetime.now(UTC))
    with client_of(empty_address, "") as client:
        for number in range(45):
            before = [each for each in (number - 15, number - 16) if each >= 0]
            read = [table(f"made_{each}", ["id"]) for each in before]
            written = [table(f"made_{number}", ["id"])]
            event = world.event(
                "COMPLETE", 90 - number, f"job_{number}", [*read, table("hub", ["id"])], written
            )
            client.post("/api/v1/lineage", json=event).raise_for_status()
    for tab in tab_of(browser, empty_address):
        page = tab.open(f"/graph?node={HUB}")

        page.hover(".node.rest:has-text('tables')")
        page.wait_for_selector(".link-label.on")
        shown = page.locator(".link-label.on").all()
        boxes = [one.bounding_box() for one in shown]
        meeting = [
            (a, b)
            for a, b in combinations(boxes, 2)
            if abs(a["y"] - b["y"]) < a["height"] and abs(a["x"] - b["x"]) < a["width"]
        ]
        assert len(boxes) > 8
        assert meeting == []


def in_database(number: int, name: str) -> dict[str, Any]:
    """Return a table of the database of this number."""
    symlink = {"namespace": "file:/lake", "name": f"db{number}.{name}", "type": "TABLE"}
    facet = {"_producer": "https://example.org/page", "_schemaURL": "https://example.org/page"}
    facets = {
        "symlinks": facet | {"identifiers": [symlink]},
        "catalog": facet | {"name": "lake", "framework": "iceberg", "type": "jdbc"},
    }
    return {"namespace": "file", "name": f"/lake/db{number}/{name}", "facets": facets}


def test_retiring_is_offered_by_the_job_with_what_is_lost(tab: Tab) -> None:
    assert tab.open("/").locator("button:has-text('retire')").count() == 0
    page = tab.open("/job?namespace=shop&name=shop_jobs.refunds")
    assert page.locator(".note:has-text('It blocks barrier 21 of group shop')").count() == 1

    page.click("summary:text-is('Retire this job')")

    assert page.locator("button:text-is('retire…')").is_visible()
    assert "Its tables leave group shop" in page.inner_text("main")
