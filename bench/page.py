"""The page in a real Chromium.

How long until a graph is drawn once its data is here, and frames a second while it is dragged: of
layered graphs, and of one table that hundreds and thousands of jobs read.

Skipped, and said so, where there is no Chromium. A machine without a graphics card draws by its
processor.
"""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from bench._machine import serving
from bench._stores import Event, event, store
from bench.report import record

HUB = 0  # every tenth job reads this table
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
)
WATCH = """window.drawn = new Promise(done => { const look = () => {
  const n = document.querySelectorAll('svg.graph .node').length;
  if (n) requestAnimationFrame(() => done({at: performance.now(), boxes: n}));
  else setTimeout(look, 5); }; look(); });"""
FRAMES = """async () => { const svg = document.querySelector('svg.graph');
  const box = svg.getBoundingClientRect(); let frames = 0, going = true;
  const count = () => { frames += 1; if (going) requestAnimationFrame(count); };
  requestAnimationFrame(count);
  const begin = performance.now(); let turn = 0;
  const mouse = (type, x) => new MouseEvent(type, {view: window, clientX: box.x + 300 + x,
    clientY: box.y + 60, bubbles: true, cancelable: true});
  svg.dispatchEvent(mouse('mousedown', 0));
  while (performance.now() - begin < 2000) { turn += 1;
    window.dispatchEvent(mouse('mousemove', 10 * Math.abs(turn % 40 - 20)));
    await new Promise(next => requestAnimationFrame(next)); }
  window.dispatchEvent(mouse('mouseup', 0));
  going = false; return frames / ((performance.now() - begin) / 1000); }"""


def run(short: bool) -> None:
    """Measure and record; short: 16 and 200 nodes."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("page: skipped, no Chromium here", file=sys.stderr)
        return
    for nodes in (16, 200) if short else (16, 300, 2_000, 20_000):
        _measure(chromium, layered(nodes), f"{nodes}", f"{nodes} nodes in the store")
    for readers in (40,) if short else (400, 4_000):
        events = [_event(number, readers + 1, of_hub=1) for number in range(readers + 1)]
        _measure(chromium, events, f"hub_{readers}", f"{readers} jobs read one table")


def _measure(chromium: str, events: list[Event], name: str, about: str) -> None:
    """Record how soon the first graph and the one around the hub are drawn, and its panning."""
    hub = quote(f"dataset:file:/lake/db{HUB}/table_{HUB}", safe="")
    with store("sqlite", events) as url, serving(url) as (port, _), tab(chromium) as page:
        root = f"http://127.0.0.1:{port}/graph"
        for kind, address in (("first_graph", root), ("around", f"{root}?node={hub}")):
            seconds, boxes = _drawn(page, address)
            note = f"{about}, {boxes} boxes drawn"
            record(f"page.{kind}.{name}", seconds, "s after data", most=1, note=note)
        page.wait_for_timeout(1000)
        frames = page.evaluate(FRAMES)
        note = f"{boxes} boxes around a table, dragged by the mouse"
        record(f"page.frames.{name}", frames, "frames/s", least=50, note=note)


def _drawn(page: Any, address: str) -> tuple[float, int]:
    """Return the seconds from the graph's answer to its first boxes, and their number."""
    page.goto(address)
    drawn = page.evaluate("window.drawn")
    here = page.evaluate(
        "Math.max(...performance.getEntriesByType('resource').filter(e => "
        "/api.v2.(graph|lineage)/.test(e.name)).map(e => e.responseEnd))"
    )
    return (drawn["at"] - here) / 1000, drawn["boxes"]


@contextmanager
def tab(chromium: str) -> Iterator[Any]:
    """A tab that notes when the first box is drawn."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=list(FLAGS))
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(120_000)
        page.add_init_script(WATCH)
        yield page
        browser.close()


def layered(nodes: int) -> list[Event]:
    """Return the events of a layered graph of about so many tables and jobs, half of each."""
    return [_event(number, nodes // 2) for number in range(nodes // 2)]


def _event(number: int, tables: int, of_hub: int = 10) -> Event:
    """Job `number` makes table `number` of two of the layer before; one of `of_hub` reads the hub.

    Layers are a tenth of all tables.
    """
    layer = max(1, tables // 10)
    reads = [number - layer - (number * 7 + turn * 3) % layer for turn in range(2)]
    if number % of_hub == of_hub - 1:
        reads.append(HUB)
    made = event(
        number, [_table(each) for each in dict.fromkeys(reads) if each >= 0], [_table(number)]
    )
    made["eventTime"] = (datetime.now(UTC) - timedelta(seconds=tables - number)).isoformat()
    made["job"] = {"namespace": "bench", "name": f"app{number % 25}.job_{number}"}
    return made


def _table(number: int) -> Event:
    symlink = {
        "namespace": "file:/lake",
        "name": f"db{number % 25}.table_{number}",
        "type": "TABLE",
    }
    common = {"_producer": "bench://page", "_schemaURL": "bench://page"}
    facets = {
        "symlinks": common | {"identifiers": [symlink]},
        "catalog": common | {"name": "lake", "framework": "iceberg", "type": "jdbc"},
    }
    return {"namespace": "file", "name": f"/lake/db{number % 25}/table_{number}", "facets": facets}
