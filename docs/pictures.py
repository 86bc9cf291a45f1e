"""Makes the pictures of the page in docs/pictures from a running collector.

`python docs/pictures.py URL [FOLDER]`.

The page of `strandline demo --replay` is meant. Twelve screens, each light and dark; needs
Playwright and a Chromium.
"""

import shutil
import sys
from pathlib import Path
from urllib.parse import quote

import httpx
from playwright.sync_api import Browser, sync_playwright

WIDTH, HEIGHT = 1280, 800


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
        for theme in ("light", "dark"):
            take(browser, root, theme, folder)
        browser.close()


def take(browser: Browser, root: str, theme: str, folder: Path) -> None:
    """Take the pictures of one theme."""
    context = browser.new_context(
        viewport={"width": WIDTH, "height": HEIGHT},
        color_scheme="light" if theme == "light" else "dark",
    )
    page = context.new_page()
    for name, path in screens(root).items():
        page.goto(root + path)
        page.wait_for_selector("main :is(h1, svg.graph .node)")
        page.wait_for_function("() => !document.querySelector('[aria-busy=true]')")
        page.wait_for_timeout(400)
        page.screenshot(path=folder / f"{name}-{theme}.png")
    context.close()


if __name__ == "__main__":
    main(
        sys.argv[1].rstrip("/"),
        Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parent / "pictures",
    )
