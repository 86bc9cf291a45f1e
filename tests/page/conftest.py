"""A real browser over a real server: the page world in a store, and Chromium without a window."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from fixtures.servers import SETTINGS, client_of, serving
from strandline.store.sql.engine import make_engine
from worlds.company import World

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, as the machine has it.

    Its driver runs an event loop in this thread, which no later module shall meet.
    """
    found = next((path for name in CHROMIUM if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)")
    sync_api = pytest.importorskip("playwright.sync_api", reason="no browser driver is installed")
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def address(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield a server whose store holds the page world; tests only look at it."""
    file = tmp_path_factory.mktemp("page") / "world.db"
    shutil.copy(sqlite_template, file)
    engine = make_engine(f"sqlite:///{file}")
    with serving(engine) as root:
        with client_of(root, "") as client:
            for event in World(
                datetime.now(UTC)
            ).events():  # one by one: the model sees them as they happened
                client.post("/api/v1/lineage", json=event).raise_for_status()
        yield root
    engine.dispose()


@pytest.fixture
def empty_address(sqlite_url: str) -> Iterator[str]:
    """Yield a server with nothing in its store."""
    engine = make_engine(sqlite_url)
    with serving(engine) as root:
        yield root
    engine.dispose()


@pytest.fixture
def guarded(sqlite_url: str) -> Iterator[str]:
    """Yield a server that asks for API keys."""
    engine = make_engine(sqlite_url)
    with serving(engine, replace(SETTINGS, auth="required")) as root:
        yield root
    engine.dispose()


@dataclass
class Tab:
    """A page in the browser; `faults`: what it complained of."""

    page: Any
    root: str
    faults: list[str] = field(default_factory=list)

    def open(self, path: str) -> Any:
        """Go there, and wait until all that the address asks for is drawn."""
        self.page.goto(self.root + path)
        self.settle()
        return self.page

    def click(self, selector: str) -> None:
        """Click, and wait until all that the address then asks for is drawn."""
        self.page.click(selector)
        self.settle()

    def settle(self) -> None:
        """Wait until nothing that the address asks for is still loading or being laid out."""
        self.page.wait_for_selector(
            "main:not([aria-busy=true]) :is(h1, svg.graph)", state="attached"
        )


@pytest.fixture
def tab(browser: Any, address: str) -> Iterator[Tab]:
    """Yield a tab of a desktop's size that notes every complaint of the browser."""
    yield from tab_of(browser, address)


def tab_of(browser: Any, root: str, **options: Any) -> Iterator[Tab]:
    """Yield a tab in a context of its own."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
    context.set_default_timeout(60_000)
    tab = Tab(context.new_page(), root)
    tab.page.on(
        "console",
        lambda said: tab.faults.append(said.text) if said.type in ("error", "warning") else None,
    )
    tab.page.on("pageerror", lambda error: tab.faults.append(str(error)))
    tab.page.on("request", lambda asked: None if asked.url.startswith(root) or asked.url.startswith(("data:", "blob:"))
                else tab.faults.append(f"asked {asked.url}"))  # fmt: skip
    yield tab
    context.close()
