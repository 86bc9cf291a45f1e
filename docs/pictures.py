"""Makes the pictures of the page in docs/pictures: twelve screens of the demo, two large graphs.

`python -m docs.pictures URL [FOLDER]`, from the checkout; URL is that of `strandline demo
--replay`. The large graphs are of generated stores. Each picture is made in both themes; needs
Playwright and a Chromium.
"""

import shutil
import sys
from pathlib import Path
from urllib.parse import quote

import httpx
from playwright.sync_api import Browser, sync_playwright

from bench._machine import serving
from bench._stores import store
from bench.page import HUB, layered

SIZE = (1280, 800)
SIZES = {"board": (900, 548)}  # README shows it about so wide: its text stays readable
HUB_NODE = quote(f"dataset:file:/lake/db{HUB}/table_{HUB}", safe="")
LARGE = {"graph-300": (300, "/graph"), "hub": (2_000, f"/graph?node={HUB_NODE}")}


def screens(root: str) -> dict[str, str]:
    """Return the address of each picture; tables are found by their names."""
    with httpx.Client(base_url=f"{root}/api/v2", timeout=60) as client:
        found = client.get("/datasets", params={"limit": 100}).json()["items"]
        tables = {f"{one['database']}.{one['table']}": one for one in found if one["table"]}
        balance = tables["bank.balance"]
        named = f"namespace={quote(balance['namespace'])}&name={quote(balance['name'])}"
        one = {"namespace": balance["namespace"], "name": balance["name"], "limit": 5}
        snapshot = client.get("/datasets/snapshots", params=one).json()["items"][-1]["snapshotId"]
        run = client.get("/runs", params={"limit": 1}).json()["items"][0]
    node = quote(balance["id"], safe="")
    pair = quote("~".join(tables[f"bank.{name}"]["id"] for name in ("credits", "debits")), safe="")
    return {
        "now": "/",
        "graph": "/graph",
        "lineage": f"/graph?node={node}&selected={node}",
        "board": "/group?name=bank",
        "compare": f"/compare?tables={pair}",
        "snapshots": f"/table?{named}&snapshot={snapshot}",
        "columns": f"/table?{named}&tab=columns",
        "delay": f"/table?{named}&tab=delay",
        "expiry": f"/table?{named}&tab=expiry",
        "jobs": "/jobs",
        "runs": "/runs",
        "run": f"/run?id={quote(run['runId'])}",
    }


def main(root: str, folder: Path) -> None:
    """Take all pictures."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=chromium, args=["--no-sandbox", "--disable-gpu"]
        )
        for name, path in screens(root).items():
            take(browser, root + path, name, folder)
        for name, (nodes, path) in LARGE.items():
            with store("sqlite", layered(nodes)) as url, serving(url) as (port, _):
                take(browser, f"http://127.0.0.1:{port}{path}", name, folder)
        browser.close()


def take(browser: Browser, address: str, name: str, folder: Path) -> None:
    """Take a picture in both themes."""
    width, height = SIZES.get(name, SIZE)
    for theme in ("light", "dark"):
        page = browser.new_page(
            viewport={"width": width, "height": height},
            color_scheme="light" if theme == "light" else "dark",
        )
        page.goto(address)
        page.wait_for_selector("main :is(h1, svg.graph .node)")
        page.wait_for_function("() => !document.querySelector('[aria-busy=true]')")
        page.wait_for_timeout(400)
        page.screenshot(path=folder / f"{name}-{theme}.png")
        page.close()


if __name__ == "__main__":
    main(
        sys.argv[1].rstrip("/"),
        Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parent / "pictures",
    )
