"""`strandline import --from marquez URL | --from datahub FILE`.

The content of the other catalog is stored as events.
"""

import sys
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from sqlalchemy import Engine

from strandline.cli.answers import tell
from strandline.cli.open_store import open_store
from strandline.errors import SettingsError
from strandline.exporters.registry import client_of
from strandline.imports.datahub_file import DataHubFile
from strandline.imports.marquez import MarquezReader
from strandline.imports.taking import take_events, take_marquez
from strandline.logs import make_log
from strandline.setting_parsers import web_address
from strandline.settings import Settings, missing_setting

MOST_BYTES = 256 << 20  # of a page: events of 23 MB are real
Report = Callable[[str, int, int | None], None]


def run(options: Namespace, settings: Settings) -> int:
    """Import, and say what was taken; 1 if anything was no event."""
    read = _from_marquez if options.source == "marquez" else _from_datahub
    settings = _with_source(options, settings)
    engine = open_store(settings, make_log(settings.log_format, "warning"))
    try:
        counts, left_out = read(engine, options, settings)
    finally:
        engine.dispose()
    answer = {kind: counts[kind] for kind in KINDS} | {"leftOut": dict(left_out)}
    summary = (
        ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind]) or "nothing to take"
    )
    rest = [f"left out: {count} x {what}" for what, count in sorted(left_out.items())]
    tell(answer, lambda: [f"{options.source}: {summary}", *rest], as_json=options.json)
    return 1 if counts["dead"] else 0


def _with_source(options: Namespace, settings: Settings) -> Settings:
    """Return the settings with the address to import from; refuse a command without a source."""
    if options.source == "datahub":
        if options.place is None:
            raise SettingsError(["no file is named: strandline import --from datahub FILE"])
        return settings
    if options.place is not None:
        return replace(settings, marquez_url=_address(options.place))
    if settings.marquez_url is None:
        raise missing_setting(
            "marquez_url",
            "set it, or name the address: strandline import --from marquez http://host:5000",
        )
    return settings


def _from_marquez(
    engine: Engine, options: Namespace, settings: Settings
) -> tuple[Counter[str], Counter[str]]:
    with _progress() as report:
        reader = MarquezReader(client_of("marquez", settings, most_bytes=MOST_BYTES), report)
        return take_marquez(engine, reader), Counter()


def _from_datahub(
    engine: Engine, options: Namespace, settings: Settings
) -> tuple[Counter[str], Counter[str]]:
    file = DataHubFile(Path(options.place))
    return take_events(engine, file.events()), file.left_out


def _address(place: str) -> str:
    try:
        return web_address(place)
    except ValueError as error:
        raise SettingsError([f"{place} {error}"]) from None


@contextmanager
def _progress() -> Iterator[Report]:
    """Show a bar on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda what, done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True)) as progress:
        tasks = {}

        def report(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=total)
            progress.update(tasks[what], completed=done, total=total)

        yield report


KINDS = ("stored", "duplicate", "dead", "unread")
